"""Intake of one gang: what keeps it from being attempted, which queue it waits in, which group it starts with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from enbloc.api.reasons import PendingReason
from enbloc.config import Config, default_scheduler_name
from enbloc.engine.core.claims.registry import ClaimRegistry
from enbloc.engine.core.claims.room import is_beyond_queue
from enbloc.engine.core.commits import Commits
from enbloc.engine.core.faults import GangsFailed
from enbloc.engine.core.feature import Feature, Features, Unsignable
from enbloc.engine.core.ordering import Band, GangOrder
from enbloc.engine.core.placement.request import is_surplus, replacements, request_of
from enbloc.engine.core.queueing import signature
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass, Signature
from enbloc.engine.core.queueing.scheduling_queues import SchedulingQueues
from enbloc.engine.core.state.groups import Group, Groups
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.resources import PODS, least, total
from enbloc.engine.core.tables.tasks import GangState, TaskStatus, pending_tasks
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.core.why.reporter import Reporter, is_pending, is_reportable
from enbloc.engine.core.why.titles import Titles
from enbloc.engine.decisions import Decision, Enqueue
from enbloc.engine.features.groups.holds import Holds
from enbloc.engine.features.waves.waves import Waves
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.gang_tree import DEEPEST
from enbloc.gangs.model import GangKey

_OWN_USE = frozenset({TaskStatus.ASSUMED, TaskStatus.BOUND, TaskStatus.HELD})
_HELD = frozenset({PendingReason.UNSUPPORTED_CONSTRAINT, PendingReason.INTERNAL_ERROR})
"""Reasons of gangs that are not in line: no gang waits for their pods (G8, N1, S8)."""
_KEPT_FROM_WAITING = frozenset({TaskStatus.GATED, TaskStatus.TIMED_OUT})


def _waits(gang: GangState) -> bool:
    return not gang.satisfied and bool(not gang.ready() or gang.total_pending)


class Intake(Feature):
    def __init__(
        self,
        config: Config,
        state: State,
        groups: Groups,
        order: GangOrder,
        queues: SchedulingQueues,
        claims: ClaimRegistry,
        commits: Commits,
        reporter: Reporter,
        features: Features,
        decide: Callable[[Decision], None],
    ) -> None:
        self._config = config
        self._titles = Titles(config.tenancy.isolated)
        self._runs = {action.name for action in config.actions}
        self._state = state
        self._groups = groups
        self._order = order
        self._queues = queues
        self._claims = claims
        self._commits = commits
        self._reporter = reporter
        self._features = features
        self._decide = decide
        self._now_ns = 0
        self._groups_to_read: dict[int, Group] = {}

    def time_passes(self, now_ns: int) -> None:
        self._now_ns = now_ns

    # ---- what keeps a gang from being attempted

    def obstacle(self, gang: GangState) -> Diagnosis | None:
        """What keeps a gang from being attempted, before any room is looked for (G4)."""
        spec = gang.spec
        queue = self._state.queues.get(spec.queue)
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
        if not gang.satisfied and self._state.queues.restricts_namespaces(queue):
            labels = self._state.namespace_labels.get(spec.key.namespace, {})
            shut = self._state.queues.shut_by(queue, spec.key.namespace, labels)
            if shut is not None:
                return diagnosis.not_allowed(gang, shut.name)
        held = spec.unsupported or queue.facts.unsupported or self._state.unsupported.first_of(gang.key)
        if held and not gang.satisfied:
            return diagnosis.unsupported(gang, held)
        if not gang.status.enqueued and not gang.satisfied and self._groups.of(gang) is not None:
            return diagnosis.not_enqueued_yet(gang)
        if gang.status.enqueued and not gang.satisfied and gang.missing() and not replacements(gang):
            if not gang.total_pending and not gang.total_held and self._lacks_nothing(gang):
                return None  # nor is it in the way of gangs that it started with
            if any(task.status is TaskStatus.TIMED_OUT for task in gang.tasks.values()):
                return diagnosis.timed_out(gang)
            ours = default_scheduler_name(self._config)
            return diagnosis.not_enough_members(gang, self._state.foreign.of(gang.key), ours)
        return self._features.pre_enqueue(gang)

    def claim_obstacle(self, gang: GangState, kind: ClaimKind | None = None) -> Diagnosis | None:
        """What makes a gang's claims useless (R7, P3): its own obstacle, requests beyond what the cluster has or its
        queue may use, or one of these of a gang that it starts with. What is held may wait for members (K6)."""
        found = self._lasting_obstacle(gang)
        group = self._groups.of(gang)
        if found is not None or group is None or gang.satisfied:
            return found
        if kind is ClaimKind.HOLD and self.holds_apart(group):
            return None
        gangs = self._groups.gangs(group)
        obstacles = {mate.key: why for mate in gangs if (why := self._lasting_obstacle(mate)) is not None}
        if obstacles or group.unsatisfied:
            return diagnosis.waits_for_others(gang, group.unsatisfied, self._state.gangs, obstacles, self._titles)
        return None

    def _lasting_obstacle(self, gang: GangState) -> Diagnosis | None:
        """What keeps a gang from starting, whatever room becomes free."""
        return self.obstacle(gang) or self.beyond_cluster(gang) or self._beyond_queue(gang)

    def beyond_cluster(self, gang: GangState) -> Diagnosis | None:
        """Its minResources exceed what the cluster has: it is not attempted (K7, M6)."""
        asked = gang.spec.min_free_resources
        if not asked and not self._config.enqueue.admit_oversized and not gang.spec.waves:
            asked = gang.spec.min_resources or {}
        if not asked or gang.satisfied:
            return None
        totals = self._state.nodes.totals()
        for column, amount in self._state.resources.amounts(asked).items():
            has = int(totals[column]) if column < len(totals) else 0
            if column != PODS and amount > has:
                return diagnosis.beyond_cluster(gang, self._state.resources.names[column], amount, has)
        return None

    def _beyond_queue(self, gang: GangState) -> Diagnosis | None:
        """Its queue could not use what its minima and its later waves request even if it used nothing else."""
        queues, queue = self._state.queues, self._state.queue_of(gang)
        if not queues.guarantees and not any(place.limits for place in queue.ancestors):
            return None
        request, later = request_of(gang), self._features.get(Waves).of(gang)
        roles = {placeholder.role for placeholder in later}
        tasks = [task for task in gang.tasks.values() if task.status in _OWN_USE]
        tasks += [task for task in request.needed if task.role not in roles]
        rest = least([task.cls.request for task in request.rest], request.short)
        asked = total([*(task.cls.request for task in [*tasks, *later]), tuple(rest.items())])
        return diagnosis.beyond_queue(gang) if is_beyond_queue(self._state, gang, asked) else None

    def holds_apart(self, group: Group) -> list[GangState]:
        """K6: the complete gangs of a NonStrict group that keep what they get, in order, while all that it lacks are
        members of other gangs, or gangs that do not exist yet."""
        if not group.holds or any(map(self._groups.is_declared, group.unsatisfied)):
            return []
        lacking = self._obstacles(group)
        if not (lacking or group.unsatisfied):
            return []
        if any(self.beyond_cluster(gang) or self._beyond_queue(gang) for gang in self._groups.gangs(group)):
            return []
        if not all(why.lacks_members or why.not_enqueued for why in lacking.values()):
            return []
        return [gang for gang in self.unit(group) if gang.key not in lacking]

    def may_start(self, group: Group) -> bool:
        """Whether only room can keep a group from starting (G4, K7)."""
        return not group.unsatisfied and all(self.obstacle(gang) is None for gang in self._groups.gangs(group))

    def unit(self, group: Group) -> list[GangState]:
        """The gangs of a group whose minima are not bound, or that hold pods, in order."""
        gangs = self._groups.gangs(group)
        found = [gang for gang in gangs if not gang.satisfied and (gang.total_held or not gang.ready())]
        return sorted(found, key=self._order)

    # ---- reading gangs whose facts changed

    def read_all(self) -> None:
        """Reads all gangs whose facts changed, then the groups they are in. Groups are settled again: gangs may have
        been touched since the cycle began, by followers or by a time-out."""
        for complaint in self._groups.settle(self._state.dirty.values()):
            self._decide(complaint)
        dirty = list(self._state.dirty.values())
        self._state.dirty.clear()
        failed: list[tuple[GangKey, Exception]] = []
        for gang in dirty:
            if gang.key in self._state.gangs:
                try:
                    self.read(gang)
                except Exception as failure:
                    self._read_in_vain(gang, failure, failed)
        self._read_groups()
        if failed:
            raise GangsFailed(failed)

    def _read_in_vain(self, gang: GangState, failure: Exception, failed: list[tuple[GangKey, Exception]]) -> None:
        """S8: of a gang that is held already nothing but that is said."""
        if not gang.spec.fault:
            failed.append((gang.key, failure))
            return
        with suppress(Exception):
            self._queues.hold_back(gang, diagnosis.internal_error(gang))

    def _read_groups(self) -> None:
        while self._groups_to_read:  # gangs of a group that are enqueued meanwhile have it read once more
            groups, self._groups_to_read = self._groups_to_read, {}
            for group in groups.values():
                self._read_group(group)

    def read(self, gang: GangState) -> None:
        """Puts a gang into the queue where it belongs, or reports why it is in none."""
        group = self._groups.of(gang)
        self._commits.update(gang)
        self._features.gang_read(gang)
        is_over = gang.status.finished or (group is None and self._lacks_nothing(gang))
        if is_over and not gang.total_pending:
            self._queues.remove(gang)
            self._reporter.withdraw(gang)
        elif group is not None and not gang.satisfied:
            self._groups_to_read[id(group)] = group
        elif not gang.status.enqueued and not self.obstacle(gang):
            self._ask_for_admission(gang)
        else:
            self._queue_unless(self.obstacle(gang), gang)

    def _lacks_nothing(self, gang: GangState) -> bool:
        """K9: of a gang of which only waiting pods count, none is kept from waiting by something that G10 names."""
        if not gang.only_waiting or gang.spec.problem or not self._state.queue_of(gang).exists:
            return False
        return not any(task.status in _KEPT_FROM_WAITING for task in gang.tasks.values())

    def _queue_unless(self, obstacle: Diagnosis | None, gang: GangState) -> None:
        if obstacle is None:
            self.queue(gang)
            return
        if obstacle.reason in _HELD:
            self._features.held_back(gang)
        self._queues.hold_back(gang, obstacle)

    def _read_group(self, group: Group) -> None:
        """Queues the first gang in order for the whole group, unless one of its gangs cannot start (K7)."""
        gangs = self._groups.gangs(group)
        unit = self.unit(group)
        self._features.get(Holds).stand(group, self._waits_for_controllers(group), self._now_ns)
        if not self.may_start(group):
            self._read_incomplete(group)
            return
        for gang in gangs:
            if gang not in unit and (gang.satisfied or not unit):
                self.queue(gang)
            else:  # the first in order is queued for all; surplus waits until all have started
                self._queues.remove(gang)
                if not is_reportable(gang):
                    self._reporter.withdraw(gang)
        if unit:
            others = [gang for gang in gangs if gang not in unit and not gang.satisfied and is_reportable(gang)]
            self._queue_group(unit, others, group.holds)

    def _read_incomplete(self, group: Group) -> None:
        """A gang of the group cannot start, or one that it names is not satisfied: complete ones may hold pods (K6)."""
        why_not, apart = self.why_not_started(group), self.holds_apart(group)
        obstacles = self._obstacles(group)
        complete = [gang for gang in self._groups.gangs(group) if gang.key not in obstacles and _waits(gang)]
        if complete and not group.stands:
            self._features.get(Holds).start_clock(group, complete[0], self._now_ns)
        for gang in self._groups.gangs(group):
            if not is_reportable(gang) and gang.key not in obstacles:
                self._queues.remove(gang)
                self._reporter.withdraw(gang)
            elif gang.key in obstacles and obstacles[gang.key].not_enqueued:
                self._ask_for_admission(gang)
            elif not gang.satisfied and gang not in apart[:1]:
                self._queue_unless(why_not[gang.key], gang)
        if apart:
            self._queue_group(apart, [], "apart")

    def why_not_started(self, group: Group) -> dict[GangKey, Diagnosis]:
        """What each gang of a group says that may not start: what keeps itself from it, else which others wait; and how
        many of its pods are held."""
        obstacles, found = self._obstacles(group), {}
        for gang in self._groups.gangs(group):
            why = obstacles.get(gang.key) or diagnosis.waits_for_others(
                gang, group.unsatisfied, self._state.gangs, obstacles, self._titles
            )
            found[gang.key] = diagnosis.with_held(gang, why)
        return found

    def _obstacles(self, group: Group) -> dict[GangKey, Diagnosis]:
        return {gang.key: why for gang in self._groups.gangs(group) if (why := self.obstacle(gang)) is not None}

    def _waits_for_controllers(self, group: Group) -> bool:
        """K8: whether all that a group lacks are pods that our own controllers have not created yet."""
        obstacles = self._obstacles(group)
        ours = (PendingReason.NOT_ENOUGH_PODS, PendingReason.FAILED_CREATE)
        return (
            bool(obstacles)
            and not group.unsatisfied
            and all(
                self._state.gangs[key].spec.recreated_by_us and (why.not_enqueued or why.reason in ours)
                for key, why in obstacles.items()
            )
        )

    # ---- queueing

    def queue(self, gang: GangState) -> None:
        """Queues a gang for what it still needs, or removes it from its queue if it needs nothing."""
        waiting = pending_tasks(gang)
        obstacle = self.obstacle(gang) if waiting and gang.only_waiting else None
        if obstacle is not None:  # K9: of those that waited some were placed, and too few are left
            self._queues.hold_back(gang, obstacle)
            return
        if (
            not waiting
            and is_pending(gang)
            and any(task.status is TaskStatus.TIMED_OUT for task in gang.tasks.values())
        ):
            self._queues.hold_back(gang, diagnosis.timed_out(gang))  # with a minimum of 0 no member is missing
            return
        if not waiting:
            self._queues.remove(gang)
            if gang.ready() or gang.satisfied:
                self._reporter.withdraw(gang)
            return
        request = request_of(gang, waiting)
        for_surplus = is_surplus(gang, request)
        if for_surplus and gang.spec.more_waves:  # D4: room that a later wave needs is not for surplus
            self._queues.remove(gang)
            self._reporter.withdraw(gang)
            return
        rest = request.rest if request.short else ()
        wanted = waiting if for_surplus else [*replacements(gang), *request.needed, *rest]
        if not wanted:
            self._queues.remove(gang)
            return
        whatever = waiting if gang.spec.tree is not None and not for_surplus else wanted  # T0: of any choice
        asked = signature.asked_by(self._state, gang, whatever)
        signed = self._features.sign(gang)
        is_unlike_others = (
            asked.stateful
            or gang.spec.later
            or gang.spec.waves
            or gang.spec.tree is not None
            or any(isinstance(one, Unsignable) for one in signed)
        )
        queue = self._queues.placement
        if "backfill" in self._runs and all(task.cls.best_effort for task in wanted):
            queue = self._queues.best_effort
        own = signature.own_facts(gang, whatever) if is_unlike_others else None
        never_preempts = gang.spec.never_preempts or any(task.never_preempts for task in wanted)
        times = signature.times_of(self._state, wanted)
        band = Band.SURPLUS if for_surplus else Band.MINIMA
        facts = (
            own, *asked.parts, len(request.needed), request.short, gang.satisfied, never_preempts, times, signed,
            signature.place_of(gang),
        )  # fmt: skip
        alike = Signature(
            facts, asked.classes, not is_unlike_others and len(asked.classes) == 1, shared=not is_unlike_others
        )
        equivalence = self._queues.put(queue, gang, self._order(gang, band), alike)
        if self._queues.share_diagnosis(gang, equivalence, of_gang=not for_surplus):
            self._features.attempted(gang)

    def _queue_group(self, unit: list[GangState], others: list[GangState], holds: bool | str) -> None:
        """`others`: gangs of the group that need nothing; what waits of them waits for the unit. `holds`: whether, or
        how, pods are held."""
        first = unit[0]
        alike = signature.of_unit(self._state, unit, holds, self._features)
        self._queues.put_unit(unit, others, self._order(first), alike)
        self._features.unit_read(unit)

    def requeue_if_unlike(self, gang: GangState) -> EquivalenceClass | None:
        """If other pods' placements have come to matter to a gang that shares an equivalence class (the others may
        carry other labels), queues it by itself and returns its own class."""
        equivalence = self._queues.equivalence_of(gang)
        if equivalence is None or not equivalence.shared:
            return None
        stateful, classes = self._state.stateful, self._state.classes.by_id
        if not stateful.has_terms and all(classes[ident].plain for ident in equivalence.classes):
            return None
        if not any(stateful.applies(task) for task in pending_tasks(gang)):
            return None
        self.queue(gang)
        own = self._queues.equivalence_of(gang)
        return own if own is not equivalence else None

    # ---- admission

    def _ask_for_admission(self, gang: GangState) -> None:
        started = gang.total_occupied > 0  # it was enqueued once, though its object may be a new one (V5)
        if started or not self._features.gates(gang):
            self._let_in(gang)
            return
        alike = signature.at_admission(self._state, gang, self._features.sign_at_admission(gang))
        equivalence = self._queues.put(self._queues.admission, gang, self._order(gang), alike)
        self._queues.share_diagnosis(gang, equivalence, of_gang=True)

    def enqueue(self, gang: GangState, reason: str = "Enqueued") -> None:
        """M6: from now on its pods are created and attempted."""
        self._let_in(gang, reason)
        self._read_groups()

    def _let_in(self, gang: GangState, reason: str = "Enqueued") -> None:
        self._queues.remove(gang)
        self._reporter.withdraw(gang)
        gang.assume(enqueued=True, enqueued_at_ns=self._now_ns, enqueued_by=reason)
        self._decide(Enqueue(gang.key, reason))
        self._features.enqueued(gang)
        if gang.missing():
            self._state.touch(gang)  # its pods are created now: it is read when they exist
        else:
            self.read(gang)
