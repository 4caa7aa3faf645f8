"""What is written of gangs that wait, when, and on which objects (G10)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from enbloc.api.meta import Ref
from enbloc.api.reasons import PendingReason
from enbloc.config import parse
from enbloc.engine.decisions import Decision, Waits
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.diagnosis.reporter import (
    NUMBERS_EVERY_NS,
    ClaimedRoom,
    Reporter,
    is_pending,
    is_reportable,
    is_unstarted,
    shape,
)
from enbloc.engine.diagnosis.rewrites import OBJECTS_PER_SPAN, SPAN_NS, Report, Rewrites
from enbloc.engine.engine import Engine
from enbloc.engine.tables.tasks import GangState, TaskStatus
from enbloc.gangs.model import GangKey, GangSpec, GangStatus
from engine import gang_states

OBJECT = Ref("PodGroup", "ns", "g")


def why(message: str = "2 pods wait", reason: PendingReason = PendingReason.QUEUE_FULL, **fields: Any) -> Diagnosis:
    return Diagnosis(reason, message, **{"missing": {"": 2}, **fields})


class Scene:
    def __init__(self) -> None:
        self.state = Engine(parse(None)).state
        self.decided: list[Decision] = []
        self.reporter = Reporter(self.state, self.decided.append)

    def gang(self, name: str = "g", pods: int = 2, declared: bool = True, **spec: Any) -> GangState:
        """A gang of two pods that wait; `declared`: it has an object."""
        fields = {"object": OBJECT if declared else None, "object_uid": "u" if declared else "", **spec}
        made = GangState(GangSpec(GangKey("t", "ns", name), f"ns/{name}", 0, 2, **fields))
        self.state.gangs[made.key] = made
        for number in range(pods):
            self.add_pod(made, number)
        return made

    def add_pod(self, gang: GangState, number: int) -> None:
        gang_states.task(gang, f"{gang.key.name}-{number}")
        gang.pending[""] = gang.pending.get("", 0) + 1

    def begin(self, now_ns: int) -> None:
        self.reporter.cycle_begins(now_ns)

    def said(self) -> list[str]:
        """What was decided since: message, `on` the object or not, and the pods."""
        found = []
        for one in self.decided:
            assert isinstance(one, Waits)
            places = [*(["object"] if one.of_gang else []), *(name for _, name, _ in one.pods)]
            found.append(f"{one.message or 'withdrawn'} on {' '.join(places)}")
        self.decided.clear()
        return found


def test_g10_a_gang_and_its_pods_say_why_they_wait_once() -> None:
    scene = Scene()
    gang = scene.gang()
    scene.reporter.report(gang, why(), of_gang=True)
    assert scene.said() == ["2 pods wait on object g-0 g-1"]
    scene.reporter.report(gang, why(), of_gang=True)
    assert scene.said() == []
    scene.add_pod(gang, 2)
    scene.reporter.report(gang, why(), of_gang=True)
    assert scene.said() == ["2 pods wait on object g-2"]
    scene.reporter.report(gang, why("no node"), of_gang=True)
    assert scene.said() == ["no node on object g-0 g-1 g-2"]


def test_g10_pods_that_are_held_say_it_too_and_others_that_are_given() -> None:
    scene = Scene()
    gang = scene.gang(pods=1)
    gang_states.task(gang, "held", status=TaskStatus.HELD)
    gang.held[""] = 1
    other = gang_states.task(gang, "other", status=TaskStatus.GATED)
    scene.reporter.report(gang, why(), of_gang=True)
    assert scene.said() == ["2 pods wait on object g-0 held"]
    scene.reporter.report(gang, why(), of_gang=True, also=[other])
    assert scene.said() == ["2 pods wait on object other"]


def test_g10_surplus_that_waits_is_said_by_its_pods_alone() -> None:
    scene = Scene()
    gang = scene.gang(pods=1)
    gang.occupied[""] = 2
    scene.reporter.report(gang, why(), of_gang=False)
    assert scene.said() == ["2 pods wait on g-0"]


@pytest.mark.parametrize("state", ["ready", "satisfied", "neither"])
def test_g10_a_gang_whose_surplus_alone_waits_by_now_says_nothing_itself(state: str) -> None:
    scene = Scene()
    gang = scene.gang()
    scene.reporter.report(gang, why(), of_gang=True)
    scene.said()
    gang.satisfied = state == "satisfied"
    gang.occupied[""] = 2 if state == "ready" else 0
    scene.reporter.report(gang, why(), of_gang=False)
    assert scene.said() == ([] if state == "neither" else ["withdrawn on object", "2 pods wait on g-0 g-1"])


@pytest.mark.parametrize("declared", [True, False])
def test_g10_numbers_alone_are_written_at_most_every_30_s_and_for_the_gang_alone(declared: bool) -> None:
    scene = Scene()
    gang = scene.gang(declared=declared)
    place = "object" if declared else "object g-0"
    scene.begin(0)
    scene.reporter.report(gang, why("2 of 9 nodes"), of_gang=True)
    scene.said()
    scene.reporter.report(gang, why("3 of 9 nodes"), of_gang=True)
    assert scene.said() == [f"3 of 9 nodes on {place}"], "the first change at once"
    for free in (4, 5):
        scene.reporter.report(gang, why(f"{free} of 9 nodes"), of_gang=True)
    assert scene.said() == []
    assert scene.reporter.due() == NUMBERS_EVERY_NS
    scene.begin(NUMBERS_EVERY_NS - 1)
    assert scene.said() == []
    scene.begin(NUMBERS_EVERY_NS)
    assert scene.said() == [f"5 of 9 nodes on {place}"]
    assert scene.reporter.due() is None


def test_g10_a_new_pod_says_it_though_only_numbers_changed() -> None:
    scene = Scene()
    gang = scene.gang()
    scene.reporter.report(gang, why("2 of 9 nodes"), of_gang=True)
    scene.said()
    scene.add_pod(gang, 2)
    scene.reporter.report(gang, why("3 of 9 nodes"), of_gang=True)
    assert scene.said() == ["3 of 9 nodes on object", "3 of 9 nodes on object g-2"]


@pytest.mark.parametrize("end", ["gone", "placed", "withdrawn", "another gang"])
def test_g10_numbers_that_are_late_are_not_written_of_a_gang_that_does_not_wait(end: str) -> None:
    scene = Scene()
    gang = scene.gang()
    for free in (2, 3, 4):
        scene.reporter.report(gang, why(f"{free} of 9 nodes"), of_gang=True)
    if end == "gone":
        scene.reporter.gang_gone(gang)
    elif end == "withdrawn":
        scene.reporter.withdraw(gang)
    elif end == "placed":
        gang.pending[""], gang.occupied[""] = 0, 2
    else:
        scene.state.gangs[gang.key] = GangState(gang.spec)
    scene.said()
    scene.begin(NUMBERS_EVERY_NS)
    assert scene.said() == []
    assert scene.reporter.due() is None


def test_g10_a_report_is_withdrawn_once_and_from_the_object_that_says_it() -> None:
    scene = Scene()
    gang = scene.gang()
    scene.reporter.withdraw(gang)
    assert scene.said() == []
    scene.reporter.report(gang, why(), of_gang=True)
    scene.said()
    scene.reporter.withdraw(gang)
    assert scene.said() == ["withdrawn on object"]
    scene.reporter.withdraw(gang)
    assert scene.said() == []
    scene.reporter.report(gang, why(), of_gang=True)
    scene.said()
    gang.spec = GangSpec(gang.key, "ns/g", 0, 2, object=OBJECT, object_uid="another")
    scene.reporter.withdraw(gang)
    assert scene.said() == [], "nothing was written on the new object"
    scene.reporter.report(gang, why(), of_gang=True)
    assert scene.said() == ["2 pods wait on object g-0 g-1"]


def test_s2_what_was_reported_before_a_restart_is_withdrawn() -> None:
    scene = Scene()
    gang = scene.gang()
    scene.reporter.was_reported(gang)
    assert scene.said() == []
    scene.reporter.withdraw(gang)
    assert scene.said() == ["withdrawn on object"]


def test_g10_of_many_gangs_that_say_the_same_of_other_numbers_a_bounded_number_does_so_at_a_time() -> None:
    scene = Scene()
    gangs = [scene.gang(f"g{number:03d}", pods=1) for number in range(OBJECTS_PER_SPAN + 2)]
    for missing in (2, 1):
        scene.said()
        for gang in gangs:
            text = f"{missing} of 2 pods do{'' if missing > 1 else 'es'} not fit"
            scene.reporter.report(gang, why(text, missing={"": missing}), of_gang=True)
    assert len({one.gang for one in scene.decided if isinstance(one, Waits)}) == OBJECTS_PER_SPAN
    scene.said()
    *_, placed, late = gangs
    placed.pending[""], placed.occupied[""] = 0, 2
    scene.add_pod(late, 1)
    scene.reporter.report(late, why("1 of 2 pods does not fit", missing={"": 1}), of_gang=True)
    assert scene.said() == [f"1 of 2 pods does not fit on {late.key.name}-1"], "a new pod says it at once"
    assert scene.reporter.due() == SPAN_NS
    scene.begin(SPAN_NS)
    assert {one.gang for one in scene.decided if isinstance(one, Waits)} == {late.key}


def test_g10_a_late_report_that_does_not_hold_any_more_is_not_written() -> None:
    """The gang says again what is written on its object."""
    scene = Scene()
    gangs = [scene.gang(f"g{number:03d}", pods=1) for number in range(OBJECTS_PER_SPAN + 1)]
    for missing in (2, 1):
        for gang in gangs:
            scene.reporter.report(gang, why(f"{missing} pods wait", missing={"": missing}), of_gang=True)
    scene.reporter.report(gangs[-1], why("2 pods wait"), of_gang=True)
    scene.said()
    scene.begin(SPAN_NS)
    assert scene.said() == []


def test_g10_pods_say_it_anew_when_another_number_of_them_is_missing() -> None:
    scene = Scene()
    gang = scene.gang()
    for missing in (2, 1):
        scene.said()
        scene.reporter.report(gang, why(f"{missing} pods wait", missing={"": missing}), of_gang=True)
    assert scene.said() == ["1 pods wait on object g-0 g-1"]


def test_g10_a_new_object_says_what_the_one_before_it_said() -> None:
    scene = Scene()
    gang = scene.gang()
    for uid in ("u", "another"):
        gang.spec = GangSpec(gang.key, "ns/g", 0, 2, object=OBJECT, object_uid=uid)
        scene.reporter.report(gang, why(), of_gang=True)
        assert scene.said() == ["2 pods wait on object g-0 g-1"]


def test_g10_the_object_of_a_gang_of_minimum_0_says_why_nothing_of_it_has_started() -> None:
    scene = Scene()
    gang = scene.gang(pods=1)
    gang.spec = GangSpec(gang.key, "ns/g", 0, 0, object=OBJECT, object_uid="u")
    scene.reporter.report(gang, why(), of_gang=False)
    assert scene.said() == ["2 pods wait on object g-0"]


def test_g10_all_gangs_that_wait_are_listed_with_what_they_wait_for() -> None:
    scene = Scene()
    for name in ("b", "runs", "a"):
        scene.gang(name)
    runs = scene.state.gangs[GangKey("t", "ns", "runs")]
    runs.pending, runs.occupied = {}, {"": 2}
    reasons = {"a": why("no node", PendingReason.GROUP_NOT_READY)}
    found = scene.reporter.pending(lambda gang: reasons.get(gang.key.name), lambda gang: 7)
    assert [(one.gang, one.reason, one.message, one.expected_start_ns) for one in found] == [
        ("ns/a", "GroupNotReady", "no node", 7),
        ("ns/b", "GangInvalid", "is next to be attempted", 7),
    ]
    assert sorted(scene.reporter.causes(lambda gang: reasons.get(gang.key.name))) == ["ns/a", "ns/b"]


def test_g8_a_gang_that_waits_behind_another_one_than_before_says_the_same() -> None:
    """Not all its pods are written anew."""
    scene = Scene()
    gang = scene.gang(pods=OBJECTS_PER_SPAN + 1)
    fifo = PendingReason.BLOCKED_BY_FIFO
    scene.reporter.report(gang, why("waits behind ns/a", fifo), of_gang=True)
    scene.said()
    scene.reporter.report(gang, why("waits behind ns/b", fifo), of_gang=True)
    assert len(scene.decided) == 1
    scene.said()
    scene.reporter.report(gang, why("waits behind ns/c", fifo), of_gang=True)
    assert scene.said() == ["waits behind ns/c on object"], "its pods are late"


def test_g10_pods_speak_of_their_own_role() -> None:
    scene = Scene()
    gang = scene.gang(pods=0)
    for name, role in (("a0", "a"), ("b0", "b")):
        gang_states.task(gang, name, role=role)
        gang.pending[role] = 1
    scene.reporter.report(gang, why("all", of_roles={"a": "of role a"}), of_gang=True)
    (one,) = scene.decided
    assert isinstance(one, Waits)
    assert one.own == {"u-a0": "of role a"}


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (PendingReason.BLOCKED_BY_FIFO, "waits; namespace ns used 2.0 of its share"),
        (PendingReason.QUEUE_FULL, "waits."),
        (PendingReason.GROUP_NOT_READY, "waits."),
    ],
)
def test_g12_a_gang_that_others_are_served_before_says_what_it_used(reason: PendingReason, message: str) -> None:
    scene = Scene()
    scene.reporter.usage_note = lambda gang: "namespace ns used 2.0 of its share"
    gang = scene.gang(pods=1)
    scene.reporter.report(gang, why("waits.", reason), of_gang=True)
    assert scene.said() == [f"{message} on object g-0"]
    scene.reporter.usage_note = lambda gang: ""
    scene.reporter.report(scene.gang("h", pods=1), why("waits.", reason), of_gang=True)
    assert scene.said() == ["waits. on object h-0"]


@pytest.mark.parametrize(
    ("reserved", "nominated", "notes", "message"),
    [
        ({}, [], [], "waits."),
        ({"u1": "n1", "u2": "n0"}, [], [], "waits; room is reserved for it on n0, n1"),
        ({}, ["n2"], [], "waits; room is being freed for it on n2"),
        ({"u1": "n1"}, ["n2", "n1"], [], "waits; room is reserved for it on n1, n2"),
        ({}, [], ["no room", "too late"], "waits; no room; too late"),
        ({"u1": "n1"}, [], ["no room"], "waits; no room; room is reserved for it on n1"),
    ],
)
def test_g10_where_room_is_claimed_for_a_gang_or_why_none_is(
    reserved: dict[str, str], nominated: list[str], notes: list[str], message: str
) -> None:
    scene = Scene()
    claims = SimpleNamespace(
        reserved=lambda gang: reserved,
        nominated=lambda gang: [SimpleNamespace(node=node) for node in nominated],
        notes_of=lambda gang: notes,
    )
    scene.reporter.claims = cast(ClaimedRoom, claims)
    scene.reporter.report(scene.gang(pods=1), why("waits."), of_gang=True)
    assert scene.said() == [f"{message} on object g-0"]


def test_g10_what_the_nodes_prove_is_added() -> None:
    scene = Scene()
    scene.reporter.report(scene.gang(pods=1), why("waits.", PendingReason.UNSCHEDULABLE), of_gang=True)
    assert scene.said() == ["waits. There are no nodes. on object g-0"]


@pytest.mark.parametrize(
    ("text", "shaped"),
    [
        ("2 of 9 pods", "# of # pods"),
        ("1500m cpu, 3Gi memory, 2.5 times", "# cpu, # memory, # times"),
        ("node n1 and gang a-2 of ns.3", "node n1 and gang a-2 of ns.3"),
    ],
)
def test_g10_the_shape_of_a_text_is_the_text_without_its_numbers(text: str, shaped: str) -> None:
    assert shape(text) == shaped


# ---- which gangs wait


def tasks(gang: GangState, *statuses: TaskStatus, ours: bool = True) -> GangState:
    for number, status in enumerate(statuses):
        gang_states.task(gang, f"p{number}", status=status, ours=ours)
    return gang


WAITING, RUNS = TaskStatus.PENDING, TaskStatus.BOUND
FINISHED = GangStatus(finished=True)


@pytest.mark.parametrize(
    ("gang", "pending", "says"),
    [
        pytest.param(tasks(gang_states.gang(2, pending={"": 2}), WAITING), True, True, id="its minimum waits"),
        pytest.param(tasks(gang_states.gang(1, occupied={"": 1}), RUNS), False, False, id="it runs"),
        pytest.param(tasks(gang_states.gang(1, occupied={"": 1}, pending={"": 1}), RUNS, WAITING), False, True,
                     id="surplus waits"),
        pytest.param(tasks(gang_states.gang(2, occupied={"": 1}, satisfied=True), RUNS), False, False,
                     id="a lost member does not exist again"),
        pytest.param(tasks(gang_states.gang(2, occupied={"": 1}, pending={"": 1}, satisfied=True), RUNS, WAITING), True,
                     True, id="a lost member waits"),
        pytest.param(tasks(gang_states.gang(2, observed=FINISHED), TaskStatus.SUCCEEDED), False, False, id="finished"),
        pytest.param(tasks(gang_states.gang(2, observed=FINISHED, pending={"": 1}), WAITING), True, True,
                     id="finished, and a pod waits"),
        pytest.param(gang_states.gang(2, object=OBJECT), True, True, id="an object without pods"),
        pytest.param(gang_states.gang(2), False, False, id="neither object nor pods"),
        pytest.param(tasks(gang_states.gang(2, occupied={"": 1}), RUNS, ours=False), False, False,
                     id="of another scheduler"),
        pytest.param(tasks(gang_states.gang(2), TaskStatus.RELEASING), False, False, id="what is left is leaving"),
        pytest.param(tasks(gang_states.gang(2, object=OBJECT), TaskStatus.RELEASING), True, True,
                     id="pods leave, the object stays"),
        pytest.param(tasks(gang_states.gang(1, problem="bad", occupied={"": 1}, pending={"": 1}), RUNS, WAITING), True,
                     True, id="invalid, and a pod waits"),
        pytest.param(tasks(gang_states.gang(1, problem="bad", occupied={"": 1}), RUNS), False, False,
                     id="invalid, and all run"),
        pytest.param(tasks(gang_states.gang(0, pending={"": 1}), WAITING), True, True, id="a minimum of 0 that waits"),
        pytest.param(tasks(gang_states.gang(0, pending={"": 1}, occupied={"": 1}), WAITING, RUNS), False, True,
                     id="a minimum of 0 of which one runs"),
        pytest.param(tasks(gang_states.gang(0), TaskStatus.TIMED_OUT), True, True, id="a minimum of 0, timed out"),
        pytest.param(tasks(gang_states.gang(0), TaskStatus.SUCCEEDED), False, False, id="a minimum of 0, done"),
    ],
)  # fmt: skip
def test_g10_which_gangs_wait_and_have_to_say_why(gang: GangState, pending: bool, says: bool) -> None:
    assert is_pending(gang) is pending
    assert is_reportable(gang) is says
    assert is_unstarted(gang) is (gang.spec.minimum == 0 and pending)


# ---- the bound on writes


def report(name: str) -> Report:
    return Report(GangState(GangSpec(GangKey("t", "ns", name), f"ns/{name}", 0, 1)), why(name), True)


def admitted(rewrites: Rewrites, now_ns: int, objects: int = 1) -> list[str]:
    return [one.why.message for one in rewrites.admitted(now_ns, lambda gang: objects)]


def test_g10_so_many_objects_are_written_per_span_of_time() -> None:
    rewrites = Rewrites()
    assert all(rewrites.admit(report(str(number)), 1, 0) for number in range(OBJECTS_PER_SPAN))
    assert rewrites.due_ns() is None
    late = [report(name) for name in "abc"]
    assert not any(rewrites.admit(one, 1, 1) for one in late)
    assert rewrites.due_ns() == SPAN_NS
    assert admitted(rewrites, SPAN_NS - 1) == []
    rewrites.drop(late[1].gang.key)
    rewrites.renew(late[2]._replace(why=why("newer")))
    rewrites.renew(report("unknown"))
    assert admitted(rewrites, SPAN_NS) == ["a", "newer"]
    assert rewrites.due_ns() is None
    assert rewrites.admit(report("d"), 1, SPAN_NS)


def test_g10_what_is_late_goes_before_what_comes() -> None:
    rewrites = Rewrites()
    assert rewrites.admit(report("large"), OBJECTS_PER_SPAN, 0)
    assert not rewrites.admit(report("a"), 1, 0)
    assert not rewrites.admit(report("b"), 1, SPAN_NS), "another one waits"
    assert admitted(rewrites, SPAN_NS) == ["a", "b"]


@pytest.mark.parametrize(("objects", "spans"), [(OBJECTS_PER_SPAN + 1, 1), (3 * OBJECTS_PER_SPAN, 3)])
def test_g10_a_gang_beyond_the_bound_is_written_at_once_and_later_spans_owe_it(objects: int, spans: int) -> None:
    due_ns = spans * SPAN_NS
    for now_ns, written in ((due_ns - 1, []), (due_ns, ["a"])):
        rewrites = Rewrites()
        assert rewrites.admit(report("large"), objects, 0)
        assert not rewrites.admit(report("a"), 1, 0)
        assert rewrites.due_ns() == due_ns
        assert admitted(rewrites, now_ns) == written


def test_g10_spans_in_which_nothing_was_written_are_not_saved_up() -> None:
    rewrites = Rewrites()
    assert all(rewrites.admit(report(str(number)), 1, 10 * SPAN_NS) for number in range(OBJECTS_PER_SPAN))
    assert not rewrites.admit(report("a"), 1, 10 * SPAN_NS)
