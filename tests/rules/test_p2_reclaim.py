"""P2: queues take back what others use beyond their share."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

CLASSES = [m.priority_class("high", 1000), m.priority_class("low", 10)]
NO_RECLAIM = {"actions": "enqueue, allocate, backfill, preempt"}


def evicted(answer: Answer, at: float | None = None) -> list[str]:
    return sorted(line["name"] for line in answer.lines("evicted") if at in (None, line["t"]))


def singles(prefix: str, count: int, of: str, cpu: int = 1, **more: Any) -> list[m.Obj]:
    """Gangs of one, in a queue."""
    return [one for i in range(count) for one in m.gang(f"{prefix}{i}", 1, cpu=cpu, queue=of, **more)]


def two(**more: Any) -> list[m.Obj]:
    return [m.queue("a", **more), m.queue("b")]


# ---- who, and how far


def test_p2_reclaim_gives_each_queue_its_share_back() -> None:
    """a uses all 4; b may have 2 by weight, and takes 2 of them, no more."""
    answer = simulate(two(), m.node("n"), singles("x", 4, "a"), singles("y", 4, "b", at="10s"), until="1h")
    assert len(evicted(answer)) == 2
    assert len(answer.bound("y")) == 2


def test_p2_no_gang_reclaims_without_the_action() -> None:
    answer = simulate(
        two(), m.node("n"), singles("x", 4, "a"), singles("y", 1, "b", at="10s"), config=NO_RECLAIM, until="1h"
    )
    assert not evicted(answer)


def test_p2_no_gang_reclaims_inside_its_queue() -> None:
    answer = simulate(two(), m.node("n"), singles("x", 4, "a"), singles("z", 1, "a", at="10s"), until="1h")
    assert not evicted(answer)


def test_p2_weights_decide() -> None:
    answer = simulate(two(weight=3), m.node("n"), singles("x", 4, "a"), singles("y", 4, "b", at="10s"), until="1h")
    assert len(evicted(answer)) == 1


def test_p2_room_that_is_free_is_used_first() -> None:
    answer = simulate(
        two(), m.node("n"), m.node("m", 1), singles("x", 4, "a"), singles("y", 1, "b", at="10s"), until="1h"
    )
    assert len(answer.bound("y")) == 1
    assert not evicted(answer)


def test_p2_a_queue_without_reclaimable_keeps_what_it_has() -> None:
    answer = simulate(
        two(reclaimable=False), m.node("n"), singles("x", 4, "a"), singles("y", 2, "b", at="10s"), until="1h"
    )
    assert not evicted(answer)
    answer = simulate(
        two(reclaimable=True), m.node("n"), singles("x", 4, "a"), singles("y", 2, "b", at="10s"), until="1h"
    )
    assert len(evicted(answer)) == 2


def test_p2_priority_is_no_concern_between_queues() -> None:
    """The victim's priority is higher; its queue has more than its share all the same."""
    answer = simulate(
        CLASSES,
        two(),
        m.node("n"),
        singles("x", 4, "a", priority="high"),
        singles("y", 1, "b", at="10s", priority="low"),
        until="1h",
    )
    assert len(evicted(answer)) == 1


def test_p2_the_lowest_of_the_queue_go_first() -> None:
    mixed = [*singles("x", 3, "a", priority="high"), *singles("w", 1, "a", priority="low")]
    answer = simulate(CLASSES, two(), m.node("n"), mixed, singles("y", 1, "b", at="10s"), until="1h")
    assert evicted(answer) == ["w0-0"]


def test_p2_surplus_goes_before_minima_and_gangs_whole() -> None:
    elastic = m.gang("e", 3, minimum=1, queue="a")
    answer = simulate(two(), m.node("n"), elastic, singles("x", 1, "a"), singles("y", 2, "b", at="10s"), until="1h")
    assert evicted(answer) == ["e-1", "e-2"]
    rigid = m.gang("r", 2, cpu=2, queue="a")
    answer = simulate(two(), m.node("n"), rigid, singles("y", 1, "b", at="10s", cpu=2), until="1h")
    assert evicted(answer) == ["r-0", "r-1"]


def test_p2_judged_before_the_eviction() -> None:
    """a has 3 of its 2: it is above its share, and gives a gang of 2 though it is below it then."""
    answer = simulate(
        two(),
        m.node("n"),
        singles("x", 1, "a"),
        m.gang("r", 2, queue="a", at="1s"),
        singles("z", 1, "b", at="2s"),
        singles("y", 1, "b", at="10s"),
        until="1h",
    )
    assert len(evicted(answer)) in (1, 2)
    assert len(answer.bound("y")) == 1


def test_p2_a_queue_at_its_share_gives_nothing() -> None:
    answer = simulate(
        two(),
        m.node("n"),
        singles("x", 2, "a"),
        singles("z", 2, "b"),
        singles("y", 1, "b", at="10s"),
        singles("w", 1, "a", at="10s"),
        until="1h",
    )
    assert not evicted(answer)


def test_p2_the_reclaimer_must_stay_within_its_own_share() -> None:
    """A gang of 3 would bring b to 3 of its 2."""
    answer = simulate(two(), m.node("n"), singles("x", 4, "a"), m.gang("y", 3, queue="b", at="10s"), until="1h")
    assert not evicted(answer)


def test_p2_one_dimension_that_it_asks_for_suffices() -> None:
    """b would be over its share of cpu, and within that of memory; r asks for no memory, and cannot take it back so."""
    asks = m.gang("y", 1, cpu=3, memory="1Gi", queue="b", at="10s")
    running = [*m.gang("r", 1, cpu=3, queue="a"), *singles("x", 1, "a", memory="1Gi")]
    answer = simulate(two(), m.node("n", 4, "8Gi"), running, asks, until="1h")
    assert evicted(answer) == ["r-0"]
    assert answer.at("y-0") == 10.0


def test_p3_among_many_that_could_take_it_back_the_one_that_cannot_is_found() -> None:
    """With memory each x could take the room back, and is younger than r: r is the last choice of 21."""
    queues = [m.queue("a", weight=100), m.queue("b")]
    nodes = [m.node(f"n{number:02}", 3, "8Gi") for number in range(21)]
    running = [*m.gang("r", 1, cpu=3, queue="a"), *singles("x", 20, "a", cpu=3, memory="1Gi", at="1s")]
    answer = simulate(queues, nodes, running, m.gang("y", 1, cpu=3, memory="1Gi", queue="b", at="10s"), until="1h")
    assert evicted(answer) == ["r-0"]
    assert answer.at("y-0") == 10.0


def test_p2_deserved_counts_where_it_is_set() -> None:
    queues = [m.queue("a", deserved={"cpu": "3"}), m.queue("b", deserved={"cpu": "1"})]
    answer = simulate(queues, m.node("n"), singles("x", 4, "a"), singles("y", 3, "b", at="10s"), until="1h")
    assert len(evicted(answer)) == 1
    assert len(answer.bound("y")) == 1


def test_p2_only_dimensions_that_deserved_names_are_judged() -> None:
    """a's deserved names only the gpu, of which it has no more than that: its cpu is not to be had."""
    gpu = "nvidia.com/gpu"
    queues = [m.queue("a", deserved={gpu: "2"}), m.queue("b", deserved={"cpu": "4", gpu: "2"})]
    machine = m.node("n", 4, extra={gpu: 4})
    running = singles("x", 2, "a", cpu=2, extra={gpu: 1})
    answer = simulate(queues, machine, running, singles("y", 1, "b", cpu=2, at="10s"), until="1h")
    assert not evicted(answer)
    more = singles("x", 2, "a", cpu=2, extra={gpu: 2})
    answer = simulate(queues, machine, more, singles("y", 1, "b", cpu=2, at="10s"), until="1h")
    assert len(evicted(answer)) == 1


def test_p2_the_guarantee_of_a_queue_is_left_to_it() -> None:
    """By weight a would keep 1 of 4; it is guaranteed 3."""
    queues = [m.queue("a", guarantee={"cpu": "3"}), m.queue("b", weight=3)]
    answer = simulate(queues, m.node("n"), singles("x", 4, "a"), singles("y", 4, "b", at="10s"), until="1h")
    assert len(evicted(answer)) <= 1
    assert len(answer.bound("x")) == 4


def test_p2_a_gang_is_not_taken_whole_if_that_breaks_the_guarantee() -> None:
    queues = [m.queue("a", guarantee={"cpu": "2"}), m.queue("b", weight=3)]
    running = m.gang("r", 3, queue="a")
    answer = simulate(
        queues, m.node("n"), running, singles("z", 1, "a"), m.gang("y", 2, queue="b", at="10s"), until="1h"
    )
    assert not [name for name in evicted(answer) if name.startswith("r")]


@pytest.mark.parametrize(
    "protected",
    [
        {"annotations": {"volcano.sh/preemptable": "false"}},
        {"labels": {"volcano.sh/preemptable": "false"}},
        {"namespace": "kube-system"},
    ],
    ids=["annotation", "label", "kube-system"],
)
def test_p2_reclaim_spares_whom_preempt_spares(protected: m.Obj) -> None:
    answer = simulate(two(), m.node("n"), singles("x", 4, "a", **protected), singles("y", 1, "b", at="10s"), until="1h")
    assert len(answer.bound("x")) == 4
    assert not evicted(answer)


def test_p2_reclaim_keeps_budgets() -> None:
    answer = simulate(
        two(),
        m.node("n"),
        m.budget({"app": "x"}, minAvailable=3),
        singles("x", 4, "a", labels={"app": "x"}),
        singles("y", 2, "b", at="10s"),
        until="1h",
    )
    assert len(evicted(answer)) == 1


def test_p2_reclaim_waits_for_the_cooldown() -> None:
    warm = singles("x", 4, "a", annotations={"volcano.sh/cooldown-time": "60s"})
    answer = simulate(two(), m.node("n"), warm, singles("y", 1, "b", at="10s"))
    assert answer.at("y0-0") == 60.0


def test_p2_a_gang_that_never_preempts_does_not_reclaim() -> None:
    never_preempts = m.priority_class("nonpreempting", 1000) | {"preemptionPolicy": "Never"}
    answer = simulate(
        never_preempts,
        two(),
        m.node("n"),
        singles("x", 4, "a"),
        singles("y", 1, "b", at="10s", priority="nonpreempting"),
        until="1h",
    )
    assert not evicted(answer)


# ---- trees


def tree(**more: Any) -> list[m.Obj]:
    """root: eng (eng-a, eng-b) and ops."""
    return [
        m.queue("eng"),
        m.queue("ops"),
        m.queue("eng-a", parent="eng", **more),
        m.queue("eng-b", parent="eng"),
    ]


def test_p2_a_queue_reclaims_from_another_branch() -> None:
    answer = simulate(tree(), m.node("n"), singles("x", 4, "eng-a"), singles("y", 3, "ops", at="10s"), until="1h")
    assert len(evicted(answer)) == 2, "half of the root's is ops'"


def test_p2_a_branch_within_its_share_gives_nothing_to_another() -> None:
    """eng-a is above its own share inside eng, and eng within its share: ops has its half already."""
    answer = simulate(
        tree(),
        m.node("n"),
        singles("x", 2, "eng-a"),
        singles("z", 2, "ops"),
        singles("y", 1, "ops", at="10s"),
        until="1h",
    )
    assert not evicted(answer)


def test_p2_a_parent_that_is_not_reclaimable_protects_its_children() -> None:
    queues = [m.queue("eng", reclaimable=False), m.queue("ops"), m.queue("eng-a", parent="eng")]
    answer = simulate(queues, m.node("n"), singles("x", 4, "eng-a"), singles("y", 1, "ops", at="10s"), until="1h")
    assert not evicted(answer)


# ---- dialects, and in turn

JOINS: dict[str, list[m.Obj]] = {
    "volcano-job": [m.job("g", m.role("w", 2), queue="b")],
    "volcano-podgroup": m.gang("g", 2, queue="b"),
    "annotations": m.koordinator_gang("g", 2, labels={"scheduling.volcano.sh/queue-name": "b"}),
    "pods": [m.pod(f"g-{i}", annotations={"scheduling.volcano.sh/queue-name": "b"}) for i in range(2)],
}


@pytest.mark.parametrize("dialect", ["volcano-job", "volcano-podgroup", "pods"])
def test_p2_a_gang_of_a_dialect_reclaims(dialect: str) -> None:
    documents = [dict(one) for one in JOINS[dialect]]
    for one in documents:
        notes = {**(one["metadata"].get("annotations") or {}), "sim.enbloc.dev/at": "10s"}
        one["metadata"] = {**one["metadata"], "annotations": notes}
    answer = simulate(two(), m.node("n"), singles("x", 4, "a"), documents, until="1h")
    assert len(evicted(answer)) == 2
    assert set(answer.times("g-")) == {10.0}


def test_p2_a_job_is_enqueued_for_what_it_may_reclaim() -> None:
    answer = simulate(
        two(), m.node("n"), singles("x", 4, "a"), m.job("g", m.role("w", 2), queue="b", at="10s"), until="1h"
    )
    assert set(answer.times("g-")) == {10.0}


def test_p2_the_evicted_wait_and_do_not_take_it_back() -> None:
    """Jobs whose pods come back at once: two of a's and two of b's run, and no pod is evicted any more."""
    first = [m.job(f"x{i}", m.role("w", 1), queue="a") for i in range(4)]
    second = [m.job(f"y{i}", m.role("w", 1), queue="b", at="10s") for i in range(4)]
    answer = simulate(two(), m.node("n"), first, second, [m.restart("100s"), m.restart("1000s")], until="10h")
    assert len(evicted(answer)) == 2
    assert {line["t"] for line in answer.lines("evicted")} == {10.0}


def test_p2_three_queues_end_with_their_shares() -> None:
    queues = [m.queue("a"), m.queue("b"), m.queue("c", weight=2)]
    documents = [
        one
        for q, at in (("a", "0s"), ("b", "5s"), ("c", "10s"))
        for one in [m.job(f"{q}{i}", m.role("w", 1), queue=q, at=at) for i in range(8)]
    ]
    answer = simulate(queues, m.node("n", 8), documents, until="1h")
    running = [one["metadata"]["name"][0] for one in answer.all("Pod") if one["status"].get("phase") == "Running"]
    assert {q: running.count(q) for q in "abc"} == {"a": 2, "b": 2, "c": 4}
    assert len(evicted(answer)) <= 8


# ---- inside a branch, and when queues change


def test_p2_siblings_reclaim_from_each_other() -> None:
    answer = simulate(tree(), m.node("n"), singles("x", 4, "eng-a"), singles("y", 2, "eng-b", at="10s"), until="1h")
    assert len(evicted(answer)) == 2


def test_p2_inside_a_branch_that_is_above_its_share_siblings_give() -> None:
    """eng has 3 of its 2, all eng-a's: eng-b takes from eng-a, and not from ops."""
    documents = [*singles("x", 3, "eng-a"), *singles("z", 1, "ops"), *singles("y", 1, "eng-b", at="10s")]
    answer = simulate(tree(), m.node("n"), documents, until="1h")
    assert [name[0] for name in evicted(answer)] == ["x"]


@pytest.mark.parametrize(
    "before, name, patch",
    [
        ([m.queue("a", reclaimable=False), m.queue("b")], "a", {"reclaimable": True}),
        ([m.queue("a", weight=8), m.queue("b")], "b", {"weight": 8}),
        ([m.queue("a", deserved={"cpu": "2"}), m.queue("b", deserved={"cpu": "1"})], "b", {"deserved": {"cpu": "2"}}),
    ],
    ids=["reclaimable", "weight", "deserved"],
)
def test_p2_a_queue_that_is_changed_gives_at_that_instant(before: list[m.Obj], name: str, patch: m.Obj) -> None:
    change = m.step("30s", "patch", "Queue", name, patch={"spec": patch})
    answer = simulate(before, m.node("n"), singles("x", 2, "a", cpu=2), singles("y", 1, "b", cpu=2, at="10s"), change)
    assert answer.at("y0-0") == 30.0
