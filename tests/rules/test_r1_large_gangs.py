"""R1: a starving gang is served whatever its size: what is reserved for it is recorded, and survives a restart."""

from __future__ import annotations

import random

import pytest

from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind, read
from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

RESERVING = {
    "actions": [
        *({"name": name} for name in ("enqueue", "allocate")),
        {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 10, "reservedNodePercent": 100}},
    ]
}
PODS = 700


def reserved(answer: Answer) -> dict[str, str]:
    return {line["name"]: line["node"] for line in answer.lines("reserved")}


def test_r1_a_gang_whose_names_are_too_long_for_one_object_keeps_its_nodes_over_a_restart() -> None:
    draw = random.Random(1)
    group, *pods = m.gang("g", PODS, cpu=1, at="1s")
    for pod in pods:
        pod["metadata"]["name"] = "g" + "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=240))
    running = [m.pod(f"full-{index}", 100, nodeName=f"n{index}", run_time="60s") for index in range(7)]
    story = [[m.node(f"n{index}", 100) for index in range(7)], running, group, pods]
    plain = simulate(*story, config=RESERVING, until="50s")
    assert len(reserved(plain)) == PODS
    text = plain.obj("PodGroup", "g")["metadata"]["annotations"][ClaimKind.RESERVE.annotation]
    record = read(text)
    assert record is not None
    assert record.is_brief
    restarted = simulate(*story, m.restart("30s"), config=RESERVING, until="50s")
    assert reserved(restarted) == reserved(plain)
    assert not restarted.lines("released")
    assert restarted.obj("PodGroup", "g")["metadata"]["annotations"][ClaimKind.RESERVE.annotation] == text


# ---- what cannot be recorded


@pytest.fixture
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records may have one slot."""
    monkeypatch.setattr(claim_records, "SLOTS", 1)


def warnings(answer: Answer) -> list[str]:
    return [one["message"] for one in answer.objects if one["kind"] == "Event" and one["type"] == "Warning"]


@pytest.mark.usefixtures("one_slot")
def test_r1_a_reservation_that_cannot_be_recorded_is_not_made_and_the_gang_says_so_once() -> None:
    full = [m.pod(f"full-{index}", 4, nodeName=f"n{index}", run_time="60s") for index in range(2)]
    nodes = [m.node(f"n{index}") for index in range(2)]
    answer = simulate(nodes, full, m.gang("g", 2, cpu=3, at="1s"), m.node("small", 1, at="30s"), config=RESERVING)
    assert not answer.lines("reserved")
    said = [text for text in warnings(answer) if text.startswith("no room is set aside for its 2 pods (reserve)")]
    assert len(said) == 1
    assert answer.at("g-0") == 60.0, "it starts when there is room"


@pytest.mark.usefixtures("one_slot")
def test_r1_a_group_has_nodes_reserved_for_all_of_its_gangs_or_for_none() -> None:
    """Of `a` the record has one slot, of `b` two."""
    full = [m.pod(f"full-{index}", 4, nodeName=f"n{index}", run_time="60s") for index in range(3)]
    names = ["default/a", "default/b"]
    pods = [*m.koordinator_gang("a", 1, cpu=3, groups=names), *m.koordinator_gang("b", 2, cpu=3, groups=names)]
    answer = simulate([m.node(f"n{index}") for index in range(3)], full, pods, config=RESERVING, until="50s")
    assert "no room is set aside for its 2 pods (reserve)" in " ".join(warnings(answer))
    assert reserved(answer).keys() == {line["name"] for line in answer.lines("released")}


@pytest.mark.usefixtures("one_slot")
def test_k6_pods_that_cannot_be_recorded_are_not_held() -> None:
    """Two of three pods fit: room for both cannot be recorded, and another gang uses it."""
    gang = m.koordinator_gang("g", 3, cpu=2, mode=m.NON_STRICT)
    answer = simulate(m.node("n"), gang, m.pod("small", 3, at="5s"), until="20s")
    assert not answer.lines("held")
    assert "no room is set aside for its 2 pods (hold)" in " ".join(warnings(answer))
    assert answer.at("small") == 5.0


@pytest.mark.usefixtures("one_slot")
def test_p3_no_room_is_kept_for_one_gang_of_a_group_whose_other_cannot_be_recorded() -> None:
    names = ["default/a", "default/b"]
    high = [
        *m.koordinator_gang("a", 1, cpu=4, groups=names, priority="high"),
        *m.koordinator_gang("b", 2, cpu=4, groups=names, priority="high"),
    ]
    low = [m.pod(f"low-{index}", 4, priority="low", nodeName=f"n{index}") for index in range(3)]
    config = {"actions": [{"name": "allocate"}, {"name": "preempt"}]}
    nodes = [m.node(f"n{index}") for index in range(3)]
    small = m.pod("small", 1, priority="low", at="5s")
    answer = simulate(
        m.priority_class("high", 10), m.priority_class("low", 1), nodes, low, high,
        m.step("3s", "delete", "Pod", "low-0"), small, config=config, until="20s",
    )  # fmt: skip
    assert not answer.lines("evicted")
    assert answer.at("small") == 5.0


@pytest.mark.usefixtures("one_slot")
def test_d5_a_job_whose_later_waves_cannot_be_recorded_waits_and_says_so() -> None:
    work = m.role("work", 2, run_time="30s") | {"dependsOn": {"name": ["master"]}}
    job = m.job("j", m.role("master", 1, run_time="60s"), work)
    job["metadata"]["annotations"] = {"enbloc.dev/depends-on-gang": "true"}
    answer = simulate(m.node("n"), m.node("m"), job, until="60s")
    assert not answer.bound()
    assert answer.why("default/j") == "the room of its 2 later pods is too large to be recorded"


def test_r1_an_object_full_of_other_annotations_says_that_a_claim_cannot_be_recorded() -> None:
    """The API server would refuse the record: 256 KiB are for all annotations of an object."""
    full = [m.pod(f"full-{index}", 4, nodeName=f"n{index}", run_time="60s") for index in range(2)]
    group, *pods = m.gang("g", 2, cpu=3, at="1s")
    group["metadata"]["annotations"] = {"notes": "x" * (256 * 1024 - 100)}
    answer = simulate([m.node(f"n{index}") for index in range(2)], full, group, pods, config=RESERVING)
    assert not answer.lines("reserved")
    said = [text for text in warnings(answer) if text.startswith("no room is set aside for its 2 pods (reserve)")]
    assert len(said) == 1
    assert answer.at("g-0") == 60.0, "it starts when there is room"
