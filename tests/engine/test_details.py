"""What is in a gang's way (G10): the gangs that hold what it lacks are named, however many others are beside them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from enbloc.advice.explanation import explain
from enbloc.api.reasons import PendingReason
from enbloc.config import parse
from enbloc.engine.core.why.details import MOST_GANGS, Details, details
from enbloc.engine.core.why.diagnosis import RESERVED, Diagnosis
from enbloc.engine.core.why.titles import Titles
from enbloc.engine.decisions import Reason
from enbloc.inspect.tables import explanation_lines, obstacle_text
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND
from engine.scenes import Scene, group, pods_of
from support import manifests as m
from support.simulation import NO_EVICTIONS, Documents, documents

BESIDE = MOST_GANGS + 5
ROOM = Diagnosis(PendingReason.UNSCHEDULABLE, "")
FULL = Diagnosis(PendingReason.QUEUE_FULL, "", of_queue=True)
OF_QUEUE = Diagnosis(PendingReason.NOT_ENOUGH_RESOURCES, "", of_queue=True)


def in_the_way(gang: str, *values: Documents) -> list[str]:
    config = parse(NO_EVICTIONS)
    simulation = Simulation(read_scenario(documents(*values)), config)
    result = simulation.run(30 * SECOND)
    found = explain(result.objects, simulation.begin_ns + simulation.elapsed_ns, config, gang)
    assert found is not None
    return [one["name"] for one in found.in_the_way if one["kind"] == "gang"]


def test_g10_a_holder_is_named_beside_many_gangs_that_use_another_resource() -> None:
    """Those come first in order: they have as many pods, and names that sort before."""
    beside = [m.pod(f"a{number:02d}", None, memory="1Mi") for number in range(BESIDE)]
    holder = m.pod("holder", 4)
    waiting = m.pod("waits", 4, at="5s")
    assert in_the_way("waits", m.node("n", 4), beside, holder, waiting) == ["default/holder"]


def test_g10_a_gang_of_the_full_queue_is_named_beside_many_of_other_queues() -> None:
    full = m.queue("full", capability={"cpu": "4"})
    beside = [m.gang(f"a{number:02d}", 1) for number in range(BESIDE)]
    holder = m.gang("holder", 4, queue="full")
    waiting = m.gang("waits", 4, queue="full", at="5s")
    found = in_the_way("waits", m.node("n", 64), full, *beside, holder, waiting)
    assert found == ["default/holder"]


def test_g10_a_gang_larger_than_its_queue_is_limited_by_it_and_nothing_is_in_its_way() -> None:
    """`holder` uses the queue, too; its end would change nothing."""
    config = parse(NO_EVICTIONS)
    parent, team = m.queue("org", capability={"cpu": "64"}), m.queue("team", capability={"cpu": "4"}, parent="org")
    files = documents(
        m.node("n", 64), parent, team, m.gang("holder", 1, queue="team"), m.gang("waits", 6, queue="team", at="5s")
    )
    simulation = Simulation(read_scenario(files), config)
    result = simulation.run(30 * SECOND)
    found = explain(result.objects, simulation.begin_ns + simulation.elapsed_ns, config, "waits")
    assert found is not None
    said = [obstacle_text(one) for one in found.in_the_way]
    assert said == ["queue team uses 1 of its capability of 4 cpu, and 6 would be added"]
    lines = explanation_lines(found, simulation.begin_ns)
    assert f"  cause       {said[0]}" in lines
    assert not [line for line in lines if "in the way" in line]


def test_g10_r5_nodes_reserved_for_another_gang_are_no_partial_fit() -> None:
    """`late` could use 1 CPU of each node; one is reserved for `starving`, and so no place for it."""
    config = parse({"actions": "enqueue, allocate, reserve"})
    running = [m.pod(f"r{number}", 3, nodeSelector={"kubernetes.io/hostname": f"n{number}"}) for number in range(2)]
    starving = m.job("starving", m.role("w", 1, cpu=4), at="1s", annotations={"volcano.sh/sla-waiting-time": "5s"})
    files = documents([m.node("n0", 4), m.node("n1", 4)], running, starving, m.gang("late", 2, cpu=1, at="10s"))
    simulation = Simulation(read_scenario(files), config)
    result = simulation.run(30 * SECOND)
    found = explain(result.objects, simulation.begin_ns + simulation.elapsed_ns, config, "late")
    assert found is not None
    reserved = [one["name"] for one in found.in_the_way if "reserved" in one["what"]]
    assert reserved == ["default/starving"]
    assert list(found.numbers["partialFit"]["pods"].values()) == [1]
    (nodes,) = found.numbers["roles"]["pods"]["nodes"]
    assert (nodes["fit"], nodes["rejected"]) == (1, {"node(s) resource was(were) reserved": 1})
    uses = {one["name"]: one["what"] for one in found.in_the_way}
    assert uses["default/r0"] == "uses 3 cpu on nodes that it could use"


def test_g10_the_most_that_is_free_on_one_of_the_nodes_of_a_shape() -> None:
    config = parse(NO_EVICTIONS)
    files = documents(
        [m.node("n0", 4), m.node("n1", 4), m.node("n2", 2)],
        [m.pod(f"r{number}", 4, nodeName=f"n{number}") for number in range(2)],
        m.pod("small", "500m", nodeName="n2"),
        m.pod("waits", 4, at="5s"),
    )
    simulation = Simulation(read_scenario(files), config)
    result = simulation.run(30 * SECOND)
    found = explain(result.objects, simulation.begin_ns + simulation.elapsed_ns, config, "waits")
    assert found is not None
    (role,) = found.numbers["roles"].values()
    assert {one["like"]: one["mostFree"] for one in role["nodes"]} == {"n0": {"cpu": "0"}, "n2": {"cpu": "1500m"}}


def test_g10_a_gang_without_roles_says_how_many_of_its_pods_would_fit() -> None:
    config = parse(NO_EVICTIONS)
    simulation = Simulation(read_scenario(documents(m.node("n", 2), m.koordinator_gang("waits", 3))), config)
    result = simulation.run(30 * SECOND)
    found = explain(result.objects, simulation.begin_ns + simulation.elapsed_ns, config, "waits")
    assert found is not None
    assert found.numbers["partialFit"] == {"pods": {"n": 2}}


def test_g10_a_partial_fit_is_of_pods_that_exist() -> None:
    """None of `wide` fits on a node. `big` is not enqueued, so it has no pods that could fit anywhere."""
    config = parse(NO_EVICTIONS)
    files = documents(m.node("n", 4), m.gang("wide", 1, cpu=5), m.job("big", m.role("w", 9, cpu=1)))
    simulation = Simulation(read_scenario(files), config)
    result = simulation.run(30 * SECOND)
    now_ns = simulation.begin_ns + simulation.elapsed_ns
    wide, big = (explain(result.objects, now_ns, config, name) for name in ("wide", "big"))
    assert wide is not None
    assert big is not None
    assert wide.numbers["partialFit"] == {}
    assert big.numbers["pods"] == {}
    assert "partialFit" not in big.numbers


# ---- the figures, and what is in the way


def asked(scene: Scene, why: Diagnosis = ROOM, gang: str = "g") -> Details:
    return details(scene.state, scene.gang(gang), why, Titles(isolated=False))


def obstacles(scene: Scene, why: Diagnosis = ROOM, gang: str = "g") -> list[str]:
    return [f"{one.kind} {one.name} {one.what}" for one in asked(scene, why, gang).in_the_way]


GATED = {"schedulingGates": [{"name": "quota"}]}


def member(name: str, role: str | None = None, cpu: m.Quantity = 1, **fields: Any) -> m.Obj:
    return m.pod(name, cpu, group="g", role=role, **fields)


@pytest.mark.parametrize(
    ("minima", "roles"),
    [
        pytest.param({"a": 2, "b": 1},
                     {"a": (2, 3, 1, 1, 1), "b": (1, 0, 0, 0, 0), "c": (0, 1, 0, 1, 0)}, id="minima of roles"),
        pytest.param({}, {"a": (0, 3, 1, 1, 1), "c": (0, 1, 0, 1, 0)}, id="a minimum of all roles is of none"),
    ],
)  # fmt: skip
def test_g10_what_each_role_needs_and_has(minima: dict[str, int], roles: dict[str, tuple[int, ...]]) -> None:
    """One pod of role a runs, one waits and one is gated; one of role c waits."""
    scene = Scene(
        m.node("n"), group(minimum=4, roles=minima), member("a0", "a", nodeName="n"), member("a1", "a"),
        member("a2", "a", **GATED), member("c0", "c"),
    )  # fmt: skip
    found = asked(scene).numbers
    keys = ("minimum", "exist", "occupied", "waiting", "gated")
    assert {role: tuple(one[key] for key in keys) for role, one in found["roles"].items()} == roles
    assert {role for role, one in found["roles"].items() if "nodes" in one} == {"a", "c"}, "roles with pods that wait"
    assert found["minimum"] == 4


def test_g10_pods_of_a_role_without_a_minimum_have_none_though_all_pods_are_theirs() -> None:
    scene = Scene(m.node("n"), group(minimum=2, roles={"b": 1}), member("c0", "c"), member("c1", "c"))
    found = asked(scene).numbers["roles"]
    assert {role: one["minimum"] for role, one in found.items()} == {"b": 1, "c": 0}


def test_g10_the_minimum_of_a_gang_without_roles_is_that_of_its_pods() -> None:
    (role,) = asked(Scene(m.node("n"), group(minimum=3), pods_of(count=2))).numbers["roles"].values()
    assert (role["minimum"], role["exist"], role["requests"]) == (3, 2, {"cpu": "1"})


def test_g10_nodes_of_one_shape_and_what_rejects_them() -> None:
    scene = Scene(
        m.node("large", 8), m.node("n0"), m.node("n1"), m.node("n2", unschedulable=True),
        m.pod("r", 3, nodeName="n0"), group(minimum=2), pods_of(count=2, cpu=2, memory="1Gi"),
    )  # fmt: skip
    (role,) = asked(scene).numbers["roles"].values()
    small, large = role["nodes"]
    assert small == {
        "shape": {"cpu": "4", "memory": "16Gi"},
        "like": "n0",
        "nodes": 3,
        "rejected": {"Insufficient cpu": 1, "node(s) were unschedulable": 1},
        "fit": 2,
        "mostFree": {"cpu": "4", "memory": "16Gi"},
    }
    assert (large["like"], large["nodes"], large["rejected"], large["fit"]) == ("large", 1, {}, 4)


def test_g10_nodes_that_take_pods() -> None:
    unready = m.node("n3")
    unready["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    nodes = [m.node("n0"), m.node("n1"), m.node("n2", unschedulable=True), unready]
    found = asked(Scene(*nodes, group(), pods_of())).numbers
    assert found["nodes"] == {"ready": 2, "cordoned": 1, "notReady": 1}


def test_g10_what_the_queues_above_a_gang_use_and_may_use() -> None:
    """A queue shows what it uses of cpu and memory, and all that its capability names but the number of pods."""
    scene = Scene(
        m.node("n", 8), m.queue("top", capability={"cpu": "6", "pods": "9"}),
        m.queue("team", parent="top", capability={"example.com/gpu": "1"}),
        group(queue="team", resources={"cpu": "2"}), pods_of(), m.pod("r", 3, memory="1Gi", nodeName="n", queue="team"),
    )  # fmt: skip
    numbers = asked(scene).numbers
    used = {"cpu": "3", "memory": "1Gi"}
    assert numbers["queues"] == [
        {"queue": "team", "used": used | {"example.com/gpu": "0"}, "capability": {"example.com/gpu": "1"}},
        {"queue": "top", "used": used, "capability": {"cpu": "6"}},
        {"queue": "root", "used": used, "capability": {}},
    ]
    assert numbers["minResources"] == {"cpu": "2"}


def test_g10_queues_that_use_nothing_and_have_no_limit() -> None:
    numbers = asked(Scene(m.node("n"), group(), pods_of())).numbers
    assert numbers["queues"] == [{"queue": name, "used": {}, "capability": {}} for name in ("default", "root")]
    assert "minResources" not in numbers


def test_g10_n4_what_keeps_members_from_counting() -> None:
    scene = Scene(
        m.node("n"), group(minimum=9), member("g0", **GATED), member("g1", schedulingGates=[{"name": "other"}]),
        member("g2", schedulingGates=[{"name": "other"}]), member("f0", scheduler="kai"),
        member("f1", scheduler="other"), member("f2", scheduler="other"),
    )  # fmt: skip
    lacks = Diagnosis(PendingReason.NOT_ENOUGH_PODS, "")
    assert obstacles(scene, lacks) == [
        "gate other holds 2 pods",
        "gate quota holds 1 pod",
        "scheduler kai is named by 1 pod",
        "scheduler other is named by 2 pods",
    ]
    assert obstacles(scene, Diagnosis(PendingReason.GANG_INVALID, "")) == []
    refused = msgspec.structs.replace(scene.gang().spec, failed_create="quota exceeded")
    scene.gang().spec = refused
    assert obstacles(scene, lacks)[4:] == ["pods  are not created: quota exceeded"]


@pytest.mark.parametrize(
    ("reason", "other", "said"),
    [
        (PendingReason.BLOCKED_BY_FIFO, "default/x", ["gang default/x is ahead of it in the FIFO queue default"]),
        (PendingReason.BLOCKED_BY_FIFO, "", []),
        (PendingReason.GROUP_NOT_READY, "default/x", ["gang default/x has to start together with it"]),
        (PendingReason.GROUP_NOT_READY, "", []),
        (PendingReason.TIMED_OUT, "default/x", []),
    ],
)
def test_g10_the_gang_that_another_waits_for(reason: PendingReason, other: str, said: list[str]) -> None:
    scene = Scene(m.node("n"), group(), pods_of(), m.pod("r", nodeName="n"))
    assert obstacles(scene, Diagnosis(reason, "", other=other)) == said


@pytest.mark.parametrize(
    ("why", "fields", "adds"),
    [
        (FULL, {"minimum": 3}, 3),
        (FULL, {"minimum": 2, "roles": {"a": 2}}, 2),
        (FULL, {"minimum": 3, "roles": {"a": 1}}, 3),
        (FULL, {"minimum": 1, "roles": {"a": 2}}, 2),
        (FULL, {"minimum": 0}, 4),  # it lacks none: all that wait
        (FULL, {"minimum": 2, "resources": {"cpu": "4"}}, 2),  # its pods were attempted
        (OF_QUEUE, {"minimum": 2, "resources": {"cpu": "4"}}, 4),  # it was not enqueued
    ],
)
def test_g10_v4_what_a_gang_would_add_to_a_full_queue(why: Diagnosis, fields: dict[str, Any], adds: int) -> None:
    """Three pods of role a wait, and one of role b; each requests 1 cpu."""
    waiting = [*(member(f"a{number}", "a") for number in range(3)), member("b0", "b")]
    top, team = m.queue("top", capability={"cpu": "4"}), m.queue("team", parent="top", capability={"memory": "1"})
    scene = Scene(
        m.node("n", 9), top, team, m.pod("r", 3, queue="team", nodeName="n"), m.pod("s", nodeName="n"),
        group(queue="team", **fields), waiting,
    )  # fmt: skip
    assert obstacles(scene, why) == [
        f"queue top uses 3 of its capability of 4 cpu, and {adds} would be added",
        "gang default/r uses 3 cpu of queue team",
    ]


@pytest.mark.parametrize(
    ("minimum", "roles", "adds"),
    [
        (2, {"a": 2}, None),
        (2, {"b": 1}, 2),
        (3, {"a": 2, "b": 1}, 3),
        (4, {"a": 2}, 4),
    ],
)
def test_g10_v4_members_that_run_are_not_added_again(minimum: int, roles: dict[str, int], adds: int | None) -> None:
    """One pod of role a runs; two wait, and one of role b that requests 2 cpu. The queue may use 1 cpu more."""
    running = [member("a0", "a", nodeName="n"), m.pod("r", 2, queue="q", nodeName="n")]
    waiting = [member("a1", "a"), member("a2", "a"), member("b0", "b", cpu=2)]
    scene = Scene(
        m.node("n", 9), m.queue("q", capability={"cpu": "4"}), group(minimum=minimum, roles=roles, queue="q"),
        running, waiting,
    )  # fmt: skip
    said = obstacles(scene, FULL)
    assert said[:1] == ([f"queue q uses 3 of its capability of 4 cpu, and {adds} would be added"] if adds else [])


def test_g10_nothing_is_in_the_way_of_a_gang_beyond_the_limit_of_one_of_its_queues() -> None:
    top, team = m.queue("top", capability={"cpu": "1"}), m.queue("team", parent="top", capability={"cpu": "9"})
    scene = Scene(m.node("n", 9), top, team, m.pod("r", 9, queue="team", nodeName="n"), group(queue="team"), pods_of())
    assert obstacles(scene, FULL) == [
        "queue team uses 9 of its capability of 9 cpu, and 2 would be added",
        "queue top uses 9 of its capability of 1 cpu, and 2 would be added",
    ]


CPU_SHORT = Diagnosis(PendingReason.UNSCHEDULABLE, "", reasons=(Reason("", "Insufficient cpu", 1),))
PORTS_TOO = Diagnosis(
    PendingReason.UNSCHEDULABLE, "", reasons=(Reason("", "Insufficient cpu", 1), Reason("", "no free ports", 1))
)
KEPT_TOO = Diagnosis(
    PendingReason.UNSCHEDULABLE, "", reasons=(Reason("", "Insufficient cpu", 1), Reason("", RESERVED, 1))
)


@pytest.mark.parametrize(
    ("why", "named"),
    [
        (CPU_SHORT, ["cpus", "low"]),
        (KEPT_TOO, ["cpus", "low"]),  # nodes that are kept for others tell nothing of the rest
        (PORTS_TOO, ["memory", "cpus", "low"]),
        (ROOM, ["memory", "cpus", "low"]),
    ],
    ids=["cpu is short", "cpu is short, and nodes are kept", "a filter too", "no reason is known"],
)
def test_g10_the_gangs_that_hold_what_a_gang_lacks(why: Diagnosis, named: list[str]) -> None:
    """On nodes that it could use: `away` runs on a node that is too small for it, and `elsewhere` on one that a filter
    rejects; `ended` uses nothing any more, and a member of its own is not in its way. The lowest priority comes first,
    then the fewest pods."""
    ended = m.pod("ended", nodeName="n")
    ended["status"] = {"phase": "Succeeded"}
    scene = Scene(
        m.node("n", labels={"disk": "ssd"}), m.node("small", 1, labels={"disk": "ssd"}), m.node("other"),
        m.pod("away", nodeName="small"), m.pod("elsewhere", nodeName="other"),
        m.pod("memory", None, memory="1Gi", nodeName="n", priority=-1),
        m.gang("low", 2, nodeName="n"), m.pod("cpus", nodeName="n"),
        ended, member("own", nodeName="n"), group(), pods_of(cpu=3, nodeSelector={"disk": "ssd"}),
    )  # fmt: skip
    said = asked(scene, why).in_the_way
    assert [one.name for one in said] == [f"default/{name}" for name in named]
    texts = {one.name: one.what for one in said}
    assert texts["default/low"] == "uses 2 cpu on nodes that it could use"
    assert texts.get("default/memory", "uses room on nodes that it could use") == "uses room on nodes that it could use"


def test_g10_a_gang_is_in_the_way_if_any_role_could_use_its_nodes() -> None:
    nodes = [m.node(name, labels={"disk": name}) for name in ("hdd", "ssd", "nvme")]
    holders = [m.pod(f"on-{name}", 4, nodeName=name) for name in ("hdd", "ssd", "nvme")]
    waiting = [member(f"g-{name}", name, nodeSelector={"disk": name}) for name in ("hdd", "ssd")]
    scene = Scene(nodes, holders, group(), waiting)
    assert [one.name for one in asked(scene, CPU_SHORT).in_the_way] == ["default/on-hdd", "default/on-ssd"]


def test_g10_k7_room_that_is_held_and_not_used() -> None:
    scene = Scene(m.node("n"), group("h"), pods_of("h"), group(), pods_of(cpu=4))
    scene.state.restore_hold(scene.task("h-0"), "n")
    assert obstacles(scene, CPU_SHORT) == ["gang default/h holds 1 cpu on nodes that it could use"]
    scene.direct.put(m.pod("h-1", group="h", nodeName="n"))
    assert obstacles(scene, CPU_SHORT) == ["gang default/h uses 2 cpu on nodes that it could use"]


def test_g10_of_a_gang_whose_pods_do_not_exist_its_min_resources_count() -> None:
    scene = Scene(m.node("n"), m.pod("r", 3, memory="1Gi", nodeName="n"), group(resources={"cpu": "4"}))
    assert obstacles(scene, CPU_SHORT) == ["gang default/r uses 3 cpu on nodes that it could use"]
    without = Scene(m.node("n"), m.pod("r", 3, nodeName="n"), group())
    assert obstacles(without, CPU_SHORT) == ["gang default/r uses room on nodes that it could use"]
