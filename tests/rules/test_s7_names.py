"""S7: with `tenancy: isolated` no reason, event or message names an object of another namespace; by default they do."""

from __future__ import annotations

import json

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

ISOLATED = {"tenancy": "isolated"}
CLASSES = m.HIGH_LOW


def told(answer: Answer, namespace: str) -> str:
    """All that a namespace is told: status and annotations of its objects, Events about them, evictions of its pods."""
    objects: list[Obj] = [one for one in answer.objects if one["metadata"].get("namespace") == namespace]
    said = [(one.get("status"), one.get("message"), one["metadata"].get("annotations")) for one in objects]
    evicted = [line for line in answer.lines("evicted") if line["namespace"] == namespace]
    return json.dumps([said, evicted])


def preemption() -> list[Obj]:
    """A job of namespace `secret` evicts one of namespace `b`."""
    victim = m.job("victim", m.role("w", 4, priority="low"), namespace="b")
    preemptor = m.job("project", m.role("w", 4, priority="high"), namespace="secret", at="5s")
    return [m.node("n", 4), *CLASSES, victim, preemptor]


def reclaim() -> list[Obj]:
    victims = [m.one_pod_job(f"victim{n}", namespace="b", queue="qb") for n in range(4)]
    reclaimer = m.job("project", m.role("w", 2), namespace="secret", queue="qs", at="5s")
    return [m.node("n", 4), m.queue("qb"), m.queue("qs"), *victims, reclaimer]


def fifo() -> list[Obj]:
    first = m.job("project", m.role("w", 3), namespace="secret", queue="q")
    second = m.one_pod_job("victim", namespace="b", queue="q", at="1s")
    runs = m.one_pod_job("runs", cpu=2, namespace="secret", queue="q")
    return [m.node("n", 4), m.queue("q", dequeueStrategy="fifo"), runs, first, second]


def deadlock() -> list[Obj]:
    """Two NonStrict gangs hold what the other needs (K12)."""
    gangs = []
    for name, namespace in (("project", "secret"), ("victim", "b")):
        pods = m.koordinator_gang(name, 3, mode=m.NON_STRICT, namespace=namespace)
        for index, pod in enumerate(pods):
            pod["metadata"]["annotations"]["sim.enbloc.dev/at"] = f"{index}s"
        gangs += pods
    return [m.node("n", 4), *gangs]


def released_claim() -> list[Obj]:
    """A hold of lower priority is released for a gang of higher priority (R5)."""
    held = m.koordinator_gang("victim", 4, mode=m.NON_STRICT, namespace="b", priority="low")
    higher = m.gang("project", 3, namespace="secret", priority="high", at="5s")
    return [m.node("n", 3), *CLASSES, *held, *higher]


SCENES = [preemption, reclaim, fifo, deadlock, released_claim]


@pytest.mark.parametrize("scene", SCENES)
def test_s7_isolated_namespaces_are_not_told_of_each_other(scene: object) -> None:
    answer = simulate(scene(), config=ISOLATED, until="30s")  # type: ignore[operator]
    assert "secret/" not in told(answer, "b")
    assert "b/victim" not in told(answer, "secret")


@pytest.mark.parametrize("scene", [preemption, reclaim, fifo, released_claim])
def test_s7_by_default_they_are(scene: object) -> None:
    """So that the test above tests something."""
    answer = simulate(scene(), until="30s")  # type: ignore[operator]
    assert "secret/" in told(answer, "b")


def test_s7_a_gang_of_the_own_namespace_is_named() -> None:
    victim = m.job("victim", m.role("w", 4, priority="low"), namespace="b")
    preemptor = m.job("project", m.role("w", 4, priority="high"), namespace="b", at="5s")
    answer = simulate(m.node("n", 4), CLASSES, victim, preemptor, config=ISOLATED, until="30s")
    assert "b/project" in told(answer, "b")
