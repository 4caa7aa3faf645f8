"""Node trees: for every level of a tree, the domain of each row (T5).

A tree of labels has one level for each label key, from the top down; a domain is the path of values down to its level.
The tree of Volcano's HyperNodes has one level for each tier; the domain of a node at a tier is the highest HyperNode
above it whose tier is not higher. A node without a level's label, or below no such HyperNode, is outside every domain
of that level. Only rows whose node changed are read again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from enbloc.engine.core.tables.nodes import NodeFacts, NodeTable
from enbloc.engine.core.tables.resources import Bools, Ints
from enbloc.gangs.topology import BY_LABEL, CONFIG, HYPER_NODES, INVALID, KAI, KUEUE, TopologyConstraint
from enbloc.units import natural_key

Ids = NDArray[np.int32]
Rank = tuple[tuple[tuple[int, int, str], ...], str]
OUTSIDE: Final = -1


class LevelFacts(msgspec.Struct, frozen=True):
    name: str
    keys: tuple[str, ...]
    """Label keys: the first that a node has gives its value."""
    alias: str = ""


class TreeFacts(msgspec.Struct, frozen=True):
    """A tree of labels, its levels from the top down."""

    name: str
    levels: tuple[LevelFacts, ...]


class MemberFacts(msgspec.Struct, frozen=True):
    """Members of a HyperNode: nodes or HyperNodes, by name, pattern or labels."""

    is_node: bool
    name: str = ""
    pattern: str = ""
    matches: Callable[[Mapping[str, str]], bool] | None = None


class HyperNodeFacts(msgspec.Struct, frozen=True):
    name: str
    tier: int
    tier_name: str
    members: tuple[MemberFacts, ...]
    written: str = ""
    """Its spec as text: equal for equal specs."""


class Level:
    """One level of a tree: the domain of each row, and the name of each domain."""

    __slots__ = ("_numbers", "_positions", "_ranks", "_tree", "ids", "index", "name", "names", "version")

    def __init__(self, name: str, index: int, tree: object = None) -> None:
        self._tree = tree
        self.name = name
        self.index = index
        """0 is the top."""
        self.ids: Ids = np.zeros(0, np.int32)
        self.names: list[str] = []
        self.version = 0
        """Increases when the domain of a row changes."""
        self._numbers: dict[tuple[str, ...], int] = {}
        self._ranks: list[Rank] = []
        self._positions: Ints = np.zeros(0, np.int64)

    def number(self, path: tuple[str, ...]) -> int:
        known = self._numbers.get(path)
        if known is None:
            known = self._numbers[path] = len(self.names)
            self.names.append("/".join(path))
            self._ranks.append((natural_key(self.names[-1]), self.names[-1]))
        return known

    def is_above(self, other: Level) -> bool:
        """Whether it is a higher level of the same tree."""
        return self._tree is other._tree and self.index < other.index

    def rows_of(self, domain: int) -> Bools:
        found: Bools = self.ids == domain
        return found

    def rank(self, domain: int) -> Rank:
        """Sorts domains by name."""
        return self._ranks[domain]

    def positions(self) -> Ints:
        """The place of each domain in the order of names."""
        if len(self._positions) != len(self.names):
            order = sorted(range(len(self.names)), key=self._ranks.__getitem__)
            self._positions = np.zeros(len(order), np.int64)
            self._positions[order] = np.arange(len(order))
        return self._positions

    def __repr__(self) -> str:
        return f"Level({self.name}, {len(self.names)} domains)"


PathsOf = Callable[[NodeFacts], Sequence[tuple[str, ...] | None]]
"""From a node to its path at every level of a tree; `None`: outside."""


class NodeTree:
    """One tree, its levels from the top down."""

    def __init__(self, nodes: NodeTable, names: Sequence[str], paths_of: PathsOf) -> None:
        self._nodes = nodes
        self._paths_of = paths_of
        self.levels = [Level(name, index, self) for index, name in enumerate(names)]
        self._read_at = 0
        self._moves = -1

    def refresh(self) -> None:
        nodes = self._nodes
        if self._moves == nodes.moves and self._read_at == nodes.static_version:
            return
        if self._moves != nodes.moves:
            self._moves, self._read_at = nodes.moves, 0
            for level in self.levels:
                level.ids = np.full(0, OUTSIDE, np.int32)
                level.version += 1
        for level in self.levels:
            if len(level.ids) < nodes.count:
                level.ids = np.pad(level.ids, (0, nodes.count - len(level.ids)), constant_values=OUTSIDE)
                level.version += 1
        for row in np.flatnonzero(nodes.static_stamp[: nodes.count] > self._read_at).tolist():
            facts = nodes.facts[row]
            paths = self._paths_of(facts) if facts is not None else [None] * len(self.levels)
            for level, path in zip(self.levels, paths, strict=True):
                number = OUTSIDE if path is None else level.number(path)
                if level.ids[row] != number:
                    level.ids[row] = number
                    level.version += 1
        self._read_at = nodes.static_version


class Asked(msgspec.Struct, frozen=True):
    """The levels that a constraint asks for."""

    required: Level | None
    preferred: Level | None
    between: tuple[Level, ...]
    """The levels from the preferred one up to the required one, or to the top; the preferred one first."""


class NodeTrees:
    """All trees by name. Trees of one label are made when they are first asked for."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._facts: dict[str, TreeFacts] = {}
        self._trees: dict[str, NodeTree] = {}
        self._hyper_nodes: dict[str, HyperNodeFacts] = {}

    def put(self, facts: TreeFacts) -> bool:
        """Whether the tree is new or other than before."""
        if self._facts.get(facts.name) == facts:
            return False
        self._facts[facts.name] = facts
        self._trees.pop(facts.name, None)
        return True

    def remove(self, name: str) -> None:
        self._facts.pop(name, None)
        self._trees.pop(name, None)

    def put_hyper_node(self, facts: HyperNodeFacts) -> bool:
        """Whether the HyperNode is new or other than before."""
        known = self._hyper_nodes.get(facts.name)
        if known is not None and known.written == facts.written:
            return False
        self._hyper_nodes[facts.name] = facts
        self._trees.pop(HYPER_NODES, None)
        return True

    def remove_hyper_node(self, name: str) -> None:
        self._hyper_nodes.pop(name, None)
        self._trees.pop(HYPER_NODES, None)

    def names(self) -> list[str]:
        """The trees that objects or the config describe."""
        return sorted([*self._facts, *([HYPER_NODES] if self._hyper_nodes else ())])

    def tree(self, name: str) -> NodeTree | None:
        """A tree, with the nodes as they are now."""
        found = self._trees.get(name)
        if found is None:
            found = self._make(name)
            if found is None:
                return None
            self._trees[name] = found
        found.refresh()
        return found

    def asked(self, constraint: TopologyConstraint) -> Asked | str:
        """The levels that a constraint names; a text says why they are not known. A preferred level that does not exist
        has no effect."""
        if constraint.tree.startswith(INVALID):
            return constraint.required
        name = self.name_of(constraint)
        tree = self.tree(name)
        if tree is None and not constraint.required:
            return Asked(None, None, ())
        if tree is None:
            return "no HyperNode exists" if name == HYPER_NODES else f"topology {_shown(name)} does not exist"
        if name == HYPER_NODES:
            return self._of_tiers(tree, constraint)
        facts = self._facts.get(name)
        levels = {}
        for field in ("required", "preferred"):
            named = getattr(constraint, field)
            found = [level for part in named.split("|") if (level := _level(tree, facts, part)) is not None]
            if field == "required" and named and len(found) < len(named.split("|")):
                return f"topology {_shown(name)} has no level {named.replace('|', ', ')}"
            levels[field] = max(found, key=lambda level: level.index) if found else None
        return _asked(tree, levels["required"], levels["preferred"])

    def name_of(self, constraint: TopologyConstraint) -> str:
        """The tree that a constraint names. Kueue's pods name a level only: its tree is the first by name that has it,
        or else the label itself. A tree of KAI that does not exist may be one of the config."""
        if constraint.tree.startswith(KAI) and constraint.tree not in self._facts:
            named = CONFIG + constraint.tree.removeprefix(KAI)
            return named if named in self._facts else constraint.tree
        if constraint.tree != KUEUE:
            return constraint.tree
        wanted = constraint.required or constraint.preferred
        trees = sorted((not name.startswith(KUEUE), name) for name in self._facts if name.startswith((KUEUE, CONFIG)))
        with_level = [name for _, name in trees if any(one.name == wanted for one in self._facts[name].levels)]
        return with_level[0] if with_level else f"{BY_LABEL}{wanted}"

    def _of_tiers(self, tree: NodeTree, constraint: TopologyConstraint) -> Asked | str:
        """Tier n means: in one HyperNode of tier n or below. Above the highest tier it is the whole cluster, as in
        Volcano."""
        wanted, tiers = constraint.required, [_tier(level) for level in tree.levels]
        lowest = tree.levels[-1]
        if not wanted:
            return _asked(tree, None, lowest)
        if wanted.startswith("name="):
            named = [one.tier for one in self._hyper_nodes.values() if one.tier_name == wanted.removeprefix("name=")]
            if not named:
                return f"no HyperNode has the tier name {wanted.removeprefix('name=')}"
            tier = max(named)
        else:
            tier = int(wanted)
        if tier > tiers[0]:
            return _asked(tree, None, lowest)
        allowed = [level for level, number in zip(tree.levels, tiers, strict=True) if number <= tier]
        if not allowed:
            return f"no HyperNode has tier {tier} or a lower one"
        return _asked(tree, allowed[0], lowest)

    # ---- internals

    def _make(self, name: str) -> NodeTree | None:
        if name.startswith(BY_LABEL):
            key = name.removeprefix(BY_LABEL)
            return NodeTree(self._nodes, [key], _by_labels([(key,)]))
        if name == HYPER_NODES:
            return self._hyper_node_tree() if self._hyper_nodes else None
        facts = self._facts.get(name)
        if facts is None:
            return None
        return NodeTree(
            self._nodes, [level.name for level in facts.levels], _by_labels([one.keys for one in facts.levels])
        )

    def _hyper_node_tree(self) -> NodeTree:
        tiers = sorted({one.tier for one in self._hyper_nodes.values()}, reverse=True)
        parents = self._parents()
        of_nodes = [
            one for _, one in sorted(self._hyper_nodes.items()) if any(member.is_node for member in one.members)
        ]

        def paths(facts: NodeFacts) -> list[tuple[str, ...] | None]:
            direct = [one for one in of_nodes if _has_node(one, facts)]
            if not direct:
                return [None] * len(tiers)
            lowest = min(direct, key=lambda one: (one.tier, one.name))
            chain = [lowest]
            while (above := parents.get(chain[-1].name)) is not None and above not in chain:
                chain.append(above)
            found: list[tuple[str, ...] | None] = []
            for tier in tiers:
                at_most = [one for one in chain if one.tier <= tier]
                found.append((at_most[-1].name,) if at_most else None)
            return found

        return NodeTree(self._nodes, [f"{_TIER}{tier}" for tier in tiers], paths)

    def _parents(self) -> dict[str, HyperNodeFacts]:
        """The HyperNode above each; of several the lowest tier, then the first name."""
        found: dict[str, HyperNodeFacts] = {}
        for one in sorted(self._hyper_nodes.values(), key=lambda one: (one.tier, one.name)):
            for name in self._hyper_nodes:
                below = self._hyper_nodes[name]
                if below.tier < one.tier and name not in found and _has_hyper_node(one, name):
                    found[name] = one
        return found


def _asked(tree: NodeTree, required: Level | None, preferred: Level | None) -> Asked:
    """A preferred level above the required one has no effect: the required one is narrower."""
    top = required.index if required is not None else 0
    bottom = preferred.index if preferred is not None else top
    if preferred is None or bottom < top:
        preferred, bottom = required, top
    between = tuple(reversed(tree.levels[top : bottom + 1])) if preferred is not None else ()
    return Asked(required, preferred, between)


def _level(tree: NodeTree, facts: TreeFacts | None, name: str) -> Level | None:
    aliases = {one.alias: one.name for one in facts.levels if one.alias} if facts is not None else {}
    wanted = aliases.get(name, name)
    return next((level for level in tree.levels if level.name == wanted), None)


_TIER: Final = "HyperNode tier "


def _tier(level: Level) -> int:
    return int(level.name.removeprefix(_TIER))


def _shown(name: str) -> str:
    return name.partition("/")[2] or name


def _by_labels(levels: Iterable[tuple[str, ...]]) -> PathsOf:
    wanted = list(levels)

    def paths(facts: NodeFacts) -> list[tuple[str, ...] | None]:
        values = [next((facts.labels[key] for key in keys if key in facts.labels), None) for keys in wanted]
        found: list[tuple[str, ...] | None] = []
        for index, value in enumerate(values):
            above = tuple(one if one is not None else "" for one in values[:index])
            found.append(None if value is None else (*above, value))
        return found

    return paths


def _has_node(one: HyperNodeFacts, facts: NodeFacts) -> bool:
    return any(member.is_node and _matches(member, facts.name, facts.labels) for member in one.members)


def _has_hyper_node(one: HyperNodeFacts, name: str) -> bool:
    return any(not member.is_node and _matches(member, name, {}) for member in one.members)


def _matches(member: MemberFacts, name: str, labels: Mapping[str, str]) -> bool:
    if member.name:
        return member.name == name
    if member.pattern:
        try:
            return re.search(member.pattern, name) is not None
        except re.error:
            return False
    return member.matches is not None and member.matches(labels)
