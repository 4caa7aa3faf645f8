"""S2: our records are ours. While a scheduler runs its memory counts: a record that a tenant writes claims nothing."""

from __future__ import annotations

import json

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.answers import Answer
from support.simulation import NO_EVICTIONS, simulate

NODES = [m.node(f"n{index}", 8) for index in range(4)]
FORGED = {"version": 1, "until": 2**62, "slots": {f"evil-{index}": {f"n{index}": 1} for index in range(4)}}
NO_POD = {"labelSelector": {"matchLabels": {"no": "pod"}}, "topologyKey": "kubernetes.io/hostname"}


def evil(annotations: dict[str, str] | None = None) -> list[Obj]:
    """A gang whose affinity matches no pod: its claims would never be used."""
    group, *pods = m.gang("evil", 4, cpu=8, namespace="a")
    group["metadata"]["annotations"] = annotations or {}
    for pod in pods:
        pod["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NO_POD]}}
    return [group, *pods]


def forged(kind: str) -> dict[str, str]:
    return {f"enbloc.dev/claim-{kind}": json.dumps(FORGED | {"kind": kind})}


def record_on(answer: Answer, kind: str) -> str | None:
    group = answer.obj("PodGroup", "evil", "a")
    found: str | None = (group["metadata"].get("annotations") or {}).get(f"enbloc.dev/claim-{kind}")
    return found


def victim(at: str) -> list[Obj]:
    return m.gang("b", 4, cpu=8, namespace="b", at=at)


@pytest.mark.parametrize("kind", ["reserve", "preempt"])
def test_s2_attack_t2_a_record_that_is_patched_in_claims_nothing(kind: str) -> None:
    """Attack A2c: one slot a node closed all nodes to gangs of equal priority. The record is removed."""
    late = m.patch("5s", "PodGroup", "evil", metadata={"annotations": forged(kind)})
    late["target"]["namespace"] = "a"
    answer = simulate(NODES, evil(), late, victim("10s"))
    assert answer.times("b-") == [10.0] * 4
    assert record_on(answer, kind) is None


@pytest.mark.parametrize("kind", ["reserve", "preempt"])
def test_s2_records_of_kinds_that_no_action_makes_are_not_adopted(kind: str) -> None:
    """Attack A3c: a reservation, though `reserve` is not configured, read after a restart."""
    answer = simulate(NODES, evil(forged(kind)), m.restart("5s"), victim("10s"), config=NO_EVICTIONS)
    assert answer.times("b-") == [10.0] * 4
