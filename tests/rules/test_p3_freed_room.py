"""P3: room that is freed for a gang is for no other, and no victim evicts in turn."""

from __future__ import annotations

import random
from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer, waits_because
from support.simulation import simulate

CLASSES = [
    m.priority_class("top", 5000),
    m.priority_class("high", 1000),
    m.priority_class("mid", 500),
    m.priority_class("low", 10),
]


def evicted(answer: Answer) -> list[tuple[float, str]]:
    return sorted((line["t"], line["name"]) for line in answer.lines("evicted"))


def claims(answer: Answer) -> list[str]:
    return [
        one["metadata"]["name"]
        for one in answer.objects
        if "enbloc.dev/claim-preempt" in (one["metadata"].get("annotations") or {})
    ]


def vip(cpu: int = 4, priority: str = "high", at: str = "10s", **more: Any) -> m.Obj:
    return m.pod("vip", cpu, priority=priority, at=at, **more)


def leaving(*more: Any, **kw: Any) -> Answer:
    """The victims take 30s to leave: until 40s."""
    return simulate(CLASSES, m.node("n"), m.pods(4, "a", priority="low", stop_delay="30s"), *more, **kw)


# ---- the claim


def test_p3_it_lands_the_instant_the_victims_are_gone() -> None:
    answer = leaving(vip())
    assert answer.bound("vip")["vip"] == (40.0, "n")
    assert {at for at, _ in evicted(answer)} == {10.0}
    assert len(evicted(answer)) == 4
    assert not claims(answer)


def test_p3_a_gang_lands_whole_when_the_last_victim_is_gone() -> None:
    slow = [m.pod(f"a{i}", 4, priority="low", stop_delay=f"{20 * (i + 1)}s") for i in range(2)]
    answer = simulate(CLASSES, m.node("n"), m.node("m"), slow, m.gang("vip", 2, cpu=4, priority="high", at="10s"))
    assert set(answer.times("vip-")) == {50.0}


@pytest.mark.parametrize("priority", ["low", "mid", "high"])
def test_p3_the_freed_room_is_for_no_other_gang(priority: str) -> None:
    """Small ones that come meanwhile, lower or equal, do not get it; nor when part of it is free already."""
    slow = [m.pod("a0", 3, priority="low", stop_delay="30s"), m.pod("a1", 1, priority="low", stop_delay="5s")]
    answer = simulate(
        CLASSES,
        m.node("n"),
        slow,
        vip(),
        [m.pod(f"s{i}", 1, priority=priority, at=f"{11 + 4 * i}s") for i in range(8)],
        until="60s",
    )
    assert answer.at("vip") == 40.0
    assert not answer.bound("s")


def test_p3_nor_is_it_for_gangs_that_waited_before() -> None:
    answer = leaving(m.pod("old", 1, priority="low", at="1s"), m.gang("older", 2, at="2s"), vip(), until="60s")
    assert answer.at("vip") == 40.0
    assert not answer.bound("old")


def test_p3_room_beside_it_is_free_for_others() -> None:
    answer = leaving(vip(2), m.pods(4, "s", at="20s", priority="low"), m.node("m", 1, at="15s"), until="60s")
    assert answer.at("vip") == 40.0
    assert len(answer.bound("s")) == 1


@pytest.mark.parametrize("instants", [(10,), (11,), (25,), (39,), (40,), tuple(range(10, 42, 2))])
def test_p3_a_restart_in_between_changes_nothing(instants: tuple[int, ...]) -> None:
    small = [m.pod(f"s{i}", 1, priority="low", at=f"{11 + 4 * i}s") for i in range(8)]
    answer = leaving(vip(), small, [m.restart(f"{i}s") for i in instants], until="60s")
    assert answer.at("vip") == 40.0
    assert len(evicted(answer)) == 4
    assert not answer.bound("s")
    assert not claims(answer)


@pytest.mark.parametrize("dialect", ["job", "podgroup", "annotations", "groups"])
def test_p3_a_restart_in_between_for_a_gang(dialect: str) -> None:
    both = ["default/vip-a", "default/vip-b"]
    documents = {
        "job": [m.job("vip", m.role("w", 2, cpu=2), priority="high", at="10s")],
        "podgroup": m.gang("vip", 2, cpu=2, priority="high", at="10s"),
        "annotations": m.koordinator_gang("vip", 2, cpu=2, priority="high", at="10s"),
        "groups": [
            *m.koordinator_gang("vip-a", 1, cpu=2, priority="high", at="10s", groups=both),
            *m.koordinator_gang("vip-b", 1, cpu=2, priority="high", at="10s", groups=both),
        ],
    }[dialect]
    small = [m.pod(f"s{i}", 1, priority="low", at=f"{11 + 4 * i}s") for i in range(6)]
    for instants in ((), (10, 25), (39,)):
        answer = leaving(documents, small, [m.restart(f"{i}s") for i in instants], until="60s")
        assert answer.times("vip-") == [40.0, 40.0]
        assert len(evicted(answer)) == 4
        assert not answer.bound("s")


def test_p3_it_says_that_room_is_being_made() -> None:
    answer = leaving(vip(), until="20s")
    assert "room is being freed" in waits_because(answer.obj("Pod", "vip"))
    assert [(line["t"], line["node"]) for line in answer.lines("reserved", "vip")] == [(10.0, "n")]


def test_p3_it_takes_another_place_that_is_free_sooner() -> None:
    answer = leaving(vip(), m.node("m", at="20s"), m.pod("s", 4, at="21s", priority="low"), until="100s")
    assert answer.bound("vip")["vip"] == (20.0, "m")
    assert answer.at("s") == 40.0, "what was freed is for any gang then"


def test_p3_when_it_is_deleted_the_room_is_for_others() -> None:
    answer = leaving(vip(delete_at="20s"), m.pod("s", 4, at="15s", priority="low"))
    assert answer.at("s") == 40.0
    assert not claims(answer)


def test_p3_when_its_node_goes_it_gives_up_and_looks_elsewhere() -> None:
    cordon = m.step("20s", "patch", "Node", "n", patch={"spec": {"unschedulable": True}})
    answer = leaving(
        vip(), m.node("m", at="15s"), m.pod("x", 4, priority="low", nodeName="m", at="15s"), cordon, until="100s"
    )
    assert answer.bound("vip")["vip"] == (20.0, "m")


def test_p3_no_pod_is_evicted_twice_for_one() -> None:
    """While its victims leave, it does not look for others."""
    answer = leaving(
        vip(),
        m.node("m", at="12s"),
        m.pod("x", 4, priority="mid", at="12s"),
        [m.pod(f"t{i}", 1, at=f"{13 + i}s") for i in range(20)],
        until="60s",
    )
    assert len(evicted(answer)) == 4
    assert not [name for _, name in evicted(answer) if name == "x"]


def test_p3_no_eviction_without_the_preemptor_landing() -> None:
    """Every gang that preempted runs in the end."""
    answer = leaving(vip(run_time="10s"), m.pod("vip2", 2, priority="mid", at="12s", run_time="10s"))
    assert answer.at("vip") == 40.0
    assert answer.at("vip2") is not None


def test_p3_a_hold_of_lower_priority_is_released_first() -> None:
    """NonStrict members that are held are no victims: what they hold is released (R5)."""
    held = m.koordinator_gang("h", 3, cpu=2, mode=m.NON_STRICT, priority="low")
    answer = simulate(CLASSES, m.node("n"), held, vip(2), until="20s")
    assert answer.at("vip") == 10.0
    assert not evicted(answer)
    assert answer.lines("released")


# ---- in turn


def test_p3_equal_jobs_do_not_evict_each_other() -> None:
    first, second = (
        m.job(name, m.role("w", 2, cpu=2), priority="high", at=at) for name, at in (("x", "0s"), ("y", "10s"))
    )
    answer = simulate(CLASSES, m.node("n"), first, second, until="10h")
    assert not evicted(answer)


def test_p3_the_evicted_come_back_and_wait() -> None:
    first = m.job("x", m.role("w", 2, cpu=2), priority="low")
    second = m.job("y", m.role("w", 2, cpu=2), priority="high", at="10s")
    answer = simulate(CLASSES, m.node("n"), first, second, [m.restart("20s"), m.restart("1h")], until="10h")
    assert len(evicted(answer)) == 2


BOTH = ["default/y-a", "default/y-b"]
PREEMPTORS = {
    "job": [m.job("y", m.role("w", 2, cpu=2), priority="high", at="10s")],
    "queuejob": [m.queue_job("y", m.role("w", 2, cpu=2), minimum=2, priorityClassName="high", at="10s")],
    "podgroup": m.gang("y", 2, cpu=2, priority="high", at="10s"),
    "annotations": m.koordinator_gang("y", 2, cpu=2, priority="high", at="10s"),
    "pod": [m.pod("y", 4, priority="high", at="10s")],
    "groups": [
        *m.koordinator_gang("y-a", 1, cpu=2, priority="high", at="10s", groups=BOTH),
        *m.koordinator_gang("y-b", 1, cpu=2, priority="high", at="10s", groups=BOTH),
    ],
}


@pytest.mark.parametrize("restarts", [(), ("20s",), ("10s", "20s", "25s")])
@pytest.mark.parametrize("dialect", PREEMPTORS)
def test_p3_a_gang_evicts_none_that_it_was_evicted_for(dialect: str, restarts: tuple[str, ...]) -> None:
    """`x` was evicted for `y`. At 30 s its priority is raised above that of `y`: it waits all the same."""
    raised = m.step("30s", "patch", "Job", "x", patch={"spec": {"priorityClassName": "top"}})
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.job("x", m.role("w", 2, cpu=2), priority="low"),
        PREEMPTORS[dialect],
        [m.restart(at) for at in restarts],
        raised,
        until="60s",
    )
    assert evicted(answer) == [(10.0, "x-w-0"), (10.0, "x-w-1")]


@pytest.mark.parametrize("restarts", [(), ("25s",)])
@pytest.mark.parametrize("gone", ["y-a", "y-b"])
def test_p3_of_gangs_that_start_together_each_is_safe_from_what_was_evicted_for_them(
    gone: str, restarts: tuple[str, ...]
) -> None:
    """`x` was evicted for the group of `y-a` and `y-b`. One of them is deleted: `x` evicts the other neither."""
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.job("x", m.role("w", 2, cpu=2), priority="low"),
        PREEMPTORS["groups"],
        m.step("20s", "delete", "Pod", f"{gone}-0"),
        [m.restart(at) for at in restarts],
        m.step("30s", "patch", "Job", "x", patch={"spec": {"priorityClassName": "top"}}),
        until="60s",
    )
    assert evicted(answer) == [(10.0, "x-w-0"), (10.0, "x-w-1")]


def test_p3_another_gang_may_evict_it() -> None:
    """What `x` may not, `z` may, which was never evicted for `y`."""
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.job("x", m.role("w", 2, cpu=2), priority="low"),
        PREEMPTORS["job"],
        m.restart("20s"),
        m.job("z", m.role("w", 2, cpu=2), priority="top", at="30s"),
        until="60s",
    )
    assert evicted(answer)[2:] == [(30.0, "y-w-0"), (30.0, "y-w-1")]


@pytest.mark.parametrize("restarts", [(), ("33s",)])
def test_p3_no_two_jobs_reclaim_from_each_other_in_turn(restarts: tuple[str, ...]) -> None:
    """`x` reclaims from `y`; `y` would reclaim from `x` in turn, by its share of the memory."""
    answer = simulate(
        m.queue("q", priority=1),
        m.node("n", 6, "4Gi", pods=4),
        m.node("o", 4, "4Gi", labels={"zone": "b"}),
        m.job("y", m.role("a", 2, cpu=3, memory="2Gi"), queue="q"),
        m.job("x", m.role("a", 2, 2, cpu=2), m.role("b", 2, 0, nodeSelector={"zone": "b"})),
        [m.restart(at) for at in restarts],
        config={"actions": "enqueue, allocate, backfill, preempt, reclaim"},
        until="60s",
    )
    assert evicted(answer) == [(0.0, "y-a-0"), (0.0, "y-a-1")]


def test_p3_elastic_jobs_do_not_push_each_other_around() -> None:
    first = m.job("x", m.role("w", 4, 1), priority="low")
    second = m.job("y", m.role("w", 4, 1), priority="high", at="10s")
    answer = simulate(CLASSES, m.node("n"), first, second, until="10h")
    assert len(evicted(answer)) == 1
    assert len(answer.bound("y-")) == 1


def test_p3_preempt_and_reclaim_do_not_fight() -> None:
    """b reclaims from a; a's high one preempts a's low ones only."""
    queues = [m.queue("a"), m.queue("b")]
    documents = [
        *[m.job(f"x{i}", m.role("w", 1), queue="a", priority="low") for i in range(4)],
        *[m.job(f"y{i}", m.role("w", 1), queue="b", priority="low", at="10s") for i in range(4)],
        m.job("z", m.role("w", 2), queue="a", priority="high", at="20s"),
    ]
    answer = simulate(CLASSES, queues, m.node("n"), documents, until="10h")
    assert len(evicted(answer)) == 4
    running = [one["metadata"]["name"][0] for one in answer.all("Pod") if one["status"].get("phase") == "Running"]
    assert sorted(running) == ["y", "y", "z", "z"]


@pytest.mark.parametrize("seed", range(10))
def test_p3_any_mix_ends_and_evicts_no_pair_in_turn(seed: int) -> None:
    """Jobs of queues and priorities, elastic and rigid, slow to leave; with restarts. All of them run in the end."""
    dice = random.Random(seed)
    print(f"seed {seed}")
    queues = [m.queue("a", weight=dice.randint(1, 3)), m.queue("b", weight=dice.randint(1, 3))]
    documents: list[m.Obj] = [m.node(f"n{i}", dice.randint(2, 4)) for i in range(3)]
    for index in range(14):
        replicas = dice.randint(1, 3)
        one = m.role(
            "w",
            replicas,
            dice.randint(1, replicas),
            cpu=dice.randint(1, 2),
            run_time=f"{dice.randint(20, 90)}s",
            stop_delay=f"{dice.choice([0, 0, 7])}s",
        )
        documents.append(
            m.job(
                f"j{index}",
                one,
                queue=dice.choice("ab"),
                priority=dice.choice(["low", "mid", "high"]),
                at=f"{dice.randint(0, 60)}s",
            )
        )
    plain = simulate(CLASSES, queues, documents)
    restarted = simulate(CLASSES, queues, documents, [m.restart(f"{dice.randint(0, 90)}s") for _ in range(3)])
    for answer in (plain, restarted):
        assert not answer.data["pending"]
        assert all(one["status"]["state"]["phase"] == "Completed" for one in answer.all("Job"))
        by_pod = {line["name"]: 0 for line in answer.lines("evicted")}
        for line in answer.lines("evicted"):
            by_pod[line["name"]] += 1
        assert all(count <= 6 for count in by_pod.values()), by_pod
        assert not claims(answer)
    pairs = {(line["name"].rsplit("-w-", 1)[0], line["message"].rsplit("/", 1)[-1]) for line in plain.lines("evicted")}
    assert not {(b, a) for a, b in pairs} & pairs, "no pair evicts each other"


# ---- several at once


def test_p3_one_after_the_other_while_victims_are_leaving() -> None:
    wanting = [m.pod(f"vip{i}", 1, priority="high", at=f"{10 + i}s") for i in range(4)]
    answer = leaving(wanting)
    assert [at for at, _ in evicted(answer)] == [10.0, 11.0, 12.0, 13.0]
    assert answer.times("vip") == [40.0, 41.0, 42.0, 43.0]


@pytest.mark.parametrize("restarts", [(), ("2.5s",), ("5s", "12s")])
def test_p3_room_that_is_there_already_is_for_the_gang_it_was_freed_for(restarts: tuple[str, ...]) -> None:
    """`wide` waits for n2 until 11 s. What `a` left on n1 at 3 s is its own: `second` waits for `b`, until 22 s."""
    hostname = "kubernetes.io/hostname"
    on = {name: {"nodeSelector": {hostname: name}} for name in ("n1", "n2")}
    answer = simulate(
        CLASSES,
        m.priority_class("lowest", 1),
        [m.node(name, cpu, labels={hostname: name}) for name, cpu in (("n1", 4), ("n2", 2))],
        m.pod("a", 2, priority="lowest", stop_delay="2s", **on["n1"]),
        m.pod("b", 2, priority="low", stop_delay="20s", **on["n1"]),
        m.pod("c", 2, priority="low", stop_delay="10s", **on["n2"]),
        m.podgroup("wide", 2, priority="high", at="1s"),
        [m.pod(f"wide-{name}", 2, group="wide", priority="high", at="1s", **on[name]) for name in ("n1", "n2")],
        m.pod("second", 2, priority="high", at="2s", **on["n1"]),
        [m.restart(at) for at in restarts],
        until="60s",
    )
    assert evicted(answer) == [(1.0, "a"), (1.0, "c"), (2.0, "b")]
    assert answer.times("wide") == [11.0, 11.0]
    assert answer.times("second") == [22.0]


def test_p3_a_higher_one_takes_the_claim_on_room_that_is_being_freed() -> None:
    answer = leaving(vip(run_time="5s"), m.pod("boss", 4, priority="top", at="20s", run_time="5s"))
    assert (answer.at("boss"), answer.at("vip")) == (40.0, 45.0)
    assert len(evicted(answer)) == 4


def test_p3_a_reservation_does_not_shut_the_preemptor_out() -> None:
    """s starves while vip's victim leaves: the node is vip's first."""
    actions: list[m.Obj] = [{"name": n} for n in ("enqueue", "allocate", "backfill", "preempt", "reclaim")]
    arguments = {"starvingJobTimeThreshold": 5, "reservedNodePercent": 100}
    answer = simulate(
        CLASSES,
        m.node("n", 6),
        m.pod("a", 2, priority="low", stop_delay="20s"),
        m.gang("vip", 2, cpu=3, priority="high", at="10s", run_time="30s"),
        m.pod("s", 3, at="12s"),
        config={"actions": [*actions, {"name": "reserve", "arguments": arguments}]},
        until="100s",
    )
    assert set(answer.times("vip-")) == {30.0}
    assert answer.at("s") == 60.0


def test_p3_a_releasing_pod_waits_for_nothing() -> None:
    assert not leaving(vip(), until="20s").waits("default/a0")


def test_p3_victims_of_a_reclaim_do_not_take_the_freed_room_back() -> None:
    """They are of higher priority, and of another queue: what was reclaimed is that queue's by its share."""
    stops = ["20s", "20s", "6s", "20s"]
    running = [
        m.job(f"x{i}", m.role("w", 1, stop_delay=stop), queue="a", priority="high") for i, stop in enumerate(stops)
    ]
    reclaimer = m.job("y", m.role("w", 2), queue="b", priority="low", at="10s")
    answer = simulate(CLASSES, m.queue("a"), m.queue("b"), m.node("n", 4), running, reclaimer, until="1h")
    assert len(evicted(answer)) == 2
    assert answer.times("y-") == [30.0, 30.0]


def test_p3_g9_room_that_is_left_for_another_place_wakes_gangs_that_were_tried_before() -> None:
    """Room for `vip` is being freed on n until 40 s; at 20 s it lands on m. Beside those that leave, 2 cpu are free
    on n from then on for `small`, whose queue comes first."""
    answer = simulate(
        CLASSES,
        m.queue("first", priority=10),
        m.node("n", 6),
        m.pods(4, "a", priority="low", stop_delay="30s"),
        vip(6),
        m.pod("small", 1, at="15s", queue="first", priority="low", nodeSelector={"kubernetes.io/hostname": "n"}),
        m.node("m", 6, at="20s"),
    )
    assert (answer.at("vip"), answer.nodes("vip")) == (20.0, {"vip": "m"})
    assert answer.at("small") == 20.0


def test_p1_g9_a_gang_without_a_plan_is_tried_in_the_cycle_that_releases_claims() -> None:
    """`b` would need the room that `h` holds, whose priority is its own. At 10 s that room is released for `vip`, whose
    priority is raised: `b` fits then if `victim` leaves, before `h` holds it again."""
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.pod("fixed", 1, nodeName="n", priority="top"),
        m.pod("victim", 1, nodeName="n", priority="low"),
        m.koordinator_gang("h", 4, mode=m.NON_STRICT, priority="mid"),
        m.gang("b", 1, cpu=2, priority="mid", at="1s"),
        m.gang("vip", 1, priority="low", at="1s"),
        m.step("10s", "patch", "PodGroup", "vip", patch={"spec": {"priorityClassName": "high"}}),
        until="60s",
    )
    assert evicted(answer) == [(10.0, "victim")]
    assert (answer.at("vip-0"), answer.at("b-0")) == (10.0, 10.0)


@pytest.mark.parametrize("restarts", [[], [m.restart("21s")]], ids=["as-it-is", "restarted"])
@pytest.mark.parametrize(
    ("gang", "larger"),
    [
        (
            m.job("vip", m.role("w", 1), priority="high", at="10s"),
            m.patch("20s", "Job", "vip", spec={"tasks": [m.role("w", 2)]}),
        ),
        (
            m.gang("vip", 2, 1, priority="high", at="10s"),
            m.patch("20s", "PodGroup", "vip", spec={"minMember": 2}),
        ),
    ],
    ids=["Job", "PodGroup"],
)
def test_p3_p1_a_preemptor_that_needs_more_than_is_being_freed_is_planned_for_anew(
    gang: Any, larger: m.Obj, restarts: list[m.Obj]
) -> None:
    answer = leaving(gang, larger, restarts, until="100s")
    assert [at for at, _ in evicted(answer)] == [10.0, 20.0]
    assert answer.times("vip-") == [50.0, 50.0]
    assert not claims(answer)


def test_p3_a_preemptor_that_came_to_need_more_than_it_can_get_gives_up() -> None:
    larger = m.patch("20s", "PodGroup", "vip", spec={"minMember": 5})
    gang = m.gang("vip", 5, 1, priority="high", at="10s")
    answer = leaving(gang, larger, m.pod("s", 1, at="25s", priority="mid"), until="100s")
    assert len(evicted(answer)) == 1
    assert answer.at("s") == 40.0
    assert not claims(answer)


def test_p3_another_member_takes_the_place_of_a_nominated_pod_that_is_gone() -> None:
    gang = m.gang("vip", 3, 2, priority="high", at="10s")
    answer = leaving(gang, m.step("20s", "delete", "Pod", "vip-0"), until="100s")
    assert len(evicted(answer)) == 2
    assert answer.times("vip-") == [40.0, 40.0]


@pytest.mark.parametrize("in_group", [False, True])
def test_p1_a_gang_starts_where_room_was_freed_though_task_after_task_would_not_fit(in_group: bool) -> None:
    """Two pods of 2 CPUs on x and one of 3, with a host port, on y: the only way. Once the victim has left, the second
    pod would go to y, and the third, which is not packed, would find no room."""
    port = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    mates = {"groups": '["default/g","default/h"]'} if in_group else {}
    notes = m.koordinator_annotations("g", 3, **mates)
    gang = [
        m.pod("g-0", 2, priority="high", at="10s", annotations=notes),
        m.pod("g-1", 2, priority="high", at="10s", annotations=notes),
        m.pod("g-2", 3, priority="high", at="10s", annotations=notes),
    ]
    if in_group:
        notes = m.koordinator_annotations("h", 1, **mates)
        gang.append(m.pod("h-0", 0, priority="high", at="10s", annotations=notes))
    gang[2]["spec"]["containers"][0].update(port)
    victim = m.pod("v", 3, priority="low", nodeSelector={"kubernetes.io/hostname": "y"}, stop_delay="5s")
    answer = simulate(
        CLASSES, m.node("x", 4), m.node("y", 3), victim, gang, config={"actions": "allocate, preempt"}, until="60s"
    )
    assert evicted(answer) == [(10.0, "v")]
    assert {name: node for name, (_, node) in answer.bound("g-").items()} == {"g-0": "x", "g-1": "x", "g-2": "y"}
    assert answer.times("g-") == [15.0] * 3
