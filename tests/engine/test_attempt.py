"""One cycle of the engine over a few objects: what an attempt places, and that a failed one leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.config import parse
from enbloc.engine.decisions import Bind
from support import manifests as m
from support.direct_scheduler import DirectScheduler
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
