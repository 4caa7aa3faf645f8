"""The cluster as the engine keeps it: arrays and counts, brought up to date event by event, never copied.

Events come in through `put_…` and `remove_…`. What an event changes is counted here at once (room, queues, gangs);
what has to be looked at by the next cycle is only noted: gangs whose facts changed (`dirty`), and changes that
could help somebody who waits (`News`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec
import numpy as np

from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.engine.filters.stateful.stateful import StatefulFilters
from enbloc.engine.filters.volumes import VolumeTable
from enbloc.engine.plugins.plugin import Plugins
from enbloc.engine.scoring.candidates import Candidates
from enbloc.engine.state import audit
from enbloc.engine.state.budgets import Budgets
from enbloc.engine.state.candidate_table import CandidateTable
from enbloc.engine.tables.classes import ClassTable, TaskClass
from enbloc.engine.tables.nodes import NodeFacts, NodeTable
from enbloc.engine.tables.queues import Queue, QueueFacts, QueueTree
from enbloc.engine.tables.resources import Ints, Resources
from enbloc.engine.tables.tasks import HOLDS_ROOM, OCCUPIED, WAITS, GangState, PodFacts, Task, TaskStatus
from enbloc.gangs.model import GangKey, GangSpec, Membership

CLAIMS_BOUND = 256
"""With so many claims that changed it is no use to ask who names them: where there are no cycles it would be all."""

_KEEPS_ITS_PLACE = frozenset({TaskStatus.HELD, TaskStatus.NOMINATED})


class ClusterEvents:
    """What has changed since the last cycle, as far as it could help somebody who waits (G9)."""

    __slots__ = ("any", "claims", "everything", "less_used", "rows", "volumes")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.any = False
        """Anything at all about who is where."""
        self.everything = False
        """A node, a queue: rare, and may help anybody."""
        self.volumes = False
        """A volume or a class of them: may help those who ask for volumes."""
        self.claims: set[tuple[str, str]] = set()
        """Claims of volumes, by namespace and name: may help those who name them."""
        self.less_used = False
        """Some queue uses less than it did."""
        self.rows: set[str] = set()
        """Nodes on which room was given back."""

    def tell_of_volumes(self, claim: tuple[str, str] | None) -> None:
        """Of one claim, or of more than that concerns."""
        self.any = True
        if claim is not None and not self.volumes and len(self.claims) < CLAIMS_BOUND:
            self.claims.add(claim)
        else:
            self.volumes = True
            self.claims.clear()


class State:
    """Nodes, tasks, gangs and queues."""

    def __init__(self, plugins: Plugins, node_affinity_weight: int, taint_weight: int) -> None:
        self.resources = Resources()
        self.nodes = NodeTable(self.resources)
        self.classes = ClassTable(self.resources)
        self.queues = QueueTree(self.resources)
        self.volumes = VolumeTable()
        self.budgets = Budgets()
        self.stateful: StatefulFilters[Task] = StatefulFilters(self.nodes, self.volumes, plugins.predicates)
        self.tasks: dict[str, Task] = {}
        self.gangs: dict[GangKey, GangState] = {}
        self.priorities: Counter[int] = Counter()
        """How many gangs there are of each priority."""
        self.forgotten = 0
        """How many gangs have gone."""
        self.when_forgotten: Callable[[GangState], None] = lambda gang: None
        """Told of each of them: what others know of it goes with it."""
        self.dirty: dict[GangKey, GangState] = {}
        self.unmarked: dict[GangKey, GangState] = {}
        """Gangs that lost the pod with their commit mark (G11)."""
        self.events = ClusterEvents()
        self.timed = False
        """Whether it matters to those who wait when others end (R8)."""
        self._plugins = plugins
        weights = (node_affinity_weight, taint_weight)
        self._candidates = CandidateTable(self.nodes, self.volumes, plugins, weights)
        self.watched = False
        """Whether somebody wants to know of rows on which a task could leave that could not before (see `ledger`)."""
        self.evicting: set[str] = set()
        """Tasks that we evict and that the API does not call terminating yet."""
        self.leaving: dict[str, Task] = {}
        """Tasks that are terminating and still have their room."""
        self._homeless: dict[str, dict[str, Task]] = {}
        """Tasks on nodes that we do not know (yet), by node."""

    # ---- nodes, queues, volumes, namespaces

    def put_node(self, facts: NodeFacts) -> None:
        clock = self.nodes.clock
        known = facts.name in self.nodes.rows
        self.nodes.put(facts)
        if not known or self.nodes.clock != clock:
            self.events.any = self.events.everything = True

    def remove_node(self, name: str) -> None:
        orphans = {task.uid: task for task in self.tasks.values() if task.node == name and task.status in HOLDS_ROOM}
        row = self.nodes.rows.get(name)
        for task in orphans.values():
            if row is not None:
                self.stateful.remove(task, row)
        if orphans:
            self._homeless[name] = orphans
        self.nodes.remove(name)
        self.events.any = self.events.everything = (
            True  # it helps nobody, but what was said of nodes is no longer so (G10)
        )

    def put_queue(self, facts: QueueFacts) -> None:
        known = self.queues.queues.get(facts.name)
        if known is not None and known.exists and known.facts == facts:
            return  # only its status changed: that helps nobody (G9)
        self.queues.put(facts)
        self._queue_changed(facts.name)

    def remove_queue(self, name: str) -> None:
        self.queues.remove(name)
        self._queue_changed(name)

    def _queue_changed(self, name: str) -> None:
        self.events.any = self.events.everything = True
        for gang in self.gangs.values():
            if gang.spec.queue == name:
                self.touch(gang)

    def put_volume(self, kind: str, obj: Obj, gone: bool) -> None:
        """A PersistentVolume, a claim or a StorageClass came, changed or went."""
        version, claim = self.volumes.version, (namespace_of(obj), name_of(obj))
        gives_back = kind != "PersistentVolumeClaim" or self.stateful.assumes_volume(claim)
        if gone:
            self.volumes.remove(kind.partition(".")[0], namespace_of(obj), name_of(obj))
        else:
            self.volumes.put(obj)
        if self.volumes.version != version:  # else only what nobody looks at changed: that helps nobody (G9)
            self.events.tell_of_volumes(None if gives_back else claim)

    def put_budget(self, obj: Obj, gone: bool) -> None:
        """A PodDisruptionBudget came, changed or went."""
        if gone:
            self.budgets.remove(obj)
        else:
            budget = self.budgets.put(obj)
            if budget is not None:
                for task in self.tasks.values():
                    budget.update(task)
        self.events.any = True

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        if self.stateful.set_namespace(name, labels):
            self.events.any = True
            self.nodes.clock += 1  # what was tried in vain is tried again

    def settle(self) -> None:
        """Before a cycle: nodes that arrived get their rows, and the tasks on them their room."""
        if not self.nodes.settle(self._used_by_homeless):
            return
        for name in [name for name in self._homeless if name in self.nodes.rows]:
            for task in self._homeless.pop(name).values():
                self.stateful.add(task, self.nodes.rows[name])

    def _used_by_homeless(self, name: str) -> Mapping[int, int]:
        used: dict[int, int] = {}
        for task in self._homeless.get(name, {}).values():
            for column, amount in task.cls.request:
                used[column] = used.get(column, 0) + amount
        return used

    # ---- gangs

    def put_gang(self, spec: GangSpec) -> None:
        """A gang was written down, or changed."""
        gang = self.gangs.get(spec.key)
        if gang is None:
            gang = self.gangs[spec.key] = GangState(spec)
            gang.priority = spec.priority or 0
            self.priorities[gang.priority] += 1
            self.touch(gang)
            return
        if gang.assumed is not None and gang.assumed == spec.observed:
            gang.spec = msgspec.structs.replace(gang.spec, observed=gang.assumed)  # the echo of what was decided
        gang.assumed = None
        if gang.spec == spec:
            return
        if _as_victims(gang.spec) != _as_victims(spec):
            self._touch_rows(gang)
        if gang.spec.queue != spec.queue:
            for task in gang.tasks.values():
                self._count_queue(task, -1)
            gang.spec = spec
            for task in gang.tasks.values():
                self._count_queue(task, 1)
            self.events.any = self.events.less_used = True
        reselected = gang.spec.node_selector != spec.node_selector
        gang.spec = spec
        if reselected:
            for task in gang.tasks.values():
                self._leave(task)
                task.cls = self.class_of(gang, task)
                self._enter(task)
        self._set_priority(gang)
        self.touch(gang)

    def remove_gang(self, key: GangKey) -> None:
        gang = self.gangs.get(key)
        if gang is not None:
            self.touch(gang)
            if not gang.tasks:
                self.forget(gang)

    def forget(self, gang: GangState) -> None:
        """Nothing is left of it: no object, no pods."""
        self.count(gang, {}, {})
        self.forgotten += 1
        gang.ticket = 0
        if self.gangs.pop(gang.key, None) is not None:
            self._count_priority(gang.priority, -1)
        self.dirty.pop(gang.key, None)
        self.unmarked.pop(gang.key, None)
        self.when_forgotten(gang)

    def count(self, gang: GangState, wanted: Mapping[int, int], expected: Mapping[int, int]) -> None:
        """What a gang adds to its queue beyond its tasks: demand before its pods exist, and what it will take (M6)."""
        if gang.counted is not None:
            if gang.counted[1:] == (wanted, expected) and gang.counted[0].name == gang.spec.queue:
                return
            queue, was_wanted, was_expected = gang.counted
            self.queues.remove_demand(queue, was_wanted)
            self.queues.remove_enqueued(queue, was_expected)
            gang.counted = None
            if was_expected:
                self.events.any = self.events.less_used = True
        if wanted or expected:
            queue = self.queues.get(gang.spec.queue)
            self.queues.add_demand(queue, wanted)
            self.queues.add_enqueued(queue, expected)
            gang.counted = (queue, wanted, expected)

    def touch(self, gang: GangState) -> None:
        """It has to be looked at anew."""
        self.dirty[gang.key] = gang

    def _set_priority(self, gang: GangState) -> None:
        own, was = gang.spec.priority, gang.priority
        gang.priority = own if own is not None else max((task.priority for task in gang.tasks.values()), default=0)
        if gang.priority != was:
            self._count_priority(was, -1)
            self._count_priority(gang.priority, 1)
            self._touch_rows(gang)

    def _count_priority(self, priority: int, by: int) -> None:
        self.priorities[priority] += by
        if not self.priorities[priority]:
            del self.priorities[priority]

    def _touch_rows(self, gang: GangState) -> None:
        """What could be freed on its nodes, and for whom, is another matter now (see `ledger`)."""
        for task in gang.tasks.values():
            self._touch_row(task)

    def _touch_row(self, task: Task) -> None:
        task.gang.version += 1
        row = self.nodes.rows.get(task.node)
        if row is not None:
            self.nodes.touch(row)
            self.events.any = True

    # ---- pods

    def put_pod(self, facts: PodFacts, membership: Membership, undeclared: Callable[[], GangSpec]) -> None:
        """A pod came or changed. `undeclared` makes the facts of a gang that nobody wrote down."""
        task = self.tasks.get(facts.uid)
        if task is None:
            self._add(facts, membership, undeclared)
            return
        if task.status is TaskStatus.ASSUMED:
            if facts.node == task.node and facts.status is TaskStatus.BOUND and facts.labels == task.labels:
                self._confirm(task, facts)  # the echo of our own Binding: nothing new but the marks
                return
            if not facts.node and facts.status is TaskStatus.PENDING:
                return  # an update that was under way before our Binding
        if facts.uid in self.evicting and facts.status is TaskStatus.BOUND and facts.node == task.node:
            return  # it is being evicted: first it is marked, and only then it goes
        self.evicting.discard(facts.uid)
        if (
            task.status in _KEEPS_ITS_PLACE
            and facts.status is TaskStatus.PENDING
            and self._is_the_same(task, facts, membership)
        ):
            task.spec = facts.spec
            return
        if task.gang.key != membership.gang or task.role != membership.role:
            self.remove_pod(facts.uid)
            self._add(facts, membership, undeclared)
            return
        self._change(task, facts)

    def _is_the_same(self, task: Task, facts: PodFacts, membership: Membership) -> bool:
        """Whether nothing changed that bears on where a task may be."""
        return (
            (task.gang.key, task.role) == (membership.gang, membership.role)
            and (task.spec is facts.spec or task.cls is self.class_of(task.gang, facts))
            and (task.labels, task.priority, task.ours) == (facts.labels, facts.priority, facts.ours)
        )

    def remove_pod(self, uid: str) -> None:
        task = self.tasks.pop(uid, None)
        if task is None:
            return
        gang = task.gang
        self.evicting.discard(uid)
        self._leave(task)
        del gang.tasks[uid]
        if task.mark:
            self.unmarked[gang.key] = gang
        if not gang.tasks and gang.spec.object is None:
            self.forget(gang)
            return
        if gang.spec.priority is None:
            self._set_priority(gang)
        self.touch(gang)

    def unplace(self, uid: str) -> None:
        """Our Binding, or our mark, was refused: the task waits again (K10, G11)."""
        task = self.tasks.get(uid)
        if task is not None and task.status in (TaskStatus.ASSUMED, TaskStatus.TIMED_OUT):
            self._leave(task)
            task.status, task.node = TaskStatus.PENDING, ""
            self._enter(task)
            self.touch(task.gang)

    def _add(self, facts: PodFacts, membership: Membership, undeclared: Callable[[], GangSpec]) -> None:
        if not facts.ours and not facts.node:
            return  # somebody else's to schedule
        gang = self.gangs.get(membership.gang)
        if gang is None:
            gang = self.gangs[membership.gang] = GangState(undeclared())
            gang.priority = gang.spec.priority or 0
            self.priorities[gang.priority] += 1
        cls = self.class_of(gang, facts)
        number = membership.number
        task = self.tasks[facts.uid] = Task(facts, cls, gang, membership.role, number)
        if not self._plugins.task_priority:
            task.order = (0, *task.order[1:])
        gang.tasks[facts.uid] = task
        if gang.spec.priority is None and (len(gang.tasks) == 1 or facts.priority > gang.priority):
            self._set_priority(gang)
        self._enter(task)
        self.touch(gang)

    def class_of(self, gang: GangState, facts: PodFacts | Task) -> TaskClass:
        cls = self.classes.of(facts.namespace, dict(facts.spec), dict(gang.spec.node_selector))
        self.nodes.widen()
        return cls

    def _confirm(self, task: Task, facts: PodFacts) -> None:
        task.status = TaskStatus.BOUND
        task.spec = facts.spec
        task.mark, task.decision = facts.mark, facts.decision
        self._set_since(task, facts.since)
        self.budgets.update_pod(task)
        if self.watched:
            self._touch_row(task)
        if not task.gang.satisfied:
            self.touch(task.gang)

    def _set_since(self, task: Task, since: int | None) -> None:
        """Since when it runs: where its end is known, that is another forecast for its node (R8)."""
        if task.since != since:
            task.since = since
            self.budgets.update_pod(task)
            row = self.nodes.rows.get(task.node)
            if row is not None and task.run_time is not None:
                self.nodes.touch(row)
                self.events.any = True
                self.events.everything = self.events.everything or self.timed

    def _change(self, task: Task, facts: PodFacts) -> None:
        same_spec = task.spec is facts.spec or task.cls is self.class_of(task.gang, facts)
        task.spec = facts.spec
        marked = task.mark != facts.mark
        task.mark, task.decision, task.ours = facts.mark, facts.decision, facts.ours
        if task.hints != facts.hints:
            self._touch_row(task)
            self.touch(task.gang)
        task.hints, task.never_preempts = facts.hints, facts.never_preempts
        self._set_since(task, facts.since)
        moved = task.status is not facts.status or task.node != facts.node
        if same_spec and not moved and task.labels == facts.labels and task.priority == facts.priority:
            if marked:
                self.touch(task.gang)
            return
        self._leave(task)
        if not same_spec:
            task.cls = self.class_of(task.gang, facts)
        if task.priority != facts.priority:
            task.priority = facts.priority
            task.order = (-facts.priority if self._plugins.task_priority else 0, *task.order[1:])
            self._set_priority(task.gang)
        task.labels, task.status, task.node = facts.labels, facts.status, facts.node
        self._enter(task)
        self.touch(task.gang)

    # ---- members that are held until their gang is complete (see `holds`)

    def hold(self, task: Task) -> None:
        """A task that a transaction has placed is held there, and not bound."""
        assert task.status is TaskStatus.ASSUMED, f"{task} has no place to be held in"
        self._count_gang(task, -1)
        task.status = TaskStatus.HELD
        self._count_gang(task, 1)

    def place_held(self, task: Task) -> None:
        """A task that was held is bound where it is."""
        self._count_gang(task, -1)
        task.status = TaskStatus.ASSUMED
        self._count_gang(task, 1)

    def hold_on(self, task: Task, node: str) -> None:
        """A task that waits is held on a node: a record says so."""
        self._leave(task)
        task.status, task.node = TaskStatus.HELD, node
        self._enter(task)

    def let_go(self, task: Task) -> None:
        """A task that was held waits again."""
        self._leave(task)
        task.status, task.node = TaskStatus.PENDING, ""
        self._enter(task)

    def time_out(self, task: Task) -> None:
        """A task that waits is no member any more: its pod is being marked (K8)."""
        self._leave(task)
        task.status = TaskStatus.TIMED_OUT
        self._enter(task)
        self.touch(task.gang)

    # ---- members for whom room is made (see `nominations`), and those who make it

    def nominate(self, task: Task, node: str) -> None:
        """A task that waits has its room on a node from now on, though others have not left it yet."""
        self._leave(task)
        task.status, task.node = TaskStatus.NOMINATED, node
        self._enter(task)

    def evict(self, task: Task) -> None:
        """A task that is bound is to leave: it keeps its room until it is gone, and counts towards nothing."""
        self._leave(task)
        task.status = TaskStatus.RELEASING
        self._enter(task)
        self.evicting.add(task.uid)
        self.touch(task.gang)

    def stay(self, uid: str) -> None:
        """An eviction was refused."""
        self.evicting.discard(uid)
        task = self.tasks.get(uid)
        if task is not None and task.status is TaskStatus.RELEASING:
            self._leave(task)
            task.status = TaskStatus.BOUND
            self._enter(task)
            self.touch(task.gang)

    # ---- ghosts: tasks that hold room for pods to come (see `claims`)

    def put_ghost(self, ghost: Task) -> None:
        """A ghost takes its place."""
        self.tasks[ghost.uid] = ghost
        self._enter(ghost)

    def keep_ghost(self, ghost: Task) -> None:
        """A ghost that a transaction has placed stays: its room is taken, now it counts as demand too."""
        self.tasks[ghost.uid] = ghost
        self.queues.add_demand(self.queue_of(ghost.gang), ghost.cls.request)

    def drop_ghost(self, ghost: Task, holds_room: bool) -> None:
        """A ghost ends; if its task took its place its room is the task's already."""
        self.tasks.pop(ghost.uid, None)
        if holds_room:
            self._leave(ghost)
        else:
            self.queues.remove_demand(self.queue_of(ghost.gang), ghost.cls.request)

    # ---- counting: `_enter` and `_leave` are each other's inverse

    def _enter(self, task: Task) -> None:
        if task.status in HOLDS_ROOM and task.node:
            row = self.nodes.rows.get(task.node)
            if row is None:
                self._homeless.setdefault(task.node, {})[task.uid] = task
            else:
                self.nodes.allocate(row, task.cls.request)
                self.stateful.add(task, row)
            self.events.any = True
        if task.status is TaskStatus.RELEASING and task.node:
            self.leaving[task.uid] = task
        self.budgets.update_pod(task)
        self._count_queue(task, 1)
        self._count_gang(task, 1)

    def _leave(self, task: Task) -> None:
        if task.status in HOLDS_ROOM and task.node:
            row = self.nodes.rows.get(task.node)
            homeless = self._homeless.get(task.node)
            if homeless is not None and task.uid in homeless:
                del homeless[task.uid]
                if not homeless:
                    del self._homeless[task.node]
            elif row is not None:
                self.nodes.release(row, task.cls.request)
                self.stateful.remove(task, row)
                self.events.rows.add(task.node)
            self.events.any = self.events.less_used = True
        self.leaving.pop(task.uid, None)
        self.budgets.remove_pod(task)
        self._count_queue(task, -1)
        self._count_gang(task, -1)

    def _count_queue(self, task: Task, by: int) -> None:
        if not task.ours and not task.gang.spec.object:
            return  # a pod of somebody else's: in no queue
        holds = task.status in HOLDS_ROOM and bool(task.node)
        if not holds and task.status is not TaskStatus.PENDING:
            return
        queue = self.queues.get(task.gang.spec.queue)
        self.queues.add_demand(queue, task.cls.request, by)
        if holds:
            self.queues.allocate(queue, task.cls.request, by)

    def _count_gang(self, task: Task, by: int) -> None:
        gang = task.gang
        gang.version += 1
        if task.status in WAITS:
            gang.pending[task.role] = gang.pending.get(task.role, 0) + by
        elif task.status in OCCUPIED:
            gang.occupied[task.role] = gang.occupied.get(task.role, 0) + by
        elif task.status is TaskStatus.HELD:
            gang.held[task.role] = gang.held.get(task.role, 0) + by

    def candidates(self, cls: TaskClass) -> Candidates:
        """The rows that tasks of a class may use."""
        return self._candidates.of(cls)

    def tidy(self, needed: Iterable[int]) -> None:
        """Classes that no task is of, and that are not `needed` besides, are forgotten, with all that hangs on them."""
        alive = {task.cls.id for task in self.tasks.values()}.union(needed)
        self.classes.retain(alive)
        self._candidates.retain(alive)
        self.stateful.retain(alive)
        self.nodes.forget_unused()

    def tidy_queues(self) -> None:
        """Queues that do not exist, and that nobody names any more, are forgotten."""
        named = {task.gang.spec.queue for task in self.tasks.values()}
        for gang in self.gangs.values():
            named.add(gang.spec.queue)
            if gang.counted is not None:
                named.add(gang.counted[0].name)
        self.queues.retain(named)

    # ---- for tests and for those who look

    def queue_of(self, gang: GangState) -> Queue:
        return self.queues.get(gang.spec.queue)

    def free_total(self) -> Ints:
        """What is free on all nodes that may be used, by column; what is overdrawn on one counts as nothing."""
        nodes = self.nodes
        count = nodes.count
        usable = nodes.alive[:count] & nodes.ready[:count] & ~nodes.unschedulable[:count]
        found: Ints = np.maximum(nodes.free[:, :count][:, usable], 0).sum(axis=1)
        return found

    def digest(self) -> str:
        """Equal for equal states: what a rolled-back transaction must restore (architecture, 11)."""
        return audit.digest(self)

    def validate(self) -> None:
        """Counts everything anew and compares: called by the tests after each step."""
        audit.validate(self)


def _as_victims(spec: GangSpec) -> object:
    """What bears on who of a gang could be evicted, and for whom."""
    return (spec.queue, spec.hints, spec.minimum, spec.minima, spec.evict_as_unit, spec.group)
