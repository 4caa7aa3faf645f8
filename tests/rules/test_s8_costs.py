"""S8: the cost of an object is at most linear in its size. Counted are calls, not seconds."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable

import pytest

from benchmarks.growth_cases import CASES
from enbloc.api.writes import WatchEvent
from enbloc.engine.core.filters.pod_terms import PodSelector
from enbloc.engine.core.filters.stateful.pod_index import PodIndex
from enbloc.units import Requirement, Selector
from peers.kubernetes_composite import CLASSES, composite, group
from support import manifests as m
from support.direct_scheduler import knowing
from support.simulation import simulate


def calls(function: Callable[[], object]) -> int:
    """How many functions are called, those of C among them."""
    count = 0

    def note(*event: object) -> None:
        nonlocal count
        count += event[1] in ("call", "c_call")

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def growth(cost: Callable[[int], int], size: int) -> float:
    """What the second half of a load four times as large adds, in units of what the second half of one twice as large
    adds: 2 if the cost is linear, 4 if it is quadratic."""
    _, first, second, third = (cost(size * factor) for factor in (1, 1, 2, 4))  # the first time fills caches
    return (third - second) / (second - first)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("composite-chain", 50),
        ("composite-fan", 50),
        ("kai-tree", 100),
        ("sub-group-policies", 50),
        ("impossible-affinity", 100),
        ("affinity-gang", 50),
    ],
)
def test_s8_the_cost_of_a_simulation_is_linear(name: str, size: int) -> None:
    def cost(size: int) -> int:
        objects = list(CASES[name].objects(size))
        return calls(lambda: simulate(objects))

    assert growth(cost, size) < 2.4


def test_s8_resource_names_that_no_node_has_cost_no_more_than_they_are() -> None:
    def cost(size: int) -> int:
        pods = [m.pod(f"p{n}", extra={f"example.com/r{n}-{k}": 1 for k in range(10)}) for n in range(size)]
        return calls(lambda: simulate(m.node("n", 4), pods))

    assert growth(cost, 30) < 2.4


def test_s8_g9_a_gang_that_changes_twice_between_two_cycles_is_looked_at() -> None:
    """Its first change is none that matters, the second lowers its minimum: though it is read later, it is not lost."""
    direct = knowing(m.node("n", 2), *m.gang("g", 3))
    list(direct.scheduler.cycle(0))
    assert not direct.scheduler.busy()
    for minimum in (3, 2):
        group = {**direct.known["PodGroup.scheduling.volcano.sh", "g"], "spec": {"minMember": minimum}}
        direct.scheduler.observe(WatchEvent("MODIFIED", "PodGroup.scheduling.volcano.sh", group))
    assert direct.scheduler.busy()
    list(direct.scheduler.cycle(0))
    assert sum(bool(task.node) for task in direct.engine.state.tasks.values()) == 2


class Value(str):
    """Counts how often it is hashed."""

    hashed = 0
    __slots__ = ()

    def __hash__(self) -> int:
        Value.hashed += 1
        return super().__hash__()


@pytest.mark.parametrize("namespaces", [1, 0])
def test_s8_the_cost_of_a_selector_is_linear_in_its_values(namespaces: int) -> None:
    """With as many namespaces as values, too."""

    def cost(size: int) -> int:
        Value.hashed = 0
        listed = [Value(f"v{number}") for number in range(size)]
        names = frozenset(Value(f"n{number}") for number in range(namespaces or size))
        pods = PodSelector(Selector([Requirement("app", "In", listed)]), names)
        index: PodIndex[str] = PodIndex()
        index.put(pods.key, pods.namespaces, pods.anchor, "entry")
        index.remove(pods.key, pods.namespaces, pods.anchor)
        return Value.hashed

    assert growth(cost, 100) < 2.5


def composite_fan(size: int) -> list[m.Obj]:
    """PodGroups of one pod below one CompositePodGroup that needs half of them: too many for the node."""
    groups = (group(f"g{n:05d}", "top", f"p{n}", 1) for n in range(size))
    return [*CLASSES, composite("top", size // 2), *itertools.chain.from_iterable(groups)]


def sub_groups(size: int) -> list[m.Obj]:
    """Volcano's: each needs its pod, and the node has room for a few."""
    found = [m.podgroup("parts", size)]
    listed = []
    for n in range(size):
        policy = {"name": f"p{n:05d}", "subGroupSize": 1, "minSubGroups": 1}
        listed.append({**policy, "labelSelector": {"matchLabels": {"part": f"p{n:05d}"}}})
        pod = m.pod(f"p{n}", group="parts")
        found.append({**pod, "metadata": {**pod["metadata"], "labels": {"part": f"p{n:05d}"}}})
    found[0]["spec"]["subGroupPolicy"] = listed
    return found


@pytest.mark.parametrize("tree", [composite_fan, sub_groups])
def test_s8_a_gang_of_many_roles_that_waits_costs_no_more_than_they_are(tree: Callable[[int], list[m.Obj]]) -> None:
    """What its pods say is of bounded length, too: each carries the sentence of the gang."""

    def cost(size: int) -> int:
        objects = tree(size)
        return calls(lambda: simulate(m.node("n", 2), objects))

    assert growth(cost, 50) < 2.4
    short, long = (simulate(m.node("n", 2), tree(size)).data["pending"][0]["message"] for size in (100, 400))
    assert len(long) <= len(short) + 10
    assert "other roles" in long
