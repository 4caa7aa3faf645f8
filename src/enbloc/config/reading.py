"""Reads a config file, as a YAML loader gives it, into a `Config`: all of it, or every problem that it has.

This module knows the file's keys. Actions and tiers, the part that comes from Volcano, are read by `volcano`; single
values by `values`.

A name that Volcano ships and that has no counterpart here is accepted and named at start. Any other unknown name is an
error: its author believes a policy to be in effect that is not, and warnings are not read.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal, cast

from enbloc.config import volcano
from enbloc.config.compat import PRESETS
from enbloc.config.model import (
    PARTIAL_GANG_TIMEOUT_NS,
    Admission,
    Arbitrator,
    Config,
    DependsOn,
    Enqueue,
    Koordinator,
    Queues,
    Tenancy,
    Tier,
    Topology,
)
from enbloc.config.owner_kinds import read_group_by_owner
from enbloc.config.values import ROOT, Problem, ValueReader, nearest, shown
from enbloc.config.vocabulary import NO_EFFECT, PLUGINS, SCHEDULER_NAMES

_KEYS = (
    "schedulerNames",
    "compat",
    "unsupported",
    "actions",
    "configurations",
    "tiers",
    "admission",
    "enqueue",
    "partialGangTimeout",
    "koordinator",
    "arbitrator",
    "dependsOn",
    "tenancy",
    "systemPriorityNamespaces",
    "longestCooldownTime",
    "queues",
    "groupByOwner",
    "topologies",
    "metrics",  # `compat` is ours; the rest is the source of Volcano's plugin `usage`: accepted, not used
)


class ConfigError(Exception):
    """A config file with faults. `problems`: field path and message of each."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(f"{path}: {message}" for path, message in problems))
        self.problems = problems


def parse(data: Any) -> Config:
    """The config that a loaded YAML document describes; an empty document is all defaults."""
    if isinstance(data, dict) and data.get("kind") == "ConfigMap":
        raise ConfigError([(ROOT, "is a ConfigMap: give the YAML inside its data as a file of its own")])
    reader = ValueReader()
    top = reader.mapping(data, ROOT, _KEYS)
    only = partial(_only, reader, top)
    compat = _compat(reader, top.get("compat"))
    listed = top.get("actions") if top.get("actions") is not None else _preset(compat, "actions")
    actions = volcano.read_actions(reader, listed, top.get("configurations"))
    tiers = volcano.read_tiers(reader, top.get("tiers"), actions)
    config = Config(
        actions=actions,
        tiers=tiers,
        scoring=volcano.scoring(tiers),
        reserve=volcano.reserve(actions),
        backfill=volcano.backfill(actions),
        preempt=volcano.preempt(actions),
        fair=volcano.fair(tiers),
        sla_waiting_ns=volcano.sla_waiting_ns(tiers),
        enqueue=_enqueue(reader, top.get("enqueue"), volcano.overcommit_milli(actions, tiers)),
        scheduler_names=_scheduler_names(reader, top.get("schedulerNames")),
        compat=compat,
        unsupported=_unsupported(reader, top.get("unsupported")),
        admission=_admission(reader, top.get("admission"), compat),
        koordinator=Koordinator(
            reader.duration(*only("koordinator", "defaultWaitingTime"), Koordinator().default_waiting_ns)
        ),
        arbitrator=Arbitrator(
            reader.boolean(*only("arbitrator", "requireSchedulingSpec"), Arbitrator().require_scheduling_spec)
        ),
        depends_on=DependsOn(reader.duration(*only("dependsOn", "gangDeadline"), DependsOn().gang_deadline_ns)),
        tenancy=_tenancy(reader, top),
        queues=Queues(
            fifo=reader.choice(*only("queues", "dequeueStrategy"), ("traverse", "fifo"), "traverse") == "fifo"
        ),
        group_by_owner=read_group_by_owner(reader, top.get("groupByOwner")),
        topologies=_topologies(reader, top.get("topologies")),
        volcano_metrics=_volcano_metrics(reader, top.get("metrics")),
        partial_gang_timeout_ns=reader.duration(
            top.get("partialGangTimeout"), "partialGangTimeout", PARTIAL_GANG_TIMEOUT_NS
        ),
        warnings=(*reader.warnings, *_without_effect(tiers)),
    )
    if reader.problems:
        raise ConfigError(reader.problems)
    return config


def _without_effect(tiers: tuple[Tier, ...]) -> Iterator[Problem]:
    for n, tier in enumerate(tiers):
        for m, plugin in enumerate(tier.plugins):
            note = PLUGINS.get(plugin.name)
            if note is not None and note.text.startswith(NO_EFFECT):
                yield f"tiers[{n}].plugins[{m}].name", f"plugin {plugin.name} is {note.text}"


def _scheduler_names(reader: ValueReader, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    before = len(reader.problems)
    names = _names(reader, value, "schedulerNames", "a scheduler")
    if not names and len(reader.problems) == before:
        reader.problem("schedulerNames", "must name at least one scheduler")
    # Written out, the default still is the default: what `enbloc config` prints must not change a simulation.
    return None if tuple(names) == SCHEDULER_NAMES else tuple(names)


def _names(reader: ValueReader, value: object, field: str, what: str) -> list[str]:
    """A list of names, none of them twice."""
    names: list[str] = []
    for n, name in enumerate(reader.sequence(value, field)):
        path = f"{field}[{n}]"
        if not isinstance(name, str) or not name.strip():
            reader.problem(path, f"must be the name of {what}, not {shown(name)}")
        elif name in names:
            reader.problem(path, f"names {shown(name)} a second time")
        else:
            names.append(name)
    return names


def _tenancy(reader: ValueReader, top: dict[str, Any]) -> Tenancy:
    mode = reader.choice(top.get("tenancy"), "tenancy", ("shared", "isolated"), "shared")
    named = _names(reader, top.get("systemPriorityNamespaces"), "systemPriorityNamespaces", "a namespace")
    longest = top.get("longestCooldownTime")
    longest_ns = None if longest is None else reader.duration(longest, "longestCooldownTime", 0)
    return Tenancy(mode == "isolated", tuple(named), longest_ns)


def _unsupported(reader: ValueReader, value: object) -> Literal["hold", "warn"]:
    return cast(Literal["hold", "warn"], reader.choice(value, "unsupported", ("hold", "warn"), "hold"))


def _compat(reader: ValueReader, value: object) -> tuple[str, ...]:
    """The presets, each once, in the order of `PRESETS`."""
    named = value.split(",") if isinstance(value, str) else reader.sequence(value, "compat")
    found = set()
    for n, name in enumerate(named):
        preset = name.strip() if isinstance(name, str) else None
        if preset in PRESETS:
            found.add(preset)
        elif preset != "":
            known = ", ".join(PRESETS)
            reader.problem(f"compat[{n}]", f"{shown(name)} is no preset (known: {known}){nearest(str(name), PRESETS)}")
    return tuple(name for name in PRESETS if name in found)


def _preset(compat: tuple[str, ...], field: str) -> str | None:
    """The first of these presets that sets a default."""
    values = (getattr(PRESETS[name], field) for name in compat)
    return next((value for value in values if value is not None), None)


def _admission(reader: ValueReader, value: object, compat: tuple[str, ...]) -> Admission:
    section = reader.mapping(value, "admission", ("minAvailable",))
    default = _preset(compat, "min_available") or Admission().min_available
    mode = reader.choice(section.get("minAvailable"), "admission.minAvailable", ("strict", "relaxed"), default)
    return Admission(min_available=cast(Literal["strict", "relaxed"], mode))


def _enqueue(reader: ValueReader, value: object, overcommit_milli: int) -> Enqueue:
    section = reader.mapping(value, "enqueue", ("admitOversized", "expectPodsWithin"))
    admit = reader.boolean(section.get("admitOversized"), "enqueue.admitOversized", Enqueue().admit_oversized)
    within_ns = reader.duration(
        section.get("expectPodsWithin"), "enqueue.expectPodsWithin", Enqueue().expect_pods_within_ns
    )
    return Enqueue(admit_oversized=admit, overcommit_milli=overcommit_milli, expect_pods_within_ns=within_ns)


def _only(reader: ValueReader, top: dict[str, Any], section: str, key: str) -> tuple[Any, str]:
    """The value of a section's only key, and its path."""
    return reader.mapping(top.get(section), section, (key,)).get(key), f"{section}.{key}"


def _volcano_metrics(reader: ValueReader, value: object) -> bool:
    compat = value.get("compat") if isinstance(value, dict) else None
    return reader.choice(compat, "metrics.compat", ("none", "volcano"), "none") == "volcano"


def _topologies(reader: ValueReader, value: object) -> tuple[Topology, ...]:
    found: dict[str, Topology] = {}
    for n, item in enumerate(reader.sequence(value, "topologies")):
        path = f"topologies[{n}]"
        section = reader.mapping(item, path, ("name", "levels"))
        name = section.get("name")
        levels = _names(reader, section.get("levels"), f"{path}.levels", "a node label")
        if not isinstance(name, str) or not name.strip():
            reader.problem(f"{path}.name", f"must be the name of a topology, not {shown(name)}")
        elif name in found:
            reader.problem(f"{path}.name", f"names {shown(name)} a second time")
        elif not levels:
            reader.problem(f"{path}.levels", "must name at least one node label, from the top down")
        else:
            found[name] = Topology(name, tuple(levels))
    return tuple(found.values())
