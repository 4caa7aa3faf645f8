"""Readiness and cordons, which every class is asked about, and the node selector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from enbloc.engine.core.filters import node_selector, readiness, unschedulable
from enbloc.engine.core.tables.nodes import NodeTable
from engine.filters.clusters import class_of, clusters, named, node, node_labels, passing, table


def test_g6_unready_and_deleted_nodes_take_no_pod() -> None:
    nodes = table(node("a"), node("b", ready=False), node("c"))
    nodes.remove("c")
    check = readiness.check(class_of(), nodes)
    assert check is not None
    assert check.reason == "node(s) were not ready"
    assert check.mask(np.arange(3)).tolist() == [True, False, False]


CORDON = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], ["a"], id="none"),
        pytest.param([{"key": CORDON, "operator": "Exists", "effect": "NoSchedule"}], ["a", "b"], id="tolerated"),
        pytest.param([{"key": CORDON, "effect": "NoSchedule"}], ["a", "b"], id="equal to the empty value"),
        pytest.param([{"operator": "Exists"}], ["a", "b"], id="tolerates everything"),
        pytest.param([{"key": CORDON, "operator": "Exists", "effect": "NoExecute"}], ["a"], id="other effect"),
        pytest.param([{"key": "other", "operator": "Exists"}], ["a"], id="other key"),
    ],
)
def test_g6_cordoned_nodes(tolerations: list[Any], expected: list[str]) -> None:
    nodes = table(node("a"), node("b", unschedulable=True))
    assert passing(nodes, unschedulable.check(class_of(tolerations=tolerations), nodes)) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param({}, ["a", "b", "c"], id="none"),
        pytest.param({"zone": "x"}, ["a", "b"], id="one label"),
        pytest.param({"zone": "x", "gpu": "yes"}, ["b"], id="all labels"),
        pytest.param({"zone": "z"}, [], id="value that no node has"),
        pytest.param({"none": ""}, [], id="missing is not empty"),
    ],
)
def test_g6_node_selector(selector: dict[str, str], expected: list[str]) -> None:
    nodes = table(node("a", {"zone": "x"}), node("b", {"zone": "x", "gpu": "yes"}), node("c", {"gpu": "yes"}))
    assert passing(nodes, node_selector.check(class_of(nodeSelector=selector), nodes)) == expected


@given(clusters(), node_labels)
def test_g6_node_selector_as_asked_node_by_node(nodes: NodeTable, selector: dict[str, str]) -> None:
    check = node_selector.check(class_of(nodeSelector=selector), nodes)
    assert passing(nodes, check) == named(nodes, lambda facts: selector.items() <= facts.labels.items())
