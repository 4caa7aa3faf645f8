"""A cycle that has begun and in which nothing has been done yet, over a few objects."""

from __future__ import annotations

from typing import Any

from enbloc.config import parse
from enbloc.engine.cycle import Cycle
from enbloc.engine.tables.tasks import GangState, Task
from engine.claims.scenes import SECOND_NS, name_of
from support import manifests as m
from support.direct_scheduler import DirectScheduler
from support.simulation import flat


class CycleScene:
    """In the 100th second; objects were created one a second."""

    def __init__(self, *objects: Any, config: m.Obj | None = None) -> None:
        self.direct = DirectScheduler(parse(config))
        for created_s, obj in enumerate(flat(*objects)):
            self.direct.put(obj, created_s)
        self.begin(100)

    def begin(self, now_s: int) -> None:
        self.cycle: Cycle = self.direct.engine.begin(now_s * SECOND_NS)

    def gang(self, name: str = "g") -> GangState:
        return next(gang for gang in self.cycle.state.gangs.values() if name_of(gang) == name)

    def task(self, name: str) -> Task:
        return next(task for task in self.cycle.state.tasks.values() if task.name == name)

    def reserve(self, gang: str, since_s: int = 50, **places: str) -> None:
        """Reserves nodes: pod → node, `_` in pods' names for `-`."""
        reservations, of = self.cycle.claims.reservations, self.gang(gang)
        assert reservations.make(reservations.claim(of, self._places(places), since_s * SECOND_NS))

    def nominate(self, gang: str, **places: str) -> None:
        """Claims room that is being freed: pod → node."""
        nominations, of = self.cycle.claims.nominations, self.gang(gang)
        assert nominations.make(nominations.claim(of, self._places(places)), "for a test")

    def _places(self, places: dict[str, str]) -> list[tuple[Task, str]]:
        return [(self.task(name.replace("_", "-")), node) for name, node in places.items()]
