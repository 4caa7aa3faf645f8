"""R7: a reservation ends when its gang is bound, or when it can no longer help."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer, condition, waits_because
from support.reservations import CLASSES, first_reserved, full, released, reserved, reserving
from support.simulation import simulate


def claims(answer: Answer) -> list[str]:
    return [
        one["metadata"]["name"]
        for one in answer.objects
        if "enbloc.dev/claim-reserve" in (one["metadata"].get("annotations") or {})
    ]


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
    assert first_reserved(answer, "g-") == {"g-w-0": (10.0, "n"), "g-w-1": (10.0, "n")}
    assert reserved(answer)["g-w-0"] == (30.0, "n"), "the recreated pod takes its slot again"
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
def test_r7_a_node_that_is_no_longer_good_is_given_up_and_another_reserved(gone: m.Obj) -> None:
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


@pytest.mark.parametrize("restarts", [[], [m.restart("30s")]], ids=["running", "restarted"])
def test_r7_i5_a_reserved_pod_that_is_held_elsewhere_keeps_its_slot(restarts: list[m.Obj]) -> None:
    """K6: it is held on the small node meanwhile. If a scheduler that starts forgot its slot on the big one, z would be
    reserved there, too."""
    reserve = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 5, "reservedNodePercent": 50}}
    answer = simulate(
        [m.node("big", 2), m.node("small", 1)],
        [m.pod("x", 1, nodeName="small", run_time="20s"), m.pod("y", 2, nodeName="big")],
        m.koordinator_gang("g", 2, mode="NonStrict", wait="1h"),
        m.pod("z", 1, at="21s"),
        restarts,
        config={"actions": [{"name": "allocate"}, reserve]},
        until="60s",
    )
    assert {line["name"]: line["node"] for line in answer.lines("reserved")} == {"g-0": "big", "g-1": "big"}
    assert '{"g-0":{"small":1}}' in answer.obj("Pod", "g-0")["metadata"]["annotations"]["enbloc.dev/claim-hold"]
    assert not answer.lines("released")


_TWO = [m.role("w", 2, cpu=4)]
_ONE = [m.role("w", 1, cpu=4)]


@pytest.mark.parametrize("restarts", [[], [m.restart("21s")]], ids=["as-it-is", "restarted"])
@pytest.mark.parametrize(
    ("gang", "smaller"),
    [
        (m.job("g", *_TWO), [m.patch("20s", "Job", "g", spec={"tasks": _ONE})]),
        (
            m.queue_job("g", *_TWO, minimum=2),
            [m.patch("20s", "QueueJob", "g", spec={"schedSpec": {"minAvailable": 1}, "taskSpecs": _ONE})],
        ),
        (
            m.gang("g", 2, cpu=4),
            [m.patch("20s", "PodGroup", "g", spec={"minMember": 1}), m.step("20s", "delete", "Pod", "g-1")],
        ),
    ],
    ids=["Job", "QueueJob", "PodGroup"],
)
@pytest.mark.parametrize("at", ["20s", "23s", "30s"])
def test_r7_the_node_of_a_pod_that_is_not_needed_any_more_is_open_at_once(
    gang: Any, smaller: list[m.Obj], at: str, restarts: list[m.Obj]
) -> None:
    nodes = [m.node("n"), m.node("m"), full(1, "60s"), full(1, "60s", on="m", name="b")]
    answer = simulate(*nodes, gang, smaller, m.pod("s", 2, at=at), restarts, config=reserving(), until="100s")
    assert len(reserved(answer, "g")) == 2
    assert answer.at("s") == float(at[:-1])
    assert answer.times("g-") == [60.0]


@pytest.mark.parametrize("restarts", [[], [m.restart("21s")]], ids=["as-it-is", "restarted"])
@pytest.mark.parametrize("at", ["20s", "30s"])
@pytest.mark.parametrize(
    ("gang", "smaller"),
    [
        (m.gang("g", 2, cpu=4), m.patch("20s", "PodGroup", "g", spec={"minMember": 1})),
        (
            m.job("g", m.role("w", 2, cpu=4)),
            m.patch("20s", "Job", "g", spec={"minAvailable": 1, "tasks": [m.role("w", 2, 1, cpu=4)]}),
        ),
    ],
    ids=["PodGroup", "Job"],
)
def test_r7_a_lowered_minimum_opens_the_node_of_a_pod_that_is_surplus_now(
    gang: Any, smaller: m.Obj, at: str, restarts: list[m.Obj]
) -> None:
    """Both pods exist and wait; one of them is needed, the first in order (O2)."""
    nodes = [m.node("n"), m.node("m"), full(1, "60s"), full(1, "60s", on="m", name="b")]
    answer = simulate(*nodes, gang, smaller, m.pod("s", 2, at=at), restarts, config=reserving(), until="59s")
    assert len(reserved(answer, "g")) == 2
    assert answer.at("s") == float(at[:-1])
    assert [(line["t"], line["name"][-1]) for line in answer.lines("released")] == [(20.0, "1")]


def sharing(*others: m.Obj) -> Answer:
    """Of a job with waves the first keeps 4 of 8 cpus. 3 are reserved for the second, 3 for a pod that comes later."""
    waves = m.job("g", m.role("a", 4, cpu=1), m.role("b", 3, cpu=1, depends_on={"name": ["a"]}))
    return simulate(
        m.node("n", 8),
        full(2, "60s"),
        waves,
        m.pod("p", 3, at="5s"),
        *others,
        config=reserving(percent=100),
        until="80s",
    )


def test_r7_nodes_that_are_reserved_for_another_gang_too_end_no_reservation() -> None:
    """R4: the reserved sum is 6 of 8 cpus. That the members of the job stay there matters to the job alone."""
    answer = sharing()
    assert reserved(answer) == {**{f"g-b-{index}": (10.0, "n") for index in range(3)}, "p": (15.0, "n")}
    assert answer.times("g-b") == [60.0] * 3


def test_r7_a_node_that_became_too_small_for_what_stays_on_it_is_open() -> None:
    """Of 6 cpus the job has 4, so that 3 more will never be free for it."""
    smaller = m.step("20s", "patch", "Node", "n", patch={"status": {"allocatable": {"cpu": "6"}}})
    answer = sharing(smaller)
    assert {at for at, *_ in released(answer, "g-b")} == {20.0}
    assert not released(answer, "p")


def one_of_a_group(*at_40s: m.Obj) -> Answer:
    """Gangs `x` and `y` start together. All pods of `x` go, and nodes are reserved for one that comes for them."""
    gang = [
        *m.koordinator_gang("x", 1, 1, 4, groups=["default/y"], delete_at="20s"),
        *m.koordinator_gang("x", 1, 1, 4, groups=["default/y"], first=1, at="21s"),
        *m.koordinator_gang("y", 2, 2, "100m", groups=["default/x"]),
    ]
    small = m.pod("s", 2, at="20s", run_time="80s", nodeName="n")
    return simulate(m.node("n", 5), gang, small, *at_40s, config=reserving(), until="90s")


@pytest.mark.parametrize("restarts", [[], [m.restart("40s")]])
def test_r7_of_a_group_a_satisfied_gang_that_lost_a_member_ends_no_reservation(restarts: list[m.Obj]) -> None:
    answer = one_of_a_group(m.step("40s", "delete", "Pod", "y-1"), *restarts)
    assert reserved(answer) == {"x-1": (31.0, "n")}
    assert not released(answer)


@pytest.mark.parametrize("restarts", [[], [m.restart("40s")]])
def test_r7_of_a_group_a_satisfied_gang_that_lost_all_its_pods_ends_the_reservation(restarts: list[m.Obj]) -> None:
    gone = [m.step("40s", "delete", "Pod", f"y-{index}") for index in range(2)]
    answer = one_of_a_group(*gone, *restarts)
    assert released(answer) == [(40.0, "x-1")]


@pytest.mark.parametrize("restarts", [[], [m.restart("40s")]])
def test_r7_when_the_reserved_pod_of_one_gang_is_gone_nodes_of_its_group_are_open(restarts: list[m.Obj]) -> None:
    """Another pod waits for `x`. Before nodes are reserved anew, surplus of higher priority may use them."""
    gang = [
        *(m.sigs_podgroup(name, 1, groups=["default/x", "default/y"]) for name in ("x", "y")),
        *m.labelled_pods("x", 2, cpu="100m"),
        *m.labelled_pods("y", 1, cpu=2),
    ]
    above = m.koordinator_gang("s", 2, 1, "1500m", priority="high", at="12s")
    gone = m.step("40s", "delete", "Pod", "x-0")
    answer = simulate(
        CLASSES, m.node("n"), full(2, "12s"), full(2, "40s", name="b"), gang, above, gone, *restarts,
        config=reserving(), until="60s",
    )  # fmt: skip
    assert first_reserved(answer) == {"x-0": (10.0, "n"), "y-0": (10.0, "n"), "x-1": (40.0, "n")}
    assert answer.at("s-1") == 40.0
    assert answer.times("y-") == []
