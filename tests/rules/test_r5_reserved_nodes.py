"""R5–R7: who may go to a reserved node, which nodes are reserved, and how a reservation ends."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer, condition, waits_because
from support.simulation import simulate

CLASSES = [
    m.priority_class("high", 1000),
    m.priority_class("mid", 500),
    m.priority_class("low", 10),
    m.priority_class("polite", 500) | {"preemptionPolicy": "Never"},
]
RESERVED = "node(s) resource was(were) reserved"
QUIET = ("enqueue", "allocate", "backfill")
EVERYTHING = (*QUIET, "preempt", "reclaim")


def reserving(
    after: int = 10, percent: int = 100, actions: tuple[str, ...] = QUIET, mode: str = "best-effort"
) -> m.Obj:
    arguments = {"starvingJobTimeThreshold": after, "reservedNodePercent": percent}
    named: list[m.Obj] = [{"name": n, **({"arguments": {"mode": mode}} if n == "backfill" else {})} for n in actions]
    return {"actions": [*named, {"name": "reserve", "arguments": arguments}]}


def full(cpu: int | str = 4, run: str | None = "100s", on: str = "n", name: str = "full", **more: Any) -> m.Obj:
    return m.pod(name, cpu, nodeName=on, run_time=run, **more)


def reserved(answer: Answer, prefix: str = "") -> dict[str, tuple[float, str]]:
    """When a node was reserved for each pod last, and which."""
    return {
        line["name"]: (line["t"], line["node"]) for line in answer.lines("reserved") if line["name"].startswith(prefix)
    }


def released(answer: Answer, prefix: str = "") -> list[tuple[float, str]]:
    return [(line["t"], line["name"]) for line in answer.lines("released") if line["name"].startswith(prefix)]


def claims(answer: Answer) -> list[str]:
    return [
        one["metadata"]["name"]
        for one in answer.objects
        if "enbloc.dev/claim-reserve" in (one["metadata"].get("annotations") or {})
    ]


# ---- R5


def test_r5_others_are_refused_with_the_reason() -> None:
    answer = simulate(
        m.node("n"),
        m.node("m", 1),
        full(2),
        m.pod("big", 4),
        m.gang("s", 2, at="20s"),
        config=reserving(15),
        until="30s",
    )
    assert reserved(answer) == {"big": (15.0, "n")}
    found = answer.pending("default/s")
    assert {"role": "", "reason": RESERVED, "nodes": 1} in found["reasons"]
    assert f"1 {RESERVED}" in found["message"]
    for one in (answer.obj("Pod", "s-0"), answer.obj("Pod", "s-1"), answer.obj("PodGroup", "s")):
        assert f"1 {RESERVED}" in waits_because(one)


def test_r5_the_reason_goes_when_the_reservation_does() -> None:
    answer = simulate(
        m.node("n"),
        full(2, run=None),
        m.pod("big", 4, delete_at="40s"),
        m.pod("s", 3, at="20s"),
        config=reserving(),
        until="60s",
    )
    assert RESERVED not in waits_because(answer.obj("Pod", "s"))
    assert "Insufficient cpu" in waits_because(answer.obj("Pod", "s"))


def test_r5_its_object_says_which_nodes_are_reserved_for_it() -> None:
    answer = simulate(m.node("n"), full(2), m.gang("g", 1, cpu=4), config=reserving(), until="30s")
    found = answer.pending("default/g")
    assert "reserved" in found["message"]
    assert "n" in found["message"].split()
    assert "reserved" in waits_because(answer.obj("PodGroup", "g"))
    kept = [one for one in answer.obj("PodGroup", "g")["status"]["conditions"] if "reserved on n" in one["message"]]
    assert kept


def test_r5_best_effort_tasks_pass() -> None:
    answer = simulate(
        m.node("n"),
        full(2),
        m.pod("big", 4),
        m.pod("nothing", None, at="20s"),
        m.gang("free", 2, cpu=None, at="21s"),
        config=reserving(),
        until="30s",
    )
    assert answer.at("nothing") == 20.0
    assert answer.times("free-") == [21.0, 21.0]


def test_r5_a_gang_with_one_task_that_asks_for_something_does_not_pass_whole() -> None:
    """Its BestEffort members could go there; the gang starts together or not at all."""
    mixed = m.job("s", m.role("a", 1, cpu=None), m.role("b", 1, cpu=1), at="20s")
    answer = simulate(m.node("n"), full(2), m.pod("big", 4), mixed, config=reserving(), until="30s")
    assert not answer.bound("s-")


def test_r5_nodes_that_are_not_reserved_stay_open() -> None:
    answer = simulate(
        m.node("n"), m.node("m", 2), full(2), m.pod("big", 4), m.pods(3, "s", at="20s"), config=reserving(), until="25s"
    )
    assert {where for _, where in answer.bound("s").values()} == {"m"}
    assert len(answer.bound("s")) == 2


def test_r5_surplus_of_others_is_refused_too() -> None:
    more = m.step("20s", "patch", "Job", "e", patch={"spec": {"tasks": [m.role("w", 4, 1)]}})
    answer = simulate(
        m.node("n"),
        m.node("m", 2),
        full(2),
        m.job("e", m.role("w", 1, 1)),
        m.pod("big", 4),
        more,
        config=reserving(),
        until="30s",
    )
    assert reserved(answer, "big") == {"big": (10.0, "n")}
    assert {where for _, where in answer.bound("e-").values()} == {"m"}
    assert len(answer.bound("e-")) == 2


def test_r5_its_own_surplus_has_no_right_to_the_node_before_the_minimum() -> None:
    answer = simulate(m.node("n"), full(2), m.job("g", m.role("w", 5, 3)), config=reserving(), until="150s")
    assert len(reserved(answer)) == 3
    assert answer.times("g-") == [100.0] * 4


@pytest.mark.parametrize("mode", ["best-effort", "easy"])
def test_r5_in_backfill(mode: str) -> None:
    answer = simulate(
        m.node("n"), full(2), m.pod("big", 4), m.pod("s", 1, at="20s"), config=reserving(mode=mode), until="30s"
    )
    assert answer.at("s") is None
    assert RESERVED in waits_because(answer.obj("Pod", "s"))


def contended(*more: Any, priority: str = "polite", **kw: Any) -> Answer:
    """A node with a low pod of 2 of its 4 cpu, reserved for `big`, which evicts no pod."""
    return simulate(
        CLASSES,
        m.node("n"),
        m.pod("low", 2, priority="low"),
        m.pod("big", 4, priority=priority, at="1s"),
        *more,
        config=kw.pop("config", reserving(10, actions=EVERYTHING)),
        **kw,
    )


def test_r5_in_preempt_an_equal_evicts_no_pod_there() -> None:
    answer = contended(m.pod("x", 4, priority="mid", at="20s"), until="60s")
    assert reserved(answer, "big") == {"big": (11.0, "n")}
    assert not answer.lines("evicted")
    assert not released(answer)
    assert RESERVED in waits_because(answer.obj("Pod", "x"))


def test_r5_in_preempt_a_lower_one_evicts_no_pod_there() -> None:
    proud = m.priority_class("proud", 2000) | {"preemptionPolicy": "Never"}
    answer = contended(proud, m.pod("x", 4, priority="mid", at="20s"), priority="proud", until="60s")
    assert reserved(answer, "big") == {"big": (11.0, "n")}
    assert not answer.lines("evicted")
    assert answer.at("x") is None


def test_r5_in_reclaim_no_pod_is_evicted_there() -> None:
    """Queue b is within its share and a above its own; the node is reserved all the same."""
    documents = [m.queue("a"), m.queue("b"), m.node("n", 4)]
    running = m.gang("over", 3, minimum=1, queue="a", run_time=None)
    big = m.gang("big", 1, cpu=4, queue="a", at="1s")
    answer = simulate(
        documents,
        running,
        big,
        m.gang("x", 2, queue="b", at="20s"),
        config=reserving(10, actions=EVERYTHING),
        until="60s",
    )
    assert reserved(answer, "big")
    assert not answer.lines("evicted")
    assert not answer.bound("x-")
    assert RESERVED in answer.why("default/x")


def test_r5_a_higher_one_starts_on_a_reserved_node_before_any_pod_is_evicted() -> None:
    answer = contended(m.pod("vip", 2, priority="high", at="20s", run_time="30s"), until="100s")
    assert answer.at("vip") == 20.0
    assert not answer.lines("evicted")
    assert not released(answer), "the node stays reserved behind it"


def test_r5_a_gang_of_higher_priority_too() -> None:
    answer = contended(m.gang("vip", 2, priority="high", at="20s"), until="30s")
    assert answer.times("vip-") == [20.0, 20.0]
    assert not answer.lines("evicted")


def test_r5_no_claim_is_released_if_there_is_another_place() -> None:
    answer = contended(m.node("m", 2, at="15s"), m.pod("vip", 2, priority="high", at="20s"), until="30s")
    assert answer.bound("vip")["vip"] == (20.0, "m")
    assert not released(answer)


def test_r5_no_claim_is_released_in_vain() -> None:
    answer = contended(m.pod("vip", 5, priority="high", at="20s"), until="30s")
    assert not released(answer)
    assert not answer.bound("vip")


def test_r5_without_preempt_a_higher_one_starts_on_a_node_reserved_for_a_lower_one() -> None:
    answer = contended(m.pod("vip", 2, priority="high", at="20s"), config=reserving(10), until="30s")
    assert answer.at("vip") == 20.0
    assert not answer.evicted()


def test_r5_the_plan_of_the_lower_one_is_mended_in_the_same_cycle() -> None:
    """Both nodes are reserved for `big`; the vip takes one. `big` is reserved for on the third, and the second stays
    closed throughout."""
    answer = simulate(
        CLASSES,
        [m.node(name) for name in "abc"],
        [full(2, on=name, name=f"full-{name}", priority="high", run="100s") for name in "abc"],
        m.gang("big", 2, cpu=4),
        m.pod("vip", 2, priority="high", at="20s", nodeSelector={"kubernetes.io/hostname": "a"}),
        m.pod("small", 2, at="21s", nodeSelector={"kubernetes.io/hostname": "b"}),
        config=reserving(10, 60),
        until="50s",
    )
    assert answer.bound("vip")["vip"] == (20.0, "a")
    assert {where for _, where in reserved(answer).values()} == {"b", "c"}
    assert answer.at("small") is None
    assert {time for time, _ in reserved(answer).values()} == {10.0, 20.0}


def test_r5_surplus_does_not_take_over_reserved_nodes() -> None:
    answer = simulate(
        CLASSES,
        m.node("n"),
        full(2, priority="high"),
        m.pod("big", 4),
        m.node("late", 1, at="15s"),
        m.gang("vip", 3, minimum=1, priority="high", at="20s"),
        config=reserving(10),
        until="30s",
    )
    assert [where for _, where in answer.bound("vip").values()] == ["late"]


def test_r5_an_equal_of_higher_priority_is_not_refused_with_a_lower_ones_answer() -> None:
    """Both ask for the same; the first, of equal priority, is closed out."""
    answer = contended(
        m.pod("same", 2, priority="polite", at="15s"),
        m.pod("vip", 2, priority="high", at="20s"),
        config=reserving(10),
        until="30s",
    )
    assert answer.at("vip") == 20.0
    assert answer.at("same") is None


def test_r3_a_starving_gang_of_higher_priority_takes_over_the_nodes_of_a_lower_one() -> None:
    """Only one of two nodes may be reserved (R6)."""
    answer = simulate(
        CLASSES,
        m.node("a"),
        m.node("b"),
        full(4, on="a", name="x", priority="high", run="50s"),
        full(4, on="b", name="y", priority="high", run="60s"),
        m.pod("low", 4, priority="low"),
        m.pod("high", 4, priority="high", at="5s"),
        config=reserving(10, 50),
        until="20s",
    )
    assert reserved(answer, "low")["low"][0] == 10.0
    assert reserved(answer, "high")["high"][0] == 15.0
    assert released(answer) == [(15.0, "low")]


@pytest.mark.parametrize("mode", [m.NON_STRICT, "Strict"])
def test_r1_a_non_strict_gang_is_reserved_for(mode: str) -> None:
    """Small pods come one after the other: without a reservation it would start after the last of them."""
    answer = simulate(
        m.node("n", 4),
        [m.pod(f"first-{i}", 2, run_time="20s") for i in range(2)],
        m.koordinator_gang("big", 2, cpu=4, mode=mode, wait="900s"),
        [m.pod(f"small-{i}", 2, run_time="20s", at=f"{10 * i + 15}s") for i in range(10)],
        m.node("late", 4, at="12s"),
        m.pod("busy", 4, nodeName="late", run_time="30s", at="12s"),
        config=reserving(10),
        until="200s",
    )
    assert set(answer.times("big-")) == {42.0}


def test_r5_of_two_reserved_nodes_the_one_of_the_lowest_priority_is_used() -> None:
    documents = [
        CLASSES[0],
        CLASSES[1],
        CLASSES[2],
        CLASSES[3],
        m.priority_class("humble", 100) | {"preemptionPolicy": "Never"},
        m.node("a"),
        m.node("b"),
        m.pod("x", 2, priority="low", nodeName="a"),
        m.pod("y", 2, priority="low", nodeName="b"),
        m.pod("p", 4, priority="polite", nodeSelector={"kubernetes.io/hostname": "a"}),
        m.pod("h", 4, priority="humble", nodeSelector={"kubernetes.io/hostname": "b"}),
    ]
    answer = simulate(
        documents, m.pod("vip", 2, priority="high", at="20s"), config=reserving(10, actions=EVERYTHING), until="30s"
    )
    assert answer.bound("vip")["vip"] == (20.0, "b")
    assert reserved(answer, "p")["p"] == (10.0, "a")


def test_r5_the_claim_goes_before_victims_that_would_be_lower() -> None:
    """Both would do: releasing big's claim on n, or evicting the lowest pod on m."""
    answer = contended(
        m.node("m", 2, at="15s"),
        m.pod("lowest", 2, priority="low", nodeName="m", at="15s"),
        m.pod("vip", 2, priority="high", at="20s"),
        until="30s",
    )
    assert answer.bound("vip")["vip"] == (20.0, "n")
    assert not answer.lines("evicted")


# ---- R6


def free_by(**free: int) -> list[m.Obj]:
    """Nodes of 4 cpu, with so many of them free."""
    found: list[m.Obj] = []
    for name, idle in free.items():
        found += [m.node(name), full(4 - idle, on=name, name=f"on-{name}", run=None)]
    return found


def test_r6_the_nearest_node_is_reserved() -> None:
    answer = simulate(free_by(a=1, b=3, c=2), m.pod("big", 4), config=reserving(), until="20s")
    assert reserved(answer) == {"big": (10.0, "b")}


def test_r6_the_nearest_nodes_of_a_gang() -> None:
    answer = simulate(free_by(a=1, b=3, c=0, d=2), m.gang("g", 2, cpu=4), config=reserving(), until="20s")
    assert {where for _, where in reserved(answer).values()} == {"b", "d"}


def test_r6_cpu_and_memory_count_alike() -> None:
    """a: all cpu and a quarter of the memory, 6.25; b: half and half... 7.5 and 5: c is nearer with 7.5."""
    docs = [
        m.node("a", 4, "4Gi"),
        m.node("b", 4, "4Gi"),
        m.node("c", 4, "4Gi"),
        m.pod("on-a", None, memory="3Gi", nodeName="a"),
        m.pod("on-b", 2, memory="2Gi", nodeName="b"),
        m.pod("on-c", 1, memory="1Gi", nodeName="c"),
    ]
    answer = simulate(docs, m.pod("big", 4, memory="4Gi"), config=reserving(), until="20s")
    assert reserved(answer) == {"big": (10.0, "c")}


def test_r6_more_than_asked_for_counts_no_more() -> None:
    """Ten is the most a resource counts: a has twice the memory and 3 cpu, b has enough memory and 3.5."""
    docs = [
        m.node("a", 4, "16Gi"),
        m.node("b", 4, "4Gi"),
        m.pod("on-a", 1, nodeName="a"),
        m.pod("on-b", "500m", nodeName="b"),
    ]
    answer = simulate(docs, m.pod("big", 4, memory="4Gi"), config=reserving(), until="20s")
    assert reserved(answer) == {"big": (10.0, "b")}


GPU = "nvidia.com/gpu"


def test_r6_scalar_resources_count_twice() -> None:
    """a has all cpu and no gpu: (10 + 0)/3; b has no cpu and all gpus: ((0 + 10)/2 + 20)/3."""
    docs = [
        m.node("a", 4, extra={GPU: 2}),
        m.node("b", 4, extra={GPU: 2}),
        m.pod("on-a", None, extra={GPU: 2}, nodeName="a"),
        m.pod("on-b", 4, nodeName="b"),
    ]
    answer = simulate(docs, m.pod("big", 4, extra={GPU: 2}), config=reserving(), until="20s")
    assert reserved(answer) == {"big": (10.0, "b")}


def test_r6_several_scalar_resources_count_by_their_mean() -> None:
    """a: gpu 10, nic 0, mean 5, cpu 10: (10 + 10)/3 = 6.7; b: gpu 7.5, nic 7.5, mean 7.5, cpu 0: (5 + 15)/3 = 6.7.
    With a nic more on b it is nearer; with a plain sum of scalars, too; with a maximum a would be."""
    nic = "example.com/nic"
    docs = [
        m.node("a", 4, extra={GPU: 4, nic: 4}),
        m.node("b", 4, extra={GPU: 4, nic: 4}),
        m.pod("on-a", None, extra={nic: 4}, nodeName="a"),
        m.pod("on-b", 4, extra={GPU: 1}, nodeName="b"),
    ]
    answer = simulate(docs, m.pod("big", 4, extra={GPU: 4, nic: 4}), config=reserving(), until="20s")
    assert reserved(answer) == {"big": (10.0, "b")}


def test_r6_a_resource_that_is_not_asked_for_counts_ten() -> None:
    """Only memory is asked for: cpu says nothing about nearness."""
    docs = [
        m.node("a", 4, "4Gi"),
        m.node("b", 4, "4Gi"),
        m.pod("on-a", None, memory="2Gi", nodeName="a"),
        m.pod("on-b", 4, memory="1Gi", nodeName="b"),
    ]
    answer = simulate(docs, m.pod("big", None, memory="4Gi"), config=reserving(), until="20s")
    assert reserved(answer) == {"big": (10.0, "b")}


@pytest.mark.parametrize(
    "nodes, percent, most",
    [(3, 50, 2), (4, 50, 2), (5, 50, 3), (3, 1, 1), (3, 33, 1), (3, 34, 2), (10, 10, 1), (10, 11, 2), (2, 100, 2)],
)
def test_r6_at_most_so_many_percent_of_all_nodes_rounded_up(nodes: int, percent: int, most: int) -> None:
    busy = [one for i in range(nodes) for one in (m.node(f"n{i}"), full(1, on=f"n{i}", name=f"on-{i}", run=None))]
    fits = simulate(busy, m.gang("g", most, cpu=4), config=reserving(10, percent), until="20s")
    assert len(reserved(fits)) == most
    if most < nodes:
        more = simulate(busy, m.gang("g", most + 1, cpu=4), config=reserving(10, percent), until="20s")
        assert not reserved(more)


def test_r6_fifty_percent_by_default() -> None:
    actions = [*({"name": n} for n in QUIET), {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 10}}]
    for size, fits in ((2, True), (3, False)):
        answer = simulate(
            free_by(a=1, b=1, c=1, d=1), m.gang("g", size, cpu=4), config={"actions": actions}, until="20s"
        )
        assert bool(reserved(answer)) == fits


def test_r6_the_percentage_is_over_all_gangs() -> None:
    answer = simulate(
        free_by(a=1, b=1, c=1, d=1),
        m.gang("g", 2, cpu=3),
        m.gang("h", 1, cpu=3, at="1s"),
        m.gang("i", 2, at="2s"),
        config=reserving(10, 50),
        until="20s",
    )
    assert len(reserved(answer, "g")) == 2
    assert not reserved(answer, "h"), "its nodes would be a third"


def test_r6_gangs_that_share_nodes_do_not_count_them_twice() -> None:
    answer = simulate(
        free_by(a=0, b=0, c=0, d=0),
        m.gang("g", 2, cpu=3),
        m.gang("i", 2, at="1s"),
        config=reserving(10, 50),
        until="20s",
    )
    assert {where for _, where in reserved(answer, "i").values()} == {
        where for _, where in reserved(answer, "g").values()
    }


def test_r6_the_rest_is_not_touched() -> None:
    answer = simulate(
        free_by(a=2, b=1, c=1), m.pod("big", 4), m.pods(5, "s", at="20s"), config=reserving(10, 50), until="25s"
    )
    assert reserved(answer, "big") == {"big": (10.0, "a")}
    assert {where for _, where in answer.bound("s").values()} == {"b", "c"}


# ---- R7


def test_r7_it_binds_at_the_instant_the_room_suffices() -> None:
    answer = simulate(
        m.node("n"),
        full(1, "40s"),
        full(1, "70s", name="b"),
        full(2, "95s", name="c"),
        m.pod("big", 3),
        config=reserving(),
    )
    assert answer.bound("big")["big"] == (95.0, "n")


def test_r7_the_gang_binds_when_all_its_nodes_have_room() -> None:
    answer = simulate(
        m.node("n"),
        m.node("m"),
        full(4, "40s"),
        full(4, "70s", on="m", name="b"),
        m.gang("g", 2, cpu=4, run_time="10s"),
        m.pod("s", 1, at="45s"),
        config=reserving(),
    )
    assert set(answer.times("g-")) == {70.0}
    assert answer.at("s") == 80.0
    assert not claims(answer)


def test_r7_a_reservation_ends_when_its_job_is_bound() -> None:
    answer = simulate(
        m.node("n"), full(4, "40s"), m.job("g", m.role("w", 1, cpu=2)), m.pod("s", 2, at="41s"), config=reserving()
    )
    assert answer.times("g-") == [40.0]
    assert answer.at("s") == 41.0
    assert not claims(answer)


@pytest.mark.parametrize("target", [("Job", "g"), ("PodGroup", "g"), ("Pod", "g")])
def test_r7_a_reservation_ends_when_its_job_is_deleted(target: tuple[str, str]) -> None:
    kind, name = target
    documents = {"Job": [m.job("g", m.role("w", 1, cpu=4))], "PodGroup": m.gang("g", 1, cpu=4), "Pod": [m.pod("g", 4)]}[
        kind
    ]
    gone = [m.step("30s", "delete", kind, name)] + (
        [m.step("30s", "delete", "Pod", "g-0")] if kind == "PodGroup" else []
    )
    answer = simulate(m.node("n"), full(2), documents, m.pod("s", 2, at="20s"), gone, config=reserving())
    assert reserved(answer, "g")
    assert answer.at("s") == 30.0
    assert released(answer, "g"), "it shows in the timeline"
    assert released(answer, "g")[0][0] == 30.0


def test_r7_the_slot_of_a_pod_that_its_job_recreates_stays() -> None:
    answer = simulate(
        m.node("n"),
        full(4),
        m.job("g", m.role("w", 2, cpu=2)),
        m.step("30s", "delete", "Pod", "g-w-0"),
        config=reserving(),
    )
    assert set(answer.times("g-")) == {100.0}
    assert reserved(answer)["g-w-0"][0] == 10.0, "the recreated pod takes its slot again"
    assert [line["name"] for line in answer.lines("released")] == ["g-w-0"], "only the deleted pod's line"


def test_r7_a_member_beyond_the_minimum_may_take_its_place() -> None:
    answer = simulate(
        m.node("n"),
        full(4),
        m.gang("g", 3, minimum=2, cpu=2),
        m.step("30s", "delete", "Pod", "g-0"),
        config=reserving(),
    )
    assert set(reserved(answer)) == {"g-0", "g-1", "g-2"}
    assert set(answer.times("g-")) == {100.0}


@pytest.mark.parametrize(
    "gone",
    [
        m.step("30s", "patch", "Node", "n", patch={"spec": {"unschedulable": True}}),
        m.step("30s", "patch", "Node", "n", patch={"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}),
        m.step("30s", "fail-node", "Node", "n"),
        m.step("30s", "delete", "Node", "n"),
        m.step("30s", "patch", "Node", "n", patch={"status": {"allocatable": {"cpu": "3"}}}),
    ],
    ids=["cordoned", "tainted", "failed", "deleted", "shrunk"],
)
def test_r7_a_node_that_is_no_longer_good_is_let_go_and_another_reserved(gone: m.Obj) -> None:
    answer = simulate(
        m.node("n"),
        m.node("m"),
        full(3),
        full(4, on="m", name="other"),
        m.pod("big", 4),
        gone,
        config=reserving(10, 50),
    )
    assert reserved(answer)["big"] == (30.0, "m")
    assert (30.0, "big") in released(answer)
    assert answer.bound("big")["big"] == (100.0, "m")


def test_r7_a_node_that_is_cordoned_and_no_other() -> None:
    cordon = m.step("30s", "patch", "Node", "n", patch={"spec": {"unschedulable": True}})
    answer = simulate(m.node("n"), m.node("m", 2), full(3), m.pod("big", 4), cordon, config=reserving(), until="60s")
    assert released(answer) == [(30.0, "big")]
    assert not claims(answer)
    assert "reserved" not in answer.why("default/big")


def test_r7_bound_elsewhere_the_reservation_is_gone() -> None:
    answer = simulate(
        m.node("n"), full(2), m.pod("big", 4), m.node("m", at="30s"), m.pod("s", 2, at="31s"), config=reserving()
    )
    assert answer.bound("big")["big"] == (30.0, "m")
    assert answer.bound("s")["s"] == (31.0, "n")
    assert not claims(answer)


def test_r7_gangs_that_were_kept_out_are_bound_when_it_ends() -> None:
    answer = simulate(
        m.node("n"), full(2), m.pod("big", 4, delete_at="30s"), m.pod("s", 2, at="20s"), config=reserving()
    )
    assert answer.at("s") == 30.0


def test_r7_a_raised_minimum_that_cannot_be_reserved_ends_it() -> None:
    patch = {"spec": {"minMember": 2}}
    answer = simulate(
        m.node("n"),
        full(2),
        m.podgroup("g", 1),
        m.pods(2, "g-", 3, group="g"),
        m.step("30s", "patch", "PodGroup", "g", patch=patch),
        m.pod("s", 2, at="20s"),
        config=reserving(),
    )
    assert reserved(answer, "g-")["g-0"] == (10.0, "n")
    assert answer.at("s") == 30.0
    assert not claims(answer)


def a_day() -> tuple[Any, ...]:
    return (
        CLASSES,
        m.node("n"),
        m.node("m"),
        full(2, "40s"),
        full(1, "95s", name="b"),
        full(4, "70s", on="m", name="c"),
        m.gang("g", 2, cpu=4, run_time="20s"),
        m.job("h", m.role("w", 3, 2, cpu=1, run_time="30s"), at="3s"),
        m.pod("big", 4, at="5s", run_time="9s"),
        [m.pod(f"s{i}", 1, at=f"{10 + 7 * i}s", run_time="25s") for i in range(12)],
    )


@pytest.mark.parametrize("instants", [(i,) for i in range(0, 130, 9)] + [tuple(range(1, 130, 6))])
def test_r7_a_restart_changes_nothing(instants: tuple[int, ...]) -> None:
    expected = simulate(*a_day(), config=reserving(10))
    answer = simulate(*a_day(), [m.restart(f"{i}s") for i in instants], config=reserving(10))
    for what in ("bound", "reserved", "released"):
        assert [(one["t"], one["name"], one["node"]) for one in answer.lines(what)] == [
            (one["t"], one["name"], one["node"]) for one in expected.lines(what)
        ], what
    assert answer.lines("succeeded") == expected.lines("succeeded")


def test_r7_the_condition_of_the_group_is_withdrawn_when_it_is_bound() -> None:
    answer = simulate(m.node("n"), full(4, "40s"), m.gang("g", 1, cpu=4), config=reserving())
    assert not waits_because(answer.obj("PodGroup", "g"))
    for one in answer.obj("PodGroup", "g")["status"]["conditions"]:
        assert not (one["type"] == "Reserved" and one["status"] == "True"), one
    assert condition(answer.obj("Pod", "g-0"), "PodScheduled")["status"] == "True"  # type: ignore[index]


def test_r5_a_claim_is_released_for_one_of_those_that_may_replace_a_lost_member() -> None:
    """Of two that wait the first fits nowhere, and is passed over (G3)."""
    answer = simulate(
        CLASSES,
        m.node("n", 2),
        m.gang("a", 2, group_priority="high"),
        m.pod("big", 2, priority="low", at="1s"),
        m.step("20s", "delete", "Pod", "a-1"),
        m.pod("a-2", 3, group="a", at="20s"),
        m.pod("a-3", 1, group="a", at="20s"),
        config=reserving(10, actions=EVERYTHING),
        until="30s",
    )
    assert reserved(answer, "big")
    assert answer.at("a-3") == 20.0
    assert answer.at("a-2") is None
