"""What gangs that start together ask evictions for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.placement.request import PlacementRequest, replacements, request_of
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.features.groups.min_resources import min_resources, shortage
from enbloc.engine.features.waves.waves import Waves


def requests_of(cycle: Cycle, unit: Sequence[GangState]) -> list[PlacementRequest]:
    """Minima, with the later waves of a whole-job gang (D5), and replacements of lost members: surplus evicts no pod
    (P1)."""
    found = []
    for gang in unit:
        lost = replacements(gang)
        request = with_later(cycle, gang)
        if gang.satisfied:
            found.append(PlacementRequest(gang, [*lost, *request.minimum]))
        elif gang.need.missing:
            found.append(PlacementRequest(gang, lost))
        else:
            found.append(request._replace(needed=[*lost, *request.needed]))
    return [request for request in found if request.needed or request.short]


def one_lost_member(requests: Sequence[PlacementRequest]) -> Sequence[PlacementRequest]:
    """The first lost member alone, if more is asked for: each is replaced by itself, without a later wave (G7, D3)."""
    for request in requests:
        lost = request.needed if request.gang.satisfied else replacements(request.gang)
        if lost:
            alone = [PlacementRequest(request.gang, lost[:1])]
            return alone if alone != requests else ()
    return ()


def with_later(cycle: Cycle, gang: GangState) -> PlacementRequest:
    """What a gang needs and has no room for: its minima, and the later waves that start with it (D5)."""
    request, waves = request_of(gang), cycle.features.get(Waves)
    return request._replace(needed=waves.without_room(gang, request.needed), later=waves.later_tasks(gang))


def never_preempts(unit: Sequence[GangState], requests: Sequence[PlacementRequest]) -> bool:
    tasks = (task for one in requests for task in (*one.needed, *one.rest))
    return any(gang.spec.never_preempts for gang in unit) or any(task.never_preempts for task in tasks)


def reaches_min_resources(cycle: Cycle, unit: Sequence[GangState]) -> Callable[[], bool] | None:
    """Whether free room reaches what a Strict group that has not started must find free in all; `None`: it asks for
    nothing. No victim is evicted for that alone (K7)."""
    group = cycle.units.of(unit[0])
    asked = min_resources(cycle.state, group) if not unit[0].satisfied else {}
    return (lambda: shortage(cycle.state, group, asked) is None) if asked else None
