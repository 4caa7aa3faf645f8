"""P1: who is evicted for whom, and how many of them."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import NO_EVICTIONS, simulate

CLASSES = [
    m.priority_class("high", 1000),
    m.priority_class("mid", 500),
    m.priority_class("low", 10),
    m.priority_class("least", 5),
]


def evicted(answer: Answer) -> list[tuple[float, str]]:
    return sorted((line["t"], line["name"]) for line in answer.lines("evicted"))


def on(name: str, cpu: int, where: str, priority: str = "low", **more: Any) -> m.Obj:
    """A pod that goes to a node by our scheduler."""
    return m.pod(name, cpu, priority=priority, nodeSelector={"kubernetes.io/hostname": where}, **more)


def vip(cpu: int = 4, priority: str = "high", at: str = "10s", **more: Any) -> m.Obj:
    return m.pod("vip", cpu, priority=priority, at=at, **more)


# ---- for whom


def test_p1_higher_priority_takes_the_room_of_lower() -> None:
    answer = simulate(CLASSES, m.node("n"), m.pod("a", 4, priority="low"), vip())
    assert evicted(answer) == [(10.0, "a")]
    assert answer.bound("vip")["vip"] == (10.0, "n")


@pytest.mark.parametrize("running", ["mid", "high"])
def test_p1_equal_or_higher_is_not_evicted(running: str) -> None:
    answer = simulate(CLASSES, m.node("n"), m.pod("a", 4, priority=running), vip(priority="mid"), until="1h")
    assert not evicted(answer)
    assert answer.at("vip") is None


def test_p1_no_pod_is_evicted_if_there_is_room() -> None:
    answer = simulate(CLASSES, m.node("n"), m.node("m"), m.pod("a", 4, priority="low"), vip())
    assert answer.at("vip") == 10.0
    assert not evicted(answer)


def test_p1_no_pod_is_evicted_without_the_action() -> None:
    answer = simulate(CLASSES, m.node("n"), m.pod("a", 4, priority="low"), vip(), config=NO_EVICTIONS, until="1h")
    assert not evicted(answer)


@pytest.mark.parametrize("strategy, expected", [("traverse", [(10.0, "a-0")]), ("fifo", [])])
def test_p1_no_pod_is_evicted_for_gangs_behind_the_head_of_a_fifo_queue(
    strategy: str, expected: list[tuple[float, str]]
) -> None:
    """`vip` is tried in vain while `a` is cooling; then comes `ahead`, which fits nowhere, and behind which `vip` would
    not start though there were room (G8)."""
    cooling = {"volcano.sh/cooldown-time": "10s"}
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.queue("q", dequeueStrategy=strategy),
        m.gang("a", 1, cpu=4, queue="q", priority="low", annotations=cooling),
        m.gang("vip", 1, cpu=4, queue="q", priority="mid", at="1s"),
        m.gang("ahead", 1, cpu=9, queue="q", priority="high", at="5s"),
        until="60s",
    )
    assert evicted(answer) == expected


def test_p1_only_inside_a_queue() -> None:
    documents = [m.queue("q"), m.queue("r"), m.node("n")]
    answer = simulate(
        CLASSES,
        documents,
        m.gang("a", 1, cpu=2, queue="q", priority="low"),
        m.gang("b", 1, cpu=2, queue="r", priority="low"),
        m.gang("vip", 1, cpu=2, queue="q", priority="high", at="10s"),
        config={"actions": "enqueue, allocate, backfill, preempt"},
    )
    assert evicted(answer) == [(10.0, "a-0")]


def test_p1_it_is_planned_whole_before_anyone_is_evicted() -> None:
    """One node of the two that it needs could be freed; the other one's pod is not lower."""
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.node("m"),
        on("a", 4, "n"),
        on("b", 4, "m", "high"),
        m.gang("vip", 2, cpu=4, priority="high", at="10s"),
        until="1h",
    )
    assert not evicted(answer)
    assert not answer.bound("vip")


def test_p1_no_pod_is_evicted_for_room_that_would_not_do() -> None:
    """In all there would be 8 cpu, on no node 5."""
    answer = simulate(CLASSES, m.node("n"), m.node("m"), m.pods(8, "a", priority="low"), vip(5), until="1h")
    assert not evicted(answer)


@pytest.mark.parametrize(
    "why",
    [
        {"nodeSelector": {"no": "such"}},
        {"nodeSelector": {"kubernetes.io/hostname": "n"}, "tolerations": []},
        {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": {"matchLabels": {"app": "rock"}}, "topologyKey": "kubernetes.io/hostname"}
                    ]
                }
            }
        },
    ],
    ids=["selector", "taint", "anti-affinity"],
)
def test_p1_no_pod_is_evicted_for_what_fails_for_other_reasons(why: m.Obj) -> None:
    taint = [{"key": "k", "effect": "NoSchedule"}]
    taints = {"taints": taint} if "tolerations" in why else {}
    tolerates = [{"key": "k", "operator": "Exists"}]
    answer = simulate(
        CLASSES,
        m.node("n", **taints),
        m.pod("rock", 1, priority="high", labels={"app": "rock"}, tolerations=tolerates),
        m.pod("a", 3, priority="low", tolerations=tolerates),
        vip(2, **why),
        until="1h",
    )
    assert not evicted(answer)


# ---- fewest and lowest


def test_p1_the_fewest() -> None:
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.node("m"),
        [on(f"a{i}", 1, "n") for i in range(4)],
        on("b", 4, "m"),
        vip(),
    )
    assert evicted(answer) == [(10.0, "b")]


def test_p1_the_lowest() -> None:
    answer = simulate(CLASSES, m.node("n"), m.node("m"), on("a", 4, "n", "low"), on("b", 4, "m", "least"), vip())
    assert evicted(answer) == [(10.0, "b")]


def test_p1_the_lowest_on_one_node() -> None:
    answer = simulate(CLASSES, m.node("n"), m.pod("a", 2, priority="mid"), m.pod("b", 2, priority="low"), vip(2))
    assert evicted(answer) == [(10.0, "b")]


def test_p1_no_more_than_it_takes() -> None:
    answer = simulate(CLASSES, m.node("n"), m.pods(4, "a", priority="low"), vip(2))
    assert len(evicted(answer)) == 2
    answer = simulate(CLASSES, m.node("n"), m.pod("a", 1, priority="least"), m.pod("b", 3, priority="low"), vip(3))
    assert evicted(answer) == [(10.0, "b")], "evicting a alone helps no gang"


def test_p1_free_room_is_used_along() -> None:
    answer = simulate(
        CLASSES, m.node("n"), m.node("m", 2), on("a", 4, "n"), m.gang("vip", 3, cpu=2, priority="high", at="10s")
    )
    assert evicted(answer) == [(10.0, "a")]
    assert set(answer.times("vip-")) == {10.0}


def test_p1_among_equals_the_youngest() -> None:
    answer = simulate(
        CLASSES, m.node("n"), m.pod("a", 2, priority="low", at="2s"), m.pod("b", 2, priority="low", at="1s"), vip(2)
    )
    assert evicted(answer) == [(10.0, "a")]


def test_p1_one_victim_serves_several_members() -> None:
    answer = simulate(
        CLASSES, m.node("n"), m.node("m"), on("a", 4, "n"), on("b", 4, "m"), m.gang("vip", 4, priority="high", at="10s")
    )
    assert len(evicted(answer)) == 1
    assert answer.times("vip-") == [10.0] * 4


# ---- surplus before minima, whole gangs


def test_p1_surplus_before_the_minimum_of_any_gang() -> None:
    """The rigid one is younger and would go first; but e has more than it needs."""
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.job("e", m.role("w", 3, 1), priority="low"),
        m.gang("r", 1, priority="low", at="5s"),
        vip(1),
    )
    assert evicted(answer) == [(10.0, "e-w-2")]


def test_p1_surplus_in_the_reverse_of_their_order() -> None:
    for cpu, gone in ((1, {"e-w-3"}), (2, {"e-w-3", "e-w-2"}), (3, {"e-w-3", "e-w-2", "e-w-1"})):
        answer = simulate(CLASSES, m.node("n"), m.job("e", m.role("w", 4, 1), priority="low"), vip(cpu), until="20s")
        assert {name for _, name in evicted(answer)} == gone


def test_p1_surplus_of_the_role_of_lower_priority_first() -> None:
    roles = [m.role("a", 2, 1, priority="low"), m.role("b", 2, 1, priority="least")]
    answer = simulate(CLASSES, m.node("n"), m.job("e", *roles, priority="low"), vip(1), until="20s")
    assert evicted(answer) == [(10.0, "e-b-1")]
    answer = simulate(CLASSES, m.node("n"), m.job("e", *roles, priority="low"), vip(2), until="20s")
    assert {name for _, name in evicted(answer)} == {"e-a-1", "e-b-1"}, "each role keeps its minimum"


def test_p1_the_minimum_is_taken_only_as_a_whole() -> None:
    answer = simulate(CLASSES, m.node("n"), m.job("e", m.role("w", 4, 2), priority="low"), vip(3), until="20s")
    assert len(evicted(answer)) == 4
    answer = simulate(CLASSES, m.node("n"), m.node("m"), m.gang("g", 2, cpu=4, priority="low"), vip(4), until="20s")
    assert {name for _, name in evicted(answer)} == {"g-0", "g-1"}


def test_p1_the_total_above_the_roles_minima_is_kept_too() -> None:
    """Roles need 1 + 1, the gang 3 of its 4: one may go."""
    members = [
        m.podgroup("g", 3, roles={"a": 1, "b": 1}, priority="low"),
        *[m.pod(f"g-{r}{i}", 1, group="g", role=r) for r in "ab" for i in range(2)],
    ]
    answer = simulate(CLASSES, m.node("n"), members, vip(1), until="20s")
    assert len(evicted(answer)) == 1
    answer = simulate(CLASSES, m.node("n"), members, vip(2), until="20s")
    assert len(evicted(answer)) == 4


def test_p1_one_rigid_gang_rather_than_two() -> None:
    answer = simulate(
        CLASSES,
        m.node("n", 8),
        m.gang("a", 2, cpu=2, priority="low"),
        m.gang("b", 2, cpu=1, priority="low", at="1s"),
        m.gang("c", 2, cpu=1, priority="low", at="2s"),
        vip(4),
        until="20s",
    )
    assert {name for _, name in evicted(answer)} == {"a-0", "a-1"}


def test_p1_a_whole_gang_of_fewer_pods_rather() -> None:
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.node("m"),
        m.node("o"),
        [
            m.podgroup("g", 3, priority="low"),
            *[on(f"g-{i}", 4, w, "low", annotations={"scheduling.k8s.io/group-name": "g"}) for i, w in enumerate("nm")],
            on("g-2", 2, "o", "low", annotations={"scheduling.k8s.io/group-name": "g"}),
        ],
        on("x", 2, "o", "low"),
        vip(2),
        until="20s",
    )
    assert {name for _, name in evicted(answer)} == {"x"}


def test_p1_members_that_wait_are_no_victims_and_the_gang_starts_again_later() -> None:
    answer = simulate(
        CLASSES, m.node("n"), m.job("g", m.role("w", 2, cpu=2, run_time="100s"), priority="low"), vip(4, run_time="30s")
    )
    assert {name for _, name in evicted(answer)} == {"g-w-0", "g-w-1"}
    assert set(answer.times("g-")) == {0.0, 40.0}, "recreated by its controller, and started together"


def test_p1_surplus_preempts_no_pod() -> None:
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.pods(3, "a", priority="low"),
        m.job("e", m.role("w", 4, 2), priority="high", at="10s"),
        until="1h",
    )
    assert len(evicted(answer)) == 1
    assert len(answer.bound("e-")) == 2


def test_p1_a_gang_that_lacks_members_preempts_no_pod() -> None:
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.pod("a", 4, priority="low"),
        m.podgroup("g", 3),
        m.pods(2, "g-", 1, group="g", priority="high"),
        until="1h",
    )
    assert not evicted(answer)


# ---- replacements


def test_p1_the_replacement_of_a_lost_member_preempts() -> None:
    answer = simulate(
        CLASSES,
        m.node("n", 2),
        m.node("m", 2),
        m.job("g", m.role("w", 2, cpu=2), priority="high"),
        m.pod("low", 2, priority="low", at="1s"),
        m.node("o", 2, at="2s"),
        m.step("20s", "fail-node", "Node", "n"),
    )
    assert (20.0, "low") in evicted(answer)
    assert len([t for t in answer.times("g-") if t == 20.0]) == 1


def test_p1_lost_surplus_does_not() -> None:
    answer = simulate(
        CLASSES,
        m.node("n", 2),
        m.node("m", 2),
        m.job("g", m.role("w", 2, 1, cpu=2), priority="high"),
        m.pod("low", 2, priority="low", at="1s"),
        m.node("o", 2, at="2s"),
        m.step("20s", "fail-node", "Node", "n"),
        until="1h",
    )
    lost = [name for at, name in evicted(answer) if name == "low"]
    assert not lost


def test_p1_each_replacement_on_its_own() -> None:
    """Two were lost; room can be made for one: it is (G7)."""
    answer = simulate(
        CLASSES,
        m.node("a", 2),
        m.node("b", 2),
        m.node("c", 2),
        m.job("g", m.role("w", 3, cpu=2), priority="high"),
        m.node("d", 2, at="1s"),
        m.pod("low", 2, priority="low", at="2s"),
        m.step("20s", "fail-node", "Node", "a"),
        m.step("20s", "fail-node", "Node", "b"),
        until="60s",
    )
    assert (20.0, "low") in evicted(answer)
    assert len([t for t in answer.times("g-") if t == 20.0]) == 1


# ---- whose priority


def test_p1_a_victims_priority_is_its_gangs() -> None:
    """The pods say high, their group says low."""
    lowly = m.gang("g", 2, cpu=2, priority="high", group_priority="low")
    answer = simulate(CLASSES, m.node("n"), lowly, vip(priority="mid"), until="20s")
    assert {name for _, name in evicted(answer)} == {"g-0", "g-1"}
    proud = m.gang("g", 2, cpu=2, priority="low", group_priority="high")
    answer = simulate(CLASSES, m.node("n"), proud, vip(priority="mid"), until="20s")
    assert not evicted(answer)


def test_p1_without_a_class_of_its_own_it_is_the_highest_of_its_pods() -> None:
    mixed = [
        m.podgroup("g", 2),
        m.pod("g-0", 2, group="g", priority="least"),
        m.pod("g-1", 2, group="g", priority="mid"),
    ]
    assert not evicted(simulate(CLASSES, m.node("n"), mixed, vip(2, priority="mid"), until="20s"))
    answer = simulate(CLASSES, m.node("n"), mixed, vip(2, priority="high"), until="20s")
    assert {name for _, name in evicted(answer)} == {"g-0", "g-1"}


def test_p1_a_preemptors_priority_is_its_gangs() -> None:
    lowly = m.gang("vip", 2, cpu=2, priority="high", group_priority="low", at="10s")
    assert not evicted(simulate(CLASSES, m.node("n"), m.pod("a", 4, priority="mid"), lowly, until="20s"))
    proud = m.gang("vip", 2, cpu=2, priority="low", group_priority="high", at="10s")
    assert evicted(simulate(CLASSES, m.node("n"), m.pod("a", 4, priority="mid"), proud, until="20s"))


# ---- all dialects

WHOLE: dict[str, list[m.Obj]] = {
    "pod": [m.pod("g-0", 4, priority="PRIORITY")],
    "volcano-job": [m.job("g", m.role("w", 2, cpu=2), priority="PRIORITY")],
    "volcano-podgroup": m.gang("g", 2, cpu=2, group_priority="PRIORITY"),
    "koordinator-annotations": m.koordinator_gang("g", 2, cpu=2, priority="PRIORITY"),
    "koordinator-podgroup": [m.sigs_podgroup("g", 2), *m.labelled_pods("g", 2, cpu=2, priority="PRIORITY")],
    "koordinator-groups": [
        *m.koordinator_gang("g-a", 1, cpu=2, priority="PRIORITY", groups=["default/g-a", "default/g-b"]),
        *m.koordinator_gang("g-b", 1, cpu=2, priority="PRIORITY", groups=["default/g-a", "default/g-b"]),
    ],
    "kubernetes": [
        m.native_podgroup("g", {"gang": {"minCount": 2}}, priorityClassName="PRIORITY"),
        *m.native_pods("g", 2, cpu=2, priority="PRIORITY"),
    ],
    "scheduling-spec": [
        m.CRDJOB_DEFINITION,
        m.crdjob("c"),
        m.scheduling_spec("c", 2, priorityClassName="PRIORITY"),
        *m.owned(*m.pods(2, "g-", 2)),
    ],
    "queue-job": [m.queue_job("g", m.role("w", 2, cpu=2), minimum=2, priorityClassName="PRIORITY")],
}


def of(dialect: str, priority: str, at: str) -> list[m.Obj]:
    """A gang of 4 cpu in all."""

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(one) for key, one in value.items()}
        if isinstance(value, list):
            return [filled(one) for one in value]
        return priority if value == "PRIORITY" else value

    found = filled(WHOLE[dialect])
    for one in found:
        if one["kind"] not in ("CustomResourceDefinition", "CRDJob"):
            one["metadata"]["annotations"] = {**(one["metadata"].get("annotations") or {}), "sim.enbloc.dev/at": at}
    return list(found)


@pytest.mark.parametrize("dialect", WHOLE)
def test_p1_a_gang_of_any_dialect_preempts(dialect: str) -> None:
    answer = simulate(CLASSES, m.node("n"), m.pods(4, "a", priority="low"), of(dialect, "high", "10s"), until="20s")
    assert {at for at, _ in answer.bound("g-").values()} == {10.0}
    assert len(evicted(answer)) == 4


@pytest.mark.parametrize("dialect", [name for name in WHOLE if name != "koordinator-groups"])
def test_p1_a_gang_of_any_dialect_is_evicted_whole(dialect: str) -> None:
    answer = simulate(CLASSES, m.node("n"), of(dialect, "low", "0s"), vip(2), until="11s")
    members = set(answer.bound("g-"))
    assert {name for at, name in evicted(answer)} == members
    assert answer.at("vip") == 10.0


def test_p1_kubernetes_disruption_mode() -> None:
    """By its group it goes whole even where it has surplus; by pods, surplus goes first."""
    for mode, gone in (("PodGroup", 3), ({"all": {}}, 3), ("Pod", 1), ({"single": {}}, 1), (None, 1)):
        spec = {"disruptionMode": mode} if mode else {}
        group = m.native_podgroup("g", {"gang": {"minCount": 1}}, priorityClassName="low", **spec)
        answer = simulate(CLASSES, m.node("n", 3), group, m.native_pods("g", 3, priority="low"), vip(1), until="11s")
        assert len(evicted(answer)) == gone, mode


def test_p1_pods_of_a_basic_group_go_one_by_one() -> None:
    group = m.native_podgroup("g", {"basic": {}}, priorityClassName="low")
    answer = simulate(CLASSES, m.node("n", 3), group, m.native_pods("g", 3, priority="low"), vip(1), until="11s")
    assert len(evicted(answer)) == 1


# ---- what is in the way but for room

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


@pytest.mark.parametrize("room", [2, 4])
def test_p1_the_one_that_is_avoided_leaves(room: int) -> None:
    avoided = m.pod("a", 1, priority="low", labels={"app": "a"})
    answer = simulate(
        CLASSES, m.node("n", room), avoided, m.pod("b", 1, priority="low"), vip(1, affinity=APART), until="20s"
    )
    assert evicted(answer) == [(10.0, "a")]
    assert answer.at("vip") == 10.0


def test_p1_a_host_port_is_freed() -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    port = [{"name": "c", "image": "x", "ports": ports, "resources": {"requests": {"cpu": "1"}}}]
    running = [m.pod("a", priority="low", containers=port), m.pod("b", priority="low")]
    answer = simulate(CLASSES, m.node("n"), running, vip(containers=port), until="20s")
    assert evicted(answer) == [(10.0, "a")]


def test_p1_gangs_of_one_group_leave_together() -> None:
    answer = simulate(CLASSES, m.node("n"), of("koordinator-groups", "low", "0s"), vip(2), until="11s")
    assert {name for _, name in evicted(answer)} == {"g-a-0", "g-b-0"}
