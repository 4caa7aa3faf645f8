"""K6, K8, K3 and G10: what the audit of the design documents found about edits of gangs that hold pods."""

from __future__ import annotations

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

GROUP = "PodGroup.scheduling.sigs.k8s.io"
MODE = "gang.scheduling.koordinator.sh/mode"


def three_of_two(*more: m.Obj, wait: str = "10m") -> Answer:
    """A NonStrict gang of three on a node for two: two pods are held."""
    group = m.sigs_podgroup("g", 3, mode="NonStrict", wait=wait)
    return simulate(m.node("n", 2), group, m.labelled_pods("g", 3), list(more), until="200s")


def changes(answer: Answer, *what: str) -> list[tuple[float, str, str]]:
    return [(line["t"], line["what"], line["name"]) for line in answer.data["timeline"] if line["what"] in what]


def test_k6_a_gang_that_becomes_nonstrict_again_holds_at_once() -> None:
    """What is unchanged in a gang is not what decides: a Strict attempt on the same facts failed (G9)."""
    edits = [
        m.patch("20s", GROUP, "g", metadata={"annotations": {MODE: "Strict"}}),
        m.patch("40s", GROUP, "g", metadata={"annotations": {MODE: "NonStrict"}}),
    ]
    answer = three_of_two(*edits)
    assert [at for at, _, _ in changes(answer, "held")] == [0.0, 0.0, 40.0, 40.0]
    assert [at for at, _, _ in changes(answer, "released")] == [20.0, 20.0]


def test_k3_a_minimum_lowered_to_0_binds_what_is_held() -> None:
    for minimum in (0, 1, 2):
        answer = three_of_two(m.patch("20s", GROUP, "g", spec={"minMember": minimum}), wait="60s")
        assert answer.times("g-") == [20.0, 20.0], minimum
        assert not answer.lines("timeout")


def test_g10_a_gang_of_minimum_0_that_timed_out_is_pending() -> None:
    gang = m.koordinator_gang("a", 1, 0, wait="20s", groups=["default/a", "default/b"])
    answer = simulate(m.node("n"), gang, until="100s")
    assert changes(answer, "timeout") == [(20.0, "timeout", "a-0")]
    assert answer.waits("default/a")


def test_k3_blanks_around_a_waiting_time_do_not_count() -> None:
    answer = simulate(m.node("n", 1), m.koordinator_gang("a", 2, mode="NonStrict", wait=" 30s "), until="100s")
    assert changes(answer, "timeout") == [(30.0, "timeout", "a-0"), (30.0, "timeout", "a-1")]
    assert not any("waiting-time" in line["message"] for line in answer.lines("warning"))


def test_g10_the_timeline_shows_no_claims_of_pods_that_are_gone() -> None:
    """An aborted job: its reservation is released once."""
    reserve = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 10, "reservedNodePercent": 100}}
    config = {"actions": [{"name": "enqueue"}, {"name": "allocate"}, reserve]}
    job = m.job("j", m.role("w", 2, cpu=2))
    answer = simulate(
        m.node("n"), m.pod("full", 4, nodeName="n"), job, m.command("c", "AbortJob", "20s"), config=config, until="60s"
    )
    pods = ("j-w-0", "j-w-1")
    assert changes(answer, "reserved", "released") == [
        *((10.0, "reserved", name) for name in pods),
        *((20.0, "released", name) for name in pods),
    ]
