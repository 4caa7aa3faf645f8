"""T1 to T6: which parts of a request must be together, which rows each may use, and the search for domains of all."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from enbloc.engine.core.placement import in_domains
from enbloc.engine.core.placement.constraints import UNCONSTRAINED, Constraints
from enbloc.engine.core.placement.domains import WHOLE, Option, Part
from enbloc.engine.core.placement.in_domains import closed_to, parts_of, place_in_domains, within, within_pins
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.node_trees import Asked
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.core.why.diagnosis import Diagnosis, PendingReason
from enbloc.engine.decisions import PlannedDomains
from enbloc.gangs.hints import SchedulingHints
from enbloc.gangs.model import ONLY_WAITING, GangKey
from enbloc.gangs.topology import PodTopology, TopologyConstraint
from engine.gang_states import gang, members, racks
from support import manifests as m
from support import racks as r
from support.direct_scheduler import knowing

RACK, BLOCK = TopologyConstraint("kueue/dc", r.RACK), TopologyConstraint("kueue/dc", r.BLOCK)
PREFERS_RACK = TopologyConstraint("kueue/dc", preferred=r.RACK)


def found_parts(state: State, request: PlacementRequest) -> list[tuple[str, dict[int, int], int]] | str:
    """Of each part its name, cpu → how many tasks of that size it needs, and its size; or why there is none."""
    found = parts_of(state, request)
    if isinstance(found, Diagnosis):
        return found.message
    cpu = {cls.id: dict(cls.request)[0] // 1000 for cls in state.classes.by_id.values()}
    return [(" ".join(one.name), {cpu[key]: n for key, n in one.needed.items()}, one.size) for one in found]


# ---- parts


@pytest.mark.parametrize(
    ("spec", "must", "rest", "short", "parts"),
    [
        ({"topology": RACK}, [1, 1], [], 0, [("", {1: 2}, 2)]),
        ({"topology": RACK}, [1, 1], [1, 1], 0, [("", {1: 2}, 2)]),  # what is beyond the minimum is not asked for
        ({"topology": RACK}, [1], [1, 1, 1], 2, [("", {1: 3}, 3)]),
        ({"topology": RACK}, [], [1, 1, 1], 2, [("", {1: 2}, 2)]),
        ({"topology": RACK}, [1, 2], [], 0, [("", {1: 1, 2: 1}, 2)]),
        ({"topology": RACK}, [1], [1, 2], 2, [("", {1: 2, 2: 1}, 3)]),  # all of the rest
        ({"topology": RACK}, [2], [1, 1], 1, [("", {2: 1, 1: 1}, 2)]),  # any of the rest is the same
        ({"topology": RACK}, [1], [1, 2], 1, [("", {1: 1, 2: 0}, 2)]),  # which of them is not known beforehand
        ({"topology": RACK}, [], [], 0, []),
        ({}, [1, 1], [], 0, []),
        ({"topology": TopologyConstraint("kueue/none", preferred="x")}, [1], [], 0, []),  # a preference has no effect
        ({"topology": TopologyConstraint("kueue/none", preferred="x")}, [1, 2], [], 0, []),
        ({"topology_of_role": {"": RACK}}, [1, 1], [], 0, [("role ", {1: 2}, 2)]),
        ({"topology": BLOCK, "topology_of_role": {"": RACK}}, [1], [], 0, [("", {1: 1}, 1), ("role ", {1: 1}, 1)]),
        ({"topology": TopologyConstraint("kai/none", "x")}, [1], [], 0, "topology none does not exist"),
        ({"topology": TopologyConstraint("kai/none", "x")}, [1, 2], [], 0, "topology none does not exist"),
    ],
)
def test_t1_parts_of_a_request(
    spec: dict[str, Any], must: list[int], rest: list[int], short: int, parts: list[Any] | str
) -> None:
    state = racks(a=1)
    of = gang(**spec)
    found = found_parts(state, PlacementRequest(of, members(state, of, *must), members(state, of, *rest), short))
    if isinstance(parts, str):
        assert isinstance(found, str)
        assert parts in found
    else:
        assert found == parts


def test_t1_tasks_of_one_role_among_those_that_may_be_chosen() -> None:
    """How many of role w are chosen is not known: its part is there, without a number."""
    state = racks(a=1)
    of = gang(topology=BLOCK, topology_of_role={"w": RACK})
    rest = [*members(state, of, 1, 1, role="w"), *members(state, of, 1, role="m")]
    assert found_parts(state, PlacementRequest(of, (), rest, 1)) == [("", {1: 1}, 1), ("role w", {1: 0}, 0)]
    needed = members(state, of, 1, role="w")
    assert found_parts(state, PlacementRequest(of, needed, rest, 1)) == [("", {1: 2}, 2), ("role w", {1: 1}, 1)]


def test_t1_a_constraint_of_the_pods_comes_on_top_of_the_gangs() -> None:
    state = racks(a=1)
    of = gang(topology=BLOCK)
    tasks = members(state, of, 1, 1, role="w", topology=(PodTopology(RACK),))
    assert found_parts(state, PlacementRequest(of, tasks)) == [("", {1: 2}, 2), ("role w", {1: 2}, 2)]


@pytest.mark.parametrize(
    ("spec", "slices", "is_mistake"),
    [
        ({"topology_of_role": {"w": RACK}}, BLOCK, True),
        ({"topology_of_role": {"w": RACK}}, RACK, False),
        ({"topology_of_role": {"w": BLOCK}}, RACK, False),
        ({"topology": RACK}, BLOCK, True),
        ({"topology": RACK, "topology_of_role": {"w": PREFERS_RACK}}, BLOCK, True),
        ({"topology": PREFERS_RACK}, BLOCK, False),
        ({"topology": PREFERS_RACK, "topology_of_role": {"w": PREFERS_RACK}}, BLOCK, False),
        ({"topology_of_role": {"m": RACK}}, BLOCK, False),  # another role
        ({"topology": RACK}, TopologyConstraint("kueue/dc", preferred=r.BLOCK), False),
        ({"topology_of_role": {"w": TopologyConstraint(f"label/{r.RACK}", r.RACK)}}, BLOCK, False),  # another tree
    ],
)
def test_t3_slices_of_a_level_above_that_of_all_are_a_mistake(
    spec: dict[str, Any], slices: TopologyConstraint, is_mistake: bool
) -> None:
    state = racks(a=1)
    of = gang(**spec)
    tasks = members(state, of, 1, 1, 1, 1, role="w", topology=(PodTopology(slices, slices=(2,)),))
    found = found_parts(state, PlacementRequest(of, [*tasks, *members(state, of, 1, role="m")]))
    assert isinstance(found, str) == is_mistake
    if is_mistake:
        assert f"the level {r.BLOCK} of its slices is above {r.RACK}, the level of all of them" in found


@pytest.mark.parametrize(
    ("statuses", "pinned"),
    [
        ([], ()),
        ([TaskStatus.BOUND], (0,)),
        ([TaskStatus.ASSUMED, TaskStatus.HELD], (0, 1)),
        ([TaskStatus.BOUND, TaskStatus.PENDING], (0,)),
    ],
)
def test_t4_tasks_that_hold_room_pin_their_part(statuses: list[TaskStatus], pinned: tuple[int, ...]) -> None:
    state = racks(a=3)
    of = gang(topology=RACK, topology_of_role={"w": RACK}, occupied={"w": len(statuses), "m": 1})
    for number, (one, status) in enumerate(zip(members(state, of, 1, 1, role="w"), statuses, strict=False)):
        one.node, one.status = f"a-{number}", status
    gone, other = members(state, of, 1, 1, role="m")
    gone.node, gone.status = "gone", TaskStatus.BOUND
    other.node, other.status = "a-2", TaskStatus.BOUND
    found = parts_of(state, PlacementRequest(of, members(state, of, 1, role="w")))
    assert isinstance(found, list)
    assert {" ".join(one.name): one.pinned for one in found} == {"": (*pinned, 2), "role w": pinned}


def test_k9_members_that_run_pin_a_gang_of_which_only_waiting_pods_count() -> None:
    state = racks(a=1, b=1)
    of = gang(topology=RACK, match_policy=ONLY_WAITING, covered="1", occupied={"": 1})
    running, late = members(state, of, 1, 1)
    running.node, running.status = "b-0", TaskStatus.BOUND
    found = parts_of(state, PlacementRequest(of, [late]))
    assert isinstance(found, list)
    assert [one.pinned for one in found] == [(1,)]


# ---- rows that a part may use


def part(
    of: GangState, *name: str, constraint: TopologyConstraint = RACK, needed: dict[int, int] | None = None
) -> Part:
    return Part(of, name, constraint, Asked(None, None, ()), needed or {}, 0, ())


@pytest.mark.parametrize(
    ("outer", "inner", "contains"),
    [
        ((), ("role", "w"), True),
        ((), WHOLE, True),
        (WHOLE, ("role", "w"), True),
        (("role", "w"), ("role", "w", "slice 1"), True),
        (("role", "x"), ("role", "x", "w"), True),
        (("role", "w"), ("role", "w"), True),  # another constraint on the same tasks
        (("role", "m"), ("role", "w"), False),
        (("role", "w", "slice 0"), ("role", "w", "slice 1"), False),
        (("role", "w", "slice 0"), ("role", "w"), False),
        (("role", "w"), (), False),
    ],
)
def test_t1_rows_outside_of_the_domain_of_a_part_around_it_are_closed(
    outer: tuple[str, ...], inner: tuple[str, ...], contains: bool
) -> None:
    state = racks(a=3)
    of = gang()
    rows = np.array([True, False, True])
    own = part(of, *inner)
    chosen = [Option(part(of, *outer, constraint=BLOCK), rows, None, ())]
    closed = closed_to(state, own, UNCONSTRAINED, chosen)
    assert (closed is not None and closed.tolist()) == ([False, True, False] if contains else False)
    for unrelated in (part(gang(), *outer), own):  # of another gang, and itself
        assert closed_to(state, own, UNCONSTRAINED, [Option(unrelated, rows, None, ())]) is None


def test_t1_rows_closed_for_other_gangs_are_closed_to_a_part_whose_tasks_have_one_run_time() -> None:
    """Whether a row is closed may depend on the run time: with several it is left to the attempt."""
    state = racks(a=3)
    of = gang()
    first, second, other = members(state, of, 1, 1, 2)
    constraints = Constraints(lambda one: [("closed", np.array([True, False, False]))])
    own = part(of, "role", needed={first.cls.id: 2})
    first.hints = second.hints = SchedulingHints(run_time_ns=5)
    found = closed_to(state, own, constraints, ())
    assert found is not None
    assert found.tolist() == [True, False, False]
    around = [Option(part(of), np.array([True, True, False]), None, ())]
    found = closed_to(state, own, constraints, around)
    assert found is not None
    assert found.tolist() == [True, False, True]
    other.hints = SchedulingHints(run_time_ns=9)
    assert closed_to(state, own, constraints, ()) is not None, "of another class"
    second.hints = other.hints
    assert closed_to(state, own, constraints, ()) is None


def test_t1_rows_outside_of_the_chosen_domains_are_closed_to_the_tasks_of_their_parts() -> None:
    state = racks(a=2)
    of = gang(topology_of_role={"w": RACK})
    (inside,), (outside,) = members(state, of, 1, role="w"), members(state, of, 1, role="m")
    other = GangState(msgspec.structs.replace(of.spec, key=GangKey("t", "ns", "other")))
    [stranger] = members(state, other, 1, role="w")
    before = Constraints(lambda one: [("reserved", np.array([False, True]))])
    chosen = [Option(part(of, "role", "w"), np.array([True, False]), None, ())]

    def reasons(one: Task, constraints: Constraints) -> list[tuple[str, list[bool]]]:
        assert constraints.closed is not None
        return [(reason, rows.tolist()) for reason, rows in constraints.closed(one)]

    assert reasons(inside, within(UNCONSTRAINED, chosen)) == [(in_domains.OUTSIDE, [False, True])]
    assert reasons(inside, within(before, chosen)) == [("reserved", [False, True]), (in_domains.OUTSIDE, [False, True])]
    for one in (outside, stranger):
        assert reasons(one, within(before, chosen)) == [("reserved", [False, True])]
        assert reasons(one, within(UNCONSTRAINED, chosen)) == []


# ---- the search


class Attempts:
    """Stands for attempts to place: notes which nodes were open to a task, and answers as given, the last answer for
    ever."""

    def __init__(self, state: State, one: Task, *answers: Diagnosis | None) -> None:
        self.nodes: list[str] = []
        self._state, self._task, self._answers = state, one, list(answers)

    def __call__(self, constraints: Constraints) -> Diagnosis | None:
        closed = constraints.closed_rows(self._task)
        names = self._state.nodes.names
        rows = range(len(names)) if closed is None else np.flatnonzero(~closed).tolist()
        self.nodes.append(" ".join(names[row] for row in rows))
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def failed(*, proved: bool = True, of_queue: bool = False) -> Diagnosis:
    return Diagnosis(PendingReason.UNSCHEDULABLE, "it failed", proved=proved, of_queue=of_queue)


def search(
    state: State, constraint: TopologyConstraint, *answers: Diagnosis | None, count: int = 1, others: int = 0
) -> tuple[list[str], Diagnosis | None, list[PlannedDomains]]:
    """Tasks of 1 cpu; the attempts that were made, the failure, and what is published. `others`: gangs that start
    together with it."""
    of = gang(topology=constraint)
    request = PlacementRequest(of, members(state, of, *[1] * count))
    more = [PlacementRequest(gang()) for _ in range(others)]
    attempts = Attempts(state, request.needed[0], *answers)
    failure, planned = place_in_domains(state, [request, *more], UNCONSTRAINED, attempts)
    return attempts.nodes, failure, planned.get(of.key, [])


def test_t2_domains_are_tried_in_order_until_an_attempt_succeeds() -> None:
    state = racks(a=2, b=1, c=1)
    tried, failure, [planned] = search(state, RACK, failed(), failed(), None)
    assert tried == ["b-0", "c-0", "a-0 a-1"]
    assert failure is None
    assert planned == PlannedDomains("", r.RACK, r.RACK, ("x/a",), 1.0)


@pytest.mark.parametrize(
    ("tries", "options", "made", "is_proved"),
    [(64, 4096, 3, True), (3, 4096, 3, True), (2, 4096, 2, False), (64, 3, 3, True), (64, 2, 2, False)],
)
def test_t6_a_search_that_reached_a_bound_proves_nothing(
    tries: int, options: int, made: int, is_proved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_domains, "TRIES", tries)
    monkeypatch.setattr(in_domains, "OPTIONS_BOUND", options)
    tried, failure, _ = search(racks(a=1, b=1, c=1), RACK, failed())
    assert len(tried) == made
    assert failure is not None
    assert failure.proved == is_proved
    assert ("the search ended before" in failure.message) != is_proved


def test_t6_a_domain_that_was_not_ruled_out_is_said() -> None:
    state = racks(a=1, b=1)
    for answers, is_proved in (([failed(proved=False), failed()], False), ([failed(), failed()], True)):
        _, failure, _ = search(state, RACK, *answers)
        assert failure is not None
        assert failure.proved == is_proved


@pytest.mark.parametrize(
    ("count", "answers", "within", "domains", "score"),
    [
        (4, [None], r.RACK, ("x/a",), 1.0),
        (4, [failed(), None], r.RACK, ("x/b",), 1.0),
        (4, [failed(proved=False), None], r.RACK, ("x/b",), 0.99),  # a might have been possible
        (8, [failed(proved=False), None], r.BLOCK, ("x/a", "x/c"), 0.5),
        (13, [None], "", ("x/a", "x/b", "x/c"), 1.0),  # the whole cluster
    ],
)
def test_t2_what_is_published_of_a_plan(
    count: int, answers: list[Diagnosis | None], within: str, domains: tuple[str, ...], score: float
) -> None:
    state = racks(a=1, b=1, c=1)
    _, failure, [planned] = search(state, PREFERS_RACK, *answers, count=count)
    assert failure is None
    assert (planned.within, planned.level, planned.domains, planned.score) == (within, r.RACK, domains, score)


def test_t2_the_same_rows_are_not_tried_twice() -> None:
    """All three racks, the block that they are, and the whole cluster."""
    tried, failure, _ = search(racks(a=1, b=1, c=1), PREFERS_RACK, failed(), count=12)
    assert tried == ["a-0 b-0 c-0"]
    assert failure is not None


def test_t2_racks_are_published_by_name_and_only_those_that_may_be_used() -> None:
    """The second gang needs all of block x, with its node outside of every rack; rack z is in another block."""
    bare = m.node("bare-0", labels={r.BLOCK: "x"})
    nodes = [*r.nodes({"b": 1, "a": 1}, "x"), bare, *r.nodes({"z": 1}, "y")]
    state = knowing(r.topology("dc", r.BLOCK, r.RACK), *nodes).engine.state
    both = TopologyConstraint("kueue/dc", r.BLOCK, r.RACK)
    for count in (8, 12):
        _, failure, [planned] = search(state, both, None, count=count)
        assert failure is None
        assert sorted(planned.domains) == ["x/a", "x/b"]
        if count == 8:
            assert planned.domains == ("x/a", "x/b")


def test_v4_where_the_queue_is_full_no_other_domain_is_tried() -> None:
    tried, failure, _ = search(racks(a=1, b=1), RACK, failed(of_queue=True))
    assert tried == ["a-0"]
    assert failure is not None
    assert failure.message == "it failed"


def test_g10_without_a_required_level_the_last_attempt_says_why() -> None:
    _, failure, _ = search(racks(a=1), PREFERS_RACK, failed())
    assert failure is not None
    assert failure.message == "it failed"


def test_g10_gangs_that_start_together_say_each_their_own() -> None:
    state = racks(a=1)
    for others in (0, 1):
        _, failure, _ = search(state, RACK, failed(), count=5, others=others)
        assert failure is not None
        assert failure.message.startswith("5 pods must fit in one domain")
        assert len(failure.of_gangs) == others


def test_t1_the_first_part_without_a_domain_is_the_one_that_is_reported() -> None:
    """The gang fits in the block; 5 of role w in no rack, and 6 of role m neither."""
    state = racks(a=1, b=1, c=1)
    of = gang(topology=BLOCK, topology_of_role={"w": RACK, "m": RACK})
    tasks = [*members(state, of, 1, role="a"), *members(state, of, *[1] * 6, role="w")]
    request = PlacementRequest(of, [*tasks, *members(state, of, *[1] * 5, role="m")])
    failure, _ = place_in_domains(state, [request], UNCONSTRAINED, Attempts(state, tasks[0], None))
    assert failure is not None
    assert failure.message.startswith(f"5 pods must fit in one domain of {r.RACK}: of 3 domains, 3 have room for 4")


def test_t1_if_every_part_has_a_domain_but_not_together_the_widest_is_reported() -> None:
    state = racks(a=1)
    of = gang(topology=BLOCK, topology_of_role={"w": RACK})
    tasks = members(state, of, 1, 1, role="w")
    failure, _ = place_in_domains(
        state, [PlacementRequest(of, tasks)], UNCONSTRAINED, Attempts(state, tasks[0], failed())
    )
    assert failure is not None
    assert failure.message.startswith(f"2 pods must fit in one domain of {r.BLOCK}")


def test_t1_parts_beside_each_other_leave_room_for_each_other() -> None:
    """Three of each role in racks of four: the second role is tried in another rack at once."""
    state = racks(a=1, b=1)
    of = gang(topology_of_role={"m": RACK, "w": RACK})
    first, second = members(state, of, *[1] * 3, role="m"), members(state, of, *[1] * 3, role="w")
    attempts = Attempts(state, second[0], None)
    failure, _ = place_in_domains(state, [PlacementRequest(of, [*first, *second])], UNCONSTRAINED, attempts)
    assert failure is None
    assert attempts.nodes == ["b-0"]


def test_t1_a_domain_around_a_part_has_only_the_rows_that_are_open() -> None:
    """The gang is in one block with one node closed; its role finds its rack among the others."""
    state = racks(a=1, b=1)
    of = gang(topology=BLOCK, topology_of_role={"w": RACK})
    tasks = members(state, of, 1, role="w")
    attempts = Attempts(state, tasks[0], None)
    reserved = Constraints(lambda one: [("reserved", np.array([True, False]))])
    place_in_domains(state, [PlacementRequest(of, tasks)], reserved, attempts)
    assert attempts.nodes == ["b-0"]


def test_t1_room_that_a_part_can_only_take_in_one_rack_is_not_counted_for_another() -> None:
    """Role a must be in one block, of which only rack b is open: of its four cpu one is left for role w."""
    state = racks(a=1, b=1)
    of = gang(topology_of_role={"a": BLOCK, "w": RACK})
    tasks = [*members(state, of, 1, 1, 1, role="a"), *members(state, of, 1, 1, role="w")]
    attempts = Attempts(state, tasks[0], failed())
    reserved = Constraints(lambda one: [("reserved", np.array([True, False]))])
    failure, _ = place_in_domains(state, [PlacementRequest(of, tasks)], reserved, attempts)
    assert attempts.nodes == []
    assert failure is not None
    assert failure.message.startswith("2 pods must fit in one domain")


# ---- tasks that are placed one by one


@pytest.mark.parametrize(
    ("constraint", "count", "pinned", "open_nodes"),
    [
        (RACK, 3, "", "b-0"),  # the smallest that holds all of them
        (RACK, 9, "", "a-0 a-1"),  # none does: the one with the most room
        (RACK, 9, "b-0", "b-0"),
        (RACK, 3, "a-0", "a-0 a-1"),
        (BLOCK, 3, "", "a-0 a-1 b-0"),
        (PREFERS_RACK, 3, "", None),
        (TopologyConstraint("kueue/dc", r.BLOCK, r.RACK), 3, "", "a-0 a-1 b-0"),  # a preference keeps nothing out
        (TopologyConstraint("kai/none", "x"), 3, "", ""),
    ],
)
def test_t4_rows_for_tasks_that_are_placed_one_by_one(
    constraint: TopologyConstraint, count: int, pinned: str, open_nodes: str | None
) -> None:
    state = racks(a=2, b=1)
    of = gang(topology=constraint, occupied={"": 1} if pinned else {})
    if pinned:
        [placed] = members(state, of, 1)
        placed.node, placed.status = pinned, TaskStatus.BOUND
    tasks = members(state, of, *[1] * count)
    found, why = within_pins(state, of, tasks, UNCONSTRAINED)
    closed = found.closed_rows(tasks[0])
    names = state.nodes.names
    assert (closed is not None and " ".join(names[row] for row in np.flatnonzero(~closed))) == (
        open_nodes if open_nodes is not None else False
    )
    assert (why is None) == (open_nodes is None)


def test_t4_why_a_number_of_them_does_not_fit() -> None:
    state = racks(a=1, b=1)
    of = gang(topology=RACK)
    tasks = members(state, of, *[1] * 5)
    _, why = within_pins(state, of, tasks, UNCONSTRAINED)
    assert why is not None
    assert why(5).message == f"5 pods must fit in one domain of {r.RACK}: of 2 domains, 2 have room for 4 of 5."
    of.occupied = {"": 1}
    for name in ("a", "b"):
        tasks[0].node, tasks[0].status = f"{name}-0", TaskStatus.ASSUMED  # meanwhile
        assert why(5).message.startswith(f"5 pods do not fit in {r.RACK} x/{name}, where its other pods are")


def test_t4_members_outside_of_every_domain() -> None:
    state = knowing(r.topology("dc", r.BLOCK, r.RACK), *r.nodes({"a": 1}, "x"), m.node("bare")).engine.state
    of = gang(topology=RACK, occupied={"": 1})
    placed, late = members(state, of, 1, 1)
    placed.node, placed.status = "bare", TaskStatus.BOUND
    found, why = within_pins(state, of, [late], UNCONSTRAINED)
    closed = found.closed_rows(late)
    assert closed is not None
    assert closed.all()
    assert why is not None
    assert why(1).message.startswith(f"1 pod does not fit in {r.RACK} (none), where its other pods are")


def test_t5_a_domain_that_lost_its_nodes_is_not_counted() -> None:
    direct = knowing(r.topology("dc", r.BLOCK, r.RACK), *r.nodes({"a": 1, "b": 1}, "x"))
    state = direct.engine.state
    assert not isinstance(state.trees.asked(RACK), str)
    direct.put(m.node("b-0", 4, labels={r.BLOCK: "x", r.RACK: "c"}))
    direct.delete("Node", "a-0")
    state.settle()
    _, failure, _ = search(state, RACK, failed(), count=5)
    assert failure is not None
    assert "of 1 domain, 1 has room for 4 of 5" in failure.message
