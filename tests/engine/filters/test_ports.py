"""Host ports."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.engine.core.filters.stateful.ports import HostPorts
from enbloc.engine.core.tables.nodes import NodeTable
from engine.filters.clusters import Task, clusters, named, node, passing_masks, settle, table, task


def port(number: int, ip: str = "", protocol: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"containerPort": 80, "hostPort": number}
    return found | ({"hostIP": ip} if ip else {}) | ({"protocol": protocol} if protocol else {})


def asking(uid: str, *ports: dict[str, Any]) -> Task:
    return task(uid, containers=[{"ports": list(ports)}])


@pytest.mark.parametrize(
    ("held", "asked", "free"),
    [
        pytest.param(port(80), port(80), False, id="same port"),
        pytest.param(port(80), port(81), True, id="other port"),
        pytest.param(port(80, protocol="UDP"), port(80), True, id="other protocol"),
        pytest.param(port(80, protocol="TCP"), port(80), False, id="TCP is the default"),
        pytest.param(
            port(80, "10.0.0.1"),
            port(80, "10.0.0.2"),
            True,
            id="other address",
        ),
        pytest.param(port(80, "10.0.0.1"), port(80, "10.0.0.1"), False, id="same address"),
        pytest.param(port(80, "10.0.0.1"), port(80), False, id="every address is asked for"),
        pytest.param(port(80), port(80, "10.0.0.1"), False, id="every address is held"),
        pytest.param(port(80, "0.0.0.0"), port(80, "10.0.0.1"), False, id="every address is held by its name"),
    ],
)
def test_g6_host_port(held: dict[str, Any], asked: dict[str, Any], free: bool) -> None:
    nodes = table(node("a"), node("b"))
    ports = HostPorts(nodes)
    ports.add(asking("1", held), 0)
    ((reason, mask),) = ports.masks(asking("2", asked))
    assert reason == "node(s) didn't have free ports for the requested pod ports"
    assert mask.tolist() == [free, True]


def test_g6_a_pod_without_host_ports_is_not_asked() -> None:
    ports = HostPorts(table(node("a")))
    assert not ports.applies(task("1", containers=[{"ports": [{"containerPort": 80}]}]))
    assert ports.applies(asking("1", port(80)))


def test_g6_sidecars_hold_ports_and_other_init_containers_do_not() -> None:
    ports = HostPorts(table(node("a")))
    assert ports.applies(task("1", initContainers=[{"ports": [port(80)], "restartPolicy": "Always"}]))
    assert not ports.applies(task("1", initContainers=[{"ports": [port(80)]}]))


def test_g6_ports_follow_their_node() -> None:
    nodes = table(node("b", created_ns=2))
    ports = HostPorts(nodes)
    ports.add(asking("1", port(80)), 0)
    nodes.put(node("a", created_ns=1))
    settle(nodes)
    assert passing_masks(nodes, ports.masks(asking("2", port(80)))) == ["a"]
    nodes.remove("b")
    nodes.put(node("b", created_ns=3))
    settle(nodes)
    assert passing_masks(nodes, ports.masks(asking("2", port(80)))) == ["a"]
    ports.remove(asking("1", port(80)), 0)
    assert passing_masks(nodes, ports.masks(asking("2", port(80)))) == ["a", "b"]


# One address only: two need `hostIP` to be read, see the case above.
host_port = st.builds(port, st.sampled_from([80, 81]), st.sampled_from(["", "10.0.0.1"]), st.sampled_from(["", "UDP"]))


@given(clusters(), st.data())
def test_g6_ports_as_asked_node_by_node_and_undone(nodes: NodeTable, data: st.DataObject) -> None:
    alive = [row for row in range(nodes.count) if nodes.alive[row]]
    if not alive:
        return
    ports = HostPorts(nodes)
    held: dict[str, list[dict[str, Any]]] = {}
    placed: list[tuple[Task, int]] = []
    before = [ports.digest()]
    for i in range(data.draw(st.integers(0, 5))):
        each, row = data.draw(st.lists(host_port, max_size=2)), data.draw(st.sampled_from(alive))
        placed.append((asking(str(i), *each), row))
        ports.add(*placed[-1])
        before.append(ports.digest())
        held.setdefault(nodes.names[row], []).extend(each)
    wanted = data.draw(st.lists(host_port, min_size=1, max_size=2))

    def clash(one: dict[str, Any], two: dict[str, Any]) -> bool:
        same = all(one.get(key) == two.get(key) for key in ("hostPort", "protocol"))
        return same and (one.get("hostIP") is None or two.get("hostIP") is None or one["hostIP"] == two["hostIP"])

    free = named(nodes, lambda facts: not any(clash(x, y) for x in wanted for y in held.get(facts.name, [])))
    assert passing_masks(nodes, ports.masks(asking("new", *wanted))) == free
    for each_task, row in reversed(placed):
        assert ports.digest() == before.pop()
        ports.remove(each_task, row)
    assert ports.digest() == before.pop()
