"""What a plugin is, and how the ones that a config names are found.

A plugin is a plain class, made with its arguments, that has any of the methods below; the engine looks which ones are
there. A third party's is found by its entry point in the group `enbloc.plugins`:

    class SmallFirst:
        def __init__(self, arguments): ...
        def gang_order(self, gang):                 # a key inside a queue, after priority
            return (gang.spec.minimum,)

Others are `score(room)`, whole points a row (0..100, times a weight of its own), and `mask(cls, nodes)`, a `Check`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any, NamedTuple

import numpy as np

from enbloc.config import Config
from enbloc.engine.filters.filter import Check
from enbloc.engine.plugins.binpack import Binpack
from enbloc.engine.plugins.nodeorder import TIE, NodeOrder
from enbloc.engine.plugins.priority import Priority
from enbloc.engine.scoring.headroom import Headroom
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.nodes import NodeTable
from enbloc.engine.tables.resources import Ints

GROUP = "enbloc.plugins"

GangOrder = Callable[[Any], tuple[Any, ...]]
Score = Callable[[Headroom], Ints]
Mask = Callable[[TaskClass, NodeTable], Check | None]


class Plugins(NamedTuple):
    """The extension points, with what the config has plugged into each."""

    gang_order: Sequence[GangOrder]
    scores: Sequence[Score]
    masks: Sequence[Mask]
    predicates: bool
    """Whether Kubernetes' own predicates are asked (resources always are)."""
    task_priority: bool
    """Whether the tasks of a gang go by priority first (O2)."""
    queue_order: bool
    """Whether the next queue is chosen by share (G8)."""

    def score(self, room: Headroom) -> Ints:
        """The sum of all scores, in integers; where nobody has an opinion every row is as good."""
        total: Ints | None = None
        for score in self.scores:
            part = score(room)
            total = part if total is None else total + part
        return np.zeros_like(room.after(0)) if total is None else total


def load(config: Config) -> Plugins:
    """The plugins of a config. What is not switched off and belongs to the rules is on, listed or not."""

    gang_order: list[GangOrder] = [Priority().gang_order] if config.enabled("priority", "jobOrder") else []
    scores: list[Score] = []
    masks: list[Mask] = []
    weights = config.scoring
    if weights.least or weights.most or weights.balanced:
        scores.append(NodeOrder(weights.least, weights.most, weights.balanced).score)
    if weights.binpack.weight:
        scores.append(Binpack(weights.binpack.weight, weights.binpack.resources).score)
    for name, plugin in _third_party(config):
        if hasattr(plugin, "gang_order") and config.enabled(name, "jobOrder"):
            gang_order.append(plugin.gang_order)
        if hasattr(plugin, "score") and config.enabled(name, "nodeOrder"):
            scores.append(_in_points(plugin.score))
        if hasattr(plugin, "mask") and config.enabled(name, "predicate"):
            masks.append(plugin.mask)
    return Plugins(
        gang_order,
        scores,
        masks,
        predicates=config.enabled("predicates", "predicate"),
        task_priority=config.enabled("priority", "taskOrder"),
        queue_order=config.enabled("proportion", "queueOrder") and config.enabled("capacity", "queueOrder"),
    )


def _in_points(score: Score) -> Score:
    """A third party scores in points. A row whose score is below zero would be taken for one without room."""

    def scaled(room: Headroom) -> Ints:
        found: Ints = np.maximum(np.asarray(score(room)), 0).astype(np.int64) * TIE
        return found

    return scaled


def _third_party(config: Config) -> list[tuple[str, Any]]:
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    wanted = [plugin.name for tier in config.tiers for plugin in tier.plugins if plugin.name in found]
    return [(name, found[name].load()(config.arguments(name))) for name in wanted]
