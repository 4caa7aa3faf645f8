"""Remedies: candidate changes that were tried and let the gang start, the cheapest first, at most three."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from enbloc.advice.candidates import members, nodes, others, pods, queues, topology
from enbloc.advice.case import Case
from enbloc.advice.change import Candidates, Change, StepDoc
from enbloc.advice.trials import Trials
from enbloc.api.reasons import PendingReason

MOST_REMEDIES: Final = 3
MOST_TRIES: Final = 24
"""At most this many trials for one gang."""

Family = Callable[[Case], Candidates]


class Remedy(msgspec.Struct, frozen=True):
    change: str
    starts_at_ns: int
    steps: tuple[StepDoc, ...]
    """The Steps that were tried."""


_ROOM: Final[tuple[Family, ...]] = (
    pods.known_resources,
    pods.known_labels,
    pods.known_claims,
    nodes.uncordoned,
    pods.tolerating,
    pods.without_selector,
    pods.without_affinity,
    topology.without_topology,
    queues.raised,
    members.fewer,
    others.ends,
    others.higher_priority,
    nodes.more_nodes,
    pods.smaller,
    pods.without_resources,
    nodes.untainted,
    queues.another_queue,
    nodes.nodes_for_all_ahead,
)
_QUEUE: Final[tuple[Family, ...]] = (
    queues.raised,
    queues.another_queue,
    members.fewer,
    others.ends,
    others.higher_priority,
)
_MEMBERS: Final[tuple[Family, ...]] = (
    pods.ungated,
    pods.our_scheduler,
    members.within_quota,
    members.created,
    members.fewer,
)
_SEARCHES: Final = frozenset({members.fewer, nodes.more_nodes, nodes.nodes_for_all_ahead})
"""Families whose last candidate that helped is the one to say; of the others it is the first."""
_BY_REASON: Final[dict[PendingReason, tuple[Family, ...]]] = {
    PendingReason.NOT_ENOUGH_PODS: _MEMBERS,
    PendingReason.SCHEDULING_GATED: _MEMBERS,
    PendingReason.OTHER_SCHEDULER: _MEMBERS,
    PendingReason.FAILED_CREATE: _MEMBERS,
    PendingReason.INTERNAL_ERROR: (),
    PendingReason.UNSUPPORTED_CONSTRAINT: (pods.without_unsupported,),
    PendingReason.GANG_INVALID: (
        queues.known_queue,
        others.known_group,
        queues.opened,
        others.new_group,
        queues.new_queue,
        queues.another_queue,
    ),
    PendingReason.TIMED_OUT: (pods.not_timed_out, *map(pods.and_not_timed_out, _ROOM)),
    PendingReason.NOT_ENOUGH_RESOURCES: _ROOM,
    PendingReason.UNSCHEDULABLE: _ROOM,
    PendingReason.QUEUE_FULL: _QUEUE,
    PendingReason.CLAIM_NOT_ALLOWED: (members.within_quota, queues.another_queue),
    PendingReason.BLOCKED_BY_FIFO: (queues.not_fifo, queues.another_queue, others.ends, *_ROOM),
    PendingReason.HOLD_RELEASED: _ROOM,
}
"""Reason → families of candidates, the cheapest first. A gang of a group that is not ready gets those of the gang that
keeps it waiting."""


def remedies(case: Case, trials: Trials, before_ns: int | None) -> list[Remedy]:
    """Changes that let the gang start, and earlier than `before_ns`, if it starts by itself then. What did not help a
    gang of the same shape that is served before it is not tried again: it would take the room first."""
    found: list[Remedy] = []
    tries = MOST_TRIES
    trials.begin_gang()
    for prefix, subject, family in _families(case):
        key = (family, subject is case, case.shape)
        if key in trials.futile or (found and family is nodes.nodes_for_all_ahead):
            continue
        best: Remedy | None = None
        candidates = family(subject)
        change = next(candidates, None)
        while change is not None and tries > 0 and trials.left > 0:
            tries -= 1
            title = change.gang or case.title
            start_ns = trials.start_after(title, change.steps, before_ns) if change.steps else None
            if start_ns is not None:
                best = Remedy(prefix + change.text, start_ns, change.steps)
                if family not in _SEARCHES:
                    break
            change = _next(candidates, start_ns is not None)
        if best is not None:
            found.append(best)
        elif change is None and trials.left > 0:  # a trial that the budget ended shows nothing
            trials.futile.add(key)
        if len(found) >= MOST_REMEDIES:
            break
    return found


def _next(candidates: Candidates, helped: bool) -> Change | None:
    try:
        return candidates.send(helped)
    except StopIteration:
        return None


def _families(case: Case) -> Iterator[tuple[str, Case, Family]]:
    """`(prefix, case, family)`: the case is that of another gang where that one is in the way."""
    if case.why.reason is not PendingReason.GROUP_NOT_READY:
        for family in _BY_REASON[case.why.reason]:
            yield "", case, family
        return
    for gang in case.engine.state.gangs.values():
        if gang.spec.title == case.why.other and gang is not case.gang:
            other = Case(case.store, case.engine, case.config, gang)
            for family in _BY_REASON.get(other.why.reason, ()):
                yield f"for {other.title}: ", other, family


def shown(found: Sequence[Remedy], at: Callable[[int], object]) -> list[dict[str, object]]:
    """As JSON; `at` shows a time."""
    return [{"change": one.change, "starts_at": at(one.starts_at_ns), "steps": list(one.steps)} for one in found]
