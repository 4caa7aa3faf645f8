"""Room that is set aside for tasks that do not exist yet, held by their ghosts (D5; see `gangs.claims`).

A ghost is a task of the role's template on the node that was found for it. It takes its room, its queue's use and its
place among others like any task, so nobody else can have them; when the real pod comes, it takes the ghost's place. The
API's record is the truth: after a restart the ghosts are made anew from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState, PodFacts, Task, TaskStatus
from enbloc.gangs.claim_records import WAVE, Record
from enbloc.gangs.model import GangKey, Template

_GHOST = "claim/"


def is_claim(task: Task) -> bool:
    """Whether a task that has room is not bound there: it is held, nominated, or the ghost of one to come."""
    return task.status in (TaskStatus.HELD, TaskStatus.NOMINATED) or task.uid.startswith(_GHOST)


class Claims:
    """The ghosts of all gangs."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._ghosts: dict[GangKey, list[Task]] = {}
        self._until: dict[GangKey, int] = {}
        self._unconfirmed: dict[GangKey, Record | None] = {}
        """Records that we wrote and the API has not echoed yet: until then what it says is older than what we know."""

    def __bool__(self) -> bool:
        return bool(self._ghosts)

    def of(self, gang: GangState) -> list[Task]:
        return self._ghosts.get(gang.key, [])

    def all(self) -> list[tuple[GangKey, list[Task]]]:
        return list(self._ghosts.items())

    def roles(self, gang: GangState) -> dict[str, int]:
        """How many tasks room is set aside for, by role."""
        found: dict[str, int] = {}
        for ghost in self.of(gang):
            found[ghost.role] = found.get(ghost.role, 0) + 1
        return found

    def due(self) -> int | None:
        return min(self._until.values(), default=None)

    def overdue(self, now: int) -> list[GangKey]:
        return [key for key, until in self._until.items() if until <= now]

    def record(self, gang: GangState) -> Record | None:
        """What is to be written down of a gang now."""
        slots: dict[str, dict[str, int]] = {}
        for ghost in self.of(gang):
            nodes = slots.setdefault(ghost.role, {})
            nodes[ghost.node] = nodes.get(ghost.node, 0) + 1
        return Record(WAVE, self._until[gang.key], slots) if slots else None

    # ---- made and ended

    def ghosts(self, gang: GangState, role: str, template: Template, count: int) -> list[Task]:
        """Tasks of a template that wait for a place. They belong to a shadow of the gang, which counts nothing."""
        shadow = GangState(gang.spec)
        shadow.priority = gang.priority
        shadow.pending[role] = count
        taken = len(self.of(gang))
        found = []
        for index in range(taken, taken + count):
            facts = PodFacts(
                uid=f"{_GHOST}{'/'.join(gang.key)}/{role}/{index}",
                namespace=gang.key.namespace,
                name=f"{role}-{index}",
                labels=template.labels,
                spec=template.pod_spec,
                created=gang.spec.created,
                priority=gang.priority,
                node="",
                status=TaskStatus.PENDING,
                ours=True,
            )
            cls = self._state.class_of(gang, facts)
            found.append(Task(facts, cls, shadow, role, index))
        return found

    def adopt(self, gang: GangState, placed: Iterable[Task], until: int) -> None:
        """Ghosts that a transaction has placed stay."""
        for ghost in placed:
            self._state.keep_ghost(ghost)
            self._ghosts.setdefault(gang.key, []).append(ghost)
        if gang.key in self._ghosts:
            self._until.setdefault(gang.key, until)

    def forget(self, gang: GangState, ghosts: Iterable[Task], holds_room: bool) -> None:
        """Ghosts end: their tasks took their places (and their room already), or they let go of it now."""
        gone = {ghost.uid for ghost in ghosts}
        for ghost in [ghost for ghost in self.of(gang) if ghost.uid in gone]:
            self._state.drop_ghost(ghost, holds_room)
        left = [ghost for ghost in self.of(gang) if ghost.uid not in gone]
        if left:
            self._ghosts[gang.key] = left
        else:
            self._ghosts.pop(gang.key, None)
            self._until.pop(gang.key, None)

    def forget_key(self, key: GangKey) -> None:
        """A gang is gone: so is what was set aside for it."""
        for ghost in self._ghosts.pop(key, []):
            self._state.drop_ghost(ghost, holds_room=True)
        self._until.pop(key, None)
        self._unconfirmed.pop(key, None)

    # ---- what the API says

    def wrote(self, gang: GangState, record: Record | None) -> None:
        self._unconfirmed[gang.key] = record

    def refused(self, key: GangKey) -> None:
        """The record could not be written: what the API says holds."""
        self._unconfirmed.pop(key, None)

    def follow(self, gang: GangState) -> bool:
        """Makes the ghosts what the record says. `False`: it cannot be so any more, and they are gone."""
        record = gang.spec.claim
        if gang.key in self._unconfirmed:
            if record == self._unconfirmed[gang.key]:
                del self._unconfirmed[gang.key]
            return True
        if record == self.record(gang):
            return True
        self.forget(gang, list(self.of(gang)), holds_room=True)
        if record is None:
            return True
        for role, nodes in record.slots.items():
            template = gang.spec.templates.get(role)
            if template is None or not self._stand_on(gang, role, template, nodes, record.until):
                self.forget(gang, list(self.of(gang)), holds_room=True)
                return False
        return True

    def broken(self, gang: GangState) -> bool:
        """Whether a node no longer holds what was set aside on it."""
        nodes = self._state.nodes
        for ghost in self.of(gang):
            row = nodes.rows.get(ghost.node)
            if row is None or any(nodes.free[column, row] < 0 for column, _ in ghost.cls.request):
                return True
            if not self._state.candidates(ghost.cls).passes(row):
                return True
        return False

    def _stand_on(self, gang: GangState, role: str, template: Template, nodes: Mapping[str, int], until: int) -> bool:
        for node, count in nodes.items():
            if node not in self._state.nodes.rows:
                return False
            for ghost in self.ghosts(gang, role, template, count):
                ghost.node, ghost.status = node, TaskStatus.ASSUMED
                self._state.put_ghost(ghost)
                self._ghosts.setdefault(gang.key, []).append(ghost)
        self._until[gang.key] = until
        return not self.broken(gang)
