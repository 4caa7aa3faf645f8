"""One row for each domain of the node trees: its nodes, capacity and use, and what is set aside there (T5, R7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from enbloc.api.topology import TREE_KINDS
from enbloc.engine.core.tables.node_trees import Level
from enbloc.gangs.model import GangSpec
from enbloc.gangs.topology import BY_LABEL, TopologyConstraint
from enbloc.inspect.capacity import Node, Use
from enbloc.inspect.gangs import Reading

KINDS = tuple(sorted(TREE_KINDS))
NO_DOMAIN = "(none)"
"""Nodes that are in no domain of a level."""


class Domain(msgspec.Struct, frozen=True, rename="camel"):
    tree: str
    level: str
    domain: str
    nodes: int
    ready: int
    pods: int
    resources: Mapping[str, Use]
    reserved: Mapping[str, int]
    reserved_room: Mapping[str, Mapping[str, int]]
    """By gang that waits: for how many of its pods room is set aside here."""


class Trees:
    """The node trees that objects, the config and gangs name, over the listed nodes."""

    def __init__(self, reading: Reading) -> None:
        self._rows, self._trees = reading.state.nodes.rows, reading.state.trees
        named = (self._trees.name_of(one) for one in _constraints(reading))
        labels = sorted({name for name in named if name.startswith(BY_LABEL)})
        self.names = [*self._trees.names(), *labels]

    def levels(self, name: str) -> Sequence[Level]:
        tree = self._trees.tree(name)
        return tree.levels if tree is not None else ()

    def nodes_of(self, level: Level) -> dict[str, list[str]]:
        """By domain, in the order of names: its nodes."""
        found: dict[int, list[str]] = {}
        for node, row in self._rows.items():
            found.setdefault(int(level.ids[row]), []).append(node)
        inside = sorted((domain for domain in found if domain >= 0), key=level.rank)
        named = {level.names[domain]: found[domain] for domain in inside}
        return {**named, **({NO_DOMAIN: found[-1]} if -1 in found else {})}

    def group_of(self) -> dict[str, str]:
        """By node: the domain by which a map groups it. Of the first tree it is the lowest level whose domains are not
        single nodes."""
        for name in self.names:
            for level in reversed(self.levels(name)):
                nodes = self.nodes_of(level)
                nodes.pop(NO_DOMAIN, None)
                if any(len(of_domain) > 1 for of_domain in nodes.values()):
                    return {node: domain for domain, of_domain in nodes.items() for node in of_domain}
        return {}


def _constraints(reading: Reading) -> Iterator[TopologyConstraint]:
    """What the gangs ask for."""
    for gang in reading.state.gangs.values():
        yield from _of_spec(gang.spec)
        for task in gang.tasks.values() if gang.has_topology_of_pods else ():
            yield from (one.constraint for one in task.topology)


def _of_spec(spec: GangSpec) -> Iterator[TopologyConstraint]:
    if spec.topology is not None:
        yield spec.topology
    yield from spec.topology_of_role.values()
    yield from (one.constraint for slices in spec.slices_of_role.values() for one in slices)
    yield from (constraint for branch in spec.branches.values() for _, constraint in branch.constraints)


def read_domains(trees: Trees, nodes: Iterable[Node]) -> list[Domain]:
    """Every domain of every level, from the top down."""
    rows = {node.node: node for node in nodes}
    found = []
    for name in trees.names:
        for level in trees.levels(name):
            for domain, names in trees.nodes_of(level).items():
                members = [rows[node] for node in names if node in rows]
                if members:
                    found.append(_domain(name, level.name, domain, members))
    return found


def _domain(tree: str, level: str, domain: str, nodes: Sequence[Node]) -> Domain:
    used: Counter[str] = Counter()
    capacity: Counter[str] = Counter()
    reserved: Counter[str] = Counter()
    rooms: dict[str, Counter[str]] = {}
    for node in nodes:
        reserved.update(node.reserved)
        for gang, amounts in node.reserved_room.items():
            rooms.setdefault(gang, Counter()).update(amounts)
        for name, use in node.resources.items():
            used[name] += use.used
            capacity[name] += use.capacity
    return Domain(
        tree=tree.partition("/")[2] or tree,
        level=level,
        domain=domain,
        nodes=len(nodes),
        ready=sum(node.status == "Ready" for node in nodes),
        pods=sum(node.pods for node in nodes),
        resources={name: Use(used[name], capacity[name]) for name in capacity},
        reserved=dict(reserved),
        reserved_room=rooms,
    )
