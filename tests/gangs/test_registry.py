"""The book of gangs: which dialect a pod speaks, whom an event concerns, and that nothing a user writes upsets it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.api import arbitrator, volcano
from enbloc.api.kinds import decode_faults
from enbloc.api.meta import Obj
from enbloc.gangs import claim_records
from enbloc.gangs.dialect import NOTHING
from enbloc.gangs.model import GangKey, GangSpec, Membership
from enbloc.gangs.registry import GangRegistry, index_of, queue_hint
from enbloc.gangs.single_pod import SinglePod
from gangs.objects import GROUP, came, group, job, owned_by, pod, scheduling_spec, went
from support import manifests as m

OWNER = {"apiVersion": "example.com/v1", "kind": "CRDJob", "name": "mine", "uid": "u1"}
QUEUE_JOB = {"apiVersion": arbitrator.API_VERSION, "kind": "QueueJob", "name": "qj", "uid": "u2"}
KAR = {"schedulerName": "kar-scheduler"}


def dialect_of(book: GangRegistry, member: Obj) -> str:
    return book.member(member).gang.dialect


# ---- alone


def test_a_pod_that_speaks_no_dialect_is_a_gang_of_one() -> None:
    book = GangRegistry()
    assert book.member(pod("p-7")) == Membership(GangKey("pod", "ns", "p-7"), "", 7)
    key = GangKey("pod", "ns", "p-7")
    assert book.spec(key) is None
    assert book.object(key) is None
    assert book.undeclared(key, 5, "blue") == GangSpec(key=key, title="ns/p-7", created_ns=5, minimum=1, queue="blue")
    assert SinglePod().observe_pod(pod(), gone=False) == NOTHING
    assert SinglePod().observe(came(group())) == NOTHING


@pytest.mark.parametrize(
    "name, index",
    [("w-0", 0), ("w-12", 12), ("w12", 12), ("w", None), ("w-1a", None), ("7", 7), ("w-" + "1" * 30, 111111111)],
)
def test_o2_the_number_that_ends_a_name(name: str, index: int | None) -> None:
    assert index_of(name) == index


def test_o2_the_label_counts_before_the_name() -> None:
    book = GangRegistry()
    assert book.member(pod("w-7", annotations={GROUP: "g"}, labels={volcano.TASK_INDEX: "3"})).number == 3
    assert book.member(pod("w-7", annotations={GROUP: "g"})).number == 7


@pytest.mark.parametrize(
    "annotations, labels, queue",
    [
        ({}, {}, "default"),
        ({volcano.QUEUE_NAME: "a"}, {}, "a"),
        ({}, {volcano.QUEUE_NAME: "a"}, "a"),
        ({volcano.QUEUE_NAME: "a"}, {volcano.QUEUE_NAME: "b"}, "a"),
        ({"scheduling.volcano.sh/queue-name": "c"}, {volcano.QUEUE_NAME: "b"}, "c"),
        ({volcano.QUEUE_NAME: ""}, {volcano.QUEUE_NAME: "b"}, "b"),
    ],
)
def test_the_queue_a_lone_pod_asks_for(annotations: dict[str, str], labels: dict[str, str], queue: str) -> None:
    assert queue_hint(pod(annotations=annotations, labels=labels)) == queue


# ---- who decides


def test_the_first_dialect_that_a_pod_speaks_decides() -> None:
    book = GangRegistry()
    book.observe(came(scheduling_spec("s", OWNER)))
    assert dialect_of(book, pod(annotations={GROUP: "g"}, owner=OWNER, spec=KAR)) == "volcano"
    assert dialect_of(book, pod(annotations={GROUP: ""}, owner=OWNER)) == "arbitrator"
    assert dialect_of(book, pod(owner={**OWNER, "uid": "another"})) == "pod"
    assert dialect_of(book, pod(owner=QUEUE_JOB)) == "arbitrator"
    assert dialect_of(book, pod(spec=KAR)) == "arbitrator"


def test_two_dialects_may_use_one_name_and_mean_two_gangs() -> None:
    book = GangRegistry()
    book.observe(came(group("same", minMember=3)))
    mine = book.member(pod("same"))
    assert book.spec(mine.gang) is None
    declared = book.spec(GangKey("volcano", "ns", "same"))
    assert declared is not None
    assert declared.minimum == 3


# ---- whom an event concerns


def test_a_group_concerns_its_gang() -> None:
    book = GangRegistry()
    assert book.observe(came(group())).gangs == (GangKey("volcano", "ns", "g"),)


def test_a_priority_class_concerns_gangs_of_every_dialect_and_counts_at_once() -> None:
    book = GangRegistry()
    book.observe(came(group(priorityClassName="high")))
    book.observe(came(scheduling_spec("s", OWNER, priorityClassName="high")))
    keys = [GangKey("volcano", "ns", "g"), GangKey("arbitrator", "ns", "u1")]

    def priorities() -> list[int | None]:
        return [spec.priority for spec in map(book.spec, keys) if spec is not None]

    assert priorities() == [None, None]
    assert set(book.observe(came(m.priority_class("high", 9))).gangs) == set(keys)
    assert priorities() == [9, 9]
    book.observe(went(m.priority_class("high", 9)))
    assert priorities() == [None, None]


def test_a_scheduling_spec_that_comes_late_calls_for_its_pods() -> None:
    book, early = GangRegistry(), pod("early", owner=OWNER)
    book.observe_pod(early, gone=False)
    assert dialect_of(book, early) == "pod"
    changed = book.observe(came(scheduling_spec("s", OWNER)))
    assert changed.gangs == (GangKey("arbitrator", "ns", "u1"),)
    assert changed.pods == (early,)
    assert dialect_of(book, early) == "arbitrator"


# ---- anything that decodes

words = st.text(max_size=6) | st.sampled_from(["true", "g", "a", "a,b", "{}", "9" * 20, "\ud800", ";=", "٣", "high"])
keys = [
    *volcano.GROUP_NAME_KEYS,
    *volcano.QUEUE_KEYS,
    *[volcano.TASK_SPEC, volcano.TASK_INDEX, volcano.DEPENDENT_JOB, volcano.BEGUN_ROLES, volcano.WHOLE_JOB],
    *[*sorted(claim_records.ANNOTATIONS), arbitrator.QUEUE_JOB_LABEL],
]
notes = st.none() | st.dictionaries(st.sampled_from(keys), words, max_size=5)
owners = st.none() | st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "apiVersion": st.sampled_from(["", "v1", "example.com/v1", arbitrator.API_VERSION]),
            "kind": st.sampled_from(["", "Job", "QueueJob", "CRDJob"]),
            "name": words,
            "uid": st.sampled_from(["", "u1", "uid-train"]),
            "controller": st.none() | st.booleans(),
        },
    ),
    max_size=2,
)
metadata = st.fixed_dictionaries(
    {"name": st.sampled_from(["g", "a", "p-0"])},
    optional={
        "namespace": st.sampled_from(["", "ns"]),
        "uid": st.sampled_from(["", "u1", "uid-train"]),
        "labels": notes,
        "annotations": notes,
        "ownerReferences": owners,
        "creationTimestamp": st.none() | words | st.just("0001-01-01T00:00:00Z"),
        "deletionTimestamp": st.none() | st.just("2026-01-01T00:00:00Z"),
    },
)
whole = st.integers(-(2**70), 2**70) | st.integers(-2, 5)
counts = st.none() | st.dictionaries(words, whole, max_size=3)
quantities = st.none() | st.dictionaries(words, st.sampled_from(["1", "-1", "9E", "0", 3, "1n"]), max_size=3)
template = st.fixed_dictionaries(
    {"spec": st.fixed_dictionaries({"containers": st.just([])}, optional={"priorityClassName": words})},
    optional={"metadata": st.none() | st.fixed_dictionaries({}, optional={"labels": notes})},
)
SPECS: dict[tuple[str, str], st.SearchStrategy[Any]] = {
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): st.fixed_dictionaries(
        {},
        optional={
            "minMember": whole,
            "minTaskMember": counts,
            "minResources": quantities,
            "queue": words,
            "priorityClassName": words,
            "unknown": words,
        },
    ),
    ("batch.volcano.sh/v1alpha1", "Job"): st.fixed_dictionaries(
        {},
        optional={
            "tasks": st.none()
            | st.lists(
                st.fixed_dictionaries({"template": template}, optional={"name": words, "replicas": whole}), max_size=3
            )
        },
    ),
    (arbitrator.API_VERSION, "SchedulingSpec"): st.fixed_dictionaries(
        {},
        optional={
            "priorityClassName": words,
            "priority": st.none() | whole,
            "nodeSelector": st.none() | st.dictionaries(words, words),
            "minAvailable": st.none() | whole,
        },
    ),
    (arbitrator.API_VERSION, "QueueJob"): st.just({}),
}
statuses = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "phase": words,
        "state": st.none() | st.fixed_dictionaries({}, optional={"phase": words}),
        "met": whole,
        "conditions": st.none()
        | st.lists(st.fixed_dictionaries({}, optional={"type": words, "message": words}), max_size=2),
    },
)
pods = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Pod"),
        "metadata": metadata,
        "spec": st.fixed_dictionaries(
            {"containers": st.just([])},
            optional={"schedulerName": st.sampled_from(["", "kar-scheduler", "enbloc"]), "nodeName": words},
        ),
    },
    optional={"status": statuses},
)


@st.composite
def writings(draw: st.DrawFn) -> Obj:
    api_version, kind = draw(st.sampled_from(sorted(SPECS)))
    found: Obj = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": draw(metadata),
        "spec": draw(SPECS[api_version, kind]),
    }
    status = draw(statuses)
    return {**found, "status": status} if status is not None else found


@given(st.lists(st.tuples(writings(), st.booleans()), max_size=6), st.lists(st.tuples(pods, st.booleans()), max_size=4))
def test_nothing_that_decodes_upsets_the_book(written: list[tuple[Obj, bool]], members: list[tuple[Obj, bool]]) -> None:
    book, concerned = GangRegistry(), set()
    for obj, gone in written:
        if not decode_faults(obj):
            concerned.update(book.observe((went if gone else came)(obj)).gangs)
    for member, gone in members:
        if decode_faults(member):
            continue
        concerned.update(book.observe_pod(member, gone).gangs)
        belongs = book.member(member)
        assert isinstance(belongs.role, str)
        assert belongs == book.member(member)
        assert book.undeclared(belongs.gang, 0, queue_hint(member)).key == belongs.gang
        concerned.add(belongs.gang)
    for key in concerned:
        spec = book.spec(key)
        if spec is not None:
            assert spec.key == key
            assert spec.minimum >= 0
            assert all(count > 0 for count in spec.minima.values())
            assert spec.queue
            assert book.object(key) is not None


def test_a_job_without_roles_has_no_templates_to_speak_of() -> None:
    book, empty = GangRegistry(), job("train", tasks=None)
    book.observe(came(empty))
    book.observe(came(group(meta={"owner": owned_by(empty), "annotations": {volcano.WHOLE_JOB: "true"}})))
    spec = book.spec(GangKey("volcano", "ns", "g"))
    assert spec is not None
    assert (spec.priority, spec.templates) == (None, {})
