"""Node affinity, required and preferred."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.engine.core.filters import node_affinity
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import NodeFacts, NodeTable
from engine.filters.clusters import class_of, clusters, named, node, passing, settle, table

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def requiring(terms: list[Any]) -> TaskClass:
    return class_of(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})


def labels(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def names(operator: str, *values: str, key: str = "metadata.name") -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([], "", id="no terms match nothing"),
        pytest.param([{}], "", id="an empty term matches nothing"),
        pytest.param([{}, labels("zone", "In", "x")], "ab", id="an empty term beside another"),
        pytest.param([labels("zone", "In", "x", "y")], "abc", id="In"),
        pytest.param([labels("zone", "NotIn", "x")], "cd", id="NotIn takes nodes without the label"),
        pytest.param([labels("gpu", "Exists")], "bcd", id="Exists"),
        pytest.param([labels("gpu", "DoesNotExist")], "a", id="DoesNotExist"),
        pytest.param([labels("gpu", "Gt", "4")], "c", id="Gt"),
        pytest.param([labels("gpu", "Lt", "5")], "b", id="Lt"),
        pytest.param([labels("zone", "In", "y"), labels("gpu", "Lt", "5")], "bc", id="terms are alternatives"),
        pytest.param(
            [{"matchExpressions": [*labels("zone", "In", "x")["matchExpressions"],
                                   *labels("gpu", "Exists")["matchExpressions"]]}],
            "b",
            id="lines of a term are not",
        ),
        pytest.param([names("In", "c")], "c", id="by name"),
        pytest.param([names("NotIn", "c")], "abd", id="not by name"),
        pytest.param([labels("zone", "In", "x") | names("In", "c")], "", id="name and label"),
        pytest.param([names("In", "unknown")], "", id="name of no node"),
        pytest.param([names("In", "a", "b")], "", id="two names cannot be read"),
        pytest.param([names("Exists")], "", id="a name exists: cannot be read"),
        pytest.param([names("In", "a", key="spec.x")], "", id="other field"),
        pytest.param([labels("zone", "Like", "x")], "", id="bad operator"),
        pytest.param([labels("zone", "In")], "", id="no values"),
        pytest.param([labels("gpu", "Gt", "many")], "", id="no number"),
        pytest.param([labels("zone", "Like", "x"), labels("zone", "In", "y")], "c", id="a bad term beside a good one"),
    ],
)  # fmt: skip
def test_g6_required_node_affinity(terms: list[Any], expected: str) -> None:
    nodes = table(
        node("a", {"zone": "x"}),
        node("b", {"zone": "x", "gpu": "4"}),
        node("c", {"zone": "y", "gpu": "8"}),
        node("d", {"gpu": "some"}),
    )
    check = node_affinity.check(requiring(terms), nodes)
    assert check is not None
    assert check.reason == "node(s) didn't match Pod's node affinity/selector"
    assert passing(nodes, check) == list(expected)


def test_g6_without_required_affinity_nothing_is_checked() -> None:
    assert node_affinity.check(class_of(), table(node("a"))) is None
    assert node_affinity.check(class_of(affinity={"nodeAffinity": {}}), table(node("a"))) is None


def test_g6_a_check_follows_nodes_that_change_come_and_are_renumbered() -> None:
    nodes = table(node("b", {"zone": "x"}, created_ns=2))
    check = node_affinity.check(requiring([labels("zone", "In", "x")]), nodes)
    assert passing(nodes, check) == ["b"]
    nodes.put(node("b", {"zone": "y"}, created_ns=2))
    assert passing(nodes, check) == []
    nodes.put(node("a", {"zone": "x"}, created_ns=1))
    settle(nodes)
    assert nodes.names == ["a", "b"]
    assert passing(nodes, check) == ["a"]


def test_g6_a_check_follows_values_that_are_numbered_anew() -> None:
    """The first value of the label is another one after the rows are renumbered, and there are no more than before."""
    nodes = table(node("b", {"zone": "x"}, created_ns=2), node("c", {"zone": "y"}, created_ns=3))
    check = node_affinity.check(requiring([labels("zone", "In", "x")]), nodes)
    assert passing(nodes, check) == ["b"]
    nodes.remove("b")
    nodes.put(node("a", {"zone": "y"}, created_ns=1))
    settle(nodes)
    assert nodes.names == ["a", "c"]
    assert passing(nodes, check) == []


def test_g6_preferred_node_affinity_sums_weights() -> None:
    nodes = table(node("a", {"zone": "x"}), node("b", {"zone": "x", "gpu": "4"}), node("c"))
    terms = [
        {"weight": 10, "preference": labels("zone", "In", "x")},
        {"weight": 5, "preference": labels("gpu", "Gt", "1")},
        {"weight": 50, "preference": {}},
        {"weight": 50, "preference": labels("zone", "Like", "x")},
    ]
    score = node_affinity.preferred(class_of(affinity={"nodeAffinity": {PREFERRED: terms}}), nodes)
    assert score is not None
    assert score(np.arange(3)).tolist() == [10, 15, 0]
    assert score(np.array([1])).tolist() == [15]
    assert node_affinity.preferred(class_of(affinity={"nodeAffinity": {PREFERRED: terms[2:]}}), nodes) is None


line = st.one_of(
    st.tuples(
        st.sampled_from(["zone", "gpu"]),
        st.sampled_from(["In", "NotIn"]),
        st.lists(st.sampled_from("abcx12"), min_size=1, max_size=2),
    ),
    st.tuples(st.sampled_from(["zone", "gpu"]), st.sampled_from(["Exists", "DoesNotExist"]), st.just([])),
    st.tuples(st.just("gpu"), st.sampled_from(["Gt", "Lt"]), st.sampled_from([["1"], ["2"]])),
)


def plainly(facts: NodeFacts, key: str, operator: str, values: list[str]) -> bool:
    had = facts.labels.get(key)
    if operator in ("Gt", "Lt"):
        if had is None or not had.isdecimal():
            return False
        return int(had) > int(values[0]) if operator == "Gt" else int(had) < int(values[0])
    return {
        "In": had in values,
        "NotIn": had not in values,
        "Exists": had is not None,
        "DoesNotExist": had is None,
    }[operator]


@given(clusters(), st.lists(st.lists(line, max_size=2), max_size=3))
def test_g6_node_affinity_as_asked_node_by_node(nodes: NodeTable, terms: list[Any]) -> None:
    raw = [{"matchExpressions": [{"key": k, "operator": o, "values": v} for k, o, v in lines]} for lines in terms]
    expected = named(nodes, lambda facts: any(t and all(plainly(facts, *each) for each in t) for t in terms))
    check = node_affinity.check(requiring(raw), nodes)
    assert passing(nodes, check) == expected
    assert check is not None
    one_by_one = [bool(check.mask(np.array([row]))[0]) for row in range(nodes.count) if nodes.alive[row]]
    assert one_by_one == [facts.name in expected for facts in nodes.facts if facts is not None]
