"""Whether a node is still good for what is claimed on it."""

from __future__ import annotations

from enbloc.engine.claims.room import fits_now, passes_filters, still_fits
from enbloc.gangs.claim_records import ClaimKind
from engine.claims.scenes import Scene, group, pods_of, small
from support import manifests as m


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
