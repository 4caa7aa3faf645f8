"""Greedy plans: room is made place by place, and what turns out to be in the way of none is spared (P1, P2)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.eviction.greedy_plan import GreedyPlan
from enbloc.engine.eviction.planned_evictions import PlannedEvictions
from enbloc.engine.eviction.rules import ByPriority, ByShare, Rules
from enbloc.engine.eviction.victims import VictimCandidates, Victims
from enbloc.engine.placement.constraints import UNCONSTRAINED
from enbloc.engine.placement.request import request_of
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.resources import total
from engine.claims.scenes import Scene
from engine.evictions import member, runs, wants
from support import manifests as m


class Greedy:
    """One try for the gang `q`: all cells of its rules may be evicted."""

    def __init__(self, *objects: Any, by_share: bool = False) -> None:
        self.scene = Scene(*objects)
        state, parts, gang = self.scene.state, self.scene.direct.engine.parts, self.scene.gang("q")
        for other in state.gangs.values():
            parts.evictions.gang_read(other)
        self.request = request_of(gang)
        rules: Rules = ByPriority(parts.evictions, [gang], 9, best_effort_only=False)
        if by_share:
            rules = ByShare(state, parts.evictions, [gang], total(task.cls.request for task in self.request.minimum))
        parts.evictions.surplus.cells()
        cells = list(rules.cells())
        ranks = {cell: rank for rank, cell in enumerate(cells)}
        self.transaction = Transaction(state)
        self.planned = PlannedEvictions(state, parts.evictions, rules, self.transaction)
        candidates = VictimCandidates(state, parts.evictions, parts.groups, ranks, ())
        self.plan = GreedyPlan(
            state, parts.placer, rules, UNCONSTRAINED, self.transaction, self.planned, candidates,
            parts.evictions.evictable.freed(cells),
        )  # fmt: skip

    def run(self) -> bool:
        return self.plan.run([self.request])

    @property
    def victims(self) -> str:
        return " ".join(sorted(task.name for task in self.planned.tasks))

    @property
    def places(self) -> dict[str, str]:
        return {task.name: task.node for task in self.transaction.placed}

    def evicts(self, *names: str) -> None:
        """Each of these pods is a gang of its own."""
        for name in names:
            self.planned.evict(Victims([self.scene.task(name)], whole_gang=True, rank=0))


def tried(*objects: Any, by_share: bool = False) -> str | None:
    """The victims of a greedy plan; `None`: it found none."""
    greedy = Greedy(*objects, by_share=by_share)
    found = greedy.victims if greedy.run() else None
    greedy.transaction.rollback()
    greedy.scene.state.validate()
    return found


NODES = [m.node("n", 4), m.node("o", 4)]


# ---- place by place


def test_p1_free_room_is_used_first() -> None:
    greedy = Greedy(NODES, runs("a", 3, "n"), runs("b", 4, "o"), wants((1, ""), (1, ""), (1, "")))
    assert greedy.run()
    assert greedy.victims == "b"
    assert sorted(greedy.places.values()) == ["n", "o", "o"]


@pytest.mark.parametrize("by_role", [False, True])
@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([(2, "")], "b", id="one place"),
        pytest.param([(2, ""), (2, "")], "b", id="two places where one was made"),
        pytest.param([(2, ""), (2, ""), (2, "")], "a b", id="a third where a second was made"),
        pytest.param([(2, "")] * 5, None, id="no more than there are"),
    ],
)
def test_p1_as_many_pods_as_fit_go_where_room_was_made(
    pods: list[tuple[int, str]], expected: str | None, by_role: bool
) -> None:
    assert tried(NODES, runs("a", 4, "n"), runs("b", 4, "o"), wants(*pods, by_role=by_role)) == expected


def test_p1_room_that_a_gang_leaves_on_other_nodes_is_used() -> None:
    """`d` leaves both nodes: the second pod does not need the room of `a`."""
    running = [m.podgroup("d", 2), member("d-0", 2, "n"), member("d-1", 2, "o"), runs("a", 2, "n", priority=1)]
    assert tried(NODES, running, runs("b", 2, "o", priority=1), wants((2, ""), (2, ""))) == "d-0 d-1"


@pytest.mark.parametrize(
    ("minimum", "expected"), [(1, "a"), (2, "a b"), (3, None)], ids=["one", "two", "more than there are"]
)
def test_p1_only_as_many_as_are_needed_are_placed(minimum: int, expected: str | None) -> None:
    nodes = [m.node("n", 4), m.node("o", 4)]
    running = [runs("b", 4, "o"), runs("a", 4, "n", at="1s")]
    waiting = wants((4, ""), (4, ""), (4, ""), minimum=minimum)
    assert tried(nodes, running, waiting) == expected


# ---- which row, and which victims on it


@pytest.mark.parametrize(
    ("running", "expected"),
    [
        pytest.param([runs("a", 2, "n"), runs("b", 2, "n"), runs("c", 4, "o")], "c", id="fewest"),
        pytest.param([runs("a", 4, "n", priority=1), runs("b", 2, "o"), runs("c", 2, "o")], "b c", id="lowest"),
        pytest.param([runs("a", 4, "n"), runs("b", 4, "o")], "b", id="last in order"),
        pytest.param([runs("a", 1, "n"), runs("b", 3, "n"), runs("c", 4, "o", priority=1)], "a b", id="all of a node"),
        pytest.param(
            [m.podgroup("d", 2), member("d-0", 4, "n"), member("d-1", 0, "n"), runs("b", 4, "o")], "b",
            id="a gang of fewer pods",
        ),
        pytest.param(
            [m.podgroup("d", 1), member("d-0", 4, "n"), member("d-1", 4, "o")], "d-1", id="surplus in reverse order"
        ),
        pytest.param(
            [m.podgroup("d", 1), member("d-0", 2, "n"), member("d-1", 2, "n"), runs("b", 4, "o")], "b",
            id="not all of a gang with surplus",
        ),
    ],
)  # fmt: skip
def test_p1_the_cheapest_victims_make_room(running: list[m.Obj], expected: str) -> None:
    assert tried(NODES, running, wants((4, ""))) == expected


@pytest.mark.parametrize(
    ("lacking", "expected"),
    [
        pytest.param(1, "c", id="the last in order of those that suffice"),
        pytest.param(2, "b", id="the one that frees enough"),
        pytest.param(3, "b c", id="two"),
        pytest.param(4, "a b c", id="all"),
    ],
)
def test_p1_on_one_node_the_fewest_that_free_what_is_lacking(lacking: int, expected: str) -> None:
    running = [runs("a", 1, "n"), runs("b", 2, "n"), runs("c", 1, "n")]
    assert tried(m.node("n", 4), running, wants((lacking, ""))) == expected


def test_p2_a_pod_that_frees_nothing_of_what_is_lacking_stays() -> None:
    running = [runs("a", 4, "n"), runs("b", None, "n", memory="1Gi")]
    assert tried(m.node("n", 4), running, wants((1, ""))) == "a"


def test_p1_victims_by_room_are_chosen_by_every_resource_that_is_lacking() -> None:
    """`a` has the memory, `b` the cpu; `c`, of both, is too small."""
    running = [
        runs("a", None, "n", memory="8Gi"), runs("b", 3, "n"), runs("c", 1, "n", memory="1Gi"),
    ]  # fmt: skip
    waiting = wants((3, ""))
    waiting[1]["spec"]["containers"][0]["resources"]["requests"]["memory"] = "9Gi"
    assert tried(m.node("n", 4, memory="10Gi"), running, waiting) == "a b"


def test_g6_victims_by_filters_are_those_that_are_in_the_way() -> None:
    """Pods of `app=web` keep `q-0` off their node; the others there stay."""
    waiting = wants((1, ""))
    apart = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]
    waiting[1]["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}}
    running = [runs("a", 1, "n", labels={"app": "web"}), runs("b", 1, "n"), runs("c", 1, "n", labels={"app": "web"})]
    assert tried(m.node("n", 4), running, waiting) == "a c"
    full = [runs("d", 1, "n", priority=1)]
    assert tried(m.node("n", 4), running, full, waiting) == "a c"
    waiting[1]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    assert tried(m.node("n", 4), running, full, waiting) == "a b c"
    assert tried(m.node("n", 4), running, runs("d", 1, "n", priority=9), waiting) == "a b c"
    assert tried(m.node("n", 4), running, runs("d", 2, "n", priority=9), waiting) is None


# ---- the queue may not use more


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        pytest.param(8, "", id="it may use all"),
        pytest.param(4, "b", id="the last in order of its own pods leaves, on whatever node"),
        pytest.param(2, "a b", id="both"),
        pytest.param(1, None, id="the gang alone is too large"),
    ],
)
def test_p1_a_queue_that_may_not_use_more_gives_its_own_pods(capability: int, expected: str | None) -> None:
    waiting = wants((2, "n"))
    waiting[0]["spec"]["queue"] = "own"
    queues = [m.queue("own", capability={"cpu": str(capability)}), m.queue("other")]
    running = [runs("a", 2, "o", queue="own"), runs("b", 2, "o", queue="own"), runs("c", 1, "n", queue="other")]
    assert tried(NODES, queues, running, waiting) == expected


# ---- what is spared


def test_p1_a_victim_that_still_has_room_is_spared_the_most_disruptive_first() -> None:
    """`a` and `b` were evicted, and the pods of `q` took no room of theirs."""
    greedy = Greedy(NODES, runs("a", 4, "n"), runs("b", 2, "o", priority=1), wants((1, "o"), (1, "o")))
    greedy.evicts("a", "b")
    assert greedy.run()
    assert greedy.victims == ""


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        pytest.param(2, "", id="both have room"),
        pytest.param(3, "b", id="one has: the first in order stays"),
        pytest.param(4, "a b", id="none has"),
    ],
)
def test_p1_of_two_victims_on_a_node_those_are_spared_that_fit_there(cpu: int, expected: str) -> None:
    greedy = Greedy(m.node("n", 4), runs("a", 1, "n"), runs("b", 1, "n"), wants((cpu, "")))
    greedy.evicts("b", "a")
    assert greedy.run()
    assert greedy.victims == expected


@pytest.mark.parametrize(("whole", "expected"), [(True, "d-0 d-1 d-2"), (False, "")])
def test_p1_surplus_is_spared_unless_the_rest_of_its_gang_leaves(whole: bool, expected: str) -> None:
    """`d-2` still has its room on `o`."""
    running = [m.podgroup("d", 2), member("d-0", 1, "n"), member("d-1", 1, "n"), member("d-2", 1, "o")]
    greedy = Greedy(NODES, running, wants((4 if whole else 1, "n")))
    greedy.planned.evict(Victims([greedy.scene.task("d-2")], whole_gang=False, rank=0))
    if whole:
        rest = [greedy.scene.task(f"d-{number}") for number in range(2)]
        greedy.planned.evict(Victims(rest, whole_gang=True, rank=0))
    assert greedy.run()
    assert greedy.victims == expected


@pytest.mark.parametrize(("capability", "expected"), [(4, ""), (3, "a")])
def test_p1_a_victim_is_spared_only_if_its_queue_may_still_use_it(capability: int, expected: str) -> None:
    waiting = wants((2, "n"))
    waiting[0]["spec"]["queue"] = "own"
    queue = m.queue("own", capability={"cpu": str(capability)})
    greedy = Greedy(NODES, queue, runs("a", 2, "o", queue="own"), waiting)
    greedy.evicts("a")
    assert greedy.run()
    assert greedy.victims == expected


@pytest.mark.parametrize(("guaranteed", "expected"), [(4, ""), (5, "a")])
def test_v4_a_victim_is_spared_only_if_what_others_are_guaranteed_stays_free(guaranteed: int, expected: str) -> None:
    """Of 8 cpu `q` takes 2, and `a` had 2."""
    queue = m.queue("other", guarantee={"cpu": str(guaranteed)})
    greedy = Greedy(NODES, queue, runs("a", 2, "o"), wants((2, "n")))
    greedy.evicts("a")
    assert greedy.run()
    assert greedy.victims == expected
