"""Whether a node is still good for what is claimed on it, and how a gang takes the room that it claims."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.claims.placeholders import make_placeholders
from enbloc.engine.claims.room import (
    fits_now,
    passes_filters,
    replace_placeholders,
    still_fits,
    take_reserved,
    will_fit,
)
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import Task
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.model import Template
from engine.claims.scenes import Scene, group, pods_of, small
from support import manifests as m
from support import racks


def test_passes_filters_does_not_look_at_free_room() -> None:
    scene = Scene(m.node("n"), group(), pods_of(), m.pod("full", 4, nodeName="n"))
    assert passes_filters(scene.state, scene.task("g-0"), "n")
    assert not fits_now(scene.state, scene.task("g-0"), scene.state.nodes.rows["n"])
    assert not passes_filters(scene.state, scene.task("g-0"), "unknown")


def test_passes_filters_looks_at_the_nodes_own_facts() -> None:
    scene = small()
    scene.direct.put(m.node("n", unschedulable=True))
    scene.begin(1)
    assert not passes_filters(scene.state, scene.task("g-0"), "n")
    assert passes_filters(scene.state, scene.task("g-0"), "m")


def test_still_fits_until_the_node_is_overdrawn() -> None:
    """The task's own room is taken: nothing free is enough, less than nothing is not."""
    scene = Scene(m.node("n", 2), group(), pods_of())
    scene.make(ClaimKind.PREEMPT, g_0="n", g_1="n")
    assert scene.free_cpu("n") == 0
    assert still_fits(scene.state, scene.task("g-0"), "n")
    scene.direct.put(m.node("n", "1900m"))
    scene.state.settle()
    assert not still_fits(scene.state, scene.task("g-0"), "n")


def test_overdrawn_in_a_dimension_that_the_task_does_not_request_is_no_matter() -> None:
    scene = Scene(m.node("n", memory="2Gi"), group(), pods_of(), m.pod("big", 1, memory="2Gi", nodeName="n"))
    scene.make(ClaimKind.PREEMPT, g_0="n", g_1="n")
    scene.direct.put(m.node("n", memory="1Gi"))
    scene.state.settle()
    assert still_fits(scene.state, scene.task("g-0"), "n")


# ---- room that terminating pods leave


def leaving(name: str, cpu: int = 1, **fields: Any) -> m.Obj:
    """A pod on `n` that terminates."""
    made = m.pod(name, cpu, nodeName="n", **fields)
    made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return made


@pytest.mark.parametrize(
    ("pods", "fits"),
    [
        ([], True),
        ([m.pod("stays", 2, nodeName="n")], True),
        ([m.pod("stays", 3, nodeName="n")], False),
        ([m.pod("stays", "2001m", nodeName="n")], False),
        ([leaving("goes", 3)], True),
        ([m.pod("stays", 2, nodeName="n"), leaving("goes", 3)], True),
        ([m.pod("stays", 3, nodeName="n"), leaving("goes", 3)], False),
        ([m.pod("stays", 3, nodeName="n"), leaving("a"), leaving("b")], False),
        ([m.pod("stays", 1, memory="17Gi", nodeName="n")], True),  # it does not request memory
        ([leaving("goes", 3, memory="9Gi")], True),
    ],
)
def test_p3_room_that_is_being_freed_fits_once_terminating_pods_are_gone(pods: list[m.Obj], fits: bool) -> None:
    """A gang of 2 pods is nominated on a node of 4 cpu."""
    scene = Scene(m.node("n"), group(), pods_of())
    scene.make(ClaimKind.PREEMPT, g_0="n", g_1="n")
    for pod in pods:
        scene.direct.put(pod)
    scene.state.settle()
    assert will_fit(scene.state, scene.task("g-0"), "n") is fits


def test_p3_room_on_a_node_that_no_longer_passes_does_not_fit() -> None:
    scene = small()
    scene.make(ClaimKind.PREEMPT, g_0="n", g_1="m")
    scene.direct.put(m.node("n", unschedulable=True))
    scene.begin(1)
    assert not will_fit(scene.state, scene.task("g-0"), "n")
    assert not will_fit(scene.state, scene.task("g-0"), "unknown")


# ---- how a gang takes it


def taken(scene: Scene, *, later: list[Task] | None = None, **places: str) -> dict[str, str]:
    """The pods that take their reserved nodes, and where."""
    gang, placer = scene.gang(), scene.direct.engine.parts.placer
    scene.state.settle()
    transaction = Transaction(scene.state)
    uids = {task.name.replace("-", "_"): task.uid for task in scene.state.tasks.values()}
    given = {uids.get(name, name): node for name, node in places.items()}
    take_reserved(placer, transaction, gang, given, later or [])
    found = {task.name: task.node for task in (*gang.tasks.values(), *(later or [])) if task.node}
    transaction.rollback()
    return found


def reserved(*more: Any, count: int = 3, **fields: Any) -> Scene:
    """Nodes `n` of 4 and `m` of 1 cpu, and a gang of three pods of 1 cpu."""
    return Scene(m.node("n"), m.node("m", 1), group(minimum=count), pods_of(count=count, **fields), *more)


def test_r7_pods_take_their_reserved_nodes_as_far_as_they_fit() -> None:
    assert taken(reserved(), g_0="n", g_1="m", g_2="n") == {"g-0": "n", "g-1": "m", "g-2": "n"}
    assert taken(reserved(), g_0="gone", g_1="m", g_2="n") == {"g-1": "m", "g-2": "n"}
    assert taken(reserved(), g_0="m", g_1="m", g_2="n") == {"g-0": "m", "g-2": "n"}
    assert taken(reserved(), unknown="n", g_2="n") == {"g-2": "n"}
    full = m.pod("other", 4, nodeName="n")
    assert taken(reserved(full), g_0="n", g_1="m", g_2="n") == {"g-1": "m"}


def test_r7_a_pod_that_is_bound_already_takes_no_reserved_node() -> None:
    scene = reserved()
    scene.direct.put(m.pod("g-0", group="g", nodeName="n"))
    assert taken(scene, g_0="m", g_1="m", g_2="n") == {"g-0": "n", "g-1": "m", "g-2": "n"}


def test_r7_the_queue_limits_what_is_taken() -> None:
    scene = Scene(m.node("n"), m.queue("q", capability={"cpu": "2"}), group(minimum=3, queue="q"), pods_of(count=3))
    assert taken(scene, g_0="n", g_1="n", g_2="n") == {"g-0": "n", "g-1": "n"}


def later_pods(scene: Scene, count: int, cpu: int = 1, role: str = "") -> list[Task]:
    template = Template(count, m.pod_spec(cpu))
    return make_placeholders(scene.state, scene.gang(), role, template, 0, count)


def test_d5_pods_of_later_waves_take_their_reserved_nodes_too() -> None:
    scene = reserved()
    first, second = later_pods(scene, 2)
    places = {first.uid: "n", "g_0": "n"}
    found = taken(scene, later=[first, second], **places)
    assert found == {"g-0": "n", first.name: "n"}


def test_d5_pods_take_the_places_of_placeholders_of_their_role() -> None:
    scene = reserved(role="w")
    ours, other = later_pods(scene, 2, role="w"), later_pods(scene, 1, role="x")
    nodes = scene.state.nodes.rows
    transaction = Transaction(scene.state)
    transaction.place(ours, [nodes["n"], nodes["m"]])
    transaction.place(other, [nodes["n"]])
    needed = [scene.task(f"g-{index}") for index in range(3)]
    found = replace_placeholders(scene.direct.engine.parts.placer, transaction, needed, [*other, *ours])
    assert found == [ours[1], ours[0]]  # by node: `m` comes first
    assert [task.node for task in needed] == ["m", "n", ""]
    transaction.rollback()
    transaction.place(ours, [nodes["n"], nodes["m"]])
    scene.task("g-0").role = "y"  # none is kept for it; the pods after it take theirs
    assert replace_placeholders(scene.direct.engine.parts.placer, transaction, needed, ours) == [ours[1], ours[0]]
    transaction.rollback()


def test_d5_a_pod_that_is_larger_than_its_placeholder_does_not_take_its_place() -> None:
    scene = reserved(role="w", cpu=2)
    (ours,) = later_pods(scene, 1, role="w")
    transaction = Transaction(scene.state)
    transaction.place([ours], [scene.state.nodes.rows["m"]])
    assert replace_placeholders(scene.direct.engine.parts.placer, transaction, [scene.task("g-0")], [ours]) is None
    transaction.rollback()


def test_r7_pods_that_may_not_be_together_take_one_place_each() -> None:
    """Other pods matter where they are now: the first that is placed keeps the second away."""
    port = [{"containerPort": 80, "hostPort": 80}]
    scene = Scene(m.node("n"), m.node("m"), group(minimum=3), pods_of(count=3))
    for name in ("g-0", "g-1", "g-2"):
        pod = m.pod(name, group="g")
        pod["spec"]["containers"][0]["ports"] = port
        scene.direct.put(pod)
    assert taken(scene, g_0="n", g_1="n", g_2="m") == {"g-0": "n", "g-2": "m"}


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ({"g_0": "a-0", "g_1": "a-1"}, {"g-0": "a-0", "g-1": "a-1"}),
        ({"g_0": "a-0", "g_1": "b-0"}, {}),
        ({"g_0": "a-0", "g_1": "gone"}, {}),
        ({"g_0": "a-0", "unknown": "gone"}, {"g-0": "a-0"}),
    ],
)
def test_t7_pods_that_must_be_together_take_all_their_places_or_none(
    places: dict[str, str], found: dict[str, str]
) -> None:
    together = group(networkTopology={"mode": "hard", "highestTierAllowed": 1})
    hyper_nodes = [racks.hyper_node(rack, 1, f"/{rack}-.*/") for rack in "ab"]
    scene = Scene(racks.nodes({"a": 2, "b": 1}), hyper_nodes, together, pods_of())
    assert taken(scene, **places) == found


def test_still_fits_only_where_the_filters_pass() -> None:
    scene = small()
    scene.direct.put(m.node("n", unschedulable=True))
    scene.begin(1)
    assert not still_fits(scene.state, scene.task("g-0"), "n")
    assert still_fits(scene.state, scene.task("g-0"), "m")
