"""How many pods of a waiting gang would fit, and on which nodes (G10): roles share the room of a node."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.core.why import partial_fit as module
from enbloc.engine.core.why.partial_fit import partial_fit
from engine.scenes import Scene, group
from support import manifests as m


def role(name: str, count: int, cpu: m.Quantity = 1, first: int = 0, **fields: Any) -> list[m.Obj]:
    numbers = range(first, first + count)
    return [m.pod(f"g-{name}-{number}", cpu, group="g", role=name, **fields) for number in numbers]


@pytest.mark.parametrize(
    ("minima", "objects", "expected"),
    [
        pytest.param({"a": 2, "b": 1}, [m.node("n", 5), role("a", 2, 2), role("b", 1, 2)], {"a": {"n": 2}},
                     id="the first role uses the room of the second"),
        pytest.param({"a": 2, "b": 1}, [m.node("n", 6), role("a", 2, 2), role("b", 1, 2)],
                     {"a": {"n": 2}, "b": {"n": 1}}, id="room for both roles"),
        pytest.param({"a": 3}, [m.node("m", 1), m.node("n", 4), role("a", 3)], {"a": {"n": 3}},
                     id="the node with the most room has all"),
        pytest.param({"a": 3}, [m.node("m", 1), m.node("n", 2), role("a", 3)], {"a": {"n": 2, "m": 1}},
                     id="the node with the most room first"),
        pytest.param({"a": 3}, [m.node("n", 2), role("a", 3)], {"a": {"n": 2}}, id="fewer than the minimum"),
        pytest.param({"a": 2}, [m.node("n", 9), role("a", 3)], {"a": {"n": 2}}, id="the minimum alone"),
        pytest.param({"a": 4}, [m.node("n", 9), role("a", 3)], {"a": {"n": 3}}, id="the pods that exist alone"),
        pytest.param({"a": 2}, [m.node("n", 9), role("a", 1, nodeName="n"), role("a", 2, first=1)], {"a": {"n": 1}},
                     id="what the minimum lacks"),
        pytest.param({"a": 1}, [m.node("n", 9), role("a", 1, nodeName="n"), role("a", 2, first=1)], {"a": {"n": 2}},
                     id="beyond the minimum all that wait"),
        pytest.param({"a": 2}, [m.node("n", 9), role("b", 1, nodeName="n"), role("a", 2)], {"a": {"n": 2}},
                     id="a pod of another role is none of the minimum"),
        pytest.param({"a": 2}, [m.node("n", 9, memory="1Gi"), role("a", 2, memory="1Gi")], {"a": {"n": 1}},
                     id="the scarcest resource decides"),
        pytest.param({"a": 1}, [m.node("n", 1), m.pod("r", 1, nodeName="n"), role("a", 1)], {}, id="a full node"),
        pytest.param({"a": 1}, [m.node("n", 1), m.pod("r", 3, nodeName="n"), role("a", 1)], {},
                     id="a node with more pods than it has room for"),
        pytest.param({"a": 1}, [m.node("n", 9), role("a", 1, nodeSelector={"disk": "ssd"})], {},
                     id="a node that a filter rejects"),
        pytest.param({"a": 1}, [role("a", 1)], {}, id="no nodes"),
    ],
)  # fmt: skip
def test_g10_a_partial_fit(minima: dict[str, int], objects: list[Any], expected: dict[str, dict[str, int]]) -> None:
    scene = Scene(group(minimum=sum(minima.values()), roles=minima), *objects)
    found = partial_fit(scene.state, scene.gang())
    assert {role: list(nodes.items()) for role, nodes in found.items()} == {
        role: list(nodes.items()) for role, nodes in expected.items()
    }


def test_g10_a_partial_fit_names_a_bounded_number_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NODES", 2)
    scene = Scene([m.node(f"n{number}", 1) for number in range(3)], group(minimum=3, roles={"a": 3}), role("a", 3))
    assert partial_fit(scene.state, scene.gang()) == {"a": {"n0": 1, "n1": 1}}
