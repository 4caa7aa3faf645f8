"""What a change would do: the same cluster simulated twice, without the change and with it, and compared gang by gang.

A change is a few more events in the scenario, or another config. `Unknown` and `ValueError` say in one line what is
wrong with it. Reading files and printing is left to the caller.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from enbloc.api import volcano, workloads
from enbloc.api.kinds import all_decode_faults, kind_id
from enbloc.api.meta import Obj, Ref, controller_of, name_of, namespace_of
from enbloc.config import Config
from enbloc.scenario.live_objects import with_expected_run_time
from enbloc.scenario.scenario import PREFIX, Arrival, Scenario, ScenarioEvent, Step
from enbloc.sim.result import Result
from enbloc.sim.simulation import Records, Simulation
from enbloc.sim.statistics import GangRecord
from enbloc.units import SECOND, natural_key, parse_quantity

_AMOUNTS: Final = ("capability", "deserved", "guarantee.resource", "guarantee")
"""Fields of a Queue that hold amounts by resource; `guarantee` is short for the one before it."""
_NUMBERS: Final = ("weight", "priority")
_BOOLEANS: Final = ("reclaimable",)
_HOSTNAME: Final = "kubernetes.io/hostname"
_MIRROR: Final = "kubernetes.io/config.mirror"


class Unknown(Exception):
    """The change names something that the cluster does not have."""


class Fate(msgspec.Struct, frozen=True):
    """What one gang does in one run. Times are seconds from now; negative ones are past."""

    outcome: str
    """running, succeeded, failed, removed or waiting."""
    started: float | None = None
    ended: float | None = None
    evicted: float | None = None
    evicted_pods: int = 0
    restarted: float | None = None
    why: str = ""
    nodes: Sequence[str] = ()


class Difference(msgspec.Struct, frozen=True):
    """One gang, without the change and with it. `None`: it does not exist in that run."""

    gang: str
    queue: str
    change: str
    before: Fate | None
    after: Fate | None


class Comparison(msgspec.Struct, frozen=True):
    differences: list[Difference]
    unchanged: int
    endless: list[str]
    """Gangs that run at the start and say no run time: they are taken to run for ever."""
    end: tuple[float, float]
    """The last change in each run, in seconds."""
    cut_off: str = ""
    """Why a run was cut off before its end."""


def compare(scenario: Scenario, changed: Scenario, configs: tuple[Config, Config], until_ns: int | None) -> Comparison:
    """Runs both and compares them. Records on the objects count: the scheduler of their cluster checked them (S2)."""
    before = Simulation(scenario, configs[0], records=Records.TRUSTED).run(until_ns)
    after = Simulation(changed, configs[1], records=Records.TRUSTED).run(until_ns)
    was, becomes = _fates(before), _fates(after)
    queues = {**_queues(before), **_queues(after)}
    differences = []
    for gang in sorted({**was, **becomes}, key=natural_key):
        change = _change(was.get(gang), becomes.get(gang))
        if change:
            differences.append(Difference(gang, queues.get(gang, ""), change, was.get(gang), becomes.get(gang)))
    differences.sort(key=_order)
    unchanged = len({**was, **becomes}) - len(differences)
    endless = [gang for gang, fate in was.items() if fate.outcome == "running" and (fate.started or 0) <= 0]
    ends = (before.end, after.end)
    return Comparison(differences, unchanged, sorted(endless, key=natural_key), ends, before.reason or after.reason)


def _queues(result: Result) -> dict[str, str]:
    return {one["gang"]: one["queue"] for one in result.all_gangs}


def _fates(result: Result) -> dict[str, Fate]:
    waits = {entry["gang"]: str(entry.get("message") or "") for entry in result.pending}
    found = {gang.name: _fate(gang, waits.get(gang.name)) for gang in result.gangs if not _is_past(gang)}
    found.update((name, Fate("waiting", why=why)) for name, why in waits.items() if name not in found)
    return found


def _is_past(gang: GangRecord) -> bool:
    """Whether it had ended before the simulation began."""
    return not gang.running and gang.ended_ns <= 0 and gang.started_ns < 0 and not gang.evicted


def _fate(gang: GangRecord, why: str | None) -> Fate:
    waits = why is not None and not gang.running
    return Fate(
        outcome="waiting" if waits else gang.outcome,
        started=gang.started_ns / SECOND,
        ended=None if gang.running or waits else gang.ended_ns / SECOND,
        evicted=None if gang.evicted_ns is None else gang.evicted_ns / SECOND,
        evicted_pods=gang.evicted,
        restarted=None if gang.restarted_ns is None else gang.restarted_ns / SECOND,
        why=(why or "") if waits else "",
        nodes=sorted(gang.nodes, key=natural_key),
    )


def _change(before: Fate | None, after: Fate | None) -> str:
    """The most important difference in one word or two; empty if there is none."""
    if before is None or after is None:
        return "new" if before is None else "gone"
    if after.evicted_pods > before.evicted_pods:
        return "evicted"
    if after.evicted_pods < before.evicted_pods:
        return "not evicted"
    was, becomes = _start(before), _start(after)
    if was is None and becomes is None:
        return ""
    if was is None:
        return "starts"
    if becomes is None:
        return "does not start"
    if was != becomes:
        return "starts sooner" if becomes < was else "starts later"
    return "" if before.ended == after.ended else "ends sooner" if _end(after) < _end(before) else "ends later"


def _start(fate: Fate) -> float | None:
    return fate.restarted if fate.evicted is not None else fate.started


def _end(fate: Fate) -> float:
    return float("inf") if fate.ended is None else fate.ended


_FIRST: Final = ("new", "evicted", "does not start")


def _order(one: Difference) -> tuple[int, tuple[Any, ...]]:
    return (_FIRST.index(one.change) if one.change in _FIRST else len(_FIRST), natural_key(one.gang))


# ---- changes


def with_submitted(scenario: Scenario, submitted: Scenario) -> Scenario:
    """The objects of other files arrive."""
    return _with_events(scenario, list(map(with_expected_run_time, submitted.events)))


def with_drained(scenario: Scenario, node: str) -> Scenario:
    """The node is cordoned, and its pods are evicted but for those of DaemonSets, as `kubectl drain` does. Disruption
    budgets are not asked."""
    find_node(scenario, node)
    steps = [Step(0, 0, "patch", Ref("Node", "", node), {"spec": {"unschedulable": True}})]
    for pod in _existing(scenario, "Pod"):
        if (pod.get("spec") or {}).get("nodeName") == node and _is_drained(pod):
            steps.append(Step(0, 0, "evict-pod", Ref("Pod", namespace_of(pod), name_of(pod))))
    return _with_events(scenario, steps)


def _is_drained(pod: Obj) -> bool:
    owner = controller_of(pod) or {}
    kind = kind_id(owner) if owner.get("apiVersion") and owner.get("kind") else ""
    phase = (pod.get("status") or {}).get("phase")
    mirrored = _MIRROR in (pod["metadata"].get("annotations") or {})
    return kind != workloads.DAEMON_SET and not mirrored and phase not in ("Succeeded", "Failed")


def with_added_nodes(scenario: Scenario, count: int, like: str) -> Scenario:
    """Nodes like an existing one, empty and Ready."""
    model = find_node(scenario, like)
    taken = {name_of(node) for node in _existing(scenario, "Node")}
    names = (f"{like}-added-{number}" for number in range(1, count + len(taken) + 1))
    nodes = [_copy_of(model, name) for name in names if name not in taken][:count]
    return _with_events(scenario, [Arrival(0, 0, node) for node in nodes])


def _copy_of(node: Obj, name: str) -> Obj:
    metadata = node["metadata"]
    labels = dict(metadata.get("labels") or {})
    if _HOSTNAME in labels:
        labels[_HOSTNAME] = name
    kept = {key: text for key, text in (metadata.get("annotations") or {}).items() if not key.startswith(PREFIX)}
    status = {key: (node.get("status") or {}).get(key) for key in ("allocatable", "capacity")}
    taints = [taint for taint in (node.get("spec") or {}).get("taints") or () if not _is_a_state(taint)]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": kept},
        "spec": {"taints": taints} if taints else {},
        "status": {key: value for key, value in status.items() if value},
    }


def _is_a_state(taint: Mapping[str, Any]) -> bool:
    """Taints that Kubernetes sets for what a node is like at present."""
    return str(taint.get("key")).startswith("node.kubernetes.io/")


def with_queue_set(scenario: Scenario, queue: str, assignments: Iterable[str]) -> Scenario:
    """Fields of a Queue's spec are set, such as `weight=2` or `capability.cpu=32`."""
    found = _find(queue, _existing(scenario, volcano.QUEUE), "queue")
    spec: dict[str, Any] = {}
    for assignment in assignments:
        field, equals, text = assignment.partition("=")
        if not equals or not field or not text:
            raise ValueError(f"{assignment!r}: FIELD=VALUE is expected, such as capability.cpu=32")
        _set(spec, field, text)
    faults, _ = all_decode_faults({**found, "spec": {**(found.get("spec") or {}), **spec}})
    if faults:
        raise ValueError(str(faults[0]))
    return _with_events(scenario, [Step(0, 0, "patch", Ref(volcano.QUEUE, "", queue), {"spec": spec})])


def _set(spec: dict[str, Any], field: str, text: str) -> None:
    for amounts in _AMOUNTS:
        if field.startswith(f"{amounts}."):
            try:
                amount = parse_quantity(text)
            except ValueError as why:
                raise ValueError(f"{field}: {why}") from None
            if amount.nanos < 0:
                raise ValueError(f"{field}: {text} is negative")
            resource = field.removeprefix(f"{amounts}.")
            target = spec
            for step in ("guarantee.resource" if amounts == "guarantee" else amounts).split("."):
                target = target.setdefault(step, {})
            target[resource] = text
            return
    if field in _NUMBERS and text.lstrip("-").isdigit():
        spec[field] = int(text)
    elif field in _BOOLEANS and text in ("true", "false"):
        spec[field] = text == "true"
    else:
        known = (*_NUMBERS, *_BOOLEANS, *(f"{name}.RESOURCE" for name in _AMOUNTS[:3]))
        wanted = "a whole number" if field in _NUMBERS else "true or false" if field in _BOOLEANS else ""
        problem = f"{text!r} is not {wanted}" if wanted else f"is none of {', '.join(known)}"
        raise ValueError(f"{field}: {problem}")


def find_node(scenario: Scenario, name: str) -> Obj:
    return _find(name, _existing(scenario, "Node"), "node")


def _existing(scenario: Scenario, kind: str) -> list[Obj]:
    """The objects of a kind at the start."""
    arriving = (arrival.obj for arrival in scenario.arrivals if arrival.at_ns == 0)
    return [obj for obj in (*scenario.existing, *arriving) if kind_id(obj) == kind]


def _find(name: str, objects: Sequence[Obj], what: str) -> Obj:
    found = next((obj for obj in objects if name_of(obj) == name), None)
    if found is None:
        names = [name_of(obj) for obj in objects]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else f" ({len(names)} {what}s exist)"
        raise Unknown(f"there is no {what} {name!r}{hint}")
    return found


def _with_events(scenario: Scenario, more: Sequence[ScenarioEvent]) -> Scenario:
    """The events at their times, after those of the scenario."""
    after = 1 + max((event.order for event in scenario.events), default=0)
    added = [msgspec.structs.replace(event, order=after + number) for number, event in enumerate(more)]
    events = sorted([*scenario.events, *added], key=lambda event: (event.at_ns, event.order))
    return msgspec.structs.replace(scenario, events=events)
