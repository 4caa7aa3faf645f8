"""T1, T7, T8 where gangs contend: preempt, reclaim and reserve, restarts, and nodes that are relabelled in flight.

At every instant: the pods of a vertex that were bound in one decision, and those that came to them, are in one domain
as the labels were when they were bound; a gang that waits needs what no domain has. A restart changes nothing (I5).
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from support import manifests as m
from support import racks as r
from support.answers import Answer
from support.simulation import simulate

Obj = dict[str, Any]
CONFIG = {
    "actions": [
        {"name": "enqueue"},
        {"name": "allocate"},
        {"name": "backfill"},
        {"name": "preempt"},
        {"name": "reclaim"},
        {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 8}},
    ]
}
CLASSES = [m.priority_class("low", 10), m.priority_class("high", 100)]


def load(dice: random.Random, *, relabel: bool) -> list[Obj]:
    """Gangs of two queues and two priorities, most of them with a required level, on two blocks of two racks."""
    found: list[Obj] = [*CLASSES, m.queue("q", weight=1), m.queue("w", weight=2)]
    found += [*r.nodes({"1": 1, "2": 2}, "x"), *r.nodes({"3": 1, "4": [2, 4]}, "y")]
    found.append(r.topology("dc", r.BLOCK, r.RACK, group=r.KAI))
    for number in range(dice.randrange(4, 9)):
        count, level = dice.randrange(1, 9), dice.choice(["", r.RACK, r.RACK, r.BLOCK])
        place: Obj = {"topologyConstraint": {"topology": "dc", "requiredTopologyLevel": level}} if level else {}
        name, at = f"g{number}", f"{dice.randrange(20)}s"
        fields: Obj = {"queue": dice.choice(["q", "w"]), "priorityClassName": dice.choice(["low", "high"]), **place}
        found.append(m.kai_podgroup(name, dice.randrange(1, count + 1), at=at, preemptibility="preemptible", **fields))
        run_time = f"{dice.randrange(5, 40)}s"
        priority = fields["priorityClassName"]
        found += m.kai_pods(name, count, at=at, run_time=run_time, priority=priority, cpu=dice.choice([1, 1, 2]))
    if relabel:
        node = dice.choice(["1-0", "2-0", "3-0"])
        found.append(
            m.patch(f"{dice.randrange(5, 25)}s", "Node", node, metadata={"labels": {r.RACK: "4", r.BLOCK: "y"}})
        )
    return found


def domain(labels: dict[str, str], level: str) -> tuple[str, ...]:
    return (labels[r.BLOCK],) if level == r.BLOCK else (labels[r.BLOCK], labels[r.RACK])


def scattered(documents: list[Obj], answer: Answer) -> list[str]:
    """Gangs with two pods that ran at one time in two domains of the required level, though both were bound under the
    same labels."""
    labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in documents if one["kind"] == "Node"}
    change = next((one for one in documents if one["kind"] == "Step"), None)
    changed_at = float(change["at"].removesuffix("s")) if change else float("inf")
    found = []
    for group in (one for one in documents if one["kind"] == "PodGroup"):
        level = (group["spec"].get("topologyConstraint") or {}).get("requiredTopologyLevel", "")
        name = group["metadata"]["name"]
        spans = spans_of(answer, f"{name}-") if level else []
        for at, until, node in spans:
            for other_at, _, other in spans:
                if not at <= other_at < until or (at < changed_at <= other_at) or at >= changed_at > other_at:
                    continue
                now = dict(labels)
                if change is not None and other_at >= changed_at:
                    now[change["target"]["name"]] = (
                        labels[change["target"]["name"]] | change["patch"]["metadata"]["labels"]
                    )
                if domain(now[node], level) != domain(now[other], level):
                    found.append(f"{name}: {node} and {other} at {other_at}")
    return found


def spans_of(answer: Answer, prefix: str) -> list[tuple[float, float, str]]:
    """When each pod was bound, when it left, and where it was; a pod that was evicted is made anew by nothing here."""
    ends: dict[str, float] = {}
    for line in answer.lines():
        if line["kind"] == "Pod" and line["what"] in ("succeeded", "failed", "evicted", "deleted"):
            ends.setdefault(line["name"], line["t"])
    return [(at, ends.get(name, float("inf")), node) for name, (at, node) in answer.bound(prefix).items()]


@pytest.mark.parametrize("seed", range(200, 225))
def test_t1_holds_under_preemption_reclaim_and_reservations(seed: int) -> None:
    documents = load(random.Random(seed), relabel=False)
    assert not scattered(documents, simulate(documents, config=CONFIG, until="5m"))


@pytest.mark.parametrize("seed", range(300, 315))
def test_t1_holds_though_a_node_is_relabelled(seed: int) -> None:
    documents = load(random.Random(seed), relabel=True)
    assert not scattered(documents, simulate(documents, config=CONFIG, until="5m"))


@pytest.mark.parametrize("seed", range(400, 420))
def test_t8_i5_a_restart_changes_no_decision_under_contention(seed: int) -> None:
    dice = random.Random(seed)
    documents = load(dice, relabel=bool(seed % 2))
    at = f"{dice.randrange(1, 40)}s"
    restarted = simulate(documents, m.restart(at), config=CONFIG, until="5m")
    plain = simulate(documents, config=CONFIG, until="5m")
    assert restarted.bound() == plain.bound()
    assert restarted.evicted() == plain.evicted()
