"""The timeline: one line for each transition of an object, read from watch events.

The recorder compares each event with a few facts of the object's last state. Objects that the API never stored
(admission rejected them) are added by the caller with `note`.

Holds and reservations (`held`, `reserved`, `released`) are read by comparing the claim records of gangs: a pod that is
no longer in one was released, unless it is bound by now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec

from enbloc.api.kinds import kind_id
from enbloc.api.koordinator import TIMEOUT
from enbloc.api.meta import Obj, annotations_of, controller_of, holds, name_of, namespace_of, uid_of
from enbloc.api.writes import WatchEvent
from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.units import SECOND, format_duration

_ENDS: Final = {"Succeeded": "succeeded", "Failed": "failed"}
_HAVE_PHASES: Final = frozenset({"Job", "PodGroup", "QueueJob"})


class Line(msgspec.Struct, frozen=True, gc=False):
    """One transition, at `t` seconds."""

    t: float
    what: str
    kind: str
    namespace: str
    name: str
    node: str = ""
    message: str = ""

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        text = f"t={format_duration(round(self.t * SECOND))} {self.what} {self.kind} {name}"
        if self.node:
            text += f" on {self.node}"
        return f"{text}: {self.message}" if self.message else text


class PhaseLine(Line, frozen=True, gc=False):
    """The phase of a gang's object changed."""

    from_: str = msgspec.field(name="from", default="")
    to: str = ""

    def __str__(self) -> str:
        return f"{super().__str__()}: {self.from_ or '(none)'} -> {self.to or '(none)'}"


class Elapsing(Protocol):
    """A clock that counts from the start of a run."""

    @property
    def elapsed_s(self) -> float: ...


class _Facts(msgspec.Struct, eq=False):
    """What was last known of an object."""

    node: str = ""
    phase: str = ""
    evicted: bool = False
    timed_out: bool = False
    count: int = 0
    restarts: int = 0


class Recorder:
    """Turns watch events into lines."""

    def __init__(self, clock: Elapsing, own_namespaces: frozenset[str] = frozenset()) -> None:
        self._clock = clock
        self._own_namespaces = own_namespaces
        """Namespaces that the user defined. Others are created when needed, and not shown."""
        self._facts: dict[str, _Facts] = {}
        self._held = _Held()
        self.lines: list[Line] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        """(what, kind) → how many lines."""

    def note(self, what: str, obj: Obj, message: str) -> None:
        """A line about something that has no watch event."""
        self._add(what, obj, message=message)

    def adopt(self, objects: Iterable[Obj]) -> None:
        """Objects that existed before the run: they are known from now on, and have no lines."""
        for obj in objects:
            self.observe(WatchEvent("ADDED", kind_id(obj), obj))
        self.lines.clear()
        self.counts.clear()

    def observe(self, event: WatchEvent) -> None:
        obj, uid = event.obj, uid_of(event.obj)
        if event.kind == "Event":
            self._observe_event(uid, event)
            return
        if event.kind == "Namespace" and name_of(obj) not in self._own_namespaces:
            return
        if event.type == "ADDED":
            facts = self._facts[uid] = _Facts()
            self._add("created", obj)
        else:
            facts = self._facts.get(uid) or self._facts.setdefault(uid, _Facts())
        for what, namespace, name, node in self._held.changes(event):
            self._append(Line(self._clock.elapsed_s, what, "Pod", namespace, name, node))
        if event.kind == "Pod":
            for what, node, message in _pod_changes(obj, facts):
                self._add(what, obj, node, message)
        elif obj["kind"] in _HAVE_PHASES:
            self._observe_phase(obj, facts)
        if event.type == "DELETED":
            self._add("deleted", obj)
            self._facts.pop(uid, None)

    def _observe_phase(self, obj: Obj, facts: _Facts) -> None:
        phase = phase_of(obj)
        if phase != facts.phase:
            seconds = self._clock.elapsed_s
            kind, namespace, name = obj["kind"], namespace_of(obj), name_of(obj)
            self._append(PhaseLine(seconds, "phase", kind, namespace, name, from_=facts.phase, to=phase))
            facts.phase = phase

    def _observe_event(self, uid: str, event: WatchEvent) -> None:
        """A Warning, each time it was counted. Not shown: Normal Events, and those on members of gangs with objects."""
        obj = event.obj
        if event.type == "DELETED" or obj.get("type") != "Warning" or obj.get("related"):
            self._facts.pop(uid, None)
            return
        facts = self._facts.get(uid) or self._facts.setdefault(uid, _Facts())
        stated = obj.get("count")
        count = stated if isinstance(stated, int) else 1
        if count > facts.count:
            about = obj.get("involvedObject")
            kind, namespace, name = (_text(about, key) for key in ("kind", "namespace", "name"))
            message = ": ".join(part for part in (_text(obj, "reason"), _text(obj, "message")) if part)
            self._append(Line(self._clock.elapsed_s, "warning", kind, namespace, name, "", message))
        facts.count = count

    def _add(self, what: str, obj: Obj, node: str = "", message: str = "") -> None:
        seconds = self._clock.elapsed_s
        self._append(Line(seconds, what, obj["kind"], namespace_of(obj), name_of(obj), node, message))

    def _append(self, line: Line) -> None:
        self.lines.append(line)
        self.counts[line.what, line.kind] += 1

    def truncate(self, count: int) -> None:
        """Drops all lines after the first `count`."""
        for line in self.lines[count:]:
            self.counts[line.what, line.kind] -= 1
        del self.lines[count:]

    def about(self, kind: str, namespace: str, name: str, last: int) -> list[Line]:
        """The last lines about one object."""
        found: list[Line] = []
        for line in reversed(self.lines):
            if (line.kind, line.namespace, line.name) == (kind, namespace, name):
                found.append(line)
                if len(found) == last:
                    break
        return found[::-1]


class _Held:
    """The pods that have a claim, as their gangs' records say: `held` (K6), or `reserved` by a reservation (R), a
    nomination (P3) or for a later wave (D5)."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, str], str] = {}
        """(namespace, name) of a pod → the node of its claim."""
        self._bound: set[tuple[str, str]] = set()
        self._gone: set[tuple[str, str]] = set()
        """Pods that were deleted while they had a claim: their slot may stay in the record until they exist again."""
        self._of_record: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
        """(namespace, UID) of the object with a record → name of each pod in it → `held` or `reserved`, and where."""
        self._names: dict[str, set[str]] = {"": set()}
        """Namespace → names of pods; "" → names of nodes: those that brief records have digests of."""

    def changes(self, event: WatchEvent) -> Iterator[tuple[str, str, str, str]]:
        """(what, namespace, name, node) of every pod whose claim was made or released."""
        obj, namespace, gone = event.obj, namespace_of(event.obj), event.type == "DELETED"
        if event.kind in ("Pod", "Node"):
            names = self._names.setdefault(namespace, set())
            (names.discard if gone else names.add)(name_of(obj))
        if event.kind == "Pod":
            key = (namespace, name_of(obj))
            was_gone = key in self._gone
            self._gone.discard(key)
            if gone:
                self._bound.discard(key)
                if key in self._nodes:
                    self._gone.add(key)
                    yield "released", *key, self._nodes.pop(key)
            elif obj["spec"].get("nodeName"):  # its record is about to be removed
                self._bound.add(key)
                self._nodes.pop(key, None)
            elif was_gone:  # it was recreated
                yield from self._claimed(namespace, self._slot_that_stayed(*key))
        records, home = claim_records.read_all(annotations_of(obj)), (namespace, uid_of(obj))
        if gone:
            known = self._of_record.pop(home, {})
            if records and (ClaimKind.WAVE in records or event.kind != "Pod"):
                yield from self._released(namespace, known.keys())
            return  # another pod of the gang carries its records from now on
        if not records and home not in self._of_record:
            return
        now: dict[str, tuple[str, str]] = {}
        for kind, record in records.items():
            what = "held" if kind is ClaimKind.HOLD else "reserved"
            named = self._with_names(record, namespace)
            now.update({name: (what, node) for name, node in _pods_of(named, obj).items()})
        yield from self._released(namespace, self._of_record.get(home, {}).keys() - now.keys())
        yield from self._claimed(namespace, now)
        self._of_record[home] = now

    def _slot_that_stayed(self, namespace: str, name: str) -> dict[str, tuple[str, str]]:
        for (within, _), slots in self._of_record.items():
            if within == namespace and name in slots:
                return {name: slots[name]}
        return {}

    def _claimed(self, namespace: str, slots: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str, str, str]]:
        for name, (what, node) in slots.items():
            was = self._nodes.get((namespace, name))
            if was != node and (namespace, name) not in self._bound and (namespace, name) not in self._gone:
                if was:
                    yield "released", namespace, name, was
                self._nodes[namespace, name] = node
                yield what, namespace, name, node

    def _with_names(self, record: Record, namespace: str) -> Record:
        if not record.is_brief:
            return record
        record = claim_records.with_nodes(record, self._names[""])
        if not record.kind.names_pods:
            return record
        found = {name: record.places(name) for name in sorted(self._names.get(namespace, ()))}
        return msgspec.structs.replace(record, slots={name: nodes for name, nodes in found.items() if nodes})

    def _released(self, namespace: str, names: Collection[str]) -> Iterator[tuple[str, str, str, str]]:
        for name in sorted(names):
            node = self._nodes.pop((namespace, name), "")
            if node:
                yield "released", namespace, name, node


def _pods_of(record: Record, obj: Obj) -> dict[str, str]:
    """Pod → node. A hold names its pods; pods of a later wave are named by job, role and index."""
    if record.kind.names_pods:
        return {name: next(iter(nodes)) for name, nodes in record.slots.items() if nodes}
    job = (controller_of(obj) or {}).get("name") or name_of(obj)
    found = {}
    roles = (obj.get("spec") or {}).get("minTaskMember") or {}
    for role, nodes in claim_records.by_role(record, roles).items():
        places = [node for node, count in nodes.items() for _ in range(count)]
        found.update({f"{job}-{role}-{index}": node for index, node in enumerate(places)})
    return found


def _pod_changes(pod: Obj, facts: _Facts) -> Iterator[tuple[str, str, str]]:
    """(what, node, message) of every transition since the facts; updates the facts."""
    node = pod["spec"].get("nodeName") or ""
    status: dict[str, Any] = pod.get("status") or {}
    if node and not facts.node:
        facts.node = node
        yield "bound", node, ""
    disruption = holds(pod, "DisruptionTarget")
    if disruption is not None and not facts.evicted:
        parts = (disruption.get("reason"), disruption.get("message"))
        yield "evicted", node, ": ".join(part for part in parts if part)
    facts.evicted = disruption is not None
    phase = status.get("phase") or ""
    if phase != facts.phase:
        facts.phase = phase
        if phase == "Running":
            yield "running", node, ""
        elif phase in _ENDS:
            yield _ENDS[phase], node, _ending(status)
    elif phase == "Running" and (restarts := _restarts(status)) > facts.restarts:
        facts.restarts = restarts
        yield "running", node, f"restart {restarts}"
    timed_out = annotations_of(pod).get(TIMEOUT) == "true"
    if timed_out and not facts.timed_out:
        yield "timeout", node, ""
    facts.timed_out = timed_out


def _text(mapping: Any, key: str) -> str:
    """A string from an object that was not validated."""
    found = mapping.get(key) if isinstance(mapping, dict) else None
    return found if isinstance(found, str) else ""


def _containers(status: dict[str, Any]) -> list[dict[str, Any]]:
    stated = status.get("containerStatuses")
    return [container for container in stated if isinstance(container, dict)] if isinstance(stated, list) else []


def _restarts(status: dict[str, Any]) -> int:
    """The highest restart count of running containers; 0 while one of them is not running."""
    containers = _containers(status)
    if not all("running" in (container.get("state") or {}) for container in containers):
        return 0
    return max((int(container.get("restartCount") or 0) for container in containers), default=0)


def _ending(status: dict[str, Any]) -> str:
    """Why a pod ended: reason and message of its status, and exit codes other than 0."""
    parts = [part for part in (status.get("reason"), status.get("message")) if part]
    for container in _containers(status):
        code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode")
        if code:
            parts.append(f"exit code {code}")
    return ": ".join(parts)


def phase_of(obj: Obj) -> str:
    """The phase of a gang's object; kinds keep it in different fields."""
    status = obj.get("status") or {}
    state = status.get("state")
    found = state.get("phase") if isinstance(state, dict) else status.get("phase") or state
    return found if isinstance(found, str) else ""
