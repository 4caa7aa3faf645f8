"""R1, G7: nodes are reserved for a gang that was satisfied and has lost a member of its minimum, as soon as the oldest
pod that its minimum waits for is old enough."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer
from support.reservations import first_reserved, released, reserving
from support.simulation import simulate

NEW = {"at": "22s", "cpu": 4}
OLD = {"delete_at": "20s", "cpu": 4}
POLICIES = ["once-satisfied", "waiting-and-running"]


def named(*pods: m.Obj, names: tuple[str, ...]) -> list[m.Obj]:
    return [pod | {"metadata": pod["metadata"] | {"name": name}} for pod, name in zip(pods, names, strict=True)]


NAMES = ("g-0", "g-1", "g-2")
DIALECTS: dict[str, list[m.Obj]] = {
    "volcano-podgroup": [
        m.podgroup("g", 2),
        *named(m.pod("", 4, group="g"), m.pod("", **OLD, group="g"), m.pod("", **NEW, group="g"), names=NAMES),
    ],
    "koordinator-annotations": [
        *m.koordinator_gang("g", 1, 2, 4),
        *m.koordinator_gang("g", 1, 2, first=1, **OLD),
        *m.koordinator_gang("g", 1, 2, first=2, **NEW),
    ],
    "kubernetes": [
        m.native_podgroup("g", {"gang": {"minCount": 2}}),
        *named(
            *m.native_pods("g", 1, cpu=4), *m.native_pods("g", 1, **OLD), *m.native_pods("g", 1, **NEW), names=NAMES
        ),
    ],
    "scheduling-spec": [
        m.CRDJOB_DEFINITION,
        m.crdjob("c"),
        m.scheduling_spec("c", 2),
        *m.owned(m.pod("g-0", 4), m.pod("g-1", **OLD), m.pod("g-2", **NEW)),
    ],
} | {
    f"koordinator-{policy}": [
        m.sigs_podgroup("g", 2, policy=policy),
        *named(
            *m.labelled_pods("g", 1, cpu=4), *m.labelled_pods("g", 1, **OLD), *m.labelled_pods("g", 1, **NEW),
            names=NAMES,
        ),
    ]
    for policy in POLICIES
}  # fmt: skip


def lost(*gang: m.Obj | list[m.Obj], at: str = "20s", **more: str) -> Answer:
    """Two nodes with a member each. The one on `n1` goes, and pods of 1 cpu keep that node busy."""
    small = [m.pod(f"s{second}", at=f"{second}s", run_time="30s") for second in range(20, 100, 5)]
    first = m.pod("s", 1, at=at, run_time="30s", nodeName="n1")
    return simulate(m.node("n0"), m.node("n1"), *gang, first, small, config=reserving(percent=50), **more)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_r1_a_lost_member_of_the_minimum_is_reserved_for(dialect: str) -> None:
    answer = lost(DIALECTS[dialect])
    assert answer.bound("g-1") == {"g-1": (0.0, "n1")}
    assert first_reserved(answer, "g-") == {"g-2": (32.0, "n1")}, "ten seconds after that pod was created"
    assert answer.at("g-2") == 60.0, "when the last pod that started before 32 s has ended"


def test_r1_a_job_whose_pod_was_deleted_is_reserved_for() -> None:
    answer = lost(m.job("g", m.role("w", 2, cpu=4)), m.step("20s", "delete", "Pod", "g-w-1"))
    assert first_reserved(answer, "g-") == {"g-w-1": (30.0, "n1")}
    assert answer.times("g-w-1") == [0.0, 60.0]


def test_r1_it_survives_a_restart() -> None:
    answer = lost(DIALECTS["volcano-podgroup"], m.restart("40s"))
    assert answer.at("g-2") == 60.0
    assert released(answer) == []


def test_r1_a_gang_of_a_group_by_itself() -> None:
    """The other gang of its group is satisfied, and lacks nothing."""
    other = m.koordinator_gang("h", 1, 1, 0, groups=["default/g"])
    gang = [
        *m.koordinator_gang("g", 1, 2, 4, groups=["default/h"]),
        *m.koordinator_gang("g", 1, 2, first=1, groups=["default/h"], **OLD),
        *m.koordinator_gang("g", 1, 2, first=2, groups=["default/h"], **NEW),
    ]
    answer = lost(gang, other)
    assert first_reserved(answer, "g-") == {"g-2": (32.0, "n1")}
    assert answer.at("g-2") == 60.0


def test_r1_only_waiting_pods_by_their_own_age() -> None:
    """K9: the next two pods of the gang starve ten seconds after the first of them came, not after the gang did."""
    gang = m.sigs_podgroup("g", 2, policy="only-waiting")
    late = m.labelled_pods("g", 4, cpu=2)[2:]
    for at, pod in zip(("20s", "24s"), late, strict=True):
        pod["metadata"]["annotations"] = {"sim.enbloc.dev/at": at}
    answer = simulate(
        m.node("n"), gang, m.labelled_pods("g", 2, run_time="60s"), m.pod("s", 2, run_time="90s"), late,
        config=reserving(),
    )  # fmt: skip
    assert first_reserved(answer, "g-") == {"g-2": (30.0, "n"), "g-3": (30.0, "n")}


def test_r1_a_lost_member_of_an_earlier_wave() -> None:
    """D3: the present wave lacks a pod that a quota refuses; what the first wave lost starves by its own age."""
    made = m.job("g", m.role("a", 2, cpu=2), m.role("b", 2, cpu="100m", depends_on={"name": ["a"]}))
    quota = m.resource_quota(3)
    answer = simulate(
        m.node("n"), quota, made, m.step("20s", "delete", "Pod", "g-a-1"),
        m.pod("s", 1, nodeName="n", run_time="60s", at="20s", namespace="other"), config=reserving(), until="50s",
    )  # fmt: skip
    assert first_reserved(answer, "g-a") == {"g-a-1": (30.0, "n")}


def test_r7_each_lost_member_uses_its_own_slot() -> None:
    """Two members are lost. One finds its room first; the node of the other stays closed."""
    gang = [m.podgroup("g", 3), *(m.pod(f"g-{n}", 4, group="g", delete_at="20s") for n in (1, 2))]
    fillers = [
        m.pod("x", 1, nodeName="n1", run_time="30s", at="20s"), m.pod("y", 1, nodeName="n2", run_time="60s", at="20s")
    ]  # fmt: skip
    answer = simulate(
        [m.node(f"n{n}") for n in range(3)], gang, m.pod("g-0", 4, group="g"),
        (m.pod(f"g-{n}", 4, group="g", at="20s") for n in (3, 4)), fillers,
        [m.pod(f"s{n}", at=f"{n}s", run_time="10s") for n in range(45, 80, 5)], config=reserving(),
    )  # fmt: skip
    assert first_reserved(answer, "g-") == {"g-3": (30.0, "n1"), "g-4": (30.0, "n2")}
    assert answer.bound("g-3") == {"g-3": (50.0, "n1")}
    assert answer.bound("g-4") == {"g-4": (80.0, "n2")}
    assert released(answer) == []


@pytest.mark.parametrize("waves", [False, True], ids=["satisfied", "wave"])
def test_r7_lost_members_use_their_own_nodes(waves: bool) -> None:
    """The nearest node is reserved for the first of two. When both have room that is not the first node any more."""
    depends = [m.role("b", 2, cpu="100m", depends_on={"name": ["a"]})] if waves else []
    gone = [m.step("20s", "delete", "Pod", f"g-a-{index}") for index in (1, 2)]
    busy = [m.pod(f"s{n}", 3 - n, nodeName=f"n{n}", run_time="30s", at="20s", namespace="other") for n in (1, 2)]
    answer = simulate(
        [m.node(f"n{n}") for n in range(3)], m.resource_quota(4) if waves else [],
        m.job("g", m.role("a", 3, cpu=3.9), *depends), gone, busy, config=reserving(), until="60s",
    )  # fmt: skip
    assert first_reserved(answer, "g-a") == {"g-a-1": (30.0, "n2"), "g-a-2": (30.0, "n1")}
    assert answer.bound("g-a-1")["g-a-1"] == (50.0, "n2")
    assert answer.bound("g-a-2")["g-a-2"] == (50.0, "n1")


def test_r1_surplus_that_was_lost_is_not_reserved_for() -> None:
    gang = [m.podgroup("g", 1), *DIALECTS["volcano-podgroup"][1:]]
    answer = lost(gang, until="200s")
    assert first_reserved(answer, "g-") == {}
