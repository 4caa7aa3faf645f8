"""What keeps a gang from being attempted, and which gangs ask for admission (G4, M6, V5, S5, N1)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from enbloc.api.allowed_namespaces import ALLOWED_NAMESPACES
from enbloc.config import parse
from enbloc.engine.claims.claim import Claim, Slot
from enbloc.engine.decisions import Decision, Enqueue, Waits
from enbloc.engine.ordering import Band
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.gang_tree import Vertex
from enbloc.gangs.model import Template
from support import manifests as m
from support.direct_scheduler import DirectScheduler
from support.simulation import NO_BACKFILL, NO_EVICTIONS, flat


class Waiting:
    """Gang `g` on a node of 4 cpu."""

    def __init__(self, *objects: Any, config: dict[str, Any] | None = None) -> None:
        self.direct = DirectScheduler(parse(config or NO_EVICTIONS))
        for created_s, one in enumerate(flat(m.node("n"), *objects)):
            self.direct.put(one, created_s)
        self.direct.engine.state.settle()
        self.intake = self.direct.engine.parts.intake

    @property
    def gang(self) -> GangState:
        return next(gang for gang in self.direct.engine.state.gangs.values() if gang.spec.title == "default/g")

    def obstacle(self) -> str:
        found = self.intake.obstacle(self.gang)
        return found.message if found is not None else ""


def inqueue(minimum: int = 1, **fields: Any) -> m.Obj:
    return {**m.podgroup("g", minimum, **fields), "status": {"phase": "Inqueue"}}


def member(index: int = 0, **fields: Any) -> m.Obj:
    return m.pod(f"g-{index}", group="g", **fields)


SHUT = m.queue("shut")
SHUT["metadata"]["annotations"] = {ALLOWED_NAMESPACES: "team-a"}
OPEN = m.queue("open")
OPEN["metadata"]["annotations"] = {ALLOWED_NAMESPACES: "default"}


@pytest.mark.parametrize(
    ("objects", "obstacle"),
    [
        ([inqueue(), member()], ""),
        ([inqueue(2), member()], "1 of 2 pods exist"),
        ([inqueue(2)], "0 of 2 pods exist"),
        ([inqueue(queue="q"), member()], "queue q does not exist"),
        ([m.queue("q", state="Closed"), m.pod("g", queue="q")], "queue q is closed"),
        ([m.queue("q", state="Closed"), inqueue(queue="q"), member()], ""),  # its object was admitted before (V4)
        ([SHUT, inqueue(queue="shut"), member()], "shut"),
        ([OPEN, inqueue(queue="open"), member()], ""),
        ([member()], "PodGroup default/g does not exist"),
    ],
)
def test_g4_what_keeps_a_gang_from_being_attempted(objects: list[m.Obj], obstacle: str) -> None:
    found = Waiting(*objects).obstacle()
    assert obstacle in found
    assert bool(found) is bool(obstacle)


@pytest.mark.parametrize(
    "objects",
    [
        [m.queue("q", state="Closed"), m.pod("g", queue="q")],
        [SHUT, inqueue(queue="shut"), member()],
        [inqueue(2), member()],
    ],
)
def test_g7_a_gang_that_has_started_has_none_of_these(objects: list[m.Obj]) -> None:
    waiting = Waiting(*objects)
    assert waiting.obstacle()
    waiting.gang.satisfied = True
    assert not waiting.obstacle()


def test_g4_members_are_missed_once_a_gang_is_enqueued() -> None:
    waiting = Waiting(m.podgroup("g", 2, resources={"cpu": "2"}), member())
    assert not waiting.obstacle()
    waiting.gang.assume(enqueued=True)
    assert "1 of 2 pods exist" in waiting.obstacle()


@pytest.mark.parametrize(
    ("asked", "config", "beyond"),
    [
        ({"cpu": "4"}, {}, ""),
        ({"cpu": "4001m"}, {}, "cpu"),
        ({"example.com/none": "1"}, {}, "example.com/none"),
        ({"pods": "999"}, {}, ""),
        ({"cpu": "9"}, {"enqueue": {"admitOversized": True}}, ""),
        (None, {}, ""),
    ],
)
def test_m6_min_resources_beyond_what_the_cluster_has(
    asked: dict[str, str] | None, config: dict[str, Any], beyond: str
) -> None:
    waiting = Waiting(m.podgroup("g", 1, resources=asked), config={**NO_EVICTIONS, **config})
    found = waiting.intake.beyond_cluster(waiting.gang)
    assert (found is not None) is bool(beyond)
    assert found is None or beyond in found.message
    waiting.gang.satisfied = True
    assert waiting.intake.beyond_cluster(waiting.gang) is None


def enqueued(waiting: Waiting) -> list[str]:
    return [one.gang.name for one in waiting.direct.engine.run(1) if isinstance(one, Enqueue)]


@pytest.mark.parametrize(
    ("objects", "config", "is_enqueued"),
    [
        ([m.podgroup("g", 1, resources={"cpu": "9"})], {}, False),
        ([m.podgroup("g", 1, resources={"cpu": "9"})], {"actions": "allocate"}, True),
        ([m.podgroup("g", 1)], {}, True),
        ([m.podgroup("g", 2, resources={"cpu": "9"}), member(nodeName="n")], {}, True),
        ([m.podgroup("g", 2, resources={"cpu": "9"}), member()], {}, False),
    ],
    ids=["no room", "without enqueue", "asks for nothing", "one pod runs (V5)", "its pods wait"],
)
def test_m6_which_gangs_wait_for_admission(objects: list[m.Obj], config: dict[str, Any], is_enqueued: bool) -> None:
    assert enqueued(Waiting(*objects, config={**NO_EVICTIONS, **config})) == (["g"] if is_enqueued else [])


# ---- which gangs wait together (G9)

SPREAD = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}]}}  # fmt: skip
TOO_LARGE = 9
"""CPUs of a pod that fits on no node."""


class Pair:
    """Gangs `a` and `b` that do not fit; `b` differs by the fields that are given."""

    def __init__(self, *of_b: m.Obj, config: dict[str, Any] | None = None, more: list[m.Obj] | None = None) -> None:
        self.direct = DirectScheduler(parse(config or NO_EVICTIONS))
        other = list(of_b) or m.gang("b", 2, cpu=TOO_LARGE)
        for one in flat(m.node("n"), more or [], m.gang("a", 2, cpu=TOO_LARGE), other):
            self.direct.put(one)
        for now_ns in range(3):
            self.direct.engine.run(now_ns)
        self.parts = self.direct.engine.parts

    def gang(self, name: str) -> GangState:
        return next(gang for gang in self.direct.engine.state.gangs.values() if gang.spec.title == f"default/{name}")

    def share(self) -> bool:
        """Whether both wait in one equivalence class."""
        found = [self.parts.queues.equivalence_of(self.gang(name)) for name in "ab"]
        assert None not in found
        return found[0] is found[1]

    def share_with(self, **fields: Any) -> bool:
        """The same, if the objects of both declare these fields."""
        for name in "ab":
            gang = self.gang(name)
            gang.spec = msgspec.structs.replace(gang.spec, **fields)
            self.parts.intake.queue(gang)
        return self.share()


def job(*, minimum: int = 2, count: int = 2, **fields: Any) -> list[m.Obj]:
    return m.gang("b", count, minimum=minimum, **{"cpu": TOO_LARGE, **fields})


@pytest.mark.parametrize(
    ("other", "share"),
    [
        pytest.param(job(), True, id="equal"),
        pytest.param(job(labels={"app": "x"}), True, id="other labels"),
        pytest.param(job(at="1s"), True, id="another age"),
        pytest.param(job(cpu=TOO_LARGE - 1), False, id="another request"),
        pytest.param(job(count=3, minimum=3), False, id="more pods"),
        pytest.param(job(count=3), False, id="more pods to choose from"),
        pytest.param(job(minimum=1), False, id="another minimum"),
        pytest.param(job(role="w"), False, id="another role"),
        pytest.param(job(priority=3), False, id="another priority"),
        pytest.param(job(preemptionPolicy="Never"), False, id="it never preempts"),
        pytest.param(job(nodeSelector={"disk": "ssd"}), False, id="another selector"),
        pytest.param(job(labels={"app": "a"}, affinity=SPREAD), False, id="pods of others matter to it"),
    ],
)
def test_g9_gangs_that_fail_alike_wait_in_one_class(other: list[m.Obj], share: bool) -> None:
    assert Pair(*other).share() is share


def test_g9_gangs_of_other_queues_wait_apart() -> None:
    assert not Pair(*job(queue="q"), more=[m.queue("q")]).share()


@pytest.mark.parametrize(
    ("fields", "config", "share"),
    [
        ({}, {}, True),
        ({"later": {"w": Template(1, {})}}, {}, False),
        ({"waves": True}, {}, False),
        ({"keep_partial_allocation": True}, {}, True),  # backfill runs
        ({"keep_partial_allocation": True}, NO_BACKFILL, False),
    ],
)
def test_g9_gangs_that_differ_in_more_than_what_they_request_wait_alone(
    fields: dict[str, Any], config: dict[str, Any], share: bool
) -> None:
    """Gangs with later waves (D3), and gangs that keep a partial allocation (A2)."""
    assert Pair(config={**NO_EVICTIONS, **config}).share_with(**fields) is share


@pytest.mark.parametrize("kind", [ClaimKind.RESERVE, ClaimKind.PREEMPT])
def test_g9_a_gang_with_a_claim_waits_alone(kind: ClaimKind) -> None:
    pair = Pair()
    task = next(iter(pair.gang("a").tasks.values()))
    pair.parts.claims.make(Claim(pair.gang("a"), kind, [Slot(task.name, "n", task)], 0), "Made", "for a test")
    assert not pair.share_with()


def test_g9_a_gang_with_a_sub_group_waits_alone() -> None:
    """Which of its sub-groups start is its own choice (T0)."""
    assert not Pair().share_with(tree=Vertex("", 1))


@pytest.mark.parametrize(
    ("cpu", "actions", "queue"),
    [
        (None, "enqueue, allocate, backfill", "best_effort"),
        (None, "enqueue, allocate", "placement"),
        (1, "enqueue, allocate, backfill", "placement"),
    ],
)
def test_g9_gangs_that_request_nothing_wait_for_backfill(cpu: m.Quantity, actions: str, queue: str) -> None:
    waiting = Waiting(inqueue(), member(cpu=cpu, nodeSelector={"disk": "none"}), config={"actions": actions})
    waiting.direct.engine.run(1)
    queues = waiting.direct.engine.parts.queues
    found = [name for name in ("admission", "placement", "best_effort") if list(getattr(queues, name).equivalences())]
    assert found == [queue]


# ---- gangs that need nothing, or not yet


@pytest.mark.parametrize(
    ("fields", "state", "is_queued"),
    [
        ({}, {}, True),
        ({}, {"satisfied": True}, True),
        ({"more_waves": True}, {}, True),
        ({"more_waves": True}, {"satisfied": True}, False),  # room for a later wave is not for surplus (D4)
    ],
)
def test_d4_surplus_waits_until_the_later_waves_have_started(fields: Any, state: Any, is_queued: bool) -> None:
    """One pod waits; if the minimum was met once and is none now, it is surplus."""
    waiting = Waiting(inqueue(1), member(cpu=TOO_LARGE))
    gang = waiting.gang
    minimum = 0 if state else 1
    gang.spec = msgspec.structs.replace(gang.spec, minimum=minimum, **fields)
    gang.satisfied = bool(state)
    waiting.intake.queue(gang)
    assert (waiting.direct.engine.parts.queues.equivalence_of(gang) is not None) is is_queued


def test_k8_a_gang_of_minimum_0_whose_pods_timed_out_says_so() -> None:
    waiting = Waiting(inqueue(1), member(cpu=TOO_LARGE))
    gang = waiting.gang
    gang.spec = msgspec.structs.replace(gang.spec, minimum=0)
    (task,) = gang.tasks.values()
    waiting.direct.engine.state.time_out(task)
    waiting.intake.queue(gang)
    why = waiting.direct.engine.parts.queues.why(gang)
    assert why is not None
    assert why.reason == "TimedOut"
    assert "timed out: 1 pod" in why.message


@pytest.mark.parametrize(
    ("minimum", "roles", "placed", "waits", "satisfied", "band"),
    [
        (2, {}, [], ["a"], True, Band.MINIMA),
        (1, {}, ["a"], ["a"], False, Band.SURPLUS),
        (1, {}, ["a"], ["a"], True, Band.SURPLUS),
        (2, {"a": 2}, ["a"], ["a"], True, Band.MINIMA),
        (2, {"a": 2}, ["a", "b"], ["b"], True, Band.SURPLUS),  # a lost member does not exist again yet
    ],
)
def test_g3_g7_whether_what_waits_is_of_the_minima_or_surplus(
    minimum: int, roles: dict[str, int], placed: list[str], waits: list[str], satisfied: bool, band: Band
) -> None:
    pods = [member(number, role=role, nodeName="n") for number, role in enumerate(placed)]
    pods += [member(9 + number, role=role, cpu=TOO_LARGE) for number, role in enumerate(waits)]
    waiting = Waiting(inqueue(minimum, roles=roles), pods)
    gang = waiting.gang
    gang.satisfied = satisfied
    waiting.intake.queue(gang)
    equivalence = waiting.direct.engine.parts.queues.equivalence_of(gang)
    assert equivalence is not None
    head = equivalence.head()
    assert head is not None
    assert head[0].band is band


@pytest.mark.parametrize(("satisfied", "is_withdrawn"), [(True, True), (False, False)])
def test_g10_a_gang_that_needs_nothing_any_more_says_nothing(satisfied: bool, is_withdrawn: bool) -> None:
    """Of two pods one runs, and the other is gone: a gang that had started has nothing to wait for."""
    waiting = Waiting(inqueue(2), member(nodeName="n"), member(1, cpu=TOO_LARGE))
    waiting.direct.engine.run(1)
    waiting.direct.delete("Pod", "g-1")
    waiting.gang.satisfied = satisfied
    decided: list[Decision] = []
    reporter = waiting.direct.engine.parts.reporter
    reporter._decide = decided.append
    waiting.intake.queue(waiting.gang)
    assert [one.message for one in decided if isinstance(one, Waits)] == ([""] if is_withdrawn else [])


# ---- what makes claims useless (R7, P3)


def grouped(*of_h: m.Obj, **fields: Any) -> Waiting:
    names = '["default/g", "default/h"]'
    pods = m.koordinator_gang("g", 1, groups=names, **fields)
    return Waiting(*pods, *m.koordinator_gang("h", 1, 2, groups=names), *of_h)


def test_r7_an_obstacle_of_a_gang_that_it_starts_with_makes_a_claim_useless() -> None:
    waiting = grouped()
    waiting.intake.read_all()
    found = waiting.intake.claim_obstacle(waiting.gang)
    assert found is not None
    assert (found.reason, found.message) == (
        "GroupNotReady", "default/h of its group waits: 1 of 2 pods exist, 1 more is needed"
    )  # fmt: skip
    waiting.gang.satisfied = True
    assert waiting.intake.claim_obstacle(waiting.gang) is None
    complete = grouped(*m.koordinator_gang("h", 1, 2, groups='["default/g", "default/h"]', first=1))
    complete.intake.read_all()
    assert complete.intake.claim_obstacle(complete.gang) is None


@pytest.mark.parametrize(
    ("capability", "minimum", "beyond"), [(2, 2, False), (1, 2, True), (2, 3, True), (None, 9, False), (1, 1, False)]
)
def test_r7_v4_a_minimum_beyond_what_its_queue_may_ever_use_makes_a_claim_useless(
    capability: int | None, minimum: int, beyond: bool
) -> None:
    """Other gangs of the queue do not count; pods that run do."""
    limits = {"capability": {"cpu": str(capability)}} if capability else {}
    pods = [member(0, nodeName="n"), *(member(number) for number in range(1, minimum))]
    waiting = Waiting(
        m.queue("q", **limits), m.pod("other", queue="q", nodeName="n"), inqueue(minimum, queue="q"), pods
    )
    found = waiting.intake.claim_obstacle(waiting.gang)
    assert (found is not None) is beyond
    assert found is None or found.of_queue


# ---- a gang that comes to be unlike others


def test_g9_a_gang_that_the_placement_of_others_matters_to_by_now_is_queued_by_itself() -> None:
    pair = Pair()
    gang, intake = pair.gang("b"), pair.parts.intake
    assert pair.share()
    assert intake.requeue_if_unlike(gang) is None, "nothing changed"
    pair.direct.put(m.pod("alone", labels={"app": "a"}, affinity=SPREAD, nodeName="n"))
    for name in "ab":
        for number in range(2):
            pair.direct.put(m.pod(f"{name}-{number}", TOO_LARGE, group=name, labels={"app": "a"}))
    own = intake.requeue_if_unlike(gang)
    assert own is not None
    assert own is pair.parts.queues.equivalence_of(gang)
    assert not pair.share()
    assert intake.requeue_if_unlike(gang) is None, "it is by itself"
