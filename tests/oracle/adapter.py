"""Everything the oracle takes from the product, in one place: modules of the product move, this file follows.

Shared are the formats (quantities, durations, timestamps), the embedded API with its admission, the nodes and the
controllers, and the simulation that drives them. The scheduler is not: `plane_with` puts the oracle in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any
from unittest import mock

from enbloc.api.meta import Ref
from enbloc.api.writes import BindPod, EvictPod, Patch, Refused
from enbloc.config import Config, parse, scheduler_names
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.engine.core.plugins import plugin
from enbloc.runtime.control_plane import ControlPlane
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.result import Result
from enbloc.sim.simulation import Simulation, control_plane
from enbloc.units import (
    SECOND,
    format_duration,
    format_timestamp,
    natural_key,
    parse_duration,
    parse_quantity,
    parse_timestamp,
)

__all__ = [
    "SECOND",
    "Config",
    "Result",
    "bind",
    "configured",
    "evict",
    "format_duration",
    "format_timestamp",
    "natural_key",
    "objects",
    "parse_duration",
    "parse_quantity",
    "parse_timestamp",
    "patch",
    "run_engine",
    "run_oracle",
    "run_watched",
    "settings_of",
]

Obj = dict[str, Any]
Cycle = Callable[[Any, Config, dict[str, Any], int], None]
"""One scheduling cycle: the store, the config, what is remembered, and the time."""


# ---- the cluster


def objects(store: Any, kind: str) -> list[Obj]:
    """All objects of a kind, by namespace and name."""
    found: list[Obj] = store.list(kind)[0]
    return found


def bind(store: Any, pod: Obj, node: str, annotations: dict[str, str]) -> bool:
    metadata = pod["metadata"]
    return _written(store, BindPod(metadata["namespace"], metadata["name"], metadata["uid"], node, annotations))


def evict(store: Any, pod: Obj, reason: str, message: str) -> bool:
    metadata = pod["metadata"]
    return _written(store, EvictPod(metadata["namespace"], metadata["name"], metadata["uid"], reason, message))


def patch(store: Any, kind: str, obj: Obj, change: Obj, *, status: bool = False) -> bool:
    metadata = obj["metadata"]
    ref = Ref(kind, metadata.get("namespace") or "", metadata["name"])
    return _written(store, Patch(ref, change, "status" if status else "", metadata["uid"]))


def _written(store: Any, write: Any) -> bool:
    try:
        store.execute(write)
    except Refused:
        return False
    return True


# ---- runs


def configured(settings: dict[str, Any] | None) -> Config:
    return parse(settings)


def settings_of(config: Config) -> dict[str, Any]:
    """What the oracle asks of the config, by names of its own."""
    return {
        "names": scheduler_names(config, alone=True),
        "actions": [action.name for action in config.actions],
        "backfill": config.backfill.mode,
        "scoring": config.scoring,
        "starving_after": config.reserve.starving_after_ns,
        "reserved_node_percent": config.reserve.node_percent,
        "admit_oversized": config.enqueue.admit_oversized,
        "overcommit_milli": config.enqueue.overcommit_milli,
        "default_waiting": config.koordinator.default_waiting_ns,
        "require_scheduling_spec": config.arbitrator.require_scheduling_spec,
        "gang_deadline": config.depends_on.gang_deadline_ns,
        "unsupported": config.unsupported,
        "isolated": config.tenancy.isolated,
        "system_namespaces": config.tenancy.system_namespaces,
        "topologies": config.topologies,
        "longest_cooldown": config.tenancy.longest_cooldown_ns,
        "fair": fair_settings(config),
    }


def fair_settings(config: Config) -> dict[str, Any] | None:
    """G12: by what usage is counted; `None`: it does not count."""
    if not config.enabled("fair", "jobOrder"):
        return None
    return {"by": config.fair.by, "half_life": config.fair.half_life_ns, "shares": config.fair.shares}


class _HardOfHearing:
    """Stands where the control plane has its scheduler: the oracle reads everything anew, and listens to what is
    written nowhere and may be over before it reads: that a SchedulingSpec was deleted (decision 0018), and that a gang
    without an object had no pod for a moment (Words)."""

    kinds = frozenset({"SchedulingSpec.arbitrator.incubator.k8s.io", "Pod"})

    def __init__(self, deleted: list[Obj], pods: list[tuple[str, Obj]]) -> None:
        self._deleted = deleted
        self._pods = pods

    def observe(self, event: Any) -> None:
        if event.kind == "Pod" and event.type in ("ADDED", "DELETED"):
            self._pods.append((event.type, event.obj))
        elif event.type == "DELETED":
            self._deleted.append(event.obj)


class OraclePlane:
    """The product's controllers and the oracle's scheduler: what `Simulation` takes for a control plane."""

    def __init__(
        self, store: Any, config: Config, memory: dict[str, Any], cycle: Cycle, due: Any, pending: Any
    ) -> None:
        self._store = store
        self._config = config
        self._memory = memory
        memory["has_started"] = True
        memory["pods_that_came_or_went"][:] = [("ADDED", pod) for pod in objects(store, "Pod")]
        memory["members"].clear()
        self._cycle, self._due, self._pending = cycle, due, pending
        self._now = 0
        self._controllers = ControlPlane(store, config, scheduler_names(config, alone=True), simulated_key_pair)
        self._controllers.scheduler = _HardOfHearing(  # type: ignore[assignment]
            memory["deleted_specs"], memory["pods_that_came_or_went"]
        )
        self._reconcilers = self._controllers._controllers

    def reconcile(self, now: int) -> bool:
        return self._controllers.reconcile(now)

    def schedule(self, now: int) -> bool:
        self._now = now
        version = self._store.version
        self._cycle(self._store, self._config, self._memory, now)
        return bool(self._store.version != version)

    def due(self) -> int | None:
        timers = [self._due(self._store, self._config, self._memory, self._now)]
        timers += [controller.due() for controller in self._reconcilers]
        return min((timer for timer in timers if timer is not None), default=None)

    def pending(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._pending(self._store, self._config, self._memory, self._now)
        return found

    def close(self) -> None:
        self._controllers.close()


def _scenario(documents: list[Obj]) -> Any:
    return read_scenario([Document("oracle", number, value) for number, value in enumerate(documents, 1)])


_INSTALLED = cache(entry_points)
"""Which plugins are installed is looked up once for all runs: it is a tenth of the time of a small one."""


def _run(documents: list[Obj], config: Config, plane: Any, until: int | None) -> Result:
    with mock.patch.object(plugin, "entry_points", _INSTALLED):
        return Simulation(_scenario(documents), config, plane).run(until)


def run_engine(documents: list[Obj], config: Config, until: int | None = None) -> Result:
    return _run(documents, config, control_plane, until)


def run_watched(
    documents: list[Obj],
    settings: dict[str, Any] | None,
    until: str | None,
    instant: Callable[[float, list[Any]], None],
) -> Result:
    """The engine's run, for others than the oracle. `instant` is called after each instant, with the events of the API
    server."""
    with mock.patch.object(plugin, "entry_points", _INSTALLED):
        simulation = Simulation(_scenario(documents), configured(settings))
        watch = simulation.store.watch(None, simulation.store.version)
        result = simulation.run(
            parse_duration(until) if until else None, lambda seconds, done, total: instant(seconds, watch.drain())
        )
    instant(result.end, watch.drain())
    return result


def run_oracle(
    documents: list[Obj],
    config: Config,
    memory: dict[str, Any],
    cycle: Cycle,
    due: Any,
    pending: Any,
    until: int | None,
) -> Result:
    """The same with the oracle. What it remembers outlives a restart of the scheduler, as the rules say it does; that
    there was one matters only to records whose object is gone."""

    def plane(store: Any, config: Config) -> Any:
        return OraclePlane(store, config, memory, cycle, due, pending)

    return _run(documents, config, plane, until)
