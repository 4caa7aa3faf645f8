"""Signatures (G9): what makes gangs wait in one equivalence class, where an attempt of one decides for all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from enbloc.engine.queueing import signature
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState, TaskStatus
from enbloc.gangs.hints import SchedulingHints
from enbloc.gangs.model import GangKey, GangSpec
from enbloc.gangs.topology import TopologyConstraint
from engine import gang_states
from engine.claims.scenes import Scene, group, pods_of
from support import manifests as m


def gang(name: str = "g", **fields: Any) -> GangState:
    return GangState(GangSpec(GangKey("t", "ns", name), f"ns/{name}", 0, 2, **{"min_resources": {"cpu": 5}, **fields}))


@pytest.mark.parametrize(
    ("other", "timed", "overdue", "equal"),
    [
        ({}, False, False, True),
        ({}, False, True, False),  # one that starves, or whose deadline has passed, is alone
        ({"min_resources": {"cpu": 6}}, False, False, False),
        ({"minima": {"a": 1}}, False, False, False),
        ({"never_preempts": True}, False, False, False),
        ({"hints": SchedulingHints(run_time_ns=5)}, False, False, True),
        ({"hints": SchedulingHints(run_time_ns=5)}, True, False, False),  # run times bear on placement (R8)
    ],
)
def test_m6_which_gangs_wait_for_admission_together(
    other: dict[str, Any], timed: bool, overdue: bool, equal: bool
) -> None:
    state = cast(State, SimpleNamespace(timed=timed))
    one = signature.at_admission(state, gang("a"), overdue)
    two = signature.at_admission(state, gang("b", **other), overdue)
    assert (one.facts == two.facts) is equal


@pytest.mark.parametrize(("timed", "times"), [(True, (5, None)), (False, ())])
def test_r8_run_times_count_while_they_bear_on_placement(timed: bool, times: tuple[int | None, ...]) -> None:
    made = gang_states.gang()
    runs = (5, None, 5)
    tasks = [
        gang_states.task(made, f"p{number}", hints=SchedulingHints(run_time_ns=run)) for number, run in enumerate(runs)
    ]
    assert signature.times_of(cast(State, SimpleNamespace(timed=timed)), tasks) == times


def test_t4_gangs_that_must_be_together_differ_by_the_nodes_of_their_placed_tasks() -> None:
    rack = TopologyConstraint("tree", required="rack")
    assert signature.place_of(gang_states.gang()) is None
    waiting = gang_states.gang(topology=rack)
    gang_states.task(waiting, "waits")
    assert signature.place_of(waiting) == (rack, (), ())
    placed = gang_states.gang(topology=rack, occupied={"": 2})
    for number, node in enumerate(("n", "m")):
        gang_states.task(placed, f"p{number}", status=TaskStatus.BOUND, node=node)
    assert signature.place_of(placed) == (rack, (), ("m", "n"))


def test_g9_what_tasks_request_run_by_run_and_by_role() -> None:
    pods = [
        m.pod(f"g-{role}{number}", cpu, group="g", role=role) for role, cpu in (("a", 1), ("b", 2)) for number in "01"
    ]
    scene = Scene(m.node("n"), group(minimum=4), pods)
    tasks = [scene.task(name) for name in ("g-a0", "g-a1", "g-b0", "g-b1")]
    asked = signature.asked_by(scene.state, scene.gang(), tasks)
    one, other = tasks[0].cls.id, tasks[2].cls.id
    assert asked.parts == ((one, (("a", 2),)), (other, (("b", 2),)))
    assert (asked.classes, asked.stateful) == ((one, other), False)


def test_g6_one_task_that_other_pods_matter_to_is_enough() -> None:
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}]}  # fmt: skip
    alone = m.pod("g-0", group="g", labels={"app": "a"}, affinity={"podAntiAffinity": apart})
    scene = Scene(m.node("n"), group(), alone, m.pod("g-1", 2, group="g"))
    for names in (("g-0", "g-1"), ("g-1", "g-0")):
        assert signature.asked_by(scene.state, scene.gang(), [scene.task(name) for name in names]).stateful
    assert not signature.asked_by(scene.state, scene.gang(), [scene.task("g-1")]).stateful


@pytest.mark.parametrize("change", ["nothing", "holds", "free room", "pods"])
def test_k7_gangs_that_start_together_wait_with_all_that_their_attempt_depends_on(change: str) -> None:
    scene = Scene(m.node("n"), group(), pods_of())
    made = scene.gang()

    def found(holds: bool = False) -> signature.Signature:
        return signature.of_unit(scene.state, [made], holds, scene.claims.reservations)

    before = found()
    assert before.classes == (scene.task("g-0").cls.id,)
    if change == "free room":
        made.spec = msgspec.structs.replace(made.spec, min_free_resources={"cpu": 1})
    elif change == "pods":
        scene.direct.put(m.pod("g-0", 3, group="g"))
    assert (found(change == "holds").facts == before.facts) is (change == "nothing")
