"""G10: a gang that was preempted or reclaimed says so as long as it waits again: when, and for which gang; after a
restart of the scheduler too (I5), and without names of other namespaces where these are isolated (S7)."""

from __future__ import annotations

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.answers import Answer, condition, waits_because
from support.simulation import simulate

PREEMPTED = "; it was preempted at 2026-01-01T00:00:05Z: makes room for b/urgent"


def scene(until: str = "60s", **fields: object) -> list[Obj]:
    victim = m.job("victim", m.role("w", 4, priority="low"), namespace="a")
    urgent = m.job("urgent", m.role("w", 4, priority="high", run_time=until), namespace="b", at="5s")
    return [m.node("n", 4), *m.HIGH_LOW, victim, urgent]


def said(answer: Answer) -> list[str]:
    """What `sim` says of the victim, and what stands on its PodGroup and on a pod of it."""
    group = next(one for one in answer.all("PodGroup") if one["metadata"]["name"].startswith("victim"))
    written = condition(group, "Unschedulable") or {}
    return [answer.why("a/victim"), written["message"], waits_because(answer.obj("Pod", "victim-w-0", "a"))]


@pytest.mark.parametrize("more", [[], [m.restart("10s")], [m.restart("5s"), m.restart("6s")]])
def test_g10_evicted_gang_says_when_and_for_whom(more: list[Obj]) -> None:
    answer = simulate(scene(), more, until="20s")
    assert {text[text.index(";") :] for text in said(answer)} == {PREEMPTED}


def test_g10_evicted_gang_says_so_no_longer_once_it_started_again() -> None:
    later = m.job("later", m.role("w", 4), namespace="a", at="40s")
    answer = simulate(scene(until="10s"), later, until="60s")
    assert answer.bound("victim", by=60)["victim-w-0"][0] == 15
    group = next(one for one in answer.all("PodGroup") if one["metadata"]["name"].startswith("victim"))
    assert "preempted" not in str((condition(group, "Unschedulable") or {}).get("message"))


def test_g10_evicted_by_reclaim() -> None:
    victims = [m.one_pod_job(f"v{n}", namespace="a", queue="qa") for n in range(4)]
    reclaimer = m.job("fair", m.role("w", 2), namespace="b", queue="qb", at="5s")
    answer = simulate(m.node("n", 4), m.queue("qa"), m.queue("qb"), victims, reclaimer, until="20s")
    waits = [answer.why(gang) for gang in answer.waiting()]
    assert len(waits) == 2
    assert all(text.endswith("; it was reclaimed at 2026-01-01T00:00:05Z: makes room for b/fair") for text in waits)


def test_g10_evicted_twice_says_the_last_time() -> None:
    again = m.job("again", m.role("w", 4, priority="high"), namespace="b", at="30s")
    answer = simulate(scene(until="10s"), again, until="40s")
    assert answer.why("a/victim").endswith("; it was preempted at 2026-01-01T00:00:30Z: makes room for b/again")


def test_s7_g10_evicted_names_no_other_namespace() -> None:
    answer = simulate(scene(), m.restart("10s"), config={"tenancy": "isolated"}, until="20s")
    for text in said(answer):
        assert "it was preempted at 2026-01-01T00:00:05Z: makes room for " in text
        assert "urgent" not in text
        assert "b/" not in text
