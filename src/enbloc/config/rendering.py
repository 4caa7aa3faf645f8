"""Prints a config as the YAML file that it comes from, complete, with a comment on every key.

The output reads back as the same config. Comments are for its editors. `rendered.yaml` has its text.
"""

from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

import yaml

from enbloc.config import vocabulary
from enbloc.config.compat import DEFAULT_SCHEDULER, PRESETS
from enbloc.config.model import Action, Config, Plugin, Tier
from enbloc.config.owner_kinds import as_data
from enbloc.config.volcano import MAX_WEIGHT
from enbloc.units import format_duration


def render(config: Config) -> str:
    """The effective config as YAML."""
    kinds = [f"  - {_flow(as_data(kind))}" for kind in config.group_by_owner.kinds]
    values = {
        "default_scheduler": DEFAULT_SCHEDULER,
        "scheduler_names": _flow(list(config.scheduler_names or vocabulary.SCHEDULER_NAMES)),
        "presets": ", ".join(PRESETS),
        "compat": _flow(list(config.compat)),
        "unsupported": config.unsupported,
        "actions": _listed("actions:", [line for action in config.actions for line in _action(action)]),
        "max_weight": MAX_WEIGHT,
        "tiers": _listed("tiers:", [line for tier in config.tiers for line in _tier(tier)]),
        "min_available": config.admission.min_available,
        "admit_oversized": _flow(config.enqueue.admit_oversized),
        "expect_pods_within": format_duration(config.enqueue.expect_pods_within_ns),
        "partial_gang_timeout": format_duration(config.partial_gang_timeout_ns),
        "default_waiting_time": format_duration(config.koordinator.default_waiting_ns),
        "require_scheduling_spec": _flow(config.arbitrator.require_scheduling_spec),
        "gang_deadline": format_duration(config.depends_on.gang_deadline_ns),
        "dequeue_strategy": "fifo" if config.queues.fifo else "traverse",
        "metrics": "volcano" if config.volcano_metrics else "none",
        "group_by_owner": _flow(config.group_by_owner.enabled),
        "owner_kinds": _listed("  kinds:", kinds),
        "topologies": _flow([{"name": one.name, "levels": list(one.levels)} for one in config.topologies]),
        "tenancy": "isolated" if config.tenancy.isolated else "shared",
        "system_namespaces": _flow(list(config.tenancy.system_namespaces)),
        "longest_cooldown": _duration(config.tenancy.longest_cooldown_ns),
    }
    return Template(Path(__file__).with_name("rendered.yaml").read_text()).substitute(values)


def _listed(key: str, lines: list[str]) -> str:
    return "\n".join([key, *lines]) if lines else f"{key} []"


def _duration(nanos: int | None) -> str:
    return "null" if nanos is None else format_duration(nanos)


def _action(action: Action) -> Iterator[str]:
    yield f"  # {vocabulary.ACTIONS[action.name]}"
    yield f"  - name: {action.name}"
    yield from _arguments(action.name, action.arguments, "    ")


def _tier(tier: Tier) -> Iterator[str]:
    yield "  - plugins:" if tier.plugins else "  - plugins: []"
    for plugin in tier.plugins:
        yield from _plugin(plugin)


def _plugin(plugin: Plugin) -> Iterator[str]:
    note = vocabulary.PLUGINS.get(plugin.name)
    yield f"      # {note.text if note else 'from another package'}"
    yield f"      - name: {_flow(plugin.name)}"
    for point, enabled in plugin.points.items():
        yield f"        {vocabulary.flag_of(point)}: {_flow(enabled)}  # whether it takes part at this point"
    yield from _arguments(plugin.name, plugin.arguments, "        ")


def _arguments(of: str, arguments: dict[str, Any], indent: str) -> Iterator[str]:
    if arguments:
        yield f"{indent}arguments:"
    for key, value in arguments.items():
        note = vocabulary.ARGUMENT_NOTES.get(f"{of}.{key}") or vocabulary.ARGUMENT_NOTES.get(key)
        if note is None:
            note = "its weight" if key.startswith("binpack.resources.") else "passed on as it is"
        yield f"{indent}  {_flow(key)}: {_flow(value)}  # {note}"


def _flow(value: object) -> str:
    """Any plain value on one line."""
    text = _dump(value)
    # Text over several lines would be folded, and break out of its place: quoted, its line ends are escaped.
    return text if "\n" not in text else _dump(value, style='"')


def _dump(value: object, style: str | None = None) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, default_style=style, width=float("inf"), sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
