"""Which labels a node could have at all: pods that require others ask for no node (E1)."""

from __future__ import annotations

import time

import pytest

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.engine.core.why.further_nodes import could_have_labels

Line = tuple[str, str, list[str]]


def could(*terms: list[Line], **selector: str) -> bool:
    """Whether a node could have the labels of this selector and meet one of these terms, if there are any."""
    listed = [
        {"matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, values in term]}
        for term in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    affinity = {"affinity": {"nodeAffinity": required}} if terms else {}
    return could_have_labels(view({"containers": [], "nodeSelector": selector, **affinity}, core.PodSpec))


def test_e1_labels_that_a_node_could_have() -> None:
    assert could()
    assert could(a="1", b="2")
    assert could([("a", "In", ["1", "2"]), ("a", "In", ["2", "3"])])
    assert could([("a", "NotIn", ["1"]), ("a", "DoesNotExist", [])])
    assert could([("a", "NotIn", ["1"]), ("a", "Exists", [])])
    assert could([("a", "Gt", ["5"]), ("a", "Lt", ["7"])])
    assert could([("a", "Gt", ["5"]), ("a", "In", ["4", "6"])])
    assert could([("a", "In", ["2"])], [("b", "Exists", [])], a="1")


@pytest.mark.parametrize(
    "lines",
    [
        [("a", "In", ["1"]), ("a", "In", ["2"])],
        [("a", "In", ["1"]), ("a", "NotIn", ["1"])],
        [("a", "Exists", []), ("a", "DoesNotExist", [])],
        [("a", "In", ["1"]), ("a", "DoesNotExist", [])],
        [("a", "Gt", ["5"]), ("a", "Lt", ["6"])],
        [("a", "Gt", ["5"]), ("a", "In", ["5", "x"])],
        [("a", "Gt", ["5"]), ("a", "Gt", ["9"]), ("a", "Lt", ["20"]), ("a", "In", ["7", "21"])],
        [("a", "In", ["no label"])],
        [("a", "Gt", ["x"])],
        [],
    ],
)
def test_e1_labels_that_no_node_could_have(lines: list[Line]) -> None:
    assert not could(lines)
    assert not could(lines, [("b", "In", ["2"])], b="1")


def test_s8_the_cost_is_linear_in_the_selector() -> None:
    values = [str(n) for n in range(10_000)]
    lines: list[Line] = [("a", "In", values), *(("a", "NotIn", [value]) for value in values[1:])]
    began = time.process_time()
    assert could(lines)
    assert time.process_time() - began < 5
