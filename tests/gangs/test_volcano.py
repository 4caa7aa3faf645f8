"""Volcano's dialect: what a PodGroup, its Job and its pods say, read into the one model (V1, M3, D3, D5, G8)."""

from __future__ import annotations

import pytest

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref
from enbloc.config import Tenancy
from enbloc.gangs import claim_records
from enbloc.gangs.dialect import NOTHING
from enbloc.gangs.gang_priority import GangPriorities
from enbloc.gangs.model import GangKey, GangSpec, GangStatus, Membership
from enbloc.gangs.priority_classes import SYSTEM_CLASSES, PriorityClasses
from enbloc.gangs.volcano import Volcano
from enbloc.units import NANO, parse_timestamp
from gangs.objects import CREATED, GROUP, came, group, job, owned_by, pod, went
from support import manifests as m

KEY = GangKey("volcano", "ns", "g")


def read(written: Obj, *others: Obj) -> GangSpec:
    """The gang of a PodGroup, in the presence of other objects."""
    priorities = GangPriorities()
    dialect = Volcano(priorities)
    for obj in others:
        if obj["kind"] == "PriorityClass":
            priorities.classes.observe(obj, gone=False)
        dialect.observe(came(obj))
    dialect.observe(came(written))
    spec = dialect.spec(KEY)
    assert spec is not None
    return spec


# ---- members

TASK, INDEX = volcano.TASK_SPEC, volcano.TASK_INDEX


@pytest.mark.parametrize(
    "annotations, labels, member",
    [
        ({}, {}, None),
        ({GROUP: ""}, {}, None),
        ({}, {GROUP: "g"}, None),  # a label is no annotation
        ({GROUP: "g"}, {}, Membership(KEY, "", None)),
        ({"scheduling.volcano.sh/group-name": "g"}, {}, Membership(KEY, "", None)),
        ({"scheduling.volcano.sh/group-name": "other", GROUP: "g"}, {}, Membership(KEY, "", None)),
        ({GROUP: "g", TASK: "work"}, {}, Membership(KEY, "work", None)),
        ({GROUP: "g"}, {TASK: "work"}, Membership(KEY, "work", None)),
        ({GROUP: "g", TASK: "a"}, {TASK: "b"}, Membership(KEY, "a", None)),
        ({GROUP: "g"}, {INDEX: "7"}, Membership(KEY, "", 7)),
        ({GROUP: "g", INDEX: "8"}, {}, Membership(KEY, "", 8)),
        ({GROUP: "g"}, {INDEX: "seven"}, Membership(KEY, "", None)),
        ({GROUP: "g"}, {INDEX: "-1"}, Membership(KEY, "", None)),
        ({GROUP: "g"}, {INDEX: "٧"}, Membership(KEY, "", None)),
        ({GROUP: "g"}, {INDEX: "9" * 5000}, Membership(KEY, "", None)),
    ],
)
def test_v1_m3_a_pod_names_its_group_role_and_index(
    annotations: dict[str, str], labels: dict[str, str], member: Membership | None
) -> None:
    assert Volcano(GangPriorities()).member(pod(annotations=annotations, labels=labels)) == member


# ---- a PodGroup


def test_m3_a_group_as_it_is_written() -> None:
    spec = read(
        group(
            phase="Inqueue",
            minMember=5,
            minTaskMember={"master": 3, "work": 2, "optional": 0},
            minResources={"cpu": "2500m", "memory": "1Ki", "nvidia.com/gpu": "0"},
            queue="blue",
        )
    )
    assert spec == GangSpec(
        key=KEY,
        title="ns/g",
        created_ns=parse_timestamp(CREATED),
        minimum=5,
        minima={"master": 3, "work": 2},
        queue="blue",
        min_resources={"cpu": 25 * NANO // 10, "memory": 1024 * NANO},
        object=Ref(volcano.POD_GROUP, "ns", "g"),
        object_uid="uid-g",
        observed=GangStatus(claim_home="uid-g"),
    )


def test_an_empty_group_is_a_gang_that_asks_for_nothing() -> None:
    spec = read({**group(), "spec": {}, "metadata": {"name": "g", "namespace": "ns"}})
    assert (spec.minimum, spec.minima, spec.queue, spec.min_resources) == (0, {}, "default", None)
    assert (spec.created_ns, spec.priority, spec.object_uid, spec.problem) == (0, None, "", "")


@pytest.mark.parametrize("number", [-1, -(10**30)])
def test_a_negative_minimum_is_none(number: int) -> None:
    assert read(group(minMember=number, minTaskMember={"a": number})).minimum == 0
    assert read(group(minTaskMember={"a": number})).minima == {}


@pytest.mark.parametrize(
    "phase, enqueued, started, finished",
    [
        ("", False, False, False),
        ("Pending", False, False, False),
        ("Inqueue", True, False, False),
        ("Running", True, True, False),
        ("Unknown", True, False, False),  # it may have been cut off half-way (G11)
        ("Completed", True, True, True),
    ],
)
def test_what_a_phase_says(phase: str, enqueued: bool, started: bool, finished: bool) -> None:
    observed = read(group(phase=phase, minMember=1)).observed
    assert (observed.enqueued, observed.started, observed.finished) == (enqueued, started, finished)


def test_a_group_of_a_job_is_called_as_the_user_called_the_job() -> None:
    train = job("train")
    assert read(group(meta={"owner": owned_by(train)})).title == "ns/train"
    assert read(group(meta={"owner": {**owned_by(train), "kind": "RayCluster"}})).title == "ns/g"


@pytest.mark.parametrize("owner", [{"kind": "Job"}, {"kind": "Job", "name": ""}, {"uid": ""}, {}])
def test_an_owner_that_says_little_is_no_harm(owner: Obj) -> None:
    """Its fields have defaults: such an owner decodes."""
    written = group(meta={"owner": {"apiVersion": "v1", **owner}})
    assert read(written).title == "ns/g"
    dialect = Volcano(GangPriorities())
    dialect.observe(came(written))
    dialect.observe(went(written))
    assert dialect.spec(KEY) is None


# ---- priority (G8)

HIGH, LOW = m.priority_class("high", 100), m.priority_class("low", 1)
EVERYWHERE = m.priority_class("base", 7, default=True)


def of_job(train: Obj, **spec: str) -> Obj:
    return group(meta={"owner": owned_by(train)}, **spec)


def test_g8_its_own_class_counts_before_its_templates() -> None:
    train = job("train", ("a", "high"))
    assert read(of_job(train, priorityClassName="low"), HIGH, LOW, train).priority == 1


def test_g8_else_the_highest_of_its_templates() -> None:
    train = job("train", ("a", "low"), ("b", "high"))
    assert read(of_job(train), HIGH, LOW, train).priority == 100


def test_g8_a_template_without_a_class_has_the_global_default() -> None:
    train = job("train", ("a", "low"), ("b", ""))
    assert read(of_job(train), EVERYWHERE, LOW, train).priority == 7
    assert read(of_job(train), LOW, train).priority == 1


def test_g8_a_group_without_job_or_class_leaves_it_to_its_pods() -> None:
    assert read(group(), EVERYWHERE).priority is None


def test_g8_a_class_that_does_not_exist_counts_as_none() -> None:
    train = job("train", ("a", "low"))
    assert read(of_job(train, priorityClassName="gone"), LOW, train).priority == 1
    assert read(group(priorityClassName="gone")).priority is None


@pytest.mark.parametrize("name", sorted(SYSTEM_CLASSES))
def test_system_classes_exist_without_being_written(name: str) -> None:
    assert PriorityClasses().of(name) == SYSTEM_CLASSES[name]


@pytest.mark.parametrize("name", sorted(SYSTEM_CLASSES))
def test_s3_a_system_class_of_a_group_counts_where_it_is_granted(name: str) -> None:
    assert read(group(priorityClassName=name)).priority is None
    kube_system, granted = GangPriorities(), GangPriorities(Tenancy(system_namespaces=("ns",)))
    assert kube_system.own("kube-system", name).value == SYSTEM_CLASSES[name]
    assert granted.own("ns", name).value == SYSTEM_CLASSES[name]


def test_of_several_global_defaults_the_lowest_counts() -> None:
    priorities = PriorityClasses()
    assert priorities.of("") == 0
    for name, value in (("one", 5), ("two", 3), ("three", 9)):
        priorities.observe(m.priority_class(name, value, default=True), gone=False)
    assert priorities.of("") == 3
    priorities.observe(m.priority_class("two", 3, default=True), gone=True)
    assert (priorities.of(""), priorities.of("two")) == (5, None)
    priorities.observe(m.priority_class("one", 5), gone=False)  # no default any more
    assert (priorities.of(""), priorities.of("one")) == (9, 5)


# ---- waves (D3, D5)

BEGUN, DEPENDENT = volcano.BEGUN_ROLES, volcano.DEPENDENT_JOB
MINIMA = {"a": 1, "b": 2, "c": 3, "free": 0}


@pytest.mark.parametrize(
    "notes, minimum, minima, more",
    [
        ({}, 6, {"a": 1, "b": 2, "c": 3}, False),
        ({DEPENDENT: "true"}, 6, {"a": 1, "b": 2, "c": 3}, False),
        ({BEGUN: "a"}, 6, {"a": 1, "b": 2, "c": 3}, False),
        ({DEPENDENT: "false", BEGUN: "a"}, 6, {"a": 1, "b": 2, "c": 3}, False),
        ({DEPENDENT: "true", BEGUN: "a"}, 1, {"a": 1}, True),
        ({DEPENDENT: "true", BEGUN: ""}, 0, {}, True),
        ({DEPENDENT: "true", BEGUN: "a,c"}, 4, {"a": 1, "c": 3}, True),
        ({DEPENDENT: "true", BEGUN: "a,b,c"}, 6, {"a": 1, "b": 2, "c": 3}, True),  # a role without a minimum is to come
        ({DEPENDENT: "true", BEGUN: "c,b,a,free,other"}, 6, {"a": 1, "b": 2, "c": 3}, False),
        ({DEPENDENT: "true", BEGUN: ",,x=1;"}, 0, {}, True),
    ],
)
def test_d3_roles_that_have_not_begun_do_not_count(
    notes: dict[str, str], minimum: int, minima: dict[str, int], more: bool
) -> None:
    spec = read(group(meta={"annotations": notes}, minMember=6, minTaskMember=MINIMA))
    assert (spec.minimum, spec.minima, spec.more_waves) == (minimum, minima, more)
    assert spec.later == {}


def test_d5_a_whole_job_gang_knows_its_later_waves() -> None:
    train = job("train", ("a", ""), ("b", "high"), ("free", ""))
    train["spec"]["tasks"][1]["template"]["metadata"] = {"labels": {"x": "y"}}
    notes = {DEPENDENT: "true", BEGUN: "a", volcano.WHOLE_JOB: "true"}
    meta = {"annotations": notes, "owner": owned_by(train)}
    spec = read(group(meta=meta, minMember=3, minTaskMember={"a": 1, "b": 2, "free": 0}), train)
    assert set(spec.templates) == {"a", "b"}
    assert set(spec.later) == {"b"}
    assert (spec.later["b"].count, spec.later["b"].labels) == (2, {"x": "y"})
    assert spec.later["b"].pod_spec == train["spec"]["tasks"][1]["template"]["spec"]


def test_d5_no_templates_without_a_job_and_none_for_a_role_without_a_name() -> None:
    notes = {DEPENDENT: "true", BEGUN: "", volcano.WHOLE_JOB: "true"}
    assert read(group(meta={"annotations": notes}, minMember=1, minTaskMember={"a": 1})).templates == {}
    train = job("train", ("", ""))
    del train["spec"]["tasks"][0]["name"]
    meta = {"annotations": notes, "owner": owned_by(train)}
    assert set(read(group(meta=meta, minMember=1, minTaskMember={"": 1}), train).templates) == {""}


def test_d5_a_claim_is_read_from_the_group() -> None:
    record = claim_records.Record(claim_records.ClaimKind.WAVE, 7, {"b": {"n1": 2}})
    written = group(meta={"annotations": {claim_records.ClaimKind.WAVE.annotation: claim_records.write(record)}})
    assert read(written).observed.claims == {claim_records.ClaimKind.WAVE: record}
    assert read(group(meta={"annotations": {claim_records.ClaimKind.WAVE.annotation: "{"}})).observed.claims == {}


# ---- what an event concerns


def test_a_group_that_comes_and_goes() -> None:
    dialect, written = Volcano(GangPriorities()), group(minMember=2)
    assert dialect.spec(KEY) is None
    assert dialect.object(KEY) is None
    assert dialect.observe(came(written)).gangs == (KEY,)
    assert dialect.object(KEY) is written
    assert dialect.observe(went(written)).gangs == (KEY,)
    assert dialect.spec(KEY) is None


def test_v5_k4_pods_without_a_group_wait_for_it() -> None:
    spec = Volcano(GangPriorities()).undeclared(KEY, 5, "blue")
    assert (spec.title, spec.created_ns, spec.queue) == ("ns/g", 5, "blue")
    assert spec.problem == "PodGroup ns/g does not exist"


def test_a_jobs_spec_concerns_its_group_and_its_status_does_not() -> None:
    dialect, train = Volcano(GangPriorities()), job("train", ("a", "low"))
    assert dialect.observe(came(train)) == NOTHING  # no group yet
    dialect.observe(came(group(meta={"owner": owned_by(train)})))
    assert dialect.observe(came({**train, "status": {"running": 1}})) == NOTHING
    changed = {**train, "spec": {**train["spec"], "minAvailable": 1}}
    assert dialect.observe(came(changed)).gangs == (KEY,)
    assert dialect.observe(went(changed)).gangs == (KEY,)


def test_a_priority_class_concerns_every_group() -> None:
    dialect = Volcano(GangPriorities())
    dialect.observe(came(group("b")))
    dialect.observe(came(group("a")))
    assert [key.name for key in dialect.observe(came(HIGH)).gangs] == ["a", "b"]
