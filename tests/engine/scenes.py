"""A small state with one gang and its claims, without an engine around it."""

from __future__ import annotations

from typing import Any

from enbloc.api.reasons import PendingReason
from enbloc.config import parse
from enbloc.engine.core.claims.claim import Claim, Slot
from enbloc.engine.core.claims.claims import Claims
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.units import Units
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.decisions import Complain, Decision, SetAside
from enbloc.gangs.claim_records import ClaimKind, Record
from support import manifests as m
from support.direct_scheduler import DirectScheduler
from support.simulation import flat

SECOND_NS = 1_000_000_000
CANNOT_START = Diagnosis(PendingReason.NOT_ENOUGH_RESOURCES, "its queue does not exist")
LACKS_MEMBERS = Diagnosis(PendingReason.NOT_ENOUGH_PODS, "1 pod is missing")


def name_of(gang: GangState) -> str:
    return gang.spec.title.partition("/")[2]


class Scene:
    """Objects go in as events; `begin` is what the registry does at the beginning of a cycle. What keeps gangs from
    starting (`obstacles`) and what is satisfied are given by the test: the engine sets both."""

    def __init__(self, *objects: Any) -> None:
        self.direct = DirectScheduler(parse(None))
        for created_s, obj in enumerate(flat(*objects)):
            self.direct.put(obj, created_s)
        self.state: State = self.direct.engine.state
        self.units: Units = self.direct.engine.parts.units
        self.obstacles: dict[str, Diagnosis] = {}
        self.decided: list[SetAside] = []
        self.complaints: list[Complain] = []
        self.restart_registry()
        self.begin(0)

    def restart_registry(self) -> None:
        """A new registry that knows nothing but what the objects say."""
        parts = self.direct.engine.parts
        self.claims = Claims(self.state, self.units, parts.obstacles, parts.commits, self._note)
        self.claims.obstacle = lambda gang, kind: self.obstacles.get(name_of(gang))
        self.state.gang_table.when_forgotten = self.claims.gang_gone

    def _note(self, decision: Decision) -> None:
        if isinstance(decision, Complain):
            self.complaints.append(decision)
            return
        assert isinstance(decision, SetAside)
        self.decided.append(decision)

    def begin(self, now_s: float) -> list[SetAside]:
        """Takes in what changed and reviews the claims; what was decided by that."""
        self.decided.clear()
        self.state.settle()
        self.units.settle(self.state.dirty.values())
        self.claims.cycle_begins(int(now_s * SECOND_NS))
        self.state.dirty.clear()
        self.state.events.clear()
        self.state.validate()
        return list(self.decided)

    def delete_pod(self, name: str) -> None:
        self.direct.delete("Pod", name)

    def gang(self, name: str = "g") -> GangState:
        return next(gang for gang in self.state.gangs.values() if name_of(gang) == name)

    def task(self, name: str) -> Task:
        return next(task for task in self.state.tasks.values() if task.name == name)

    def claim(self, kind: ClaimKind, gang: str = "g", until_s: float = 0, **places: str) -> Claim:
        """A claim that is not stored: pod → node, `_` in pods' names for `-`."""
        slots = []
        for name, node in places.items():
            task = self.task(name.replace("_", "-"))
            slots.append(Slot(task.name, node, task))
        return Claim(self.gang(gang), kind, slots, int(until_s * SECOND_NS))

    def make(self, kind: ClaimKind, gang: str = "g", until_s: float = 0, **places: str) -> Claim:
        made = self.claim(kind, gang, until_s, **places)
        assert self.claims.make(made, "Made", "for a test")
        return made

    def free_cpu(self, node: str) -> int:
        """In cores."""
        column = self.state.resources.names.index("cpu")
        return int(self.state.nodes.free[column, self.state.nodes.rows[node]]) // 1000

    def record(self, kind: ClaimKind, gang: str = "g") -> Record | None:
        return self.gang(gang).status.claims.get(kind)


def group(name: str = "g", minimum: int = 2, **fields: Any) -> m.Obj:
    """A PodGroup that was enqueued before."""
    return {**m.podgroup(name, minimum, **fields), "status": {"phase": "Inqueue"}}


def pods_of(name: str = "g", count: int = 2, **fields: Any) -> list[m.Obj]:
    return [m.pod(f"{name}-{index}", group=name, **fields) for index in range(count)]


def small(*more: Any) -> Scene:
    """Two nodes of 4 cpu, and a gang of two pods of 1 cpu."""
    return Scene(m.node("n"), m.node("m"), group(), pods_of(), *more)


def recreated(*more: Any) -> Scene:
    """The same, of a QueueJob: its controller recreates pods under their names."""
    by = m.crdjob_owner("g", "u-g", "QueueJob", m.ARBITRATOR)
    members = m.owned(*m.pods(2, "g-"), by=by)
    return Scene(m.node("n"), m.node("m"), m.scheduling_spec("g", 2, by=by), members, *more)
