"""Small clusters and pods for the tables of cases, and for the random ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.tables.classes import ClassTable, TaskClass
from enbloc.engine.core.tables.nodes import NodeFacts, NodeTable, TaintFact
from enbloc.engine.core.tables.resources import Resources

CLASSES = ClassTable(Resources())
"""One table for all tests: filters cache by class id."""


class Task(NamedTuple):
    uid: str
    namespace: str
    labels: Mapping[str, str]
    cls: TaskClass


def node(
    name: str,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[tuple[str, str, str]] = (),
    created_ns: int = 0,
    ready: bool = True,
    unschedulable: bool = False,
) -> NodeFacts:
    return NodeFacts(
        name=name,
        created_ns=created_ns,
        labels=labels or {},
        allocatable={},
        taints=tuple(TaintFact(*taint) for taint in taints),
        unschedulable=unschedulable,
        ready=ready,
    )


def table(*nodes: NodeFacts) -> NodeTable:
    """Rows are by (creation, name)."""
    found = NodeTable(Resources())
    for facts in nodes:
        found.put(facts)
    settle(found)
    return found


def settle(nodes: NodeTable) -> None:
    nodes.settle(lambda name: {})


def class_of(namespace: str = "default", **spec: Any) -> TaskClass:
    return CLASSES.of(namespace, {"containers": [{}], **spec})


def task(uid: str, labels: Mapping[str, str] | None = None, namespace: str = "default", **spec: Any) -> Task:
    return Task(uid, namespace, labels or {}, class_of(namespace, **spec))


def passing(nodes: NodeTable, checks: Check | list[Check] | None) -> list[str]:
    """Names of the nodes that pass all checks."""
    rows = np.arange(nodes.count)
    mask = nodes.alive[: nodes.count].copy()
    for check in checks if isinstance(checks, list) else [checks]:
        if check is not None:
            mask &= check.mask(rows)
    return [nodes.names[row] for row in np.flatnonzero(mask)]


def passing_masks(nodes: NodeTable, masks: list[tuple[str, Any]]) -> list[str]:
    mask = nodes.alive[: nodes.count].copy()
    for _, passed in masks:
        mask &= passed
    return [nodes.names[row] for row in np.flatnonzero(mask)]


def named(nodes: NodeTable, wanted: Callable[[NodeFacts], bool]) -> list[str]:
    """The plain way: one node after the other."""
    return [facts.name for facts in nodes.facts if facts is not None and wanted(facts)]


# ---- random ones

ZONE = "zone"
HOST = "kubernetes.io/hostname"
values = st.sampled_from(["a", "b", "c"])
node_labels = st.fixed_dictionaries(
    {}, optional={ZONE: values, "gpu": st.sampled_from(["1", "2", "x"]), "rack": values}
)
taint = st.tuples(
    st.sampled_from(["k", "l"]),
    st.sampled_from(["", "v", "5"]),
    st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
)
pod_labels = st.fixed_dictionaries({}, optional={"app": st.sampled_from(["web", "db"]), "rev": st.sampled_from("12")})


@st.composite
def clusters(draw: st.DrawFn) -> NodeTable:
    """Some nodes, in two batches so that columns grow, and perhaps one removed."""
    facts = [
        node(f"n{i}", {**draw(node_labels), HOST: f"n{i}"}, draw(st.lists(taint, max_size=2)), created_ns=i)
        for i in range(draw(st.integers(1, 6)))
    ]
    split = draw(st.integers(0, len(facts)))
    nodes = table(*facts[:split])
    for key in (ZONE, "gpu"):
        nodes.label(key)
    for each in facts[split:]:
        nodes.put(each)
    settle(nodes)
    if draw(st.booleans()):
        nodes.remove("n0")
    return nodes
