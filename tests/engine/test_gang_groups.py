"""Gangs that start together: free room of a Strict group, what each gang says, and which groups fail alike (K5-K7)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from enbloc.api.reasons import PendingReason
from enbloc.engine.actions.gang_groups import _of_each, _shape, too_little_free, why_not_whole
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.placement.constraints import UNCONSTRAINED, Constraints
from enbloc.engine.state.groups import Group
from enbloc.engine.tables.tasks import GangState, TaskStatus
from enbloc.gangs.claim_records import ClaimKind
from engine.cycles import CycleScene
from support import manifests as m


def together(mode: str, *names: str, **fields: Any) -> list[m.Obj]:
    """Gangs of 2 pods each that start together."""
    groups = [f"default/{name}" for name in names]
    return [one for name in names for one in m.koordinator_gang(name, 2, mode=mode, groups=groups, **fields)]


def group_of(scene: CycleScene, name: str = "g") -> Group:
    found = scene.cycle.groups.of(scene.gang(name))
    assert found is not None
    return found


def unit(scene: CycleScene, *names: str) -> list[GangState]:
    return [scene.gang(name) for name in names]


# ---- minResources


def declare(scene: CycleScene, **asked: dict[str, int]) -> None:
    """Gang → its minResources."""
    for name, amounts in asked.items():
        gang, nanos = scene.gang(name), {key: amount * 10**9 for key, amount in amounts.items()}
        gang.spec = msgspec.structs.replace(gang.spec, min_free_resources=nanos)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        pytest.param({}, "", id="none"),
        pytest.param({"g": {"cpu": 6}}, "", id="as much as is free"),
        pytest.param({"g": {"cpu": 7}}, "7", id="more than is free"),
        pytest.param({"g": {"cpu": 4}, "h": {"cpu": 2}}, "", id="of both, as much as is free"),
        pytest.param({"g": {"cpu": 4}, "h": {"cpu": 3}}, "7", id="of both, more than is free"),
        pytest.param({"g": {"cpu": 1, "pods": 999}}, "", id="places among pods do not count"),
        pytest.param({"g": {"example.com/gpu": 1}}, "1", id="a resource that no node has"),
    ],
)
def test_k7_the_min_resources_of_a_strict_group(asked: dict[str, dict[str, int]], message: str) -> None:
    """6 cpu are free."""
    scene = CycleScene(m.node("n", 8), m.pod("other", 2, nodeName="n"), together("Strict", "g", "h"))
    declare(scene, **asked)
    found = too_little_free(scene.cycle, group_of(scene))
    assert (found is not None) is bool(message)
    if found is not None:
        assert message in found.message
        assert set(found.of_gangs) == {gang.key for gang in unit(scene, "g", "h")}


@pytest.mark.parametrize(
    ("status", "counts"),
    [
        (TaskStatus.BOUND, True),
        (TaskStatus.ASSUMED, True),
        (TaskStatus.NOMINATED, True),
        (TaskStatus.PENDING, False),
        (TaskStatus.RELEASING, False),
    ],
)
def test_k7_room_of_its_own_members_counts_as_free(status: TaskStatus, counts: bool) -> None:
    scene = CycleScene(m.node("n", 8), m.pod("other", 2, nodeName="n"), together("Strict", "g", "h"))
    declare(scene, g={"cpu": 7})
    scene.task("h-0").status = status
    assert (too_little_free(scene.cycle, group_of(scene)) is None) is counts
    scene.task("h-0").status = TaskStatus.PENDING


def test_k7_a_non_strict_group_accumulates_without_it() -> None:
    scene = CycleScene(m.node("n", 8), together(m.NON_STRICT, "g", "h"))
    declare(scene, g={"cpu": 99})
    assert too_little_free(scene.cycle, group_of(scene)) is None


# ---- what each gang says

LACKS = Diagnosis(PendingReason.NOT_ENOUGH_RESOURCES, "no room.", of_roles={"w": "w has no room."})


def said(scene: CycleScene, failure: Diagnosis, *names: str) -> dict[str, str]:
    found = _of_each(scene.cycle, group_of(scene), unit(scene, *names), failure).of_gangs
    return {key.name: why.message for key, why in found.items()}


def test_k7_what_the_gangs_of_a_group_say() -> None:
    scene = CycleScene(m.node("n", 8), together("Strict", "g", "h"))
    of_g = msgspec.structs.replace(LACKS, of_gangs={scene.gang("g").key: LACKS})
    found = said(scene, of_g, "g", "h")
    assert found["g"] == "no room."
    assert found["h"] != "no room.", "it lacks nothing itself"
    assert "g" in found["h"]
    assert said(scene, LACKS, "g", "h") == {"g": "no room.", "h": "no room."}, "of the group as a whole"
    beside = said(scene, LACKS, "g")
    assert (beside["g"], beside["h"] == found["h"]) == ("no room.", True), "only surplus of the other waits"


@pytest.mark.parametrize(("held", "text"), [(1, "no room; 1 pod is held"), (2, "no room; 2 pods are held")])
def test_k6_a_gang_says_how_many_of_its_pods_are_held(held: int, text: str) -> None:
    scene = CycleScene(m.node("n", 8), together(m.NON_STRICT, "g", "h"))
    scene.gang("g").held = {"": held}
    found = _of_each(scene.cycle, group_of(scene), unit(scene, "g", "h"), LACKS).of_gangs
    of_g, of_h = found[scene.gang("g").key], found[scene.gang("h").key]
    assert (of_g.message, of_h.message) == (text, "no room.")
    assert (of_g.of_roles, of_h.of_roles) == ({"w": f"w has {text}"}, {"w": "w has no room."})


def test_k8_a_gang_whose_pods_timed_out_says_so() -> None:
    scene = CycleScene(m.node("n", 8), together(m.NON_STRICT, "g", "h"))
    for name in ("h-0", "h-1"):
        scene.cycle.state.time_out(scene.task(name))
    found = said(scene, LACKS, "g")
    assert "waiting time" in found["h"] or "timed out" in found["h"].lower()


@pytest.mark.parametrize(("cpu", "fits"), [(4, True), (3, False)])
def test_k7_why_a_group_does_not_fit_as_a_whole(cpu: int, fits: bool) -> None:
    """4 pods of 1 cpu; nothing of them stays placed."""
    scene = CycleScene(m.node("n", cpu), together("Strict", "g", "h"))
    found = why_not_whole(scene.cycle, group_of(scene), UNCONSTRAINED)
    assert (found is None) is fits
    if found is not None:
        assert {key.name for key in found.of_gangs} == {"g", "h"}
    assert all(task.status is TaskStatus.PENDING for task in scene.cycle.state.tasks.values())


# ---- groups that fail alike


def shape(scene: CycleScene, *names: str, constraints: Constraints = UNCONSTRAINED) -> Any:
    return _shape(scene.cycle, group_of(scene, names[0]), unit(scene, *names), constraints)


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        pytest.param({}, True, id="the same"),
        pytest.param({"cpu": 2}, False, id="other pods"),
        pytest.param({"queue": "q"}, False, id="another queue"),
    ],
)
def test_g9_groups_that_ask_for_the_same_fail_alike(other: dict[str, Any], alike: bool) -> None:
    scene = CycleScene(
        m.node("n", 8), m.queue("q"), together(m.NON_STRICT, "g", "h"), together(m.NON_STRICT, "k", "l", **other)
    )
    first, second = shape(scene, "g", "h"), shape(scene, "k", "l")
    assert first is not None
    assert (first == second) is alike


@pytest.mark.parametrize(("count", "minimum"), [(3, 2), (2, 1), (3, 3)])
def test_g9_gangs_of_other_numbers_do_not_fail_alike(count: int, minimum: int) -> None:
    groups = ["default/k"]
    alone = m.koordinator_gang("g", 2, mode=m.NON_STRICT, groups=["default/g"])
    other = m.koordinator_gang("k", count, minimum, mode=m.NON_STRICT, groups=groups)
    scene = CycleScene(m.node("n", 8), alone, other)
    assert shape(scene, "g") is not None
    assert shape(scene, "g") != shape(scene, "k")


@pytest.mark.parametrize("why", ["strict", "closed", "held", "ran", "waves", "claim", "ports", "nothing"])
def test_g9_groups_whose_failure_depends_on_more_are_tried_each(why: str) -> None:
    pods = together("Strict" if why == "strict" else m.NON_STRICT, "g", "h")
    for one in pods if why == "ports" else []:
        one["spec"]["containers"][0]["ports"] = [{"hostPort": 80, "containerPort": 80}]
    scene = CycleScene(m.node("n", 8), pods)
    gang = scene.gang("h")
    constraints = Constraints(lambda task: []) if why == "closed" else UNCONSTRAINED
    if why == "held":
        gang.held = {"": 1}
    elif why == "ran":
        gang.ran = frozenset({"w"})
    elif why == "waves":
        gang.spec = msgspec.structs.replace(gang.spec, waves=True)
    elif why == "claim":
        scene.nominate("h", h_0="n")
        assert scene.cycle.claims.has(ClaimKind.PREEMPT)
    assert (shape(scene, "g", "h", constraints=constraints) is None) is (why != "nothing")
