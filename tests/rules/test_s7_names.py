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


def shown(answer: Answer, namespace: str) -> str:
    """All that a namespace is shown: status and annotations of ours on its objects, Events about them, evictions of its
    pods."""
    objects: list[Obj] = [one for one in answer.objects if one["metadata"].get("namespace") == namespace]
    said = [(one.get("status"), one.get("message"), _ours(one)) for one in objects]
    evicted = [line for line in answer.lines("evicted") if line["namespace"] == namespace]
    return json.dumps([said, evicted])


def _ours(obj: Obj) -> dict[str, str]:
    annotations = obj["metadata"].get("annotations") or {}
    return {key: text for key, text in annotations.items() if key.startswith("enbloc.dev/")}


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


def named_gang() -> list[Obj]:
    """A gang of `b` names one of `secret` (attack T8): whether that exists, and why it waits, was said in `b`."""
    reader = m.koordinator_gang("victim", 1, groups=["b/victim", "secret/project"], namespace="b")
    return [m.node("n", 4), *reader, *m.koordinator_gang("project", 2, 5, namespace="secret")]


def group_of_two() -> list[Obj]:
    """Both name each other; one of them is not complete."""
    names = ["b/victim", "secret/project"]
    reader = m.koordinator_gang("victim", 1, groups=names, namespace="b")
    return [m.node("n", 4), *reader, *m.koordinator_gang("project", 2, 5, groups=names, namespace="secret")]


def ended_reservation() -> list[Obj]:
    """Nodes that are reserved for a gang are used by one of higher priority (R5)."""
    runs = m.pod("runs", 4, run_time="20s", namespace="b")
    low = m.gang("victim", 2, cpu=4, namespace="b", priority="low", at="1s")
    high = m.gang("project", 2, cpu=4, namespace="secret", priority="high", at="10s")
    return [m.node("n", 4), m.node("m", 4), *CLASSES, runs, *low, *high]


RESERVE = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 1, "reservedNodePercent": 100}}
SCENES = [preemption, reclaim, fifo, deadlock, released_claim, named_gang, group_of_two, ended_reservation]


def configured(scene: object) -> dict[str, object]:
    return {"actions": ["enqueue", "allocate", RESERVE]} if scene is ended_reservation else {}


@pytest.mark.parametrize("scene", SCENES)
def test_s7_isolated_namespaces_are_not_shown_to_each_other(scene: object) -> None:
    answer = simulate(scene(), config=configured(scene) | ISOLATED, until="30s")  # type: ignore[operator]
    assert "secret/" not in shown(answer, "b")
    assert "b/victim" not in shown(answer, "secret")


def test_s7_attack_t8_a_named_gang_is_read_the_same_whether_it_exists_or_not() -> None:
    scene = named_gang()
    without = [one for one in scene if one["metadata"].get("namespace") != "secret"]
    found = [simulate(one, config=ISOLATED, until="30s").why("b/victim") for one in (scene, without)]
    assert found[0] == found[1]
    assert "another namespace" in found[0]


@pytest.mark.parametrize("scene", [one for one in SCENES if one is not deadlock])
def test_s7_by_default_they_are(scene: object) -> None:
    """So that the test above tests something."""
    answer = simulate(scene(), config=configured(scene), until="30s")  # type: ignore[operator]
    assert "secret/" in shown(answer, "b")


def test_s7_a_gang_of_the_own_namespace_is_named() -> None:
    victim = m.job("victim", m.role("w", 4, priority="low"), namespace="b")
    preemptor = m.job("project", m.role("w", 4, priority="high"), namespace="b", at="5s")
    answer = simulate(m.node("n", 4), CLASSES, victim, preemptor, config=ISOLATED, until="30s")
    assert "b/project" in shown(answer, "b")
