"""Placement of gangs whose tasks must or should be together (T1, T2, T6): domains are chosen, then tasks are placed.

Every part takes the best option for which the parts after it still find one, and for which the whole attempt succeeds:
the attempt is the ordinary one, greedy or by packing, with the rows outside closed. So gangs of several classes are
placed exactly, and "fits in no domain" is proved, unless the number of tries or a search within a domain was cut off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.domains import (
    PINS,
    SLICE,
    Domains,
    Option,
    Part,
    constraints_on,
    contains,
    part_of,
)
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.core.why import diagnosis, further_nodes
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.decisions import PlannedDomains
from enbloc.engine.events import EventKind
from enbloc.gangs.model import GangKey
from enbloc.gangs.topology import TopologyConstraint

TRIES: Final = 64
"""At most 64 attempts are made for one request; then it counts as not fitting, unproved."""

OPTIONS_BOUND: Final = 4_096
"""At most 4,096 options are looked at for one request."""

TOPOLOGY_WAKES_ON: Final = frozenset({EventKind.TOPOLOGY_CHANGED})
"""Events after which the tasks of a part may fit in one domain, besides those of free room."""

OUTSIDE = "node(s) were outside of the domain of its gang"

_PartName = tuple[tuple[str, ...], TopologyConstraint]

Attempt = Callable[[Constraints], Diagnosis | None]
"""Places all requests under these constraints, or nothing."""


def place_in_domains(
    state: State, requests: Sequence[PlacementRequest], constraints: Constraints, place: Attempt
) -> tuple[Diagnosis | None, dict[GangKey, list[PlannedDomains]]]:
    """Chooses domains and places all requests within them; or why that failed."""
    parts: list[Part] = []
    unknown: dict[GangKey, Diagnosis] = {}
    for request in requests:
        found = parts_of(state, request)
        if isinstance(found, Diagnosis):
            unknown[request.gang.key] = found
        else:
            parts += found
    if unknown:
        return _said_by(unknown, requests), {}
    if not parts:
        return place(constraints), {}
    search = _Search(state, parts, constraints, place)
    if search.run(0, []):
        return None, search.planned()
    if search.ended_early and any(part.asked.preferred is not part.asked.required for part in parts):
        search = _Search(state, parts, constraints, place, prefers=False)
        if search.run(0, []):
            return None, search.planned()
    return search.failure(requests), {}


def _said_by(found: Mapping[GangKey, Diagnosis], requests: Sequence[PlacementRequest]) -> Diagnosis:
    """The first diagnosis; of gangs that start together each says its own (G10)."""
    first = next(iter(found.values()))
    return first if len(requests) == 1 else msgspec.structs.replace(first, of_gangs=dict(found))


def within_pins(
    state: State, gang: GangState, tasks: Sequence[Task], constraints: Constraints
) -> tuple[Constraints, Callable[[int], Diagnosis] | None]:
    """For tasks that are placed one by one: the domains of the members that are placed already are open (T4). Without
    such members, the best domain for all of them, or else the one with the most room. With why a number of them does
    not fit there."""
    found = parts_of(state, PlacementRequest(gang, tasks))
    if isinstance(found, Diagnosis):
        failure = found
        known = _with_known_levels(state, gang, tasks)
        if known:
            constraints, _ = within_pins(state, gang, known, constraints)
        return _closing_to_others(constraints, known, failure.message, state.nodes.count), lambda count: failure
    bound = [part for part in found if part.asked.required is not None]
    if not bound:
        return constraints, None
    chosen: list[Option] = []
    for part in bound:
        chosen.append(_open_option(state, part, closed_to(state, part, constraints, chosen)))
    narrowest = bound[-1]

    def why(count: int) -> Diagnosis:
        pinned = _pinned(state, gang, narrowest.name, narrowest.constraint)
        of_part = narrowest._replace(size=count, pinned=pinned)
        return _no_domain(state, of_part, closed_to(state, of_part, constraints, ()), unproved=False)

    return within(constraints, chosen), why


def _with_known_levels(state: State, gang: GangState, tasks: Sequence[Task]) -> list[Task]:
    """Those of several tasks whose own parts require no level that does not exist."""
    is_known: dict[object, bool] = {}
    for task in tasks:
        part = part_of(task)
        if part not in is_known:
            is_known[part] = not isinstance(parts_of(state, PlacementRequest(gang, [task])), Diagnosis)
    found = [task for task in tasks if is_known[part_of(task)]]
    return found if len(found) < len(tasks) else []


def _closing_to_others(constraints: Constraints, known: Sequence[Task], why: str, count: int) -> Constraints:
    """These constraints, with every row closed to tasks that are not known."""
    before, uids, every = constraints.closed, {task.uid for task in known}, np.ones(count, np.bool_)

    def closed(task: Task) -> list[tuple[str, Bools]]:
        found = list(before(task)) if before is not None else []
        return found if task.uid in uids else [*found, (why, every)]

    return constraints._replace(closed=closed)


def _open_option(state: State, part: Part, closed: Bools | None) -> Option:
    """The domain of the required level for tasks that are placed one by one. Preferences do not keep them out."""
    level = part.asked.required
    assert level is not None, f"{part.name} requires a level"
    domains = Domains(state, part, closed, ())
    best = None if part.pinned else next(domains.options(), None)
    if best is None or best.level is None:
        best = domains.roomiest()
    if best is None:
        return Option(part, np.zeros(state.nodes.count, np.bool_), level, ())
    return Option(part, level.rows_of(int(level.ids[int(best.rows.argmax())])), level, ())


def parts_of(state: State, request: PlacementRequest) -> list[Part] | Diagnosis:
    """The constrained parts of a request, the widest first."""
    whole = _whole_gang(state, request)
    if whole is not None:
        return whole
    found: list[Part] = []
    for (name, constraint), share in sorted(_shares(request).items(), key=lambda item: (len(item[0][0]), item[0][0])):
        asked = state.trees.asked(constraint)
        if isinstance(asked, str):
            return diagnosis.unknown_topology(request.gang, asked)
        if asked.preferred is None:
            continue  # a preference for a tree that does not exist
        pinned = _pinned(state, request.gang, name, constraint)
        found.append(Part(request.gang, name, constraint, asked, share.needed, share.size, pinned))
    why = _slices_above_whole(found)
    return diagnosis.unknown_topology(request.gang, why) if why else found


class _Share:
    """What of a request belongs to one part."""

    def __init__(self) -> None:
        self.needed: dict[int, int] = {}
        self.size = 0

    def add(self, tasks: Sequence[Task]) -> None:
        self.size += len(tasks)
        for task in tasks:
            self.needed[task.cls.id] = self.needed.get(task.cls.id, 0) + 1


def _shares(request: PlacementRequest) -> dict[_PartName, _Share]:
    """By part, what of a request belongs to it."""
    rest = request.rest if request.short else ()
    may_choose = request.short < len(rest)
    found: defaultdict[_PartName, _Share] = defaultdict(_Share)
    if may_choose:
        _share_choice(found, rest, request.short)
    for task in (*request.must, *(() if may_choose else rest)):
        for key in constraints_on(task):
            found[key].add([task])
    return found


def _share_choice(found: Mapping[_PartName, _Share], rest: Sequence[Task], short: int) -> None:
    """Any `short` tasks of the rest are placed: which parts they belong to is certain for parts of all of the rest."""
    for key in dict.fromkeys(key for task in rest for key in constraints_on(task)):
        same = [task for task in rest if key in constraints_on(task)]
        share = found[key]
        share.needed = dict.fromkeys((task.cls.id for task in same), 0)
        if len(same) == len(rest):
            if len(share.needed) == 1:
                share.add(same[:short])
            else:
                share.size += short


def _slices_above_whole(parts: Sequence[Part]) -> str:
    """Slices of a level above that of the pods they are slices of are a mistake (T3)."""
    for part in parts:
        level = part.asked.required
        if level is None or not part.name or not part.name[-1].startswith(SLICE):
            continue
        for whole in parts:
            outer = whole.asked.required
            if contains(whole, part) and outer is not None and level.is_above(outer):
                return f"the level {level.name} of its slices is above {outer.name}, the level of all of them"
    return ""


def _whole_gang(state: State, request: PlacementRequest) -> list[Part] | Diagnosis | None:
    """The same where the gang has one constraint for all of its equal tasks; `None`: it is not so."""
    gang, constraint = request.gang, request.gang.spec.topology
    tasks = [*request.must, *(request.rest if request.short else ())]
    if constraint is None or not tasks or gang.spec.is_split:
        return None
    cls = tasks[0].cls
    if any(task.topology or task.cls is not cls for task in tasks):
        return None
    asked = state.trees.asked(constraint)
    if isinstance(asked, str):
        return diagnosis.unknown_topology(gang, asked)
    if asked.preferred is None:
        return []
    size = len(request.must) + request.short
    return [Part(gang, (), constraint, asked, {cls.id: size}, size, _pinned(state, gang, (), constraint))]


def _pinned(state: State, gang: GangState, name: tuple[str, ...], constraint: TopologyConstraint) -> tuple[int, ...]:
    """Rows of the tasks of a part that are placed already."""
    if not gang.total_found and not gang.total_occupied:
        return ()
    rows = state.nodes.rows
    placed = [task for task in gang.tasks.values() if task.status in PINS and task.node in rows]
    return tuple(dict.fromkeys(rows[task.node] for task in placed if (name, constraint) in constraints_on(task)))


def closed_to(state: State, part: Part, constraints: Constraints, chosen: Sequence[Option]) -> Bools | None:
    """Rows that no task of a part may use: closed for other gangs, or outside of the parts around it."""
    found: Bools | None = None
    if constraints.closed is not None:
        tasks = [task for task in part.gang.tasks.values() if task.cls.id in part.needed]
        if len({task.run_time_ns for task in tasks}) == 1:
            found = constraints.closed_rows(tasks[0])
    for option in chosen:
        if contains(option.part, part):
            outside = ~option.rows
            found = outside if found is None else found[: len(outside)] | outside
    return found


def within(constraints: Constraints, chosen: Sequence[Option]) -> Constraints:
    """These constraints, with the rows outside of the chosen options closed to their parts; to placeholders too, which
    belong to a copy of the gang."""
    before = constraints.closed
    outside = [(one.part.gang.key, (one.part.name, one.part.constraint), ~one.rows) for one in chosen]

    def closed(task: Task) -> list[tuple[str, Bools]]:
        found = list(before(task)) if before is not None else []
        of_task = constraints_on(task)
        return [*found, *((OUTSIDE, rows) for gang, key, rows in outside if gang == task.gang.key and key in of_task)]

    return constraints._replace(closed=closed)


class _Search:
    def __init__(
        self, state: State, parts: Sequence[Part], constraints: Constraints, place: Attempt, *, prefers: bool = True
    ) -> None:
        """Without `prefers` only required levels count."""
        self._prefers = prefers
        self.ended_early = False
        self._state = state
        self._parts = parts
        self._constraints = constraints
        self._place = place
        self._tries = 0
        self._looked_at = 0
        self._unproved = not prefers
        """Whether something that was ruled out might have been possible."""
        self._last: Diagnosis | None = None
        self._stuck: Part | None = None
        """The first part without an option."""
        self._chosen: list[Option] = []

    def run(self, index: int, chosen: list[Option]) -> bool:
        """Whether the parts from `index` on find options with which the whole attempt succeeds."""
        if index == len(self._parts):
            return self._attempt(chosen)
        part = self._parts[index]
        closed = closed_to(self._state, part, self._constraints, chosen)
        beside = [one for one in chosen if not contains(one.part, part)]
        found_any = False
        failed: set[bytes] = set()
        domains = Domains(self._state, part, closed, beside)
        for option in domains.options() if self._prefers else domains.required():
            self._looked_at += 1
            if self._tries >= TRIES or self._looked_at > OPTIONS_BOUND:
                self._unproved = self.ended_early = True
                return False
            found_any = True
            if closed is not None:  # its tasks can only be on rows that are open to it
                option = option._replace(rows=option.rows & ~closed[: len(option.rows)])
            rows = option.rows.tobytes()
            if rows in failed:
                continue  # the same rows as those of a better option
            failed.add(rows)
            if self.run(index + 1, [*chosen, option]):
                return True
            if self._last is not None and self._last.of_queue:
                return False  # no other domain helps
        if not found_any and self._stuck is None:
            self._stuck = part
        return False

    def _attempt(self, chosen: list[Option]) -> bool:
        self._tries += 1
        self._last = self._place(within(self._constraints, chosen))
        if self._last is None:
            self._chosen = chosen
            return True
        self._unproved = self._unproved or not self._last.proved
        return False

    def planned(self) -> dict[GangKey, list[PlannedDomains]]:
        found: dict[GangKey, list[PlannedDomains]] = {}
        for option in self._chosen:
            preferred = option.part.asked.preferred
            assert preferred is not None, f"{option.part.name} asks for a level"
            used = option.domains or _domains_of(preferred.ids, option.rows)
            names = tuple(preferred.names[one] for one in used)
            level = option.level.name if option.level is not None else ""
            score = 1.0 if not self._unproved else round(min(0.99, 1 / max(len(names), 1)), 2)
            planned = PlannedDomains(" ".join(option.part.name[1:]), level, preferred.name, names, score)
            found.setdefault(option.part.gang.key, []).append(planned)
        return found

    def failure(self, requests: Sequence[PlacementRequest]) -> Diagnosis:
        if self._last is not None and self._last.of_queue:
            return self._last
        part = self._stuck if self._stuck is not None else self._required()
        if part is None or part.asked.required is None:
            assert self._last is not None, "without a required level there is always an option"
            return self._last
        closed = closed_to(self._state, part, self._constraints, ())
        found = _no_domain(self._state, part, closed, unproved=self._unproved)
        return _said_by({part.gang.key: found}, requests)

    def _required(self) -> Part | None:
        return next((part for part in self._parts if part.asked.required is not None), None)


def _domains_of(ids: np.ndarray[tuple[int], np.dtype[np.int32]], rows: Bools) -> list[int]:
    found: list[int] = np.unique(ids[rows & (ids >= 0)]).tolist()
    return found


def _no_domain(state: State, part: Part, closed: Bools | None, *, unproved: bool) -> Diagnosis:
    """Why a part fits in no domain of its required level."""
    level = part.asked.required
    assert level is not None, f"{part.name} requires a level"
    room = Domains(state, part, closed, ()).room(level)
    present = np.bincount(level.ids[level.ids >= 0], minlength=len(level.names)) > 0
    rooms = {level.names[one]: int(room[one]) for one in np.flatnonzero(present).tolist()}
    pinned = sorted({int(level.ids[row]) for row in part.pinned})
    names = [level.names[one] if one >= 0 else "(none)" for one in pinned]
    of_one_kind = len(part.needed) == 1
    found = diagnosis.no_domain(
        part.gang, level.name, part.size, rooms, pinned=names, unproved=unproved, of_one_kind=of_one_kind
    )
    classes = map(state.classes.by_id.__getitem__, part.needed)
    in_one = not pinned or (len(pinned) == 1 and -1 not in pinned)
    nodes_would_help = in_one and all(further_nodes.could_help_class(state, cls) for cls in classes)
    return msgspec.structs.replace(found, needs_other_than_nodes=not nodes_would_help)
