"""U2: fields of Kubernetes' own PodGroups."""

from __future__ import annotations

from typing import Any

import pytest

from peers.kubernetes_composite import composite
from support import manifests as m
from support.simulation import simulate

CLASSES = [m.priority_class("high", 1000), m.priority_class("low", 10)]
GANG = {"gang": {"minCount": 2}}


def group(version: str = "v1beta1", name: str = "g", **spec: Any) -> list[m.Obj]:
    return [m.native_podgroup(name, GANG, version, **spec), *m.native_pods(name, 2, cpu=2, at="10s", priority="high")]


def composed(of_root: dict[str, Any], **of_group: Any) -> list[m.Obj]:
    root = composite("root", 1)
    root["spec"] |= {"priorityClassName": "high", **of_root}
    return [root, *group(parentCompositePodGroupName="root", **of_group)]


NEVER = {"preemptionPolicy": "Never"}
GROUPS = {
    "v1beta1": group(priorityClassName="high", **NEVER),
    "v1alpha2": group("v1alpha2", priorityClassName="high", **NEVER),
    "without a class": group(**NEVER),
    "basic": [
        m.native_podgroup("g", {"basic": {}}, priorityClassName="high", **NEVER),
        *m.native_pods("g", 2, cpu=2, at="10s", priority="high"),
    ],
    "composite": composed(NEVER),
    "below a composite": composed({}, **NEVER),
}


@pytest.mark.parametrize("docs", GROUPS.values(), ids=GROUPS)
def test_u2_a_group_that_never_preempts_evicts_nobody(docs: list[m.Obj]) -> None:
    running = m.pods(4, "a", priority="low")
    answer = simulate(CLASSES, m.node("n"), running, docs, until="60s")
    assert not answer.evicted()
    assert not answer.bound("g-")
    freed = simulate(CLASSES, m.node("n"), m.pods(4, "a", priority="low", run_time="30s"), docs, until="60s")
    assert len(freed.bound("g-")) == 2


@pytest.mark.parametrize("docs", [group(preemptionPolicy="PreemptLowerPriority"), group(), composed({})])
def test_u2_other_groups_preempt(docs: list[m.Obj]) -> None:
    answer = simulate(CLASSES, m.node("n"), m.pods(4, "a", priority="low"), docs, until="60s")
    assert len(answer.evicted()) == 4
    assert len(answer.bound("g-")) == 2


@pytest.mark.parametrize("policy", [NEVER, {}])
def test_u2_a_group_that_never_preempts_does_not_reclaim(policy: dict[str, Any]) -> None:
    named = m.native_podgroup("g", GANG, **policy)
    named["metadata"]["annotations"] = {m.QUEUE_NAME: "b"}
    docs = [m.queue("a"), m.queue("b"), m.pods(4, "a", queue="a"), named, m.native_pods("g", 2, at="10s")]
    answer = simulate(m.node("n"), *docs, until="60s")
    assert len(answer.evicted()) == (0 if policy else 2)
