"""The option `--compat`, and the note on what differs by default between a simulation and a cluster (N5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from enbloc.admission.settings import settings_of
from enbloc.api.kinds import decode_faults
from enbloc.api.meta import name_of, namespace_of
from enbloc.config import Config, scheduler_names, where_alone
from enbloc.config.compat import PRESETS, preset_of
from enbloc.gangs.owner import asks_for_gang
from enbloc.sim.without_effect import without_effect

compat_option = click.option(
    "--compat",
    metavar="LIST",
    help=f"Take manifests of other projects as they are: {', '.join(PRESETS)}.",
)


def names_only_here(config: Config) -> list[str]:
    """Scheduler names that are ours where no other scheduler runs, and would not be with `enbloc run`."""
    return sorted(scheduler_names(config, alone=True) - scheduler_names(config, alone=False))


def note_names_only_here(config: Config, objects: Iterable[Any]) -> None:
    """One line on stderr for each name in the manifests that counts here and not on a cluster."""
    here = frozenset(names_only_here(config))
    used = {name for obj in objects for name in _named(obj)} if here else set()
    for name in sorted(used & here):
        preset = preset_of(name)
        way = (
            f"--compat {preset}" if preset else f"`schedulerNames` in its config, or spec.schedulerName: {_own(config)}"
        )
        click.echo(f"enbloc: note: schedulerName {name} counts as ours here; `enbloc run` needs {way}", err=True)


def note_grouped_only_here(config: Config, objects: Iterable[Any]) -> None:
    """One line on stderr for each owner whose pods are a gang here and not on a cluster."""
    if config.group_by_owner.enabled is not None:
        return
    entries = where_alone(config).group_by_owner.active
    known = [obj for obj in objects if not decode_faults(obj)]
    idle = {(one.kind, one.name) for one in without_effect(known, settings_of(config, alone=True))}
    for obj in known:
        if (obj["kind"], name_of(obj)) not in idle and asks_for_gang(entries, obj):
            name = f"{obj['kind']} {namespace_of(obj) or 'default'}/{name_of(obj)}"
            way = "`groupByOwner: {enabled: true}` in its config"
            click.echo(f"enbloc: note: pods of {name} are a gang here; `enbloc run` needs {way}", err=True)


def _own(config: Config) -> str:
    return sorted(scheduler_names(config, alone=False))[0]


def _named(value: Any) -> Iterator[str]:
    """Every `schedulerName` in an object."""
    if isinstance(value, dict):
        for key, child in value.items():
            if key == "schedulerName" and isinstance(child, str):
                yield child
            elif isinstance(child, dict | list):
                yield from _named(child)
    elif isinstance(value, list):
        for child in value:
            yield from _named(child)
