"""One cycle of the engine over a few objects: what an attempt places, and that a failed one leaves no trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from enbloc.config import parse
from enbloc.engine.core.placement.attempt import attempt, one_by_one, runs
from enbloc.engine.core.placement.constraints import UNCONSTRAINED, Constraints
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.decisions import Bind
from enbloc.gangs.hints import SchedulingHints
from enbloc.gangs.topology import PodTopology, TopologyConstraint
from engine.gang_states import gang, members, task
from support import manifests as m
from support import racks as r
from support.direct_scheduler import DirectScheduler, knowing
from support.simulation import NO_EVICTIONS, flat


def engine_with(*objects: Any) -> DirectScheduler:
    direct = DirectScheduler(parse(NO_EVICTIONS))
    for created_s, obj in enumerate(flat(*objects)):
        direct.put(obj, created_s)
    return direct


def group(name: str, minimum: int, **fields: Any) -> m.Obj:
    """A PodGroup that was enqueued before."""
    return {**m.podgroup(name, minimum, **fields), "status": {"phase": "Inqueue"}}


def member(name: str, of: str, role: str = "", cpu: int = 1, **fields: Any) -> m.Obj:
    return m.pod(name, cpu, group=of, role=role, **fields)


def bindings(direct: DirectScheduler) -> list[Bind]:
    found = [one for one in direct.engine.run(1) if isinstance(one, Bind)]
    direct.engine.state.validate()
    return found


def placed(direct: DirectScheduler) -> dict[str, str]:
    return {one.name: one.node for bind in bindings(direct) for one in bind.placements}


def test_a_gang_of_which_one_role_does_not_fit_takes_nothing() -> None:
    direct = engine_with(
        m.node("n", 4),
        group("g", 3, roles={"w": 2, "m": 1}),
        [member(f"w{index}", "g", "w") for index in range(2)],
        member("m0", "g", "m", cpu=9),
    )
    assert placed(direct) == {}
    nodes, tasks = direct.engine.state.nodes, direct.engine.state.tasks
    assert (nodes.free[:, nodes.rows["n"]] == nodes.allocatable[:, nodes.rows["n"]]).all()
    assert all(task.node == "" for task in tasks.values())


def test_the_minimum_of_every_role_comes_before_the_rest_of_any() -> None:
    """3 of w are there and need 1; m needs 1: with room for two, one of each is placed."""
    direct = engine_with(
        m.node("n", 2),
        group("g", 2, roles={"w": 1, "m": 1}),
        [member(f"w{index}", "g", "w") for index in range(3)],
        member("m0", "g", "m"),
    )
    assert set(placed(direct)) == {"w0", "m0"}


def test_the_total_is_made_up_of_tasks_beyond_the_minima_of_roles() -> None:
    members = [member(f"w{index}", "g", "w") for index in range(3)]
    assert set(placed(engine_with(m.node("n", 3), group("g", 3, roles={"w": 1}), members))) == {"w0", "w1", "w2"}
    assert placed(engine_with(m.node("n", 2), group("g", 3, roles={"w": 1}), members)) == {}


def test_tasks_of_different_size_are_packed_where_greedy_would_fail() -> None:
    """Spreading the small ones leaves no node for the large one."""
    direct = engine_with(
        m.node("n0", 2),
        m.node("n1", 2),
        group("g", 3),
        [member(f"s{i}", "g") for i in range(2)],
        member("l", "g", cpu=2),
    )
    found = placed(direct)
    assert set(found) == {"s0", "s1", "l"}
    assert found["s0"] == found["s1"] != found["l"]


def test_a_queues_capability_bounds_an_attempt() -> None:
    members = [member(f"w{index}", "g") for index in range(3)]
    for capability, expected in (("3", 3), ("2", 0)):
        queue = m.queue("q", capability={"cpu": capability})
        assert len(placed(engine_with(queue, m.node("n", 8), group("g", 3, queue="q"), members))) == expected


@pytest.mark.parametrize("first", ["a", "b"])
def test_the_older_gang_is_placed_first(first: str) -> None:
    second = "b" if first == "a" else "a"
    gangs = [[group(name, 2), member(f"{name}0", name), member(f"{name}1", name)] for name in (first, second)]
    assert set(placed(engine_with(m.node("n", 3), *gangs))) == {f"{first}0", f"{first}1"}


# ---- runs: neighbours that are placed in bulk


RACK = TopologyConstraint(f"label/{r.RACK}", r.RACK)


def shown(state: State, tasks: Sequence[Task]) -> str:
    """The tasks of each run, runs apart."""
    return " | ".join(" ".join(task.name for task in run) for run in runs(state, tasks))


def test_o2_neighbours_of_one_class_are_a_run() -> None:
    state = knowing(m.node("n")).engine.state
    assert shown(state, []) == ""
    assert shown(state, members(state, gang(), 1, 1, 1)) == "0 1 2"
    assert shown(state, members(state, gang(), 1, 1, 2, 1)) == "0 1 | 2 | 3"
    assert shown(state, members(state, gang(), 2, 1, 1, 2)) == "0 | 1 2 | 3"


def test_t1_tasks_of_other_parts_are_another_run() -> None:
    state = knowing(m.node("n")).engine.state
    for of, own in ((gang(), (PodTopology(RACK),)), (gang(topology_of_role={"a": RACK}), ())):
        tasks = [*members(state, of, 1, 1, role="a", topology=own), *members(state, of, 1, role="b")]
        assert shown(state, tasks) == "a0 a1 | b2"
        assert shown(state, tasks[::-1]) == "b2 | a1 a0"
    of = gang(topology=RACK)
    assert shown(state, [*members(state, of, 1, role="a"), *members(state, of, 1, role="b")]) == "a0 b1"


def test_r8_tasks_of_another_run_time_are_another_run_where_run_times_count() -> None:
    state = knowing(m.node("n")).engine.state
    tasks = members(state, gang(), 1, 1, 1)
    tasks[2].hints = SchedulingHints(run_time_ns=5)
    assert shown(state, tasks) == "0 1 2"
    state.timed = True
    assert shown(state, tasks) == "0 1 | 2"


def test_g6_a_task_that_stateful_filters_concern_is_a_run_of_its_own() -> None:
    """By its own host port, or by the terms of a pod that runs: those of another app are not concerned."""
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    state = knowing(m.node("n")).engine.state
    of = gang()
    plain, ports = members(state, of, 1, 1, 1, namespace="default"), with_port(state, of, 2)
    assert shown(state, [plain[0], *ports, *plain[1:]]) == "0 | port0 | port1 | 1 2"
    state = knowing(m.node("n"), m.pod("runs", nodeName="n", affinity=affinity)).engine.state
    for labels, expected in (({"app": "x"}, "0 | 1"), ({"app": "y"}, "0 1")):
        assert shown(state, members(state, gang(), 1, 1, namespace="default", labels=labels)) == expected


# ---- why an attempt failed


def with_port(state: State, of: GangState, count: int) -> list[Task]:
    """Tasks of 1 cpu, of which a node holds one."""
    port = {"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": m.requests(1)}}
    cls = state.classes.of("default", {"containers": [port]})
    return [task(of, f"port{n}", n, cls=cls) for n in range(count)]


@pytest.mark.parametrize(
    ("cpus", "rest", "is_proved"),
    [
        ([2, 2, 2], [], True),  # equal tasks: greedy placement is exact
        ([2, 2, 2], [1], True),  # whatever there is beyond the minimum
        ([3, 3, 1], [], True),  # two kinds: the search finds that there is too little
        ([1, 3, 3], [], True),
        ([], [], False),  # which of the nodes a port is free on is not searched for
    ],
)
def test_t6_a_failure_that_no_other_assignment_avoids_is_proved(
    cpus: list[int], rest: list[int], is_proved: bool
) -> None:
    direct = knowing(m.node("n", 4))
    state = direct.engine.state
    of = gang(len(cpus))
    tasks = members(state, of, *cpus) or with_port(state, of, 2)
    request = PlacementRequest(of, tasks, members(state, of, *rest))
    failure = attempt(direct.engine.parts.placer, [request], Transaction(state), UNCONSTRAINED)
    assert failure is not None
    assert failure.proved == is_proved
    assert all(one.status is TaskStatus.PENDING for one in tasks)


@pytest.mark.parametrize("order", ["abc", "acb", "bca", "cba"])
def test_g6_tasks_that_must_be_beside_each_other_are_placed_in_any_order(order: str) -> None:
    """a must be beside b, b beside c, and c where it likes."""

    def beside(app: str) -> m.Obj:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
        return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}

    specs: dict[str, m.Obj] = {"a": beside("b"), "b": beside("c"), "c": {}}
    nodes = [m.node(name, labels={"kubernetes.io/hostname": name}) for name in ("n0", "n1")]
    pods = [member(app, "g", labels={"app": app}, **specs[app]) for app in order]
    found = placed(engine_with(nodes, group("g", 3), pods))
    assert (sorted(found), len(set(found.values()))) == (["a", "b", "c"], 1)


@pytest.mark.parametrize("nodes", ["ab", "abc"])
def test_g3_tasks_that_stateful_filters_concern_make_up_the_total_and_no_more(nodes: str) -> None:
    """Two of three, each on a node of its own."""
    direct = knowing(*map(m.node, nodes))
    state = direct.engine.state
    of = gang(2)
    request = PlacementRequest(of, (), with_port(state, of, 3), 2)
    assert attempt(direct.engine.parts.placer, [request], Transaction(state), UNCONSTRAINED) is None
    assert sorted(one.node for one in of.tasks.values()) == ["", "a", "b"]


@pytest.mark.parametrize(
    ("cpus", "most", "placed", "missing"),
    [
        ([1, 1, 1], None, "0 1 2", 0),
        ([1, 1, 1], 2, "0 1", 0),
        ([1, 1, 1, 1, 1], None, "0 1 2 3", 1),
        ([5, 1, 6, 1], None, "1 3", 2),  # those behind one that does not fit are placed
        ([5, 1, 1], 1, "1", 1),
    ],
)
def test_g3_tasks_that_are_placed_one_by_one(cpus: list[int], most: int | None, placed: str, missing: int) -> None:
    direct = knowing(m.node("n", 4))
    state = direct.engine.state
    of = gang(1)
    tasks = members(state, of, *cpus)
    failure = one_by_one(direct.engine.parts.placer, of, Transaction(state), tasks, UNCONSTRAINED, most)
    assert " ".join(one.name for one in tasks if one.node) == placed
    assert (failure.missing if failure is not None else {}) == ({"": missing} if missing else {})


def test_v4_tasks_on_cordoned_nodes_take_nothing_of_what_is_guaranteed() -> None:
    """Of the 4 cpu of n, two are guaranteed to another queue: two tasks at a time may be placed. Node a, the freest,
    takes all five, which tolerate its cordon."""
    nodes = [m.node("a", 64, unschedulable=True), m.node("n")]
    direct = knowing(m.queue("q"), m.queue("other", guarantee={"cpu": "2"}), *nodes)
    state = direct.engine.state
    of = gang(5, queue="q")
    cls = state.classes.of("default", m.pod_spec(1, tolerations=[{"operator": "Exists"}]))
    tasks = [task(of, f"t{n}", n, cls=cls) for n in range(5)]
    one_by_one(direct.engine.parts.placer, of, Transaction(state), tasks, UNCONSTRAINED)
    assert [one.node for one in tasks] == ["a"] * 5


def test_v4_tasks_of_a_full_queue_say_so_whatever_their_domain() -> None:
    direct = knowing(m.queue("q", capability={"cpu": "1"}), *r.nodes({"a": 1}))
    state = direct.engine.state
    of = gang(1, queue="q", topology=RACK)
    tasks = members(state, of, 1, 1)
    failure = one_by_one(direct.engine.parts.placer, of, Transaction(state), tasks, UNCONSTRAINED)
    assert [one.node for one in tasks] == ["a-0", ""]
    assert failure is not None
    assert failure.of_queue
    assert "queue q" in failure.message


# ---- G2, G3: what is chosen where greedy placement fails


@pytest.mark.parametrize(
    ("must", "rest", "short", "placed"),
    [
        ([1, 4, 4], [], 0, "0:c 1:a 2:b"),
        ([1, 4, 4], [4], 0, "0:c 1:a 2:b"),  # what is beyond the minimum is not searched for
        ([1], [4, 4], 2, "0:c 1:a 2:b"),  # all of the rest
        ([1], [4, 4, 4], 2, "0:c 1:a 2:b"),  # equal ones: the first
        ([1], [5, 4, 4, 4], 2, "0:c 2:a 3:b"),  # the first for which there is a place together with the others
        ([1, 4], [5, 5, 4], 1, "0:c 1:a 4:b"),
        ([1, 4], [4, 4], 2, None),
        ([1], [5, 5, 4], 2, None),
    ],
)
def test_g3_tasks_that_are_chosen_where_greedy_placement_fails(
    must: list[int], rest: list[int], short: int, placed: str | None
) -> None:
    """On nodes of 4, 4 and 1 cpu; a task of 1 cpu would take one of the larger ones first."""
    direct = knowing(m.node("a"), m.node("b"), m.node("c", 1))
    state = direct.engine.state
    of = gang(len(must) + short)
    request = PlacementRequest(of, members(state, of, *must), members(state, of, *rest), short)
    failure = attempt(direct.engine.parts.placer, [request], Transaction(state), UNCONSTRAINED)
    found = " ".join(f"{one.name}:{one.node}" for one in of.tasks.values() if one.status is TaskStatus.ASSUMED)
    assert (failure is None) == (placed is not None)
    assert found == (placed or "")


def test_g10_pods_that_any_role_could_replace_each_say_why_they_do_not_fit() -> None:
    """Role a lacks its own minimum and says that; b could make up the total."""
    direct = knowing(m.node("n", 0))
    state = direct.engine.state
    of = gang(3, {"a": 1})
    first, *rest = [*members(state, of, 1, 1, 1, role="a"), *members(state, of, 1, role="b")]
    request = PlacementRequest(of, [first], rest, 2)
    failure = attempt(direct.engine.parts.placer, [request], Transaction(state), UNCONSTRAINED)
    assert failure is not None
    assert failure.of_roles.keys() == {"a", "b"}
    assert failure.of_roles["a"].startswith("1 of 1 pod of role a does not fit")
    assert failure.of_roles["b"].startswith("2 of 2 pods of any role do not fit")
    assert failure.of_roles["b"].endswith("(role b)")


def test_t4_g10_tasks_that_are_placed_one_by_one_say_how_many_find_no_place_beside_the_others() -> None:
    direct = knowing(*r.nodes({"a": 1}))
    state = direct.engine.state
    of = gang(1, topology=RACK)
    tasks = [*members(state, of, *[1] * 6), *members(state, of, *[2] * 3)]
    failure = one_by_one(direct.engine.parts.placer, of, Transaction(state), tasks, UNCONSTRAINED)
    assert failure is not None
    assert failure.message.startswith(f"2 pods do not fit in {r.RACK} a, where its other pods are")
    assert failure.missing == {"": 5}


def test_r5_nodes_that_are_closed_are_a_reason() -> None:
    direct = knowing(m.node("n"))
    state = direct.engine.state
    of = gang(1)
    reserved = Constraints(lambda one: [("node(s) were reserved", np.array([True]))])
    request = PlacementRequest(of, members(state, of, 1))
    failure = attempt(direct.engine.parts.placer, [request], Transaction(state), reserved)
    assert failure is not None
    assert "1 node(s) were reserved" in failure.message


@pytest.mark.parametrize(("closed", "nodes"), [("", ["c", "a", "b"]), ("c", ["", "", ""])])
def test_r5_nodes_that_are_closed_to_a_gang_are_not_packed(closed: str, nodes: list[str]) -> None:
    """The only assignment puts the small task on c."""
    direct = knowing(m.node("a"), m.node("b"), m.node("c", 1))
    state = direct.engine.state
    of = gang(3)
    tasks = members(state, of, 1, 4, 4)
    rows = np.array([name == closed for name in state.nodes.names])
    reserved = Constraints(lambda one: [("reserved", rows)])
    attempt(direct.engine.parts.placer, [PlacementRequest(of, tasks)], Transaction(state), reserved)
    assert [one.node for one in tasks] == nodes


@pytest.mark.parametrize(
    ("must", "rest", "short", "cpu", "fits"),
    [
        ([1, 4, 4], [], 0, "9", True),
        ([1, 4, 4], [], 0, "8", False),
        ([1], [4, 4], 2, "9", True),
        ([1], [4, 4], 2, "8", False),
        ([1, 4], [5, 4], 1, "10", True),  # whichever of the rest is chosen: the largest might be
        ([1, 4], [5, 4], 1, "9", False),
    ],
)
def test_v4_the_search_keeps_to_what_a_queue_may_use(
    must: list[int], rest: list[int], short: int, cpu: str, fits: bool
) -> None:
    """What greedy placement placed before it gave up counts once."""
    direct = knowing(m.queue("q", capability={"cpu": cpu}), m.node("a"), m.node("b"), m.node("c", 1))
    state = direct.engine.state
    of = gang(len(must) + short, queue="q")
    request = PlacementRequest(of, members(state, of, *must), members(state, of, *rest), short)
    failure = attempt(direct.engine.parts.placer, [request], Transaction(state), UNCONSTRAINED)
    assert (failure is None) == fits


def test_g2_several_gangs_that_could_each_choose_are_not_searched_for() -> None:
    """With one that chooses the search says that there is too little; with two it is not asked."""
    for rest, is_proved in (([4, 5], False), ([4], True)):
        direct = knowing(m.node("a"), m.node("b"))
        state = direct.engine.state
        first, second = gang(2), gang(2)
        requests = [
            PlacementRequest(first, members(state, first, 3), members(state, first, 4, 5), 1),
            PlacementRequest(second, members(state, second, 3), members(state, second, *rest), 1),
        ]
        failure = attempt(direct.engine.parts.placer, requests, Transaction(state), UNCONSTRAINED)
        assert failure is not None
        assert failure.proved == is_proved


ANY = "-"
"""Stands for pods without a role."""
HALF = "1 of 2 pods of role a and 1 of 1 pod of role b"


@pytest.mark.parametrize(
    ("cpu", "of", "needed", "rest", "short", "missing", "said"),
    [
        (2, gang(3), "", "- - -", 3, {"": 1}, "1 of 3 pods"),
        (1, gang(4, held={"": 1}), "", "- - -", 3, {"": 2}, "2 of 4 pods"),  # a held one is one of the four
        (2, gang(3, {"a": 2, "b": 1}), "a a b", "", 0, {"b": 1}, "1 of 1 pod of role b"),
        (0, gang(3, {"a": 2, "b": 1}, held={"a": 1}), "a b", "", 0, {"a": 1, "b": 1}, HALF),
        # The total is short, and one role is left.
        (1, gang(3, {"a": 1}), "a", "b b b", 2, {"b": 2}, "2 of 2 pods of role b"),
        (1, gang(4, {"a": 1}, held={"a": 1}), "", "b b b", 3, {"b": 2}, "2 of 3 pods of role b"),
        (1, gang(4, {"a": 1}, held={"b": 1}), "a", "b b", 2, {"b": 2}, "2 of 3 pods of role b"),
        (0, gang(3, {"a": 1}), "a", "a a", 2, {"a": 3}, "3 of 3 pods of role a"),
        (2, gang(3, {"a": 1}), "a", "a a a", 2, {"a": 1}, "1 of 3 pods of role a"),  # with its own minimum
        (2, gang(3, {"a": 1}), "a", "- b b", 2, {"b": 1}, "1 of 2 pods of role b"),
        # All that are left are needed: each role says what it lacks.
        (1, gang(3, {"a": 1}), "a", "b c", 2, {"b": 1, "c": 1}, "1 of 1 pod of role b and 1 of 1 pod of role c"),
        (0, gang(3, {"a": 1}), "a", "a c", 2, {"a": 2, "c": 1}, "2 of 2 pods of role a and 1 of 1 pod of role c"),
        # Any of several roles could make it up.
        (1, gang(3, {"a": 1}), "a", "b c c", 2, {"": 2}, "2 of 2 pods of any role"),
        (0, gang(3, {"a": 1}), "a", "a a b", 2, {"a": 1, "": 2}, "1 of 1 pod of role a and 2 of 2 pods of any role"),
        (1, gang(2), "", "- a b", 2, {"": 1}, "1 of 2 pods of any role"),
    ],
)
def test_g10_what_a_gang_lacks(
    cpu: int, of: GangState, needed: str, rest: str, short: int, missing: dict[str, int], said: str
) -> None:
    """Pods of 1 cpu and one node, by the role of each pod in order."""
    direct = knowing(m.node("n", cpu))
    state = direct.engine.state
    minima, others = (
        [one for role in roles.split() for one in members(state, of, 1, role=role.strip(ANY))]
        for roles in (needed, rest)
    )
    request = PlacementRequest(of, minima, others, short)
    failure = attempt(direct.engine.parts.placer, [request], Transaction(state), UNCONSTRAINED)
    assert failure is not None
    assert failure.missing == missing
    assert failure.message.startswith(f"{said} do")
    assert "" not in failure.of_roles


# ---- the decision


def test_a_decision_is_named_by_what_it_binds() -> None:
    """Equal facts make equal names, in any process; other members make another."""
    objects = [m.node("n", 4), group("g", 2), member("a", "g"), member("b", "g")]
    (one,), (again,) = bindings(engine_with(objects)), bindings(engine_with(objects))
    (other,) = bindings(engine_with(m.node("n", 4), group("g", 2), member("a", "g"), member("c", "g")))
    assert one.decision == again.decision != other.decision


def test_a_decision_commits_when_the_minimum_is_met() -> None:
    (bind,) = bindings(engine_with(m.node("n", 4), group("g", 2), member("a", "g"), member("b", "g")))
    assert bind.commits
    assert bind.mark
    assert [one.name for one in bind.placements] == ["a", "b"]


def test_pods_without_a_group_are_bound_by_themselves() -> None:
    found = bindings(engine_with(m.node("n", 4), m.pod("a"), m.pod("b")))
    assert sorted([one.name for one in bind.placements] for bind in found) == [["a"], ["b"]]
