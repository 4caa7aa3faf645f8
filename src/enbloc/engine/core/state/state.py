"""The cluster as arrays and counts, updated event by event, never copied.

Events come in through `put_…` and `remove_…`. Their effect on free resources, queues and gangs is counted at once. What
the next cycle has to look at is only noted: gangs whose facts changed (`dirty`), and changes that could help gangs that
wait (`ClusterEvents`). Decisions change task statuses through the methods below, or tentatively by a `Transaction`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import numpy as np

from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.engine.core.filters.stateful.stateful import StatefulFilters
from enbloc.engine.core.filters.volumes import VolumeTable
from enbloc.engine.core.plugins.plugin import Plugins
from enbloc.engine.core.state import audit
from enbloc.engine.core.state.budgets import Budgets
from enbloc.engine.core.state.candidates import Candidates, CandidateTable
from enbloc.engine.core.state.gang_table import GangDemand, GangTable, PodNotes, follows_pods, may_change_priority
from enbloc.engine.core.state.task_counts import TaskCounts, transition
from enbloc.engine.core.tables.classes import ClassTable, TaskClass
from enbloc.engine.core.tables.foreign_room import ForeignRoom
from enbloc.engine.core.tables.node_trees import NodeTrees
from enbloc.engine.core.tables.nodes import NodeFacts, NodeTable
from enbloc.engine.core.tables.queues import Queue, QueueFacts, QueueTree
from enbloc.engine.core.tables.resources import Ints, Resources
from enbloc.engine.core.tables.tasks import GangState, PodFacts, Task, TaskStatus
from enbloc.engine.events import ClusterEvents, EventKind
from enbloc.gangs.model import GangKey, GangSpec, Membership

_KEEPS_NODE = frozenset({TaskStatus.HELD, TaskStatus.NOMINATED})


class Undone(Protocol):
    """What is tried on the state, and may be undone."""

    def rollback(self) -> None: ...


class State:
    """Nodes, tasks, gangs and queues."""

    def __init__(self, plugins: Plugins, node_affinity_weight: int, taint_weight: int) -> None:
        self.resources = Resources()
        self.nodes = NodeTable(self.resources)
        self.trees = NodeTrees(self.nodes)
        self.classes = ClassTable(self.resources)
        self.queues = QueueTree(self.resources)
        self.foreign_room = ForeignRoom(self.nodes)
        self.volumes = VolumeTable()
        self.budgets = Budgets()
        self.stateful: StatefulFilters[Task] = StatefulFilters(self.nodes, self.volumes, plugins.predicates)
        self.tasks: dict[str, Task] = {}
        self.foreign = PodNotes()
        """The scheduler that each pod of another scheduler names (N4)."""
        self.unsupported = PodNotes()
        """The constraint of each pod that is not honoured (N1)."""
        self.events = ClusterEvents()
        self.counts = TaskCounts(self.nodes, self.queues, self.stateful, self.budgets, self.foreign_room, self.events)
        self.demand = GangDemand(self.queues, self.events)
        """What gangs add to their queues besides their tasks (M6)."""
        self.gang_table = GangTable(self.nodes, self.counts, self.demand, self.events, self.class_of)
        self.gangs = self.gang_table.gangs
        self.dirty = self.gang_table.dirty
        """Gangs whose facts changed: the next cycle reads them."""
        self.unmarked = self.gang_table.unmarked
        """Gangs that lost the pod with their commit mark (G11)."""
        self.timed = False
        """Whether run times bear on gangs that wait (R8)."""
        self.namespace_labels: dict[str, Mapping[str, str]] = {}
        """Of namespaces that have any."""
        self._plugins = plugins
        weights = (node_affinity_weight, taint_weight)
        self._candidates = CandidateTable(self.nodes, self.volumes, plugins, weights)
        self.watched = False
        """Whether rows are stamped when a task on them becomes evictable (see `evictable`)."""
        self.transactions: list[Undone] = []
        """Those that began in the turn of one gang: undone if something raises in it (S8)."""
        self.evicting: set[str] = set()
        """UIDs of tasks whose eviction was decided and that the API does not report as terminating yet."""

    # ---- nodes, queues, volumes, namespaces

    def put_node(self, facts: NodeFacts) -> None:
        version = self.nodes.version
        known = facts.name in self.nodes.rows
        self.nodes.put(facts)
        if not known or self.nodes.version != version:
            self.events.add(EventKind.NODE_CHANGED if known else EventKind.NODE_ADDED)

    def remove_node(self, name: str) -> None:
        holding = {task.uid: task for task in self.tasks.values() if task.node == name}
        self.counts.node_gone(name, holding)
        self.nodes.remove(name)
        self.events.add(EventKind.NODE_REMOVED)

    def put_queue(self, facts: QueueFacts) -> None:
        known = self.queues.queues.get(facts.name)
        if known is not None and known.exists and known.facts == facts:
            return  # only its status changed: that helps no gang (G9)
        was_within_share = known is not None and known.facts.immune_within_share
        self.queues.put(facts)
        self._queue_changed(facts.name)
        if facts.immune_within_share != was_within_share:
            for gang in self.gangs.values():
                self.gang_table.touch_rows(gang)  # other tasks may be evicted now (S6)

    def remove_queue(self, name: str) -> None:
        self.queues.remove(name)
        self._queue_changed(name)

    def _queue_changed(self, name: str) -> None:
        self.events.add(EventKind.QUEUE_CHANGED)
        for gang in self.gangs.values():
            if any(place.name == name for place in self.queue_of(gang).ancestors):
                self.touch(gang)

    def put_volume(self, kind: str, obj: Obj, gone: bool) -> None:
        """A PersistentVolume, a PersistentVolumeClaim or a StorageClass was added, changed or deleted."""
        version, claim = self.volumes.version, (namespace_of(obj), name_of(obj))
        frees_volume = kind != "PersistentVolumeClaim" or self.stateful.assumes_volume(claim)
        if gone:
            self.volumes.remove(kind.partition(".")[0], namespace_of(obj), name_of(obj))
        else:
            self.volumes.put(obj)
        if self.volumes.version != version:  # else only fields that no filter reads changed (G9)
            if frees_volume:
                self.events.add(EventKind.VOLUME_CHANGED)
            else:
                self.events.add_volume_claim_changed(claim)

    def note_tree_changed(self) -> None:
        """A node tree is other than before (`trees`): its domains may have room now."""
        self.events.add(EventKind.TOPOLOGY_CHANGED)

    def put_budget(self, obj: Obj, gone: bool) -> None:
        """A PodDisruptionBudget was added, changed or deleted."""
        if gone:
            self.budgets.remove(obj)
        else:
            budget = self.budgets.put(obj)
            if budget is None:
                return  # only its status changed (G9)
            for task in self.tasks.values():
                budget.update(task)
        self.events.add(EventKind.BUDGET_CHANGED)

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        if self.namespace_labels.get(name, {}) != labels:
            self.namespace_labels[name] = labels
            if not labels:
                del self.namespace_labels[name]
            for gang in self.gangs.values():
                if gang.key.namespace == name and self.queues.restricts_namespaces(self.queue_of(gang)):
                    self.touch(gang)  # a queue may allow its namespace now, or no longer (S5)
        if self.stateful.set_namespace(name, labels):
            self.events.add(EventKind.NAMESPACE_LABELS_CHANGED)
            self.nodes.version += 1  # failed attempts are retried

    def settle(self) -> None:
        """Before a cycle: new nodes get their rows, and tasks on them are counted there."""
        self.counts.settle()

    # ---- gangs

    def put_gang(self, spec: GangSpec) -> None:
        """A gang was added or changed."""
        self.gang_table.put(spec)

    def remove_gang(self, key: GangKey) -> None:
        """The object of a gang was deleted."""
        self.gang_table.remove(key)

    def touch(self, gang: GangState) -> None:
        """The next cycle reads the gang again."""
        self.gang_table.touch(gang)

    # ---- pods

    def put_pod(self, facts: PodFacts, membership: Membership, undeclared: Callable[[], GangSpec]) -> None:
        """A pod was added or changed. `undeclared` makes the spec of a gang that has no object."""
        self._note_unsupported(facts, membership.gang)
        task = self.tasks.get(facts.uid)
        if task is None:
            self._add(facts, membership, undeclared)
            return
        is_bound_there = facts.status is TaskStatus.BOUND and facts.node == task.node
        if is_bound_there and task.status is TaskStatus.ASSUMED and facts.labels == task.labels:
            self._confirm(task, facts)  # the echo of our own Binding: only the marks are new
            return
        if is_bound_there and facts.uid in self.evicting:
            return  # being evicted: the condition is written before the pod terminates
        if task.status is TaskStatus.ASSUMED and facts.status is TaskStatus.PENDING and not facts.node:
            return  # an update from before our Binding
        self.evicting.discard(facts.uid)
        if self._keeps_node(task, facts, membership):
            task.spec = facts.spec
            return
        if task.gang.key != membership.gang or task.role != membership.role:
            self.remove_pod(facts.uid)
            self._add(facts, membership, undeclared)
            return
        self._change(task, facts)

    def _keeps_node(self, task: Task, facts: PodFacts, membership: Membership) -> bool:
        """Whether a task that is held or nominated stays so: nothing changed that bears on placement."""
        return (
            task.status in _KEEPS_NODE
            and facts.status is TaskStatus.PENDING
            and (task.gang.key, task.role) == (membership.gang, membership.role)
            and (task.spec is facts.spec or task.cls is self.class_of(task.gang, facts))
            and (task.labels, task.priority, task.ours) == (facts.labels, facts.priority, facts.ours)
        )

    def remove_pod(self, uid: str) -> None:
        self.unsupported.remove(uid)
        task = self.tasks.pop(uid, None)
        if task is None:
            self.gang_table.touch_known(self.foreign.remove(uid))
            return
        gang = task.gang
        self.evicting.discard(uid)
        self.counts.remove(task)
        del gang.tasks[uid]
        if task.mark:
            self.unmarked[gang.key] = gang
        if not gang.tasks and gang.spec.object is None:
            self.gang_table.forget(gang)
            return
        if follows_pods(gang.spec):
            self.gang_table.set_priority(gang)
        self.touch(gang)

    def forget_assumed(self, uid: str) -> None:
        """Our Binding, or our timeout annotation, was refused: the task is pending again (K10, G11)."""
        task = self.tasks.get(uid)
        if task is not None and task.status in (TaskStatus.ASSUMED, TaskStatus.TIMED_OUT):
            self._move(task, TaskStatus.PENDING)
            self.touch(task.gang)

    def _add(self, facts: PodFacts, membership: Membership, undeclared: Callable[[], GangSpec]) -> None:
        if not facts.ours and not facts.node:
            self._put_foreign(facts, membership.gang)
            return
        self.foreign.remove(facts.uid)
        gang = self.gangs.get(membership.gang)
        if gang is None:
            gang = self.gang_table.add(undeclared())
        cls = self.class_of(gang, facts)
        number = membership.number
        task = self.tasks[facts.uid] = Task(facts, cls, gang, membership.role, number)
        if not self._plugins.task_priority:
            task.order = task.order._replace(priority=0)
        gang.tasks[facts.uid] = task
        if len(gang.tasks) == 1 or may_change_priority(gang, task):
            self.gang_table.set_priority(gang)
        self.counts.add(task)
        self.touch(gang)

    def _put_foreign(self, facts: PodFacts, gang: GangKey) -> None:
        """A pod of another scheduler is no task; its gang says that it exists (N4)."""
        if facts.status in (TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.RELEASING):
            self.gang_table.touch_known(self.foreign.remove(facts.uid))
        elif self.foreign.put(facts.uid, gang, facts.spec.get("schedulerName") or ""):
            self.gang_table.touch_known(gang)

    def _note_unsupported(self, facts: PodFacts, gang: GangKey) -> None:
        """A pod that waits with a constraint that is not honoured holds its gang (N1)."""
        if not facts.unsupported or facts.node or not facts.ours:
            self.gang_table.touch_known(self.unsupported.remove(facts.uid))
        elif self.unsupported.put(facts.uid, gang, facts.unsupported):
            self.gang_table.touch_known(gang)

    def class_of(self, gang: GangState, facts: PodFacts | Task) -> TaskClass:
        cls = self.classes.of(facts.namespace, dict(facts.spec), dict(gang.spec.node_selector))
        self.nodes.widen()
        return cls

    def _confirm(self, task: Task, facts: PodFacts) -> None:
        transition(task, TaskStatus.BOUND, task.node)
        task.spec = facts.spec
        task.mark, task.decision = facts.mark, facts.decision
        self._set_since(task, facts.since_ns)
        self.budgets.update_pod(task)
        if self.watched:
            self.gang_table.touch_row(task)
        if not task.gang.satisfied:
            self.touch(task.gang)

    def _set_since(self, task: Task, since_ns: int | None) -> None:
        """When the task started. With a known run time the forecast for its node changes (R8), and while nodes are
        reserved whether it started after that (R4)."""
        if task.since_ns != since_ns:
            task.since_ns = since_ns
            self.budgets.update_pod(task)
            row = self.nodes.rows.get(task.node)
            if row is not None and (task.run_time_ns is not None or self.timed):
                self.nodes.touch(row)
                self.events.add(EventKind.FORECAST_CHANGED if self.timed else EventKind.VICTIMS_CHANGED)

    def _change(self, task: Task, facts: PodFacts) -> None:
        same_spec = task.spec is facts.spec or task.cls is self.class_of(task.gang, facts)
        task.spec = facts.spec
        marked = task.mark != facts.mark
        task.mark, task.decision, task.ours = facts.mark, facts.decision, facts.ours
        if task.hints != facts.hints:
            self.gang_table.touch_row(task)
            self.touch(task.gang)
        if task.topology != facts.topology:
            task.topology = facts.topology
            task.gang.has_topology_of_pods = True
            self.touch(task.gang)
        task.hints, task.never_preempts = facts.hints, facts.never_preempts
        self._set_since(task, facts.since_ns)
        moved = task.status is not facts.status or task.node != facts.node
        if same_spec and not moved and task.labels == facts.labels and task.priority == facts.priority:
            if marked:
                self.touch(task.gang)
            return
        self.counts.remove(task)
        if not same_spec:
            task.cls = self.class_of(task.gang, facts)
        if task.priority != facts.priority:
            task.priority = facts.priority
            task.order = task.order._replace(priority=-facts.priority if self._plugins.task_priority else 0)
            self.gang_table.set_priority(task.gang)
        if moved:
            task.gang.note(task.name, "is", facts.status.name, facts.node)
        task.labels, task.status, task.node = facts.labels, facts.status, facts.node
        self.counts.add(task)
        self.touch(task.gang)

    # ---- tasks that are held until their gang is complete (see `holds`)

    def hold(self, task: Task) -> None:
        """Holds a task where a transaction has placed it, instead of binding it."""
        self.counts.count_gang(task, -1)
        transition(task, TaskStatus.HELD, task.node)
        self.counts.count_gang(task, 1)
        self.events.add(EventKind.POD_PLACED)

    def assume_held(self, task: Task) -> None:
        """A held task is bound on its node."""
        self.counts.count_gang(task, -1)
        transition(task, TaskStatus.ASSUMED, task.node)
        self.counts.count_gang(task, 1)

    def restore_hold(self, task: Task, node: str) -> None:
        """Holds a pending task on the node that its record names."""
        self._move(task, TaskStatus.HELD, node)

    def unreserve(self, task: Task) -> None:
        """A held or nominated task is pending again."""
        self._move(task, TaskStatus.PENDING)

    def time_out(self, task: Task) -> None:
        """A pending task stops being a member: its pod gets the timeout annotation (K8)."""
        self._move(task, TaskStatus.TIMED_OUT, task.node)
        self.touch(task.gang)

    # ---- nominated tasks (see `nominations`) and their victims

    def nominate(self, task: Task, node: str) -> None:
        """A pending task occupies its node from now on, while its victims are still terminating."""
        self._move(task, TaskStatus.NOMINATED, node)

    def evict(self, task: Task) -> None:
        """A bound task is releasing: it occupies its node until its pod is gone, and counts towards no minimum."""
        self._move(task, TaskStatus.RELEASING, task.node)
        self.evicting.add(task.uid)
        task.gang.evicted = True
        self.touch(task.gang)

    def unevict(self, uid: str) -> None:
        """The API refused an eviction: the task is bound again."""
        self.evicting.discard(uid)
        task = self.tasks.get(uid)
        if task is not None and task.status is TaskStatus.RELEASING:
            self._move(task, TaskStatus.BOUND, task.node)
            self.touch(task.gang)

    # ---- placeholders: tasks that reserve resources for pods to come (see `claims`)

    def add_placeholder(self, placeholder: Task) -> None:
        """A placeholder occupies its node."""
        self.tasks[placeholder.uid] = placeholder
        self.counts.add(placeholder)

    def keep_placeholder(self, placeholder: Task) -> None:
        """Keeps a placeholder that a transaction has placed: its resources are allocated, its demand is added here."""
        self.tasks[placeholder.uid] = placeholder
        self.queues.add_demand(self.queue_of(placeholder.gang), placeholder.cls.request)
        self.events.add(EventKind.POD_PLACED)

    def remove_placeholder(self, placeholder: Task, holds_room: bool) -> None:
        """Removes a placeholder; without `holds_room` a task has taken over its resources already."""
        self.tasks.pop(placeholder.uid, None)
        if holds_room:
            self.counts.remove(placeholder)
        else:
            self.queues.remove_demand(self.queue_of(placeholder.gang), placeholder.cls.request)

    def _move(self, task: Task, status: TaskStatus, node: str = "") -> None:
        self.counts.remove(task)
        transition(task, status, node)
        self.counts.add(task)

    # ---- caches of classes and queues

    def candidates(self, cls: TaskClass) -> Candidates:
        """Rows and scores for tasks of a class."""
        return self._candidates.of(cls)

    def tidy(self, needed: Iterable[int]) -> None:
        """Forgets classes that have no task and are not `needed`, with their caches."""
        alive = {task.cls.id for task in self.tasks.values()}.union(needed)
        self.classes.retain(alive)
        self._candidates.retain(alive)
        self.stateful.retain(alive)
        self.nodes.forget_unused()

    def tidy_queues(self) -> None:
        """Forgets queues that do not exist and that no gang names."""
        named = {task.gang.spec.queue for task in self.tasks.values()}
        named.update(gang.spec.queue for gang in self.gangs.values())
        named.update(one.queue.name for one in self.demand)
        self.queues.retain(named)

    # ---- queries

    def queue_of(self, gang: GangState) -> Queue:
        return self.queues.get(gang.spec.queue)

    def free_total(self) -> Ints:
        """Free resources of all usable nodes, by column; an overcommitted node counts as zero."""
        nodes = self.nodes
        found: Ints = np.maximum(nodes.free[:, : nodes.count][:, nodes.usable()], 0).sum(axis=1)
        return found

    def digest(self) -> str:
        """Equal for equal states: a rolled back transaction restores it."""
        return audit.digest(self)

    def validate(self) -> None:
        """Recounts everything and compares; tests call it after each step."""
        audit.validate(self)

    def is_intact(self) -> bool:
        """Whether all counts are right after something raised (S8)."""
        try:
            self.validate()
        except Exception:
            return False
        return __debug__  # without assertions nothing is shown
