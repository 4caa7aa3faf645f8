"""The parts of a request that must be in one domain each (T1, T6): how many tasks, and of which classes."""

from __future__ import annotations

import msgspec
import pytest

from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.placement.in_domains import parts_of
from enbloc.engine.placement.request import PlacementRequest
from enbloc.engine.tables.tasks import GangState, Task
from enbloc.gangs.topology import BY_LABEL, TopologyConstraint
from engine.claims.scenes import Scene, group
from support import manifests as m
from support import racks as r

IN_RACK = TopologyConstraint(f"{BY_LABEL}{r.RACK}", required=r.RACK)
GANG = ""
"""The part that is the whole gang."""


class Waiting:
    """A gang in one rack, with tasks by role and cpu: `a1` is of role `a` and requests 1 cpu."""

    def __init__(self, *kinds: str) -> None:
        pods = [m.pod(f"g-{n}", int(kind[1:]), group="g", role=kind[0]) for n, kind in enumerate(kinds)]
        scene = Scene(r.nodes({"x": 2, "y": 2}), group(minimum=len(kinds)), pods)
        self.state = scene.state
        self.gang: GangState = scene.gang()
        self.gang.spec = msgspec.structs.replace(self.gang.spec, topology=IN_RACK)
        self.tasks: list[Task] = [scene.task(f"g-{n}") for n in range(len(kinds))]

    def parts(self, needed: int, short: int) -> dict[str, tuple[int, dict[int, int]]]:
        """By role: size, and number of tasks by cpu. The first `needed` tasks are, the others are the rest; 0 of them:
        some may be chosen."""
        request = PlacementRequest(self.gang, self.tasks[:needed], self.tasks[needed:], short)
        found = parts_of(self.state, request)
        assert not isinstance(found, Diagnosis)
        cpu = {task.cls.id: task.cls.request for task in self.tasks}
        column = self.state.resources.names.index("cpu")
        return {
            " ".join(part.name[1:]): (
                part.size,
                {dict(cpu[ident])[column] // 1000: count for ident, count in part.needed.items()},
            )
            for part in found
        }


@pytest.mark.parametrize(
    ("kinds", "needed", "short", "expected"),
    [
        pytest.param("a2 a1 a1 a1", 1, 2, (3, {2: 1, 1: 2}), id="any two of three equal ones: their class is known"),
        pytest.param(
            "a2 a1 a1 a3", 1, 2, (3, {2: 1, 1: 0, 3: 0}), id="any two of three different ones: their class is not"
        ),
        pytest.param("a2 a1 a3", 1, 2, (3, {2: 1, 1: 1, 3: 1}), id="all of the rest"),
        pytest.param("a2 a3 a1", 2, 0, (2, {2: 1, 3: 1}), id="none of the rest"),
        pytest.param("a1 a1 a1", 1, 1, (2, {1: 2}), id="equal tasks"),
        pytest.param("a1 a3", 0, 1, (1, {1: 0, 3: 0}), id="any one of two, none needed"),
    ],
)
def test_t6_the_tasks_of_a_gang_in_one_domain(
    kinds: str, needed: int, short: int, expected: tuple[int, dict[int, int]]
) -> None:
    assert Waiting(*kinds.split()).parts(needed, short) == {GANG: expected}


@pytest.mark.parametrize(
    ("kinds", "needed", "short", "expected"),
    [
        pytest.param("a2 b1 b1", 1, 1, {GANG: (2, {2: 1, 1: 1}), "a": (1, {2: 1}), "b": (1, {1: 1})},
                     id="the rest is of one role"),
        pytest.param("a2 a1 b1", 1, 1, {GANG: (2, {2: 1, 1: 1}), "a": (1, {2: 1, 1: 0}), "b": (0, {1: 0})},
                     id="the rest is of two roles: either may be chosen"),
        pytest.param("a2 a1 b1", 1, 2, {GANG: (3, {2: 1, 1: 2}), "a": (2, {2: 1, 1: 1}), "b": (1, {1: 1})},
                     id="all of the rest"),
        pytest.param("a2 b1", 1, 0, {GANG: (1, {2: 1}), "a": (1, {2: 1})}, id="none of the rest"),
    ],
)  # fmt: skip
def test_t6_the_tasks_of_a_role_in_one_domain(
    kinds: str, needed: int, short: int, expected: dict[str, tuple[int, dict[int, int]]]
) -> None:
    waiting = Waiting(*kinds.split())
    waiting.gang.spec = msgspec.structs.replace(waiting.gang.spec, topology_of_role={"a": IN_RACK, "b": IN_RACK})
    assert waiting.parts(needed, short) == expected
