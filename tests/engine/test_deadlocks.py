"""Deadlocks between claims: who waits for whom, and who releases its claims so that one can start (K12)."""

from __future__ import annotations

import pytest

from enbloc.engine.actions import allocate
from enbloc.engine.actions.deadlocks import resolve_deadlock
from enbloc.engine.decisions import Bind
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.claim_records import ClaimKind
from engine.claims.scenes import name_of
from engine.cycles import CycleScene
from support import manifests as m


def holding(cpu: int, *more: m.Obj, **parties: tuple[int, int]) -> CycleScene:
    """A node, and NonStrict gangs by name: so many pods of 1 cpu, all of which they need, and so many of them held."""
    gangs = [one for name, (count, _) in parties.items() for one in m.koordinator_gang(name, count, mode=m.NON_STRICT)]
    scene = CycleScene(m.node("n", cpu), gangs, *more)
    for name, (_, held) in parties.items():
        gang, group = scene.gang(name), scene.cycle.groups.of(scene.gang(name))
        assert group is not None
        tasks = [scene.task(f"{name}-{number}") for number in range(held)]
        if tasks:
            Transaction(scene.cycle.state).place(tasks, [0] * held)
            scene.cycle.claims.holds.hold(group, gang, tasks, scene.cycle.now_ns)
    return scene


def resolved(scene: CycleScene) -> tuple[list[str], list[str]]:
    """The gangs that released what they held, and those that were bound."""
    before = {name_of(claim.gang) for claim in scene.cycle.claims.all(ClaimKind.HOLD)}

    def serve(gang: GangState) -> Diagnosis | None:
        return allocate.serve(scene.cycle, gang, scene.cycle.constraints(gang))

    resolve_deadlock(scene.cycle, serve)
    left = {name_of(claim.gang) for claim in scene.cycle.claims.all(ClaimKind.HOLD)}
    decided = scene.direct.engine.end(scene.cycle)
    bound = {place.name[0] for one in decided if isinstance(one, Bind) for place in one.placements}
    return sorted(before - left - bound), sorted(bound)


@pytest.mark.parametrize(
    ("cpu", "parties", "released", "bound"),
    [
        pytest.param(4, {"a": (4, 2), "b": (4, 2)}, "b", "a", id="the last in order releases"),
        pytest.param(4, {"a": (4, 4)}, "", "", id="one alone waits for none"),
        pytest.param(6, {"a": (4, 2), "b": (4, 2), "c": (4, 2)}, "c", "a", id="no more than it takes"),
        pytest.param(5, {"a": (5, 2), "b": (5, 1), "c": (5, 2)}, "bc", "a", id="both others"),
        pytest.param(4, {"a": (9, 2), "b": (4, 2)}, "", "", id="not for one that would not fit anyway"),
        pytest.param(4, {"a": (4, 2), "b": (3, 2)}, "b", "a", id="the first in order starts, though larger"),
        pytest.param(4, {"a": (4, 0), "b": (4, 2)}, "", "", id="one that holds nothing is not in the way"),
    ],
)
def test_k12_who_releases_and_who_starts(
    cpu: int, parties: dict[str, tuple[int, int]], released: str, bound: str
) -> None:
    assert resolved(holding(cpu, **parties)) == (list(released), list(bound))


def test_k12_a_gang_that_running_pods_keep_waiting_releases_nothing() -> None:
    running = m.pod("running", 1, nodeName="n")
    assert resolved(holding(4, running, a=(4, 2), b=(4, 1))) == ([], [])


def test_k12_the_one_that_releases_says_so() -> None:
    scene = holding(4, a=(4, 2), b=(4, 2))
    resolved(scene)
    notes = {name: scene.cycle.claims.notes_of(scene.gang(name)) for name in "ab"}
    assert notes["a"] == []
    assert len(notes["b"]) == 1
    assert "default/a" in notes["b"][0]
