"""Every operation of a transaction: what it counts, and that a rollback is its exact reverse."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from enbloc.config import parse
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.resources import CPU
from enbloc.engine.core.tables.tasks import Task, TaskStatus
from support import manifests as m
from support.direct_scheduler import DirectScheduler
from support.simulation import NO_EVICTIONS

A, B = 0, 1
"""The rows of nodes a and b, each with 4 cpu."""


@pytest.fixture
def state() -> State:
    """Two nodes; a gang of two roles that waits, and a bound, a releasing and a foreign pod of 1 cpu each on a."""
    direct = DirectScheduler(parse(NO_EVICTIONS))
    direct.put(m.queue("q"))
    for name in "ab":
        direct.put(m.node(name))
    direct.put({**m.podgroup("g", 4, queue="q"), "status": {"phase": "Inqueue"}})
    for index, role in enumerate(("w", "w", "w", "m")):
        direct.put(m.pod(f"g-{index}", group="g", role=role, labels={"app": "g"}))
    direct.put(m.pod("bound", nodeName="a", queue="q"))
    releasing = m.pod("releasing", nodeName="a", queue="q")
    releasing["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    direct.put(releasing)
    direct.put(m.pod("foreign", nodeName="a", scheduler="other"))
    direct.engine.begin(1)
    return direct.engine.state


def task(state: State, name: str) -> Task:
    return state.tasks[f"Pod/{name}"]


def free(state: State) -> list[int]:
    """Free cpus by row."""
    return [int(state.nodes.free[CPU, row]) // 1000 for row in (A, B)]


def used(state: State, queue: str = "q") -> int:
    return int(state.queues.get(queue).used[CPU]) // 1000


def counts(one: Task) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Pending, held and occupied tasks of a gang by role."""
    gang = one.gang
    return _positive(gang.pending), _positive(gang.held), _positive(gang.occupied)


def _positive(table: dict[str, int]) -> dict[str, int]:
    return {role: count for role, count in table.items() if count}


def test_placing_takes_room_and_counts_for_queue_and_gang(state: State) -> None:
    tasks = [task(state, f"g-{index}") for index in range(3)]
    assert (free(state), used(state)) == ([1, 4], 2)
    Transaction(state).place(tasks, [A, B, B])
    assert (free(state), used(state)) == ([0, 2], 5)
    assert [(one.status, one.node) for one in tasks] == [(TaskStatus.ASSUMED, name) for name in "abb"]
    assert counts(tasks[0]) == ({"m": 1}, {}, {"w": 3})


def test_tasks_of_several_roles_are_counted_by_role(state: State) -> None:
    tasks = [task(state, "g-2"), task(state, "g-3")]
    Transaction(state).place(tasks, [B, B])
    assert counts(tasks[0]) == ({"w": 2}, {}, {"w": 1, "m": 1})


def test_a_placed_task_that_is_removed_waits_again(state: State) -> None:
    one = task(state, "g-0")
    transaction = Transaction(state)
    transaction.place([one], [B])
    transaction.remove(one, B)
    assert (free(state), used(state)) == ([1, 4], 2)
    assert (one.status, one.node) == (TaskStatus.PENDING, "")
    assert counts(one) == ({"w": 3, "m": 1}, {}, {})


@pytest.mark.parametrize("name, releasing", [("bound", False), ("releasing", True)])
def test_an_evicted_task_is_off_its_node_and_does_not_wait(state: State, name: str, releasing: bool) -> None:
    one = task(state, name)
    before = one.status
    assert (before is TaskStatus.RELEASING) == releasing
    transaction = Transaction(state)
    transaction.evict(one)
    assert (one.status, one.node) == (TaskStatus.RELEASING, "")
    assert (free(state), used(state)) == ([2, 4], 1)
    assert counts(one) == ({}, {}, {})
    transaction.rollback()
    assert (one.status, one.node) == (before, "a")


def test_a_pod_of_another_scheduler_counts_in_no_queue(state: State) -> None:
    root = used(state, "root")
    Transaction(state).evict(task(state, "foreign"))
    assert free(state) == [2, 4]
    assert (used(state), used(state, "root")) == (2, root)


def test_an_evicted_task_that_is_spared_is_where_it_was(state: State) -> None:
    one, before = task(state, "bound"), state.digest()
    transaction = Transaction(state)
    transaction.evict(one)
    transaction.unevict(one, A)
    assert state.digest() == before


@pytest.mark.parametrize("status", [TaskStatus.HELD, TaskStatus.NOMINATED])
def test_a_claim_is_lifted_and_given_back(state: State, status: TaskStatus) -> None:
    one = task(state, "g-0")
    if status is TaskStatus.HELD:
        state.restore_hold(one, "b")
    else:
        state.nominate(one, "b")
    before, counted = state.digest(), counts(one)
    assert free(state) == [1, 3]
    transaction = Transaction(state)
    transaction.lift(one)
    assert (one.status, one.node, free(state)) == (TaskStatus.PENDING, "", [1, 4])
    assert counts(one) == ({"w": 3, "m": 1}, {}, {})
    transaction.restore(one, B, status)
    assert state.digest() == before
    assert counts(one) == counted


def test_held_tasks_are_counted_apart_from_those_that_wait(state: State) -> None:
    one = task(state, "g-0")
    state.restore_hold(one, "b")
    assert counts(one) == ({"w": 2, "m": 1}, {"w": 1}, {})
    Transaction(state).lift(one)
    assert counts(one) == ({"w": 3, "m": 1}, {}, {})


# ---- rollback

OPERATIONS: dict[str, Callable[[Transaction, State], None]] = {
    "place one": lambda work, state: work.place([task(state, "g-0")], [A]),
    "place several": lambda work, state: work.place([task(state, f"g-{index}") for index in range(4)], [A, B, B, B]),
    "evict": lambda work, state: work.evict(task(state, "bound")),
    "evict one that is leaving": lambda work, state: work.evict(task(state, "releasing")),
    "evict a foreign pod": lambda work, state: work.evict(task(state, "foreign")),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_rollback_is_the_exact_reverse(state: State, name: str) -> None:
    before, passing = state.digest(), state.candidates(task(state, "g-0").cls).keys().tolist()
    transaction = Transaction(state)
    OPERATIONS[name](transaction, state)
    assert state.digest() != before
    transaction.rollback()
    state.validate()
    assert state.digest() == before
    assert state.candidates(task(state, "g-0").cls).keys().tolist() == passing
    assert transaction.checkpoint == 0


def test_rollback_goes_back_to_a_mark_and_keeps_what_was_before(state: State) -> None:
    transaction = Transaction(state)
    transaction.place([task(state, "g-0")], [A])
    mark, digest = transaction.checkpoint, state.digest()
    transaction.place([task(state, "g-1"), task(state, "g-2")], [B, B])
    transaction.evict(task(state, "bound"))
    assert [one.uid for one in transaction.placed] == ["Pod/g-0", "Pod/g-1", "Pod/g-2"]
    assert [one.uid for one in transaction.placed_since(mark)] == ["Pod/g-1", "Pod/g-2"]
    transaction.rollback(mark)
    assert state.digest() == digest
    assert [one.uid for one in transaction.placed] == ["Pod/g-0"]
    transaction.rollback()
    assert task(state, "g-0").status is TaskStatus.PENDING


def test_operations_on_one_task_are_undone_last_first(state: State) -> None:
    """Held on b, lifted, placed on a, taken off again: only in reverse does each find what it left."""
    one = task(state, "g-0")
    state.restore_hold(one, "b")
    before = state.digest()
    transaction = Transaction(state)
    transaction.lift(one)
    transaction.place([one], [A])
    transaction.remove(one, A)
    transaction.place([one], [B])
    transaction.rollback()
    assert state.digest() == before
    assert (one.status, one.node) == (TaskStatus.HELD, "b")


def test_claims_that_were_given_back_are_not_placed(state: State) -> None:
    one = task(state, "g-0")
    state.restore_hold(one, "b")
    transaction = Transaction(state)
    transaction.lift(one)
    transaction.restore(one, B, TaskStatus.HELD)
    assert not transaction.placed


def test_what_was_free_before_a_mark(state: State) -> None:
    """Tasks of one class on one row several times, and evictions, which freed what was not free then."""
    transaction = Transaction(state)
    transaction.place([task(state, "g-0")], [A])
    mark, then = transaction.checkpoint, state.nodes.free[:, : state.nodes.count].copy()
    transaction.evict(task(state, "bound"))
    transaction.place([task(state, f"g-{index}") for index in (1, 2, 3)], [B, B, A])
    assert (transaction.free_before(mark) == then).all()
    assert (transaction.free_before(transaction.checkpoint) == state.nodes.free[:, : state.nodes.count]).all()


def test_filters_see_what_is_placed_until_it_is_rolled_back(state: State) -> None:
    transaction = Transaction(state)
    transaction.place([task(state, "g-0")], [B])
    assert [one.uid for one in state.stateful.assigned_to("b")] == ["Pod/g-0"]
    transaction.rollback()
    assert not list(state.stateful.assigned_to("b"))


# ---- the digest


@pytest.mark.parametrize("rows", [([A], [B]), ([A, B], [B, A])])
def test_the_digest_knows_where_each_task_is(state: State, rows: tuple[list[int], list[int]]) -> None:
    seen = []
    for places in rows:
        transaction = Transaction(state)
        transaction.place([task(state, f"g-{index}") for index in range(len(places))], places)
        seen.append(state.digest())
        transaction.rollback()
    assert seen[0] != seen[1]
