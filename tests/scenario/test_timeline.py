"""The timeline: one line for every transition, none for what did not change."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent
from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.scenario.timeline import Recorder
from enbloc.sim.clock import Clock
from enbloc.units import SECOND

Type = Literal["ADDED", "MODIFIED", "DELETED"]


class Watched:
    """A recorder and a short way to feed it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.recorder = Recorder(self.clock)

    def see(self, type_: Type, kind: str, at: int = 0, **fields: Any) -> list[str]:
        """Feeds one event and returns the lines that it made."""
        self.clock.now_ns += at * SECOND
        before = len(self.recorder.lines)
        obj: Obj = {"kind": kind, "metadata": {"name": "x", "namespace": "ns", "uid": "u", **fields.pop("meta", {})}}
        self.recorder.observe(WatchEvent(type_, kind, {**obj, **fields}))
        return [str(line) for line in self.recorder.lines[before:]]


def test_a_pods_life() -> None:
    watched = Watched()
    see = watched.see
    assert see("ADDED", "Pod", spec={}) == ["t=0s created Pod ns/x"]
    assert see("MODIFIED", "Pod", spec={}, status={"phase": "Pending"}) == []
    spec = {"nodeName": "n1"}
    assert see("MODIFIED", "Pod", 1, spec=spec, status={"phase": "Pending"}) == ["t=1s bound Pod ns/x on n1"]
    assert see("MODIFIED", "Pod", spec=spec, status={"phase": "Running"}) == ["t=1s running Pod ns/x on n1"]
    assert see("MODIFIED", "Pod", spec=spec, status={"phase": "Running"}) == []
    again = {"restartCount": 1, "state": {"running": {}}}
    status: dict[str, Any] = {"phase": "Running", "containerStatuses": [again]}
    assert see("MODIFIED", "Pod", spec=spec, status=status) == ["t=1s running Pod ns/x on n1: restart 1"]
    ended = {"restartCount": 1, "state": {"terminated": {"exitCode": 3}}}
    status = {"phase": "Failed", "containerStatuses": [ended]}
    assert see("MODIFIED", "Pod", spec=spec, status=status) == ["t=1s failed Pod ns/x on n1: exit code 3"]
    assert see("DELETED", "Pod", spec=spec, status=status) == ["t=1s deleted Pod ns/x"]


def test_a_pod_that_comes_with_a_node_is_created_then_bound() -> None:
    made = Watched().see("ADDED", "Pod", spec={"nodeName": "n1"}, status={"phase": "Running"})
    assert made == ["t=0s created Pod ns/x", "t=0s bound Pod ns/x on n1", "t=0s running Pod ns/x on n1"]


def test_eviction_is_reported_once_with_its_reason() -> None:
    watched = Watched()
    watched.see("ADDED", "Pod", spec={"nodeName": "n1"})
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "Preempted", "message": "for ns/y"}
    status = {"conditions": [condition]}
    lines = ["t=0s evicted Pod ns/x on n1: Preempted: for ns/y"]
    assert watched.see("MODIFIED", "Pod", spec={"nodeName": "n1"}, status=status) == lines
    assert watched.see("MODIFIED", "Pod", spec={"nodeName": "n1"}, status=status) == []


def test_the_timeout_mark_is_a_line() -> None:
    watched = Watched()
    watched.see("ADDED", "Pod", spec={})
    meta = {"annotations": {"gang.scheduling.koordinator.sh/timeout": "true"}}
    assert watched.see("MODIFIED", "Pod", spec={}, meta=meta) == ["t=0s timeout Pod ns/x"]


def test_phases_of_jobs_and_groups() -> None:
    watched = Watched()
    watched.see("ADDED", "Job", meta={"uid": "j"})
    meta = {"uid": "j"}
    assert watched.see("MODIFIED", "Job", meta=meta, status={"state": {"phase": "Pending"}}) == [
        "t=0s phase Job ns/x: (none) -> Pending"
    ]
    watched.see("ADDED", "PodGroup", meta={"uid": "g"}, status={"phase": "Pending"})
    watched.see("MODIFIED", "PodGroup", meta={"uid": "g"}, status={"phase": "Inqueue"})
    line = watched.recorder.lines[-1]
    assert msgspec.to_builtins(line) == {
        "t": 0.0,
        "what": "phase",
        "kind": "PodGroup",
        "namespace": "ns",
        "name": "x",
        "node": "",
        "message": "",
        "from": "Pending",
        "to": "Inqueue",
    }


def test_warnings_are_shown_whenever_they_are_sent() -> None:
    watched = Watched()
    about = {"kind": "Job", "namespace": "ns", "name": "j"}
    event = {"type": "Warning", "reason": "Bad", "message": "why", "involvedObject": about}
    assert watched.see("ADDED", "Event", **event, count=1) == ["t=0s warning Job ns/j: Bad: why"]
    assert watched.see("MODIFIED", "Event", **event, count=1) == []
    assert watched.see("MODIFIED", "Event", **event, count=2) == ["t=0s warning Job ns/j: Bad: why"]
    assert watched.see("ADDED", "Event", **{**event, "type": "Normal"}) == []


def test_a_pod_that_is_recreated_takes_the_slot_that_stayed() -> None:
    watched = Watched()
    record = Record(ClaimKind.RESERVE, 0, {"x": {"n1": 1}})
    group = {"name": "g", "uid": "g", "annotations": {ClaimKind.RESERVE.annotation: claim_records.write(record)}}
    watched.see("ADDED", "Pod", spec={})
    assert watched.see("ADDED", "PodGroup", meta=group)[1:] == ["t=0s reserved Pod ns/x on n1"]
    assert watched.see("DELETED", "Pod", spec={}) == ["t=0s released Pod ns/x on n1", "t=0s deleted Pod ns/x"]
    other = {"namespace": "other", "uid": "o"}
    assert watched.see("ADDED", "Pod", meta=other, spec={}) == ["t=0s created Pod other/x"]
    assert watched.see("ADDED", "Pod", spec={}) == ["t=0s created Pod ns/x", "t=0s reserved Pod ns/x on n1"]
    assert watched.see("MODIFIED", "PodGroup", meta=group) == []


def test_a_namespace_that_was_made_when_needed_is_silent() -> None:
    assert Watched().see("ADDED", "Namespace") == []
