"""What is said of gangs that wait: to their objects and pods, once, and to people who ask (G10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from enbloc.engine.decisions import Pending, Waits
from enbloc.engine.diagnosis import diagnosis
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.placement.request import pending_tasks
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus

if TYPE_CHECKING:
    from enbloc.engine.engine import Engine


class Reporter:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def tell(self, gang: GangState, told: Diagnosis, of_gang: bool, also: Sequence[Task] = ()) -> None:
        """Says why a gang waits, to its object and its pods, if that was not said already (G10)."""
        message = self._with_claims(gang, told.message)
        said = f"{told.reason}: {message}"
        if of_gang:
            gang.told_itself = True
        elif gang.told_itself and (gang.ready() or gang.satisfied):  # only its surplus waits by now
            self.withdraw(gang)
        if gang.told != said:
            gang.told = said
            gang.told_pods = set()
        elif of_gang and gang.told_pods and not gang.total_pending:
            return
        held = self._engine.holds.of(gang)
        waiting = [task for task in [*pending_tasks(gang), *held, *also] if task.uid not in gang.told_pods]
        if not waiting and gang.told_pods:
            return
        gang.told_pods.update(task.uid for task in waiting)
        gang.told_pods.add("")  # the gang itself was told
        pods = tuple((task.namespace, task.name, task.uid) for task in waiting)
        self._engine.decide(Waits(gang.key, told.reason, message, pods, of_gang))

    def _with_claims(self, gang: GangState, message: str) -> str:
        """What is said of a gang that waits, and what is kept for it meanwhile."""
        reserved = self._engine.reservations.of(gang)
        nodes = sorted({*reserved.values(), *(task.node for task in self._engine.nominations.of(gang))})
        if not nodes:
            return message
        where = f"{', '.join(nodes[:5])}{f' and {len(nodes) - 5} more nodes' if len(nodes) > 5 else ''}"
        verb = "is reserved" if reserved else "is being made"
        return f"{message.removesuffix('.')}; room {verb} for it on {where}"

    def was_told(self, gang: GangState) -> None:
        """Somebody before us said of a gang that it waits: if that no longer holds, it is for us to withdraw it."""
        gang.told = "as somebody said"
        gang.told_itself = True

    def withdraw(self, gang: GangState) -> None:
        """What was said of the gang no longer holds (G10)."""
        if gang.told:
            gang.told = ""
            gang.told_itself = False
            gang.told_pods = set()
            self._engine.decide(Waits(gang.key, "", "", (), True))

    def pending(self) -> list[Pending]:
        """Every gang whose minima are not all placed, and why (G10)."""
        found = []
        for gang in self._engine.state.gangs.values():
            stuck = bool(gang.spec.problem) and gang.total_pending > 0
            if not stuck and (gang.ready() or ((gang.satisfied or gang.spec.finished) and not gang.total_pending)):
                continue
            if not gang.tasks and gang.spec.object is None:
                continue
            if not any(task.ours for task in gang.tasks.values()) and gang.tasks:
                continue
            if gang.spec.object is None and all(task.status is TaskStatus.RELEASING for task in gang.tasks.values()):
                continue  # it waits for nothing
            equivalence = gang.equivalence
            told = (
                equivalence.diagnosis
                if equivalence is not None and (equivalence.unschedulable or gang.why is None)
                else gang.why
            )
            told = told or diagnosis.problem(gang, "is next to be tried")
            found.append(
                Pending(
                    gang.spec.title,
                    gang.spec.dialect or gang.key.dialect,
                    dict(told.missing),
                    self._with_claims(gang, told.message),
                    tuple(told.reasons),
                    self._engine.expected_starts.start_of(gang),
                )
            )
        return sorted(found, key=lambda one: (one.gang, one.dialect))
