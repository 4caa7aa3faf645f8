"""Taints and tolerations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.engine.core.filters import taints
from enbloc.engine.core.tables.nodes import NodeTable, TaintFact
from engine.filters.clusters import class_of, clusters, named, node, passing, table


@pytest.mark.parametrize(
    ("toleration", "taint", "expected"),
    [
        pytest.param({"operator": "Exists"}, ("k", "v", "NoExecute"), True, id="everything"),
        pytest.param({"operator": "Exists", "effect": "NoSchedule"}, ("k", "v", "NoExecute"), False, id="one effect"),
        pytest.param({"key": "k", "value": "v"}, ("k", "v", "NoSchedule"), True, id="equal is the default"),
        pytest.param(
            {"key": "k", "operator": "Equal", "value": "w"}, ("k", "v", "NoSchedule"), False, id="other value"
        ),
        pytest.param({"key": "k"}, ("k", "", "NoSchedule"), True, id="empty values are equal"),
        pytest.param({"key": "k", "operator": "Exists"}, ("k", "v", "NoSchedule"), True, id="any value"),
        pytest.param({"key": "l", "operator": "Exists"}, ("k", "v", "NoSchedule"), False, id="other key"),
        pytest.param(
            {"key": "k", "operator": "Near", "value": "v"}, ("k", "v", "NoSchedule"), False, id="bad operator"
        ),
        pytest.param({"key": "k", "operator": "Gt", "value": "4"}, ("k", "5", "NoSchedule"), True, id="more"),
        pytest.param({"key": "k", "operator": "Lt", "value": "4"}, ("k", "5", "NoSchedule"), False, id="not less"),
        pytest.param({"key": "k", "operator": "Lt", "value": "4"}, ("k", "v", "NoSchedule"), False, id="no number"),
    ],
)
def test_g6_toleration(toleration: dict[str, Any], taint: tuple[str, str, str], expected: bool) -> None:
    spec = class_of(tolerations=[toleration]).spec
    assert taints.tolerated(spec.tolerations or (), TaintFact(*taint)) is expected


def test_g6_each_node_is_reported_for_its_first_untolerated_taint() -> None:
    nodes = table(
        node("a", taints=[("gpu", "yes", "NoSchedule"), ("zz", "", "NoExecute")]),
        node("b", taints=[("zz", "", "NoExecute")]),
        node("c", taints=[("soft", "", "PreferNoSchedule")]),
        node("d"),
    )
    found = taints.checks(class_of(), nodes)
    by_reason = {check.reason: check.mask(np.arange(4)).tolist() for check in found}
    assert by_reason == {
        "node(s) had untolerated taint {gpu: yes}": [False, True, True, True],
        "node(s) had untolerated taint {zz: }": [True, False, True, True],
        "node(s) had untolerated taint": [True, True, True, True],
    }


def test_g6_a_taint_that_comes_later_keeps_off_under_the_plain_reason() -> None:
    nodes = table(node("a"))
    found = taints.checks(class_of(), nodes)
    nodes.put(node("a", taints=[("new", "", "NoSchedule")]))
    assert passing(nodes, found) == []
    assert [check.reason for check in found] == ["node(s) had untolerated taint"]
    assert taints.checks(class_of(), nodes)[0].reason == "node(s) had untolerated taint {new: }"


def test_g6_reasons_are_bounded() -> None:
    nodes = table(*[node(f"n{i}", taints=[("own", str(i), "NoSchedule")]) for i in range(40)], node("free"))
    found = taints.checks(class_of(), nodes)
    assert len(found) == taints.NAMED_BOUND + 1
    assert passing(nodes, found) == ["free"]


def test_g6_a_pod_that_tolerates_everything_is_not_checked() -> None:
    nodes = table(node("a", taints=[("k", "", "NoSchedule")]))
    cls = class_of(tolerations=[{"operator": "Exists"}])
    assert taints.checks(cls, nodes) == []
    assert taints.preferred_avoidance(cls, nodes) is None


def test_g6_discouraging_taints_are_counted() -> None:
    soft = [("x", "", "PreferNoSchedule"), ("y", "", "PreferNoSchedule")]
    nodes = table(node("a", taints=soft), node("b", taints=[*soft[:1], ("z", "", "NoSchedule")]), node("c"))
    score = taints.preferred_avoidance(class_of(tolerations=[{"key": "y", "operator": "Exists"}]), nodes)
    assert score is not None
    assert score(np.arange(3)).tolist() == [1, 1, 0]
    nodes.put(node("c", taints=[*soft, ("w", "", "PreferNoSchedule")]))
    assert score(np.arange(3)).tolist() == [1, 1, 2]


toleration = st.fixed_dictionaries(
    {"operator": st.sampled_from(["", "Equal", "Exists", "Gt"])},
    optional={
        "key": st.sampled_from(["k", "l"]),
        "value": st.sampled_from(["v", "4"]),
        "effect": st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
    },
)


def plainly(tolerations: list[dict[str, str]], taint: TaintFact) -> bool:
    for each in tolerations:
        value, operator = each.get("value", ""), each["operator"]
        more = operator == "Gt" and value.isdecimal() and taint.value.isdecimal() and int(taint.value) > int(value)
        if (
            each.get("effect", taint.effect) == taint.effect
            and each.get("key", taint.key) == taint.key
            and (operator == "Exists" or more or (operator in ("", "Equal") and value == taint.value))
        ):
            return True
    return False


@given(clusters(), st.lists(toleration, max_size=2))
def test_g6_taints_as_asked_node_by_node(nodes: NodeTable, tolerations: list[dict[str, str]]) -> None:
    cls = class_of(tolerations=tolerations)
    expected = named(
        nodes,
        lambda facts: all(t.effect == "PreferNoSchedule" or plainly(tolerations, t) for t in facts.taints),
    )
    assert passing(nodes, taints.checks(cls, nodes)) == expected
    score = taints.preferred_avoidance(cls, nodes)
    counts = [
        sum(t.effect == "PreferNoSchedule" and not plainly(tolerations, t) for t in facts.taints) if facts else None
        for facts in nodes.facts
    ]
    found = score(np.arange(nodes.count)).tolist() if score else [0] * nodes.count
    assert all(count is None or count == had for count, had in zip(counts, found, strict=True))
