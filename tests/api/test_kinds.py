"""How an object is read: which field is wrong and why, and what is kept though it is never read here."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.api import core, volcano
from enbloc.api.kinds import KINDS, decode_faults, kind_id, ref_of, view
from enbloc.api.meta import Fault, Obj, Ref
from support.embedded_store import make_store

POD = {"containers": [{"name": "c"}]}


def obj(kind: str, spec: Any = None, api_version: str = "v1", **more: Any) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec, **more}


def pod(**spec: Any) -> Obj:
    return obj("Pod", {**POD, **spec})


def job(**spec: Any) -> Obj:
    return obj("Job", spec, "batch.volcano.sh/v1alpha1")


def group(**spec: Any) -> Obj:
    return obj("PodGroup", spec, "scheduling.volcano.sh/v1beta1")


def asking(**requests: Any) -> dict[str, Any]:
    return {"containers": [{"name": "ok"}, {"resources": {"requests": requests}}]}


NO_QUANTITY = "is not a quantity (such as 2, 500m, 1.5, 4Gi, 1e3)"
WRONG = {
    "no spec": ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}, "spec", "is missing"),
    "spec is null": (obj("Pod"), "spec", "expected `object`, got `null`"),
    "spec is a list": (obj("Pod", []), "spec", "expected `object`, got `array`"),
    "no containers": (obj("Pod", {}), "spec.containers", "is missing"),
    "containers is a map": (pod(containers={}), "spec.containers", "expected `array`, got `object`"),
    "a container is text": (pod(containers=["c"]), "spec.containers[0]", "expected `object`, got `str`"),
    "a second port": (
        pod(containers=[{}, {"ports": [{}, {"hostPort": "80"}]}]),
        "spec.containers[1].ports[1].hostPort",
        "expected `int`, got `str`",
    ),
    "priority is text": (pod(priority="high"), "spec.priority", "expected `int | null`, got `str`"),
    "a flag is text": (
        obj("Node", {"unschedulable": "yes"}),
        "spec.unschedulable",
        "expected `bool`, got `str`",
    ),
    # In a map the key is named; the values before it look like anything but quantities.
    "a quantity": (
        pod(**asking(cpu="1", memory="1..5", gpu="x")),
        "spec.containers[1].resources.requests.memory",
        f"'1..5' {NO_QUANTITY}",
    ),
    "a quantity under a name with dots": (
        pod(**asking(**{"nvidia.com/gpu": []})),
        "spec.containers[1].resources.requests.nvidia.com/gpu",
        "a quantity is a string or a number, not list",
    ),
    "a quantity that says what msgspec says": (
        pod(**asking(cpu="1", memory=" - at `$.x`")),
        "spec.containers[1].resources.requests.memory",
        f"' - at `$.x`' {NO_QUANTITY}",
    ),
    "NaN": (obj("Node", {}, status={"allocatable": {"cpu": "NaN"}}), "status.allocatable.cpu", f"'NaN' {NO_QUANTITY}"),
    "12E": (
        obj("Node", {}, status={"capacity": {"cpu": 1, "memory": "12E"}}),
        "status.capacity.memory",
        "'12E' is out of range (at most 9223372036854775807)",
    ),
    "a string in a map of strings": (
        pod(nodeSelector={"disk": "ssd", "gpus": 4, "zone": "a"}),
        "spec.nodeSelector.gpus",
        "expected `str`, got `int`",
    ),
    "the first of two": (
        pod(nodeSelector={"disk": "ssd", "gpus": None, "zone": None}),
        "spec.nodeSelector.gpus",
        "expected `str`, got `null`",
    ),
    "an earlier map is not blamed": (
        pod(nodeSelector={"disk": "ssd"}, overhead={"cpu": "1", "memory": "1 Gi"}),
        "spec.overhead.memory",
        f"'1 Gi' {NO_QUANTITY}",
    ),
    "a number in a map of numbers": (
        group(minTaskMember={"1": 1, "work": "2"}),
        "spec.minTaskMember.work",
        "expected `int`, got `str`",
    ),
    "a list in a map of lists": (
        job(plugins={"svc": [], "ssh": None, "env": "x"}),
        "spec.plugins.env",
        "expected `array | null`, got `str`",
    ),
    "an entry of a list in a map": (
        job(plugins={"svc": ["a"], "env": ["a", 1]}),
        "spec.plugins.env[1]",
        "expected `str`, got `int`",
    ),
    "a key": (
        pod(nodeSelector={"a": "b", 1: "x"}),
        "spec.nodeSelector",
        "a key is a string: expected `str`, got `int`",
    ),
    "a job's template": (job(tasks=[{"name": "w"}]), "spec.tasks[0].template", "is missing"),
    "a template's containers": (
        job(tasks=[{"template": {"spec": POD}}, {"template": {"spec": {}}}]),
        "spec.tasks[1].template.spec.containers",
        "is missing",
    ),
    "a count with a fraction": (group(minMember=1.5), "spec.minMember", "expected `int`, got `float`"),
    "a selector's operator": (
        pod(
            affinity={
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "z", "labelSelector": {"matchExpressions": [{"key": "a"}]}}
                    ]
                }
            }
        ),
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
        ".labelSelector.matchExpressions[0].operator",
        "is missing",
    ),
    "a guarantee": (
        obj("Queue", {"guarantee": {"resource": {"cpu": "4", "memory": "lots"}}}, "scheduling.volcano.sh/v1beta1"),
        "spec.guarantee.resource.memory",
        f"'lots' {NO_QUANTITY}",
    ),
    "a status": (
        {**group(minMember=1), "status": {"phase": 1}},
        "status.phase",
        "expected `str`, got `int`",
    ),
    "a quota": (obj("ResourceQuota", {"hard": {"pods": "-", "cpu": "1"}}), "spec.hard.pods", f"'-' {NO_QUANTITY}"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_value_is_named_with_its_field(case: str) -> None:
    bad, field, message = WRONG[case]
    assert decode_faults(bad) == [Fault(field, message)]


def named(**metadata: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **metadata}}


NO_NAME = "is not a valid name (RFC 1123: a-z, 0-9, '-' and '.')"
SHAPELESS = {
    "a list": ([], "", "an object is a mapping, not list"),
    "nothing": (None, "", "an object is a mapping, not NoneType"),
    "no apiVersion": ({"kind": "Pod"}, "apiVersion", "is missing"),
    "an empty kind": ({"apiVersion": "v1", "kind": ""}, "kind", "must be a non-empty string"),
    "a number of a kind": ({"apiVersion": "v1", "kind": 7}, "kind", "must be a non-empty string"),
    "no metadata": ({"apiVersion": "v1", "kind": "Pod"}, "metadata", "is missing"),
    "metadata is text": ({"apiVersion": "v1", "kind": "Pod", "metadata": "x"}, "metadata", "must be a mapping"),
    "no name": (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {}},
        "metadata.name",
        "is missing",
    ),
    "a number for a name": (named(name=7), "metadata.name", "must be a non-empty string"),
    "an empty name": (named(name=""), "metadata.name", "must be a non-empty string"),
    "a name in capitals": (named(name="Train"), "metadata.name", f"'Train' {NO_NAME}"),
    "a name of two lines": (named(name="a\nb"), "metadata.name", f"'a\\nb' {NO_NAME}"),
    "a name with a slash": (named(name="a/b"), "metadata.name", f"'a/b' {NO_NAME}"),
    "a long name": (named(name="a" * 254), "metadata.name", f"'{'a' * 80}' {NO_NAME}"),
    "an odd namespace": (named(namespace="a b"), "metadata.namespace", f"'a b' {NO_NAME}"),
    "a number for a namespace": (named(namespace=1), "metadata.namespace", f"'1' {NO_NAME}"),
    "labels in a list": (named(labels=["a"]), "metadata.labels", "must be a mapping of strings"),
    "a label that is a number": (
        named(labels={"a": "b", "n": 1}),
        "metadata.labels['n']",
        "must be a string, not int: quote it",
    ),
    "an annotation that is a flag": (
        named(annotations={"a": "1", "b": True}),
        "metadata.annotations['b']",
        "must be a string, not bool: quote it",
    ),
    "a label's key": (named(labels={1: "b"}), "metadata.labels[1]", "must be a string, not int: quote it"),
    "a time": (
        named(creationTimestamp="yesterday"),
        "metadata.creationTimestamp",
        "'yesterday' is not a time (such as 2026-01-31T08:00:00Z)",
    ),
    "another time": (
        named(deletionTimestamp=5),
        "metadata.deletionTimestamp",
        "'5' is not a time (such as 2026-01-31T08:00:00Z)",
    ),
}


@pytest.mark.parametrize("case", SHAPELESS)
def test_what_no_object_may_lack(case: str) -> None:
    bad, field, message = SHAPELESS[case]
    assert decode_faults(bad) == [Fault(field, message)]


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": None, "annotations": None, "creationTimestamp": None},
        {"labels": {}, "annotations": {"k": ""}, "namespace": ""},
        {"name": "a.b-c.9", "creationTimestamp": "2026-01-31T08:00:00Z"},
    ],
)
def test_what_may_be_left_open(metadata: dict[str, Any]) -> None:
    assert decode_faults(named(**metadata)) == []


def test_names_of_roles_may_hold_a_colon_as_in_kubernetes() -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:node"}}
    assert decode_faults(role) == []
    assert decode_faults({**role, "metadata": {"name": "a/b"}})


@pytest.mark.parametrize(
    "api_version, kind, served",
    [
        ("v2", "Pod", "v1"),
        ("batch.volcano.sh/v1", "Job", "batch.volcano.sh/v1alpha1"),
        ("scheduling.volcano.sh/v1alpha2", "Queue", "scheduling.volcano.sh/v1beta1"),
        ("scheduling.k8s.io/v1beta1", "PriorityClass", "scheduling.k8s.io/v1"),
    ],
)
def test_a_version_that_is_not_served(api_version: str, kind: str, served: str) -> None:
    message = f"{api_version!r} is not served for {kind} (served: {served})"
    assert decode_faults(obj(kind, {}, api_version)) == [Fault("apiVersion", message)]


@pytest.mark.parametrize("ident", sorted(KINDS))
def test_every_kind_knows_its_own_name(ident: str) -> None:
    kind = KINDS[ident]
    assert kind_id({"apiVersion": kind.api_version, "kind": kind.name}) == ident


def test_one_name_in_two_groups_is_two_kinds() -> None:
    assert kind_id(obj("Job", {}, "batch/v1")) == "Job.batch"
    assert kind_id(job()) == volcano.JOB
    assert decode_faults(obj("Job", {"tasks": "not Volcano's", "template": {"spec": POD}}, "batch/v1")) == []
    assert ref_of({**job(), "metadata": {"name": "x", "namespace": None}}) == Ref(volcano.JOB, "", "x")


def test_an_unregistered_kind_is_accepted_as_it_is() -> None:
    assert decode_faults(obj("CRDJob", {"anything": [1, {"a": None}]}, "example.com/v7")) == []


# ---- unknown fields


def test_a_patch_keeps_fields_that_are_never_read_here() -> None:
    """Structs are views on the raw object, writes are patches: so no unknown field is ever lost."""
    store, _ = make_store()
    made = store.create(
        {
            **job(
                tasks=[{"name": "w", "template": {"spec": {**POD, "shareProcessNamespace": True}}, "new": {"a": [1]}}]
            ),
            "extension": {"x": 1},
        }
    )
    assert not hasattr(view(made, volcano.Job), "extension")
    ref = Ref(volcano.JOB, "default", "x")
    store.patch(ref, {"spec": {"maxRetry": 3}, "metadata": {"labels": {"a": "b"}}})
    store.patch(ref, {"status": {"state": {"phase": "Running"}, "novel": 1}}, "status")
    store.patch(ref, {"status": {"running": 1}}, "status")
    found = store.get(*ref)
    assert found is not None
    assert found["extension"] == {"x": 1}
    task = found["spec"]["tasks"][0]
    assert task["new"] == {"a": [1]}
    assert task["template"]["spec"]["shareProcessNamespace"] is True
    assert found["spec"]["maxRetry"] == 3
    assert found["status"] == {"state": {"phase": "Running"}, "novel": 1, "running": 1}


def test_a_view_of_what_is_bad_raises() -> None:
    with pytest.raises(msgspec.ValidationError):
        view(pod(priority="x"), core.Pod)


# ---- anything at all

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "spec", "containers", "resources", "requests", "cpu", "tasks", "template", "a.b[...]"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.sampled_from(sorted(ident for ident, kind in KINDS.items() if kind.view)),
    st.dictionaries(st.sampled_from(["spec", "status", "value", "metadata", "target", "provisioner"]), json),
)
def test_any_object_is_read_or_refused_with_one_line(ident: str, content: dict[str, Any]) -> None:
    kind = KINDS[ident]
    metadata = content.pop("metadata", None)
    candidate = {
        **content,
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {**(metadata if isinstance(metadata, dict) else {}), "name": "x"},
    }
    faults = decode_faults(candidate)
    assert len(faults) <= 1
    for fault in faults:
        assert fault.message
        assert "\n" not in str(fault)
        assert "$" not in fault.field
        assert fault.field.partition(".")[0].partition("[")[0] in candidate or fault.message == "is missing"
    if not faults:
        assert kind.view is not None
        view(candidate, kind.view)
