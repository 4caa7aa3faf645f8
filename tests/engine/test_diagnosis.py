"""Why a gang waits, word for word (G10): the numbers, and the grammar that goes with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from enbloc.api.reasons import PendingReason
from enbloc.config import parse
from enbloc.engine.core.tables.resources import CEILING
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import shown
from enbloc.engine.core.why.titles import Titles
from enbloc.engine.decisions import Pending, Reason
from enbloc.gangs.model import GangKey, GangSpec
from engine import gang_states
from properties import strategies
from support import manifests as m
from support.direct_scheduler import DirectScheduler


def gang(
    minimum: int, pending: dict[str, int] | None = None, occupied: dict[str, int] | None = None, **minima: int
) -> GangState:
    found = GangState(GangSpec(GangKey("volcano", "ns", "g"), "ns/g", 0, minimum, minima, queue="blue"))
    found.pending, found.occupied = pending or {}, occupied or {}
    return found


# ---- not all of it exists (G4)


@pytest.mark.parametrize(
    "waiting, message, missing",
    [
        (gang(1), "0 of 1 pod exists, 1 more is needed", {"": 1}),
        (gang(3, {"": 1}), "1 of 3 pods exist, 2 more are needed", {"": 2}),
        (gang(2, {"work": 1}, work=2), "1 of 2 pods exist, 1 of role work is needed", {"work": 1}),
        (
            gang(5, {"work": 1}, {"master": 1}, work=2, master=2),
            "2 of 5 pods exist, 1 of role master and 1 of role work and 1 more of any role are needed",
            {"master": 1, "work": 1, "": 1},
        ),
        (gang(4, {"a": 9}, a=1, b=1), "9 of 4 pods exist, 1 of role b is needed", {"b": 1}),
    ],
)
def test_g4_g10_how_many_are_missing(waiting: GangState, message: str, missing: dict[str, int]) -> None:
    direct = diagnosis.not_enough_members(waiting)
    assert (direct.reason, direct.message, direct.missing) == ("NotEnoughPods", message, missing)


# ---- the same, with pods that exist and are no members (N4)

QUOTA, OTHER = [{"name": "quota"}], [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("minimum", "waiting", "gates", "foreign", "fields", "reason", "message"),
    [
        (2, 1, [QUOTA], {}, {}, "SchedulingGated", "2 of 2 pods exist; 1 is held by scheduling gate quota"),
        (4, 1, [QUOTA, OTHER], {}, {}, "SchedulingGated",
         "3 of 4 pods exist, 3 more are needed; 2 are held by scheduling gate a, b; quota"),
        (2, 1, [], {"kai": 1}, {}, "OtherScheduler",
         "2 of 2 pods exist; 1 names another scheduler: kai (ours: enbloc)"),
        (3, 1, [], {"kai": 1, "": 1}, {}, "OtherScheduler",
         "3 of 3 pods exist; 2 name another scheduler: (none), kai (ours: enbloc)"),
        (3, 1, [QUOTA], {"kai": 1}, {}, "SchedulingGated",
         "3 of 3 pods exist; 1 is held by scheduling gate quota; 1 names another scheduler: kai (ours: enbloc)"),
        (4, 1, [QUOTA], {"kai": 2}, {}, "OtherScheduler",
         "4 of 4 pods exist; 1 is held by scheduling gate quota; 2 name another scheduler: kai (ours: enbloc)"),
        (2, 1, [QUOTA], {}, {"failed_create": "the API server refuses more: no quota"}, "FailedCreate",
         "2 of 2 pods exist; 1 is held by scheduling gate quota; the API server refuses more: no quota"),
        (2, 1, [], {}, {"failed_create": "the API server refuses more: no quota"}, "FailedCreate",
         "1 of 2 pods exist, 1 more is needed; the API server refuses more: no quota"),
        (2, 1, [], {}, {"expected": 5}, "NotEnoughPods", "1 of 2 pods exist, 1 more is needed (5 expected)"),
        (2, 1, [], {}, {"expected": 2}, "NotEnoughPods", "1 of 2 pods exist, 1 more is needed"),
    ],
)  # fmt: skip
def test_n4_why_members_are_missing(
    minimum: int, waiting: int, gates: list[Any], foreign: dict[str, int], fields: Any, reason: str, message: str
) -> None:
    found = gang_states.gang(minimum, pending={"": waiting}, **fields)
    for number, names in enumerate(gates):
        gang_states.task(found, f"p{number}", status=TaskStatus.GATED, spec={"schedulingGates": names})
    said = diagnosis.not_enough_members(found, foreign, "enbloc")
    assert (said.reason, said.message) == (reason, message)
    assert "ours" not in diagnosis.not_enough_members(found, foreign).message


@pytest.mark.parametrize(
    ("missing", "message", "lacking"),
    [
        ({"a": 1, "b": 0}, "1 of role a is needed: a sub-group starts as a whole", {"a": 1}),
        ({"b": 2, "a": 1}, "1 of role a and 2 of role b are needed: a sub-group starts as a whole", {"a": 1, "b": 2}),
        ({"b": 0, "a": 0}, "a, b: other sub-groups beside them lack members", {}),
    ],
)
def test_t0_sub_groups_that_lack_members(missing: dict[str, int], message: str, lacking: dict[str, int]) -> None:
    said = diagnosis.sub_groups_lack_members(missing)
    assert (said.reason, said.message, said.missing) == ("NotEnoughPods", message, lacking)


# ---- what the minima lack

WAITS = gang(5, occupied={"a": 1}, a=3, b=1)
"""Of a minimum of 5 one pod is placed: 2 of role a, 1 of role b and 1 of any role are missing."""


@pytest.mark.parametrize(
    ("diagnosed", "reason", "message"),
    [
        (lambda: diagnosis.problem(WAITS, "is bad"), "GangInvalid", "is bad"),
        (lambda: diagnosis.unsupported(WAITS, "uses x"), "UnsupportedConstraint", "uses x"),
        (lambda: diagnosis.not_allowed(WAITS, "blue"), "GangInvalid",
         "queue blue does not allow namespace ns: use another queue, or change its annotations"),
        (lambda: diagnosis.not_allowed(WAITS, "top"), "GangInvalid",
         "queue blue does not allow namespace ns (its ancestor top does not): use another queue, or change its "
         "annotations"),
        (lambda: diagnosis.too_little_free(WAITS, "cpu", 3000, 1500), "NotEnoughResources",
         "minResources requests 3 cpu; 1500m available"),
        (lambda: diagnosis.beyond_cluster(WAITS, "cpu", 3000, 1500), "NotEnoughResources",
         "minResources requests 3 cpu; the cluster has 1500m"),
        (lambda: diagnosis.beyond_queue(WAITS), "NotEnoughResources",
         "queue blue may not use what the minimum requests"),
        (lambda: diagnosis.unknown_topology(WAITS, "no tree t"), "Unschedulable",
         "its topology constraint cannot be met: no tree t"),
        (lambda: diagnosis.behind(WAITS, "ns/first", "blue"), "BlockedByFIFO",
         "waits behind ns/first in the FIFO queue blue"),
    ],
)  # fmt: skip
def test_g10_each_reason_says_what_the_minima_lack(
    diagnosed: Callable[[], diagnosis.Diagnosis], reason: str, message: str
) -> None:
    said = diagnosed()
    assert (said.reason, said.message) == (reason, message)
    assert said.missing == {"a": 2, "b": 1, "": 1}
    assert said.of_queue is ("may not use" in message)
    assert not said.proved
    assert [(one.reason, one.nodes) for one in said.reasons] == (
        [("Insufficient cpu", 0)] if "available" in message else []
    )


@pytest.mark.parametrize(
    ("waiting", "missing"),
    [
        (gang(3, occupied={"": 1}), {"": 2}),
        (gang(3, occupied={"": 3}), {}),
        (gang(2, a=1, b=1), {"a": 1, "b": 1}),
        (gang(2, occupied={"a": 2}, a=1, b=1), {"b": 1}),
    ],
)
def test_g10_what_the_minima_lack_by_role(waiting: GangState, missing: dict[str, int]) -> None:
    assert diagnosis.problem(waiting, "").missing == missing


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "timed out: 1 pod is annotated gang.scheduling.koordinator.sh/timeout; "),
        (2, "timed out: 2 pods are annotated gang.scheduling.koordinator.sh/timeout; "),
    ],
)
def test_k8_how_many_pods_have_timed_out(count: int, text: str) -> None:
    found = gang_states.gang(3)
    for number in range(count):
        gang_states.task(found, f"p{number}", status=TaskStatus.TIMED_OUT)
    gang_states.task(found, "waits")
    said = diagnosis.timed_out(found)
    assert (said.reason, said.message) == ("TimedOut", f"{text}remove the annotation or recreate the pods")
    assert said.missing == {"": 3}


# ---- gangs that start together (K7, S7)


def key(name: str, namespace: str = "ns") -> GangKey:
    return GangKey("volcano", namespace, name)


def known(*keys: GangKey) -> dict[GangKey, GangState]:
    return {one: GangState(GangSpec(one, f"{one.namespace}/{one.name}", 0, 1)) for one in keys}


NEEDS = diagnosis.Diagnosis(PendingReason.NOT_ENOUGH_PODS, "0 of 1 pod exists")
A, B, C, X, Y = key("a"), key("b"), key("c"), key("x", "far"), key("y", "far")


@pytest.mark.parametrize(
    ("unsatisfied", "obstacles", "isolated", "message", "other"),
    [
        ([A], [], False, "ns/a, which it names, is not satisfied yet", "ns/a"),
        ([A, B, C], [], False, "ns/a and 2 more that it names are not satisfied yet", "ns/a"),
        ([key("gone")], [], False, "ns/gone, which it names, does not exist", "ns/gone"),
        ([key("gone"), key("lost")], [], False, "ns/gone and 1 more that it names do not exist", "ns/gone"),
        ([], [A], False, "ns/a of its group waits: 0 of 1 pod exists", "ns/a"),
        ([], [A, B], False, "ns/a of its group waits: 0 of 1 pod exists (and 1 more waits)", "ns/a"),
        ([], [key("g"), A], False, "ns/a of its group waits: 0 of 1 pod exists", "ns/a"),  # it is not its own obstacle
        ([A, key("gone")], [B], False,
         "ns/gone, which it names, does not exist; ns/b of its group waits: 0 of 1 pod exists; "
         "ns/a, which it names, is not satisfied yet", "ns/gone"),
        ([X], [], False, "far/x, which it names, is not satisfied yet", "far/x"),
        ([X], [], True, "a gang of another namespace that it names: not satisfied yet", ""),
        ([key("gone", "far")], [], True, "a gang of another namespace that it names: not satisfied yet", ""),
        ([], [X, key("g")], True, "a gang of another namespace that it names: not satisfied yet", ""),
        ([X, Y], [], True, "2 gangs of other namespaces that it names: not satisfied yet", ""),
        ([X], [X], True, "a gang of another namespace that it names: not satisfied yet", ""),
        ([X, A], [B], True,
         "a gang of another namespace that it names: not satisfied yet; ns/b of its group waits: 0 of 1 pod exists; "
         "ns/a, which it names, is not satisfied yet", "ns/b"),
    ],
)  # fmt: skip
def test_k7_s7_which_gangs_another_waits_for(
    unsatisfied: list[GangKey], obstacles: list[GangKey], isolated: bool, message: str, other: str
) -> None:
    said = diagnosis.waits_for_others(
        gang(1), unsatisfied, known(A, B, C, X, Y, key("g")), dict.fromkeys(obstacles, NEEDS), Titles(isolated)
    )
    assert (said.reason, said.message, said.other) == ("GroupNotReady", message, other)
    assert said.missing == {"": 1}


# ---- domains (T1, T4)


@pytest.mark.parametrize(
    ("needed", "rooms", "pinned", "message"),
    [
        (2, {}, [], "2 pods must fit in one domain of rack: no node is in one."),
        (1, {"r0": 0}, [], "1 pod must fit in one domain of rack: of 1 domain, 1 has room for 0 of 1."),
        (3, {"r0": 2, "r1": 2, "r2": 1}, [],
         "3 pods must fit in one domain of rack: of 3 domains, 2 have room for 2 of 3, 1 has room for 1 of 3."),
        (9, {"r0": 1, "r1": 4, "r2": 2, "r3": 3, "r4": 0}, [],
         "9 pods must fit in one domain of rack: of 5 domains, 1 has room for 4 of 9, 1 has room for 3 of 9, "
         "1 has room for 2 of 9, 2 less."),
        (2, {"r0": 2, "r1": 3, "r2": 1}, [],
         "2 pods must fit in one domain of rack: of 3 domains, 2 have room for each kind of pod, not for all together, "
         "1 has room for 1 of 2."),
        (2, {"r0": 1}, ["r0"], "2 pods do not fit in rack r0, where its other pods are: it has room for 1 of 2."),
        (1, {}, ["r0"], "1 pod does not fit in rack r0, where its other pods are: it has room for 0 of 1."),
        (2, {"r0": 1, "r1": 2}, ["r0"],
         "2 pods do not fit in rack r0, where its other pods are: it has room for 1 of 2; r1 has room for 2."),
        (2, {"r0": 2, "r1": 2, "r2": 1, "r3": 3}, ["r0"],
         "2 pods do not fit in rack r0, where its other pods are: it has room for 2 of 2; r1 and 1 more have room for "
         "2."),
        (2, {"r0": 9}, ["r0", "r1"],
         "2 pods do not fit in rack r0, r1, where its other pods are: these are several domains."),
    ],
)  # fmt: skip
def test_t1_t4_why_pods_fit_in_no_domain(needed: int, rooms: dict[str, int], pinned: list[str], message: str) -> None:
    said = diagnosis.no_domain(gang(needed), "rack", needed, rooms, pinned=pinned, unproved=False)
    assert (said.reason, said.message, said.missing, said.level) == ("Unschedulable", message, {"": needed}, "rack")
    assert said.proved
    unproved = diagnosis.no_domain(gang(needed), "rack", needed, rooms, pinned=pinned, unproved=True)
    assert unproved.message == f"{message[:-1]}; the search ended before every domain was ruled out."
    assert not unproved.proved


def test_t1_equal_pods_that_have_a_domain_and_start_with_others() -> None:
    said = diagnosis.no_domain(gang(1), "rack", 1, {"r0": 1}, pinned=[], unproved=False, of_one_kind=True)
    assert said.message == (
        "1 pod must fit in one domain of rack: of 1 domain, 1 has room for 1 of 1, not together with the pods that "
        "start with them."
    )


def test_g10_a_sentence_is_added_for_the_gang_its_roles_and_the_gangs_it_starts_with() -> None:
    mate = diagnosis.Diagnosis(PendingReason.UNSCHEDULABLE, "c", of_roles={"x": "d"})
    said = diagnosis.Diagnosis(PendingReason.UNSCHEDULABLE, "a", of_roles={"w": "b"}, of_gangs={A: mate})
    more = said.adding("z")
    assert (more.message, more.of_roles) == ("a z", {"w": "b z"})
    assert (more.of_gangs[A].message, more.of_gangs[A].of_roles) == ("c z", {"x": "d z"})
    assert (said.of(known(A)[A]), said.of(known(B)[B])) == (mate, said)
    packed = diagnosis.even_if_packed(said)
    assert (packed.proved, packed.message) == (True, f"a {diagnosis.PACKED}")
    assert (diagnosis.proved(said).proved, diagnosis.proved(said).message) == (True, "a")
    assert NEEDS.lacks_members
    assert not said.lacks_members


@pytest.mark.parametrize(
    "resource, amount, text",
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("cpu", 0, "0"),
        ("memory", 3 * 2**30, "3Gi"),
        ("memory", 1000, "1000"),
        ("ephemeral-storage", 2**20, "1Mi"),
        ("nvidia.com/gpu", 2048, "2048"),
        ("pods", 110, "110"),
        ("memory", CEILING, "32Pi"),
        ("memory", CEILING + 1, "more than any node can have"),
    ],
)
def test_amounts_as_people_write_them(resource: str, amount: int, text: str) -> None:
    assert shown(resource, amount) == text


# ---- no room


def diagnosed(*objects: m.Obj) -> Pending:
    """What the one gang that waits says after a cycle."""
    direct = DirectScheduler(parse({"actions": "allocate, backfill"}))
    for obj in objects:
        direct.put(obj)
    direct.engine.run(0)
    (found,) = direct.engine.pending()
    return found


def group(minimum: int, pods: int, cpu: str = "2", role: str = "", queue: str = "default") -> list[m.Obj]:
    spec = strategies.pod_spec({"cpu": cpu})
    written = m.podgroup("g", minimum, roles={role: minimum} if role else None, queue=queue)
    return [
        {**written, "status": {"phase": "Inqueue"}},
        *(m.pod(f"g-{i}", group="g", role=role, **spec) for i in range(pods)),
    ]


def test_g10_one_pod_does_not_fit() -> None:
    found = diagnosed(m.node("n1", cpu="1"), m.pod("p", "2"))
    assert found.message == (
        "1 of 1 pod does not fit: 0/1 nodes are available: 1 Insufficient cpu. "
        "It can never start here: one pod needs 2 cpu, the largest node has 1."
    )
    assert found.missing == {"": 1}
    assert found.reasons == (Reason("", "Insufficient cpu", 1),)
    assert (found.gang, found.dialect) == ("default/p", "pod")


def test_g10_several_do_not() -> None:
    found = diagnosed(m.node("n1", cpu="1"), *group(3, 3, role="work"))
    assert found.message == (
        "3 of 3 pods of role work do not fit: 0/1 nodes are available: 1 Insufficient cpu. "
        "It can never start here: one pod needs 2 cpu, the largest node has 1."
    )
    assert found.missing == {"work": 3}


def test_g10_some_would_have_fitted() -> None:
    found = diagnosed(m.node("n1", cpu="4"), *group(3, 3))
    assert found.message == "1 of 3 pods does not fit: 0/1 nodes are available: 1 Insufficient cpu."


def test_g10_reasons_by_how_many_nodes_then_by_name() -> None:
    dedicated = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
    found = diagnosed(
        m.node("n1", cpu="1"),
        m.node("n2", cpu="1"),
        m.node("n3", taints=dedicated),
        m.node("n4", unschedulable=True),
        m.node("n5", cpu="1", memory="1"),  # lacks two things and is counted for each
        m.node("n6", pods=0),
        m.pod("p", "2", memory="1Gi"),
    )
    assert found.message == (
        "1 of 1 pod does not fit: 0/6 nodes are available: 3 Insufficient cpu, 1 Insufficient memory, 1 Too many pods, "
        "1 node(s) had untolerated taint {dedicated: x}, 1 node(s) were unschedulable."
    )


def test_g10_without_nodes() -> None:
    found = diagnosed(m.pod("p", "2"))
    assert found.message == "1 of 1 pod does not fit: 0/0 nodes are available. There are no nodes."
    assert found.reasons == ()


def test_g10_a_node_that_went_is_not_counted() -> None:
    direct = DirectScheduler(parse(None))
    for name in ("n1", "n2"):
        direct.put(m.node(name, cpu="1"))
    direct.engine.run(0)
    direct.delete("Node", "n1")
    direct.put(m.pod("p", "2"))
    direct.engine.run(1)
    (found,) = direct.engine.pending()
    assert "0/1 nodes are available: 1 Insufficient cpu" in found.message


# ---- no queue


def test_g10_a_full_queue() -> None:
    found = diagnosed(m.node("n1", cpu="16"), m.queue("small", capability={"cpu": "3"}), *group(2, 2, queue="small"))
    assert found.message == "1 of 2 pods does not fit: queue small would use 4 cpu, its capability is 3"
    assert found.reasons == (Reason("", "queue small would use 4 cpu, its capability is 3", 0),)


def test_g10_a_full_queue_above() -> None:
    found = diagnosed(
        m.node("n1", cpu="16"),
        m.queue("top", capability={"cpu": "1500m"}),
        m.queue("sub", parent="top"),
        *group(2, 2, queue="sub"),
    )
    assert found.message == "2 of 2 pods do not fit: queue top would use 4 cpu, its capability is 1500m"


def test_g10_what_is_guaranteed_to_others() -> None:
    found = diagnosed(m.node("n1", cpu="4"), m.queue("vip", guarantee={"cpu": "3"}), *group(1, 1))
    assert found.message == "1 of 1 pod does not fit: queue default may not use what is guaranteed to other queues"
