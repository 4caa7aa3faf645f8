"""What keeps gangs from being attempted, before any room is looked for (G4), and what each says of those that start
together (K7, G10)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from enbloc.config import Config, default_scheduler_name
from enbloc.engine.core.feature import Features
from enbloc.engine.core.ordering import GangOrder
from enbloc.engine.core.placement.request import replacements
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.units import Unit, Units
from enbloc.engine.core.tables.queues import Queue
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.core.why.titles import Titles
from enbloc.gangs.gang_tree import DEEPEST
from enbloc.gangs.model import GangKey

_KEPT_FROM_WAITING = frozenset({TaskStatus.GATED, TaskStatus.TIMED_OUT})


class Obstacles:
    def __init__(self, config: Config, state: State, units: Units, order: GangOrder, features: Features) -> None:
        self._our_name = default_scheduler_name(config)
        self._state = state
        self._units = units
        self._order = order
        self._features = features
        self._titles = Titles(config.tenancy.isolated)

    def of(self, gang: GangState) -> Diagnosis | None:
        """What keeps a gang from being attempted."""
        queue = self._state.queues.get(gang.spec.queue)
        return (
            self._in_objects(gang, queue)
            or self._in_namespace(gang, queue)
            or self._in_members(gang)
            or self._features.pre_enqueue(gang)
        )

    def _in_objects(self, gang: GangState, queue: Queue) -> Diagnosis | None:
        """The gang or its queue cannot be read, or is not there."""
        spec = gang.spec
        if spec.fault:
            return diagnosis.internal_error(gang)
        if spec.problem:
            return diagnosis.problem(gang, spec.problem)
        if not queue.exists:
            return diagnosis.problem(gang, f"queue {spec.queue} does not exist")
        if queue.too_deep:
            return diagnosis.problem(gang, f"queue {spec.queue} is more than {DEEPEST} levels below the root")
        if queue.facts.closed and spec.object is None and not gang.satisfied:
            return diagnosis.problem(gang, f"queue {spec.queue} is closed")
        return None

    def _in_namespace(self, gang: GangState, queue: Queue) -> Diagnosis | None:
        """Its namespace may not use the queue, or what it asks for is not honoured (S1, N1)."""
        if gang.satisfied:
            return None
        state, namespace = self._state, gang.key.namespace
        if state.queues.restricts_namespaces(queue):
            shut = state.queues.shut_by(queue, namespace, state.namespace_labels.get(namespace, {}))
            if shut is not None:
                return diagnosis.not_allowed(gang, shut.name)
        held = gang.spec.unsupported or queue.facts.unsupported or state.unsupported.first_of(gang.key)
        return diagnosis.unsupported(gang, held) if held else None

    def _in_members(self, gang: GangState) -> Diagnosis | None:
        """Its members do not exist yet."""
        if gang.satisfied:
            return None
        if not gang.status.enqueued:
            return None if self._units.of(gang).is_alone else diagnosis.not_enqueued_yet(gang)
        if not gang.need.missing or replacements(gang):
            return None
        if not gang.total_pending and not gang.total_held and self.lacks_nothing(gang):
            return None  # nor is it in the way of gangs that it started with
        if any(task.status is TaskStatus.TIMED_OUT for task in gang.tasks.values()):
            return diagnosis.timed_out(gang)
        return diagnosis.not_enough_members(gang, self._state.foreign.of(gang.key), self._our_name)

    def lacks_nothing(self, gang: GangState) -> bool:
        """K9: of a gang of which only waiting pods count, none is kept from waiting by something that G10 names."""
        if not gang.only_waiting or gang.spec.problem or not self._state.queue_of(gang).exists:
            return False
        return not any(task.status in _KEPT_FROM_WAITING for task in gang.tasks.values())

    # ---- gangs that start together

    def of_each(self, unit: Unit) -> dict[GangKey, Diagnosis]:
        return {gang.key: why for gang in unit.gangs if (why := self.of(gang)) is not None}

    def may_start(self, unit: Unit) -> bool:
        """Whether only room can keep a unit from starting (G4, K7)."""
        return not unit.unsatisfied and all(self.of(gang) is None for gang in unit.gangs)

    def of_claim(self, gang: GangState, *, waits_for_members: bool = False) -> Diagnosis | None:
        """What makes a gang's claims useless (R7, P3): what keeps it, or a gang that it starts with, from starting
        whatever room becomes free. What is held may wait for members (K6)."""
        found, unit = self._for_good(gang), self._units.of(gang)
        if found is not None or unit.is_alone or gang.satisfied:
            return found
        if waits_for_members and self._features.attempted_apart(unit):
            return None
        obstacles = {mate.key: why for mate in unit.gangs if (why := self._for_good(mate)) is not None}
        if obstacles or unit.unsatisfied:
            return diagnosis.waits_for_others(gang, unit.unsatisfied, self._state.gangs, obstacles, self._titles)
        return None

    def never_fits(self, gang: GangState) -> Diagnosis | None:
        return self._features.never_fits(gang)

    def _for_good(self, gang: GangState) -> Diagnosis | None:
        return self.of(gang) or self._features.never_fits(gang)

    def why_not_started(self, unit: Unit) -> dict[GangKey, Diagnosis]:
        """What each gang of a unit says that may not start: what keeps itself from it, else which others wait; and how
        many of its pods are held."""
        obstacles, found = self.of_each(unit), {}
        for gang in unit.gangs:
            why = obstacles.get(gang.key) or diagnosis.waits_for_others(
                gang, unit.unsatisfied, self._state.gangs, obstacles, self._titles
            )
            found[gang.key] = diagnosis.with_held(gang, why)
        return found

    def why_incomplete(self, unit: Unit, gang: GangState) -> Diagnosis:
        """The same, as the diagnosis of the gang that is in line for it."""
        each = self.why_not_started(unit)
        return msgspec.structs.replace(each[gang.key], of_gangs=each)

    # ---- gangs that were attempted together in vain

    def said_by_each(self, gang: GangState, failure: Diagnosis) -> Diagnosis:
        """Once it is known what stays held: what each of the gangs says that start together."""
        unit = self._units.of(gang)
        if failure.attempted_with_others:
            return self._of_attempted(unit, failure)
        return self.why_incomplete(unit, gang) if failure.waits_for_gangs else failure

    def _of_attempted(self, unit: Unit, failure: Diagnosis) -> Diagnosis:
        """What a gang lacks itself, else which other one does; and how many of its pods are held. Those that were not
        attempted have a minimum of 0, or only surplus waits."""
        found: dict[GangKey, Diagnosis] = {}
        lacking = failure.of_gangs or {unit.to_start(self._order)[0].key: failure}
        for_nodes = all(map(diagnosis.nodes_would_help, lacking.values()))
        for gang in unit.gangs:
            why = self._of_one(gang, failure, lacking)
            why = msgspec.structs.replace(why, attempted_with_others=gang.starts, needs_other_than_nodes=not for_nodes)
            found[gang.key] = diagnosis.with_held(gang, why)
        return msgspec.structs.replace(failure, of_gangs=found)

    def _of_one(self, gang: GangState, failure: Diagnosis, lacking: Mapping[GangKey, Diagnosis]) -> Diagnosis:
        if not gang.starts and not gang.total_pending:
            return diagnosis.timed_out(gang)
        if gang.key in lacking:
            return lacking[gang.key]
        if failure.of_gangs or not gang.starts:
            return diagnosis.waits_for_others(gang, (), self._state.gangs, lacking, self._titles)
        return failure
