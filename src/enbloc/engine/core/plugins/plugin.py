"""The extension points, and how the plugins that a config names are loaded.

A plugin is a plain class, constructed with its arguments, that has any of the methods below; the engine uses those that
exist. A third party's plugin is found by its entry point in the group `enbloc.plugins`:

    class SmallFirst:
        def __init__(self, arguments): ...
        def gang_order(self, gang):                 # a sort key within a queue, after priority
            return (gang.spec.minimum,)

Others: `running_order(gang, now_ns)`, the key of a gang that runs (without it, `gang_order`);
`score(headroom)`, whole points per row (0..100, times its own weight); and `mask(cls, nodes)`, a `Check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import entry_points
from inspect import isfunction
from typing import Any, NamedTuple

import numpy as np

from enbloc.config import Config
from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.plugins.fair_share import FairShare
from enbloc.engine.core.plugins.gang_orders import Priority, RemainingFirst, ShortestFirst, Sla
from enbloc.engine.core.plugins.scores import TIE, Binpack, NodeOrder
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.headroom import Headroom
from enbloc.engine.core.tables.nodes import NodeTable
from enbloc.engine.core.tables.resources import Ints

GROUP = "enbloc.plugins"

GangOrder = Callable[[Any], tuple[Any, ...]]
RunningOrder = Callable[[Any, int], tuple[Any, ...]]
Score = Callable[[Headroom], Ints]
Mask = Callable[[TaskClass, NodeTable], Check | None]


class Plugins(NamedTuple):
    """The plugins of a config, by extension point."""

    gang_order: Sequence[GangOrder]
    running_order: Sequence[RunningOrder]
    """The same for gangs that run, at a time: what they have done may count."""
    scores: Sequence[Score]
    masks: Sequence[Mask]
    predicates: bool
    """Whether Kubernetes' own filters apply (resource fit always does)."""
    task_priority: bool
    """Whether the tasks of a gang are ordered by priority first (O2)."""
    queue_order: bool
    """Whether queues are ordered by share (G8)."""
    by_remaining: Sequence[RemainingFirst]
    accounts: Sequence[Callable[[Any], str]]
    """Tell gangs apart whose keys may be equal now and differ later."""
    fair: FairShare | None
    """Usage over time, if gangs are ordered by it (G12)."""
    deadlines: Sla | None
    """By which a gang is enqueued at the latest (C); `None`: gangs have no deadlines."""

    def score(self, headroom: Headroom) -> Ints:
        """The sum of all scores; 0 without any score plugin."""
        total: Ints | None = None
        for score in self.scores:
            part = score(headroom)
            total = part if total is None else total + part
        return np.zeros_like(headroom.after(0)) if total is None else total


def load(config: Config) -> Plugins:
    """Loads the plugins of a config. Built-in rules are on unless switched off, whether listed or not."""
    sla = Sla(config.sla_waiting_ns)
    given = _third_party(config)
    orders = [*_built_in_order(config, sla), *_having("gang_order", "jobOrder", given, config)]
    scored_in_points = [_in_points(plugin.score) for plugin in _having("score", "nodeOrder", given, config)]
    return Plugins(
        [order.gang_order for order in orders],
        [_running_order(order) for order in orders],
        [*_built_in_scores(config), *scored_in_points],
        [plugin.mask for plugin in _having("mask", "predicate", given, config)],
        predicates=config.enabled("predicates", "predicate"),
        task_priority=config.enabled("priority", "taskOrder"),
        queue_order=config.enabled("proportion", "queueOrder") and config.enabled("capacity", "queueOrder"),
        by_remaining=[order for order in orders if isinstance(order, RemainingFirst)],
        accounts=[order.account_of for order in orders if hasattr(order, "account_of")],
        fair=next((order for order in orders if isinstance(order, FairShare)), None),
        deadlines=sla if config.enabled("sla", "jobEnqueued") else None,
    )


def _built_in_order(config: Config, sla: Sla) -> list[Any]:
    """Priority first, then usage over time, then run times; deadlines where `sla` is listed among them (C)."""
    found: list[tuple[str, Any]] = []
    for name, order in (
        ("priority", Priority()),
        ("fair", FairShare(config.fair)),
        ("sjf", ShortestFirst()),
        ("srtf", RemainingFirst(by_service=False)),
        ("srsf", RemainingFirst(by_service=True)),
    ):
        if config.enabled(name, "jobOrder"):
            found.append((name, order))
    if config.enabled("sla", "jobOrder"):
        names = [plugin.name for tier in config.tiers for plugin in tier.plugins]
        after_sla = set(names[names.index("sla") :])
        before = [name not in after_sla for name, _ in found]
        found.insert(before.index(False) if False in before else len(found), ("sla", sla))
    return [order for _, order in found]


def _built_in_scores(config: Config) -> Iterator[Score]:
    weights = config.scoring
    if weights.least or weights.most or weights.balanced:
        yield NodeOrder(weights.least, weights.most, weights.balanced).score
    if weights.binpack.weight:
        yield Binpack(weights.binpack.weight, weights.binpack.resources).score


def _running_order(order: Any) -> RunningOrder:
    if hasattr(order, "running_order"):
        running: RunningOrder = order.running_order
        return running
    waiting: GangOrder = order.gang_order
    return lambda gang, now_ns: waiting(gang)


def _in_points(score: Score) -> Score:
    """Scales a third party's points. Negative scores are cut to 0: a negative key means that the row has no room."""

    def scaled(headroom: Headroom) -> Ints:
        found: Ints = np.maximum(np.asarray(score(headroom)), 0).astype(np.int64) * TIE
        return found

    return scaled


class _GangOrderFunction:
    """A function from a gang to its sort key, as a plugin. A key that is no tuple is one of a single value."""

    def __init__(self, key_of: Callable[[Any], Any]) -> None:
        self._key_of = key_of

    def gang_order(self, gang: Any) -> tuple[Any, ...]:
        key = self._key_of(gang)
        return key if isinstance(key, tuple) else (key,)


def _having(method: str, point: str, given: Sequence[tuple[str, Any]], config: Config) -> list[Any]:
    """The plugins of third parties that have a method, unless the config switches them off at its point. A plugin that
    was passed in code has no name, and no flag that switches it off."""
    return [plugin for name, plugin in given if hasattr(plugin, method) and (not name or config.enabled(name, point))]


def _third_party(config: Config) -> list[tuple[str, Any]]:
    """Those that the tiers name, then those that were passed in code."""
    names = [plugin.name for tier in config.tiers for plugin in tier.plugins]
    found = {entry.name: entry for entry in entry_points(group=GROUP)} if names else {}  # looking for some takes time
    listed = [(name, found[name].load()(config.arguments(name))) for name in names if name in found]
    in_code = [_GangOrderFunction(given) if isfunction(given) else given for given in config.plugins_in_code]
    return [*listed, *(("", plugin) for plugin in in_code)]
