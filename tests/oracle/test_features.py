"""Each optional rule stands beside the core: the core alone is right, a feature brings its own rules and no others.

A family is a feature, or several that are one rule. `NEEDS` says which others it builds on; import-linter holds the
same order (contract `features`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from enbloc.engine.core.claims.claims import Claims
from enbloc.engine.core.commits import Commits
from enbloc.engine.core.cycle import Parts
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.intake import Intake
from enbloc.engine.core.queueing.scheduling_queues import SchedulingQueues
from enbloc.engine.core.why.reporter import Reporter
from enbloc.engine.features import catalogue
from enbloc.engine.features.admission.deadlines import Deadlines
from enbloc.engine.features.admission.enqueue import Admission
from enbloc.engine.features.awaited.awaited_pods import AwaitedPods
from enbloc.engine.features.awaited.demand import QueueDemand
from enbloc.engine.features.backfill.conservative_backfill import ConservativeBackfill
from enbloc.engine.features.backfill.easy_backfill import EasyBackfill
from enbloc.engine.features.backfill.expected_start import ExpectedStarts
from enbloc.engine.features.evict.evictable import Immunity
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.nominations import EvictedGangs, Nominations
from enbloc.engine.features.evict.preempt_by_order import PreemptByOrder
from enbloc.engine.features.groups.deadlocks import Deadlocks
from enbloc.engine.features.groups.holds import Holds
from enbloc.engine.features.groups.min_resources import MinResources
from enbloc.engine.features.partial_allocations import PartialAllocations
from enbloc.engine.features.partial_gangs import PartialGangs
from enbloc.engine.features.reserve.reservations import Reservations
from enbloc.engine.features.reserve.reserved_nodes import ReservedNodes
from enbloc.engine.features.reserve.starvation import Starvation
from enbloc.engine.features.sub_groups import SubGroups
from enbloc.engine.features.usage import Usage
from enbloc.engine.features.waves.later_room import LaterRoom
from enbloc.engine.features.waves.later_waves import LaterWaves
from enbloc.engine.features.waves.waves import Waves
from golden import digests, scenarios
from golden.playing import play
from oracle import compare, families

CORE: Final = (Intake, SchedulingQueues, Commits, Claims, Reporter)
FAMILIES: Final[dict[str, tuple[type[Feature], ...]]] = {
    "awaited": (QueueDemand, AwaitedPods),
    "enqueue": (Admission,),
    "reserve": (Starvation, ReservedNodes, Reservations),
    "history": (Immunity, EvictionHistory),
    "evict": (Nominations, EvictedGangs, PreemptByOrder),
    "wave claims": (Waves,),
    "waves": (LaterRoom, LaterWaves),
    "sub-groups": (SubGroups,),
    "holds": (Holds,),
    "minResources": (MinResources,),
    "deadlocks": (Deadlocks,),
    "easy": (EasyBackfill,),
    "conservative": (ConservativeBackfill,),
    "starts": (ExpectedStarts,),
    "A2": (PartialAllocations,),
    "partial gangs": (PartialGangs,),
    "usage": (Usage,),
}
NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "enqueue": ("awaited", "history"),
    "waves": ("wave claims",),
    "A2": ("wave claims",),
    "easy": ("starts", "awaited"),
    "conservative": ("starts",),
    "reserve": ("starts", "awaited", "wave claims"),
    "evict": ("history", "awaited", "wave claims", "holds", "minResources"),
}
ACTIONS: Final = {"enqueue": ("enqueue",), "reserve": ("reserve",), "evict": ("preempt", "reclaim")}


@contextmanager
def catalogue_of(kinds: Collection[type[Feature]], actions: Collection[str]) -> Iterator[None]:
    """Engines have these features, and these actions do something."""
    with pytest.MonkeyPatch.context() as patched:
        every, run = catalogue.of, dict(catalogue.ACTIONS)

        def chosen(parts: Parts, decide: Callable[[Any], None]) -> list[Feature]:
            return [feature for feature in every(parts, decide) if type(feature) in kinds]

        patched.setattr(catalogue, "of", chosen)
        patched.setattr(catalogue, "ACTIONS", {name: run[name] for name in run if name in actions})
        yield


def with_needed(names: Collection[str]) -> set[str]:
    found, left = set[str](), list(names)
    while left:
        name = left.pop()
        found.add(name)
        left += NEEDS.get(name, ())
    return found


def kinds_of(names: Collection[str]) -> list[type[Feature]]:
    return [*CORE, *(kind for name in names for kind in FAMILIES[name])]


def agrees(layer: str, seeds: Iterable[int], names: Collection[str], actions: str) -> list[str]:
    """Where engine and oracle differ if there are these features alone, and these actions."""
    found: list[str] = []
    with catalogue_of(kinds_of(with_needed(names)), [*actions.split(", "), "allocate"]):
        for seed in seeds:
            documents, settings = families.scenario(seed, layer)
            asked = settings["actions"]
            every = [{"name": one} for one in asked.split(", ")] if isinstance(asked, str) else asked
            kept = [one for one in every if one["name"] in actions.split(", ")]
            why = compare.disagreements(documents, {**settings, "actions": kept})
            found += [f"{layer}/{seed}: {'; '.join(why)}"] if why else []
    return found


def is_plain(documents: Any) -> bool:
    """Whether it has no Jobs, whose pods are awaited (G8), no minResources (K7) and no gangs that start with others."""
    text = json.dumps(documents)
    return not any(word in text for word in ('"Job"', "minResources", "koordinator"))


@pytest.mark.parametrize("layer", ["jobs", "queues", "picky", "spreads", "affinities", "pinned", "domains"])
def test_the_core_alone_is_right(layer: str) -> None:
    plain = [seed for seed in range(40) if is_plain(families.scenario(seed, layer)[0])]
    assert agrees(layer, plain[:5], (), "allocate, backfill") == []


@pytest.mark.parametrize(
    ("names", "layer", "actions"),
    [
        (("awaited", "holds"), "jobs", "allocate, backfill"),
        (("awaited", "holds"), "unsupported", "allocate, backfill"),
        (("enqueue", "holds"), "jobs", "enqueue, allocate"),
        (("usage",), "usage", "allocate"),
        (("waves", "holds"), "whole-jobs", "allocate"),
        (("sub-groups",), "sub-groups", "allocate"),
        (("holds", "minResources", "deadlocks"), "policies", "allocate"),
        (("easy",), "easy", "allocate, backfill"),
        (("conservative",), "conservative", "allocate, backfill"),
        (("reserve",), "reserve", "allocate, reserve"),
        (("evict",), "evict", "allocate, preempt, reclaim"),
    ],
)
def test_the_core_and_one_feature_hold_its_rules(names: tuple[str, ...], layer: str, actions: str) -> None:
    assert agrees(layer, range(5), names, actions) == []


def asks(text: str) -> set[str]:
    """The families that may bear on a golden scenario, by its config and its objects."""
    settings = json.dumps(json.loads(text)["settings"])
    by_settings = {
        "enqueue": "enqueue", "reserve": "reserve", "evict": "preempt", "usage": "fair", "easy": "easy",
        "conservative": "conservative",
    }  # fmt: skip
    by_text = {"holds": "koordinator", "waves": "dependsOn", "A2": "SchedulingSpec", "awaited": '"Job"'}
    by_text |= {"sub-groups": "ubGroup", "minResources": "minResources"}
    found = {name for name, word in by_settings.items() if word in settings}
    found |= {name for name, word in by_text.items() if word in text}
    found |= {"evict"} if "reclaim" in settings else set()
    found |= {"starts"} if found & {"reserve", "easy", "conservative"} else set()
    found |= {"deadlocks"} if found & {"holds", "reserve", "evict"} else set()
    found |= {"minResources"} if found & {"holds", "enqueue"} else set()
    return found


OWN: Final = {
    "awaited": "jobs/0",
    "enqueue": "jobs/1",
    "reserve": "run-times/0",
    "evict": "evict/0",
    "waves": "later-room/0",
    "sub-groups": "sub-groups/2",
    "holds": "koordinator/1",
    "minResources": "mixed-groups/2",
    "easy": "easy/0",
    "conservative": "conservative/0",
    "starts": "run-times/0",
    "usage": "usage/0",
}
"""Of each a scenario that is another one without it. Of the others `tests/rules` has tests."""


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in ("history", "wave claims")])
def test_all_features_but_one_differ_in_its_scenarios_alone(name: str) -> None:
    gone = {one for one in FAMILIES if name in with_needed([one])}
    kinds = [*kinds_of(set(FAMILIES) - gone), Deadlines]
    actions = set(catalogue.ACTIONS) - {action for one in gone for action in ACTIONS.get(one, ())}
    with catalogue_of(kinds, actions):
        for layer in families.LAYERS:
            text = scenarios.text_named(f"{layer}/1")
            if not asks(text) & gone:
                assert why_differs(f"{layer}/1") == ""
        if name in OWN:
            assert why_differs(OWN[name]) != ""


def why_differs(name: str) -> str:
    group, text = name.partition("/")[0], scenarios.text_named(name)
    return digests.difference(digests.read(group).get(name), digests.row_of(text, play(text)))
