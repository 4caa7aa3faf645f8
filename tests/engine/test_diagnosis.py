"""Why a gang waits, word for word (G10): the numbers, and the grammar that goes with them."""

from __future__ import annotations

import pytest

from enbloc.config import parse
from enbloc.engine.decisions import Pending, Reason
from enbloc.engine.diagnosis import diagnosis
from enbloc.engine.diagnosis.diagnosis import shown
from enbloc.engine.tables.resources import CEILING
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.model import GangKey, GangSpec
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
        (gang(1), "0 of 1 pods exist, 1 more is needed", {"": 1}),
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


def test_a_problem_and_a_place_in_line() -> None:
    waiting = gang(3, occupied={"a": 1}, a=2)
    assert diagnosis.problem(waiting, "PodGroup ns/g does not exist").message == "PodGroup ns/g does not exist"
    behind = diagnosis.behind(waiting, gang(1).spec.title, "blue")
    assert behind.message == "waits behind ns/g in the FIFO queue blue"
    assert behind.missing == {"a": 1, "": 1}


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
