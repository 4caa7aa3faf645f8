"""Status updates over an immediate transport: written at once, over what was written before, retried when refused.
How they are held and coalesced over a network is tested with the live control plane."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj, Ref, uid_of
from enbloc.api.writes import EmitEvent, Patch, Refused, WatchEvent, Write, merge_patch
from enbloc.gangs.model import GangKey
from enbloc.runtime.status_writer import FIRST_PAUSE_S, StatusWriter
from enbloc.runtime.transport import ImmediateTransport
from enbloc.runtime.write_plans import StatusUpdate, conditions_of
from enbloc.units import SECOND

GANG = GangKey("volcano", "default", "g")
POD: Obj = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "default", "name": "p", "uid": "u", "resourceVersion": "1"},
}


class Api:
    """One pod, with versions; `refusals` are the codes of the next writes."""

    def __init__(self, *refusals: int) -> None:
        self.pod = POD
        self.writes: list[Write] = []
        self.refusals = list(refusals)

    def execute(self, write: Write) -> Obj | None:
        if self.refusals:
            raise Refused(self.refusals.pop(0), "Reason", "no")
        if isinstance(write, Patch):
            version = self.pod["metadata"]["resourceVersion"]
            if write.resource_version not in ("", version):
                raise Refused(409, "Conflict", "no")
            patched = merge_patch(self.pod, write.patch)
            self.pod = merge_patch(patched, {"metadata": {"resourceVersion": str(int(version) + 1)}})
        self.writes.append(write)
        return self.pod if isinstance(write, Patch) else None


class Cluster:
    """A status writer whose subject is the pod as it was last observed."""

    def __init__(self, *refusals: int) -> None:
        self.api = Api(*refusals)
        self.observed: Obj | None = POD
        self.transport = ImmediateTransport(self.api)  # type: ignore[arg-type]
        self.writer = StatusWriter(self.transport, self._subject)

    def _subject(self, gang: GangKey | None, ref: Ref, uid: str) -> Obj | None:
        return self.observed

    def put(self, kind: str, message: str, status: str = "True", **fields: Any) -> None:
        condition = {"type": kind, "status": status, "reason": "R", "message": message, "lastTransitionTime": "t"}
        self.writer.put(StatusUpdate(GANG, POD, (condition,), **fields))

    def conditions(self) -> dict[str, str]:
        return {one["type"]: one["message"] for one in conditions_of(self.api.pod)}


def event(reason: str = "Waits") -> EmitEvent:
    return EmitEvent(Ref("Pod", "default", "p"), "u", "Warning", reason, "m")


def test_a_second_update_at_one_instant_is_written_over_the_first() -> None:
    """Though the watch event of the first was not read: the answer is the newest version."""
    cluster = Cluster()
    cluster.put("A", "one")
    cluster.put("B", "two")
    assert cluster.conditions() == {"A": "one", "B": "two"}
    assert not cluster.writer.is_busy


def test_conditions_that_say_the_same_are_not_written_and_emit_nothing() -> None:
    cluster = Cluster()
    cluster.put("A", "one", event=event())
    cluster.put("A", "one", event=event())
    assert [type(write).__name__ for write in cluster.api.writes] == ["Patch", "EmitEvent"]


def test_a_withdrawn_condition_that_was_never_written_is_not_written() -> None:
    cluster = Cluster()
    cluster.put("Unschedulable", "", status="False")
    assert cluster.api.writes == []


def test_the_transition_time_stays_while_the_status_stays() -> None:
    cluster = Cluster()
    cluster.put("A", "one")
    later = {"type": "A", "status": "True", "reason": "R", "message": "two", "lastTransitionTime": "later"}
    cluster.writer.put(StatusUpdate(GANG, POD, (later,)))
    [condition] = conditions_of(cluster.api.pod)
    assert (condition["message"], condition["lastTransitionTime"]) == ("two", "t")


def test_an_update_of_an_object_that_is_gone_is_dropped() -> None:
    cluster = Cluster()
    cluster.observed = None
    cluster.put("A", "one", event=event())
    assert cluster.api.writes == []
    assert not cluster.writer.is_busy


@pytest.mark.parametrize("code", [404, 410, 422])
def test_a_refusal_that_would_come_again_is_final(code: int) -> None:
    cluster = Cluster(code)
    cluster.put("A", "one", event=event())
    assert (cluster.api.writes, cluster.writer.is_busy, cluster.writer.due_s()) == ([], False, None)


def test_another_refusal_is_retried_when_it_is_due_with_what_came_since() -> None:
    cluster = Cluster(500)
    cluster.transport.set_time(10 * SECOND)
    cluster.put("A", "one", event=event())
    assert cluster.writer.due_s() == 10 + FIRST_PAUSE_S
    cluster.writer.send_ready()
    assert cluster.api.writes == []
    cluster.transport.set_time(11 * SECOND)
    cluster.writer.send_ready()
    assert cluster.conditions() == {"A": "one"}
    assert cluster.api.writes[-1] == event()
    assert cluster.writer.due_s() is None


def test_an_event_alone_is_emitted_at_once() -> None:
    cluster = Cluster()
    cluster.writer.emit(event("A"))
    cluster.writer.emit(event("B"))
    assert cluster.api.writes == [event("A"), event("B")]


def test_m6_a_phase_is_laid_over_older_versions_until_it_is_written() -> None:
    cluster = Cluster(500)
    cluster.put("Enqueued", "one", phase="Inqueue")
    seen = cluster.writer.observe(WatchEvent("MODIFIED", "Pod", POD))
    assert seen.obj["status"]["phase"] == "Inqueue"
    cluster.transport.set_time(5 * SECOND)
    cluster.writer.send_ready()
    assert cluster.api.pod["status"]["phase"] == "Inqueue"
    assert uid_of(cluster.api.pod) == "u"
    assert cluster.writer.observe(WatchEvent("MODIFIED", "Pod", POD)).obj is POD
