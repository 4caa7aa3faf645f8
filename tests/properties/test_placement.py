"""The fast placement path against the plain one: the same nodes, pod for pod (architecture, 3).

The plain engine places one pod after the other, and forgets all it knew of a class before each of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.config.model import Scoring
from enbloc.engine.core.state.candidates import Candidates
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.decisions import Bind, Decision
from properties import strategies
from support import manifests as m
from support.direct_scheduler import DirectScheduler
from support.seeds import soak_examples


class Plain(DirectScheduler):
    """The reference."""

    def __init__(self, config: Any) -> None:
        super().__init__(config, plain=True)
        state = self.engine.state
        candidates = state.candidates

        def forgetful(cls: TaskClass) -> Candidates:
            state._candidates._known.clear()
            return candidates(cls)

        state.candidates = forgetful  # type: ignore[method-assign]


class Rounds(list[list[m.Obj]]):
    """What is direct, round by round; shown in brief, since a large example is too long to be read."""

    def __repr__(self) -> str:
        return json.dumps(self)[:20_000]


def bindings(decisions: list[Decision]) -> list[tuple[str, str]]:
    return [
        (placement.name, placement.node)
        for decision in decisions
        if isinstance(decision, Bind)
        for placement in decision.placements
    ]


def same(fast: DirectScheduler, plain: DirectScheduler, now: int) -> None:
    found, wanted = fast.engine.run(now), plain.engine.run(now)
    assert bindings(found) == bindings(wanted)
    for mine, other in zip(found, wanted, strict=True):
        assert mine == other, f"\n{mine}\n{other}"
    fast.engine.state.validate()
    assert fast.engine.state.digest() == plain.engine.state.digest()


@st.composite
def gangs(draw: st.DrawFn, name: str, moving_share: int) -> list[m.Obj]:
    """A PodGroup with roles of one or two classes each, and its pods, as many as it needs or more."""
    found, minima, count = [], {}, 0
    for role in draw(st.sampled_from([["w"], ["w"], ["m", "w"], ["a", "b", "c"]])):
        size = draw(st.integers(1, 9))
        minima[role] = draw(st.integers(0, size))
        specs = draw(st.lists(strategies.pod_specs(moving_share), min_size=1, max_size=2))
        labels = draw(strategies.labels)
        for index in range(size):
            spec = {**specs[index % len(specs)], "priority": draw(st.sampled_from([0, 0, 0, 5]))}
            found.append(m.pod(f"{name}-{role}-{index}", group=name, role=role, labels=labels, **spec))
        count += size
    total = max(sum(minima.values()), draw(st.integers(0, count)))
    group = m.podgroup(
        name, total, roles=minima if draw(st.booleans()) else None, queue=draw(st.sampled_from(["default", "q1", "q2"]))
    )
    return [{**group, "status": {"phase": "Inqueue"}}, *found]


queues = st.fixed_dictionaries(
    {"weight": st.integers(1, 3)},
    optional={
        "capability": st.fixed_dictionaries(
            {}, optional={"cpu": st.sampled_from(["2", "3500m", "9"]), "memory": st.sampled_from(["2Gi", "9Gi"])}
        ),
        "guarantee": st.just({"cpu": "3"}),
        "parent": st.just("q2"),
    },
)


@st.composite
def clusters(draw: st.DrawFn, moving_share: int) -> Rounds:
    """Rounds of objects; a node direct twice has changed in between."""
    first = [m.queue("q1", **draw(queues)), m.queue("q2", weight=2)]
    first += [draw(strategies.nodes(f"n{i}")) for i in range(draw(st.integers(2, 12)))]
    for index in range(draw(st.integers(1, 4))):
        first += draw(gangs(f"g{index}", moving_share))
    second = draw(gangs("h0", moving_share))
    for index in draw(st.lists(st.integers(0, 10), max_size=2, unique=True)):
        second.append(draw(strategies.nodes(f"n{index}")))
    return Rounds([first, second])


def compare(scoring: Scoring, rounds: list[list[m.Obj]]) -> None:
    fast, plain = DirectScheduler(strategies.configured(scoring)), Plain(strategies.configured(scoring))
    for now, objects in enumerate(rounds):
        for obj in objects:
            for direct in (fast, plain):
                direct.put(obj, created_s=now)
        same(fast, plain, now)
    if ("Node", "n0") in fast.known:
        for direct in (fast, plain):
            direct.delete("Node", "n0")
            for kind, name in [key for key in direct.known if key[0] == "Pod" and key[1].endswith("-0")]:
                direct.delete(kind, name)
        same(fast, plain, len(rounds))


@given(strategies.scorings, clusters(moving_share=10))
def test_fast_and_plain_placement_are_the_same_pod_for_pod(scoring: Scoring, rounds: list[Any]) -> None:
    compare(scoring, rounds)


@pytest.mark.soak
def test_fast_and_plain_placement_are_the_same_at_length(rounds: Iterator[int]) -> None:
    soak_examples(given(strategies.scorings, clusters(moving_share=4))(compare), rounds)


@given(
    strategies.scorings,
    st.lists(st.tuples(strategies.requests, st.integers(1, 90)), min_size=1, max_size=4),
    st.lists(st.integers(0, 5), min_size=1, max_size=40),
    st.data(),
)
def test_large_runs_of_equal_pods_too(
    scoring: Scoring, wanted: list[tuple[dict[str, str], int]], kinds: list[int], data: st.DataObject
) -> None:
    """Many nodes of a few kinds: ties everywhere, and rows that take more tasks than scores were computed for."""
    shapes = [data.draw(strategies.nodes("n")) for _ in range(6)]
    objects = [{**shapes[kind], "metadata": {"name": f"n{i}"}} for i, kind in enumerate(kinds)]
    for index, (asked, count) in enumerate(wanted):
        objects.append({**m.podgroup(f"g{index}", count - count // 3), "status": {"phase": "Inqueue"}})
        spec = strategies.pod_spec(asked)
        objects += [m.pod(f"g{index}-{i}", group=f"g{index}", **spec) for i in range(count)]
    compare(scoring, [objects])


def test_a_taint_that_came_later_is_named_all_the_same() -> None:
    """Found by the comparison: what was known of the class before knew no such taint."""
    spec = strategies.pod_spec({"cpu": "1"})
    tainted = m.node("n0", taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])
    rounds = [[m.node("n0"), m.pod("a", **spec)], [tainted, m.pod("b", **spec)]]
    compare(Scoring(), rounds)


@pytest.mark.parametrize("minimum", [0, 3])
def test_v4_a_guarantee_does_not_count_room_of_cordoned_nodes(minimum: int) -> None:
    """Found by the comparison: pods that tolerate the cordon take nothing of the free room that is kept for a queue.
    The bulk path had counted as if each of them did, and left surplus to a second decision and minima waiting."""
    spec = strategies.pod_spec({"cpu": "1"}, tolerations=[{"operator": "Exists"}])
    group = {**m.podgroup("g", minimum), "status": {"phase": "Inqueue"}}
    objects = [
        m.queue("q1", guarantee={"cpu": "3"}),
        m.node("n0", cpu=4, unschedulable=True),
        m.node("n1", cpu=4),
        group,
        *[m.pod(f"g-{index}", group="g", **spec) for index in range(3)],
    ]
    scoring = Scoring(most=5)
    compare(scoring, [objects])
    direct = DirectScheduler(strategies.configured(scoring))
    for obj in objects:
        direct.put(obj)
    assert bindings(direct.engine.run(0)) == [("g-0", "n0"), ("g-1", "n0"), ("g-2", "n0")]
