"""D5 with R and P: a whole-job gang reserves, preempts and reclaims like any other, for all its waves together."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

WHOLE = {"enbloc.dev/depends-on-gang": "true"}
CLASSES = [m.priority_class("high", 1000), m.priority_class("low", 10)]


def whole_job(name: str = "j", workers: int = 2, at: str = "1s", cpu: int = 1, **fields: Any) -> m.Obj:
    """One master, and workers that come 10 s after it."""
    master = m.role("master", 1, cpu=cpu, run_time="60s", start_delay="10s")
    work = {**m.role("work", workers, cpu=cpu, run_time="30s"), "dependsOn": {"name": ["master"]}}
    made = m.job(name, master, work, at=at, **fields)
    made["metadata"].setdefault("annotations", {}).update(WHOLE)
    return made


def reserving(percent: int = 100) -> m.Obj:
    arguments = {"starvingJobTimeThreshold": 10, "reservedNodePercent": percent}
    actions: list[m.Obj] = [{"name": name} for name in ("enqueue", "allocate", "backfill")]
    return {"actions": [*actions, {"name": "reserve", "arguments": arguments}]}


def stream(until: int, cpu: int = 2, run: str = "10s") -> list[m.Obj]:
    """Small pods that come all the time, and keep a node of four from ever being empty."""
    return [m.pod(f"s-{at:03}", cpu, run_time=run, at=f"{at}s") for at in range(0, until, 5)]


def claims(answer: Answer, kind: str, job: str = "j") -> str:
    return answer.group_of(job)["metadata"].get("annotations", {}).get(f"enbloc.dev/claim-{kind}", "")


def starts(answer: Answer, job: str = "j") -> dict[str, float]:
    return {name.removeprefix(f"{job}-"): at for name, (at, _) in answer.bound(f"{job}-").items()}


# ---- R


def test_r1_a_starving_whole_job_gang_is_reserved_for_with_all_its_waves() -> None:
    documents = [m.node("n"), stream(400), whole_job(workers=3)]
    answer = simulate(*documents, config=reserving())
    reserved = {line["name"]: line["t"] for line in answer.lines("reserved")}
    assert {name: reserved.get(name) for name in ("j-master-0", "j-work-0", "j-work-1", "j-work-2")} == {
        "j-master-0": 11.0,
        "j-work-0": 11.0,
        "j-work-1": 11.0,
        "j-work-2": 11.0,
    }
    assert starts(answer)["master-0"] == 20.0, "when the pods that ran have ended"
    assert {at for name, at in starts(answer).items() if name != "master-0"} == {30.0}
    without = simulate(*documents, config={"actions": "enqueue, allocate, backfill"})
    assert starts(without)["master-0"] > 390.0


def test_r1_nothing_is_reserved_for_the_first_wave_alone() -> None:
    """All waves together are more than the cluster has: no node is closed."""
    answer = simulate(m.node("n"), stream(100), whole_job(workers=4), config=reserving(), until="60s")
    assert not answer.lines("reserved")
    assert not starts(answer)


def test_r3_reserve_is_tried_again_for_later_waves_when_other_nodes_are_the_nearest() -> None:
    """The worker needs all of x. At 11 s x and y are equally near, and the master would take x; from 20 s on y is
    nearer to it."""
    master = m.role("master", 1, cpu=1, run_time="60s")
    work = {**m.role("work", 1, cpu=4, run_time="30s"), "dependsOn": {"name": ["master"]}}
    job = m.job("j", master, work, at="1s")
    job["metadata"].setdefault("annotations", {}).update(WHOLE)
    full = [m.pod("a", 4, nodeName="x", run_time="100s"), m.pod("b", 3, nodeName="y", run_time="20s")]
    answer = simulate(m.node("x", 4), m.node("y", 3), full, job, config=reserving(), until="30s")
    assert {(line["t"], line["name"], line["node"]) for line in answer.lines("reserved")} == {
        (20.0, "j-master-0", "y"),
        (20.0, "j-work-0", "x"),
    }


def test_r6_the_waves_share_the_bound_on_nodes() -> None:
    nodes = [m.node(f"n{index}") for index in range(4)]
    full = [m.pod(f"full-{index}", 4, nodeName=f"n{index}", run_time="100s") for index in range(4)]
    fits = simulate(nodes, full, whole_job(workers=1, cpu=3), config=reserving(50), until="20s")
    assert len({line["node"] for line in fits.lines("reserved")}) == 2
    beyond = simulate(nodes, full, whole_job(workers=2, cpu=3), config=reserving(50), until="20s")
    assert not beyond.lines("reserved")


@pytest.mark.parametrize("at", ["11500ms", "15s", "19500ms"])
def test_r7_the_reservation_of_a_whole_job_gang_survives_a_restart(at: str) -> None:
    documents = [m.node("n"), stream(100), whole_job(workers=3)]
    answer = simulate(*documents, m.restart(at), config=reserving())
    assert starts(answer) == starts(simulate(*documents, config=reserving()))


def test_r7_the_reservation_ends_with_the_job() -> None:
    job = whole_job(workers=3)
    job["metadata"]["annotations"]["sim.enbloc.dev/delete-at"] = "13s"
    answer = simulate(m.node("n"), m.pod("full", 4, run_time="100s"), job, m.node("m", 1), m.pod("t", 1, at="14s"),
                      config=reserving())  # fmt: skip
    assert answer.at("t") == 14.0


def test_r5_a_whole_job_gang_of_higher_priority_starts_on_reserved_nodes() -> None:
    """Its later waves take reserved nodes too; the gang of lower priority is reserved for again."""
    low = m.job("low", m.role("w", 4, run_time="10s"), at="1s", priorityClassName="low")
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.pod("full", 1, run_time="20s"),
        low,
        whole_job(at="15s", priorityClassName="high", workers=3),
        config=reserving(),
    )
    assert {line["t"] for line in answer.lines("reserved", "low-w-0")} >= {11.0}
    assert starts(answer)["master-0"] == 20.0
    assert starts(answer)["work-0"] == 30.0
    assert answer.times("low-") == [90.0] * 4, "when the master has ended"


# ---- P

BY_PRIORITY = {"actions": "enqueue, allocate, backfill, preempt"}


def test_p1_a_whole_job_gang_preempts_for_all_its_waves() -> None:
    victims = m.pods(4, "v-", 1, priorityClassName="low")
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        victims,
        whole_job(at="10s", priorityClassName="high"),
        config=BY_PRIORITY,
        until="2m",
    )
    assert len(answer.evicted("v-")) == 3
    assert {at for at, _ in answer.evicted("v-")} == {10.0}
    assert starts(answer)["master-0"] == 10.0
    assert starts(answer)["work-0"] == starts(answer)["work-1"] == 20.0


def test_p1_no_pod_is_evicted_for_the_first_wave_alone() -> None:
    """Even with all victims gone its waves do not fit together."""
    victims = m.pods(2, "v-", 1, priorityClassName="low")
    kept = m.pods(2, "kept-", 1, priorityClassName="high")
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        victims,
        kept,
        whole_job(at="10s", priorityClassName="high"),
        config=BY_PRIORITY,
        until="2m",
    )
    assert not answer.evicted()
    assert not starts(answer)


def slow_victims(count: int = 4) -> list[m.Obj]:
    return m.pods(count, "v-", 1, priorityClassName="low", terminationGracePeriodSeconds=20, stop_delay="20s")


def test_p3_the_room_of_all_waves_is_claimed_until_victims_have_left() -> None:
    thief = m.pod("thief", 1, at="15s", run_time="500s")
    documents = [CLASSES, m.node("n", 4), slow_victims(), thief, whole_job(at="10s", priorityClassName="high")]
    answer = simulate(*documents, config=BY_PRIORITY, until="2m")
    assert starts(answer)["master-0"] == 30.0
    assert starts(answer)["work-0"] == 40.0
    assert answer.at("thief") == 70.0, "when the workers have ended"


@pytest.mark.parametrize("at", ["12s", "30500ms"])
def test_p3_claims_of_all_waves_survive_a_restart(at: str) -> None:
    thief = m.pod("thief", 1, at="15s", run_time="500s")
    documents = [CLASSES, m.node("n", 4), slow_victims(), thief, whole_job(at="10s", priorityClassName="high")]
    plain = simulate(*documents, config=BY_PRIORITY, until="2m")
    again = simulate(*documents, m.restart(at), config=BY_PRIORITY, until="2m")
    assert again.bound() == plain.bound()


def test_p3_claims_of_all_waves_end_with_the_gang() -> None:
    job = whole_job(at="10s", priorityClassName="high")
    job["metadata"]["annotations"]["sim.enbloc.dev/delete-at"] = "15s"
    answer = simulate(CLASSES, m.node("n", 4), slow_victims(), job, m.pod("t", 3, at="16s"), config=BY_PRIORITY)
    assert answer.at("t") == 30.0


def test_p3_when_the_room_of_a_later_wave_is_lost_the_whole_is_planned_anew() -> None:
    """The node of the workers goes: nothing starts until all waves have room again."""
    nodes = [m.node("a", 1), m.node("b", 2, delete_at="15s"), m.node("c", 2, at="60s")]
    answer = simulate(
        CLASSES, nodes, slow_victims(3), whole_job(at="10s", priorityClassName="high"), config=BY_PRIORITY, until="2m"
    )
    assert starts(answer)["master-0"] == 60.0
    assert not claims(answer, "preempt")


def test_p3_a_whole_job_gang_starts_elsewhere_before_victims_have_left() -> None:
    """As any other gang: all its waves fit on a node that comes, and the room that is being freed is for others."""
    nodes = [m.node("a", 3), m.node("b", 3, at="15s")]
    late = m.pod("late", 1, at="20s", run_time="500s")
    answer = simulate(
        CLASSES, nodes, slow_victims(3), whole_job(at="10s", priorityClassName="high"), late, config=BY_PRIORITY
    )
    assert {at for at, _ in answer.evicted("v-")} == {10.0}
    assert starts(answer)["master-0"] == 15.0
    assert starts(answer)["work-0"] == starts(answer)["work-1"] == 25.0
    assert {node for name, (_, node) in answer.bound("j-").items()} == {"b"}
    assert answer.bound("late")["late"] == (30.0, "a"), "when the victims have left"


def test_p1_a_whole_job_gang_reclaims_for_all_its_waves() -> None:
    queues = [m.queue("mine"), m.queue("theirs")]
    victims = m.job("v", m.role("w", 4, 1), queue="theirs")
    answer = simulate(
        queues,
        m.node("n", 6),
        victims,
        m.job("more", m.role("w", 2, 1), queue="theirs"),
        whole_job(at="10s", queue="mine"),
        config={"actions": "enqueue, allocate, backfill, reclaim"},
        until="2m",
    )
    assert len(answer.evicted()) == 3
    assert starts(answer)["master-0"] == 10.0
    assert starts(answer)["work-0"] == 20.0


def _waves(workers: int, cpu: int) -> list[m.Obj]:
    after = {"name": ["ps"]}
    return [m.role("ps", 1, cpu=cpu, start_delay="50s"), m.role("worker", workers, cpu=cpu, depends_on=after)]


@pytest.mark.parametrize("restarts", [[], [m.restart("21s")]], ids=["as-it-is", "restarted"])
@pytest.mark.parametrize("at", ["15s", "20s", "30s"])
def test_d5_a_later_wave_that_was_scaled_down_keeps_no_room_for_pods_that_will_not_come(
    at: str, restarts: list[m.Obj]
) -> None:
    job = m.job("j", *_waves(3, 1), annotations=WHOLE)
    smaller = m.patch("20s", "Job", "j", spec={"tasks": _waves(1, 1)})
    answer = simulate(m.node("n"), job, smaller, m.pod("s", 2, at=at), restarts, until="100s")
    assert answer.at("s") == max(20.0, float(at[:-1]))
    assert answer.at("j-worker-0") == 50.0


@pytest.mark.parametrize("restarts", [[], [m.restart("21s")]], ids=["as-it-is", "restarted"])
@pytest.mark.parametrize("at", ["15s", "20s", "30s"])
def test_r7_a_later_wave_that_was_scaled_down_keeps_no_node_closed(at: str, restarts: list[m.Obj]) -> None:
    nodes = [m.node(f"n{number}") for number in range(3)]
    busy = [m.pod(f"f{number}", 1, run_time="60s", nodeName=f"n{number}") for number in range(3)]
    job = m.job("j", *_waves(2, 4), annotations=WHOLE)
    smaller = m.patch("20s", "Job", "j", spec={"tasks": _waves(1, 4)})
    small = m.pod("s", 2, at=at)
    answer = simulate(*nodes, *busy, job, smaller, small, restarts, config=reserving(), until="130s")
    assert answer.at("s") == max(20.0, float(at[:-1]))
    assert answer.at("j-ps-0") == 60.0
    assert answer.at("j-worker-0") == 110.0


def test_v4_what_later_waves_request_is_demand_though_the_first_requests_nothing() -> None:
    """A BestEffort master: its workers are the demand of their queue, which gets back its share for them."""
    queues = [m.queue("mine"), m.queue("theirs")]
    job = whole_job(at="10s", queue="mine")
    del job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]
    answer = simulate(
        queues,
        m.node("n", 4),
        [m.job(f"v{index}", m.role("w", 1), queue="theirs") for index in range(4)],
        job,
        config={"actions": "enqueue, allocate, backfill, reclaim"},
        until="2m",
    )
    assert len(answer.evicted()) == 2
    assert starts(answer) == {"master-0": 10.0, "work-0": 20.0, "work-1": 20.0}


@pytest.mark.parametrize("on_x", [False, True], ids=["", "and on the node of its claim"])
@pytest.mark.parametrize("ports", [[], [{"containerPort": 80, "hostPort": 80}]], ids=["", "host port"])
def test_p3_a_later_wave_that_grew_starts_in_its_claim_and_where_room_was_freed(ports: list[m.Obj], on_x: bool) -> None:
    """Room of `c` is claimed. At 5 s `a` and `p` are scaled up, pods are evicted for them at 20 s. Two pods of 2 CPUs
    on x and one of 3 on y is the only way: task after task would take another."""
    after = {"name": ["f"]}
    first, claimed = m.role("f", 1, 1, cpu="100m", start_delay="20s"), m.role("c", 1, 1, cpu="100m", depends_on=after)
    a = m.role("a", 0, 0, cpu=2, depends_on=after, priority="high")
    p = m.role("p", 0, 0, cpu=3, depends_on=after, priority="mid")
    p["template"]["spec"]["containers"][0]["ports"] = ports
    grown = [first, claimed, {**a, "replicas": 2, "minAvailable": 2}, {**p, "replicas": 1, "minAvailable": 1}]
    victims = [m.pod("v", 3, priority="low", stop_delay="5s", nodeSelector={"kubernetes.io/hostname": "y"})]
    if on_x:
        victims.append(m.pod("w", 4, priority="low", stop_delay="7s", nodeSelector={"kubernetes.io/hostname": "x"}))
    answer = simulate(
        [m.priority_class(name, value) for name, value in (("high", 1000), ("mid", 500), ("low", 10))],
        [m.node("x", "4200m"), m.node("y", 3)],
        victims,
        m.job("j", first, claimed, a, p, priority="high", annotations=WHOLE),
        m.patch("5s", "Job", "j", spec={"minAvailable": 5, "tasks": grown}),
        config={"actions": "enqueue, allocate, preempt"},
        until="60s",
    )
    assert [line["t"] for line in answer.lines("evicted")] == [20.0] * len(victims)
    assert not answer.lines("released")
    assert answer.bound("j-") == {
        "j-f-0": (0.0, "x"),
        "j-c-0": (27.0 if on_x else 25.0, "x"),
        "j-a-0": (27.0 if on_x else 25.0, "x"),
        "j-a-1": (27.0 if on_x else 25.0, "x"),
        "j-p-0": (27.0 if on_x else 25.0, "y"),
    }
