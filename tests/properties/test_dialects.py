"""Whatever stands in annotations, labels and PodGroups, every dialect reads it into a gang, or says what is wrong."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from enbloc.api import coscheduling, koordinator, kubernetes
from enbloc.api.kinds import KINDS, decode_faults, kind_id
from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent
from enbloc.gangs.koordinator_values import INT32_MAX, Written, read
from enbloc.gangs.registry import GangRegistry

numbers = st.one_of(st.integers(), st.sampled_from([0, 1, -1, 2**31 - 1, 2**31, 2**63, 10**30]))
odd_texts = st.one_of(
    st.text(max_size=30),
    numbers.map(str),
    st.sampled_from(
        ["", "Strict", "NonStrict", "90s", "-1s", "[]", "{}", "null", '["a/b"]', "a/b,c/d", '["a"]', "[[", "/"]
    ),
    st.lists(st.text(max_size=5), max_size=4).map(str),
)
keys = st.sampled_from(
    [
        *(value for name, value in vars(koordinator).items() if name.isupper() and "/" in str(value)),
        koordinator.POD_GROUP_KEY,
        koordinator.POD_GROUP_KEY + "/name",
        koordinator.POD_GROUP_KEY + "/min-available",
        coscheduling.POD_GROUP_LABEL,
        "scheduling.k8s.io/group-name",
        "volcano.sh/task-spec",
        "volcano.sh/queue-name",
        "enbloc.dev/claim-hold",
    ]
)
notes = st.dictionaries(keys, odd_texts, max_size=6)
gang_names = st.one_of(st.sampled_from(["a", "b"]), st.text(min_size=1, max_size=10))


@st.composite
def pods(draw: st.DrawFn) -> Obj:
    annotations, labels = draw(notes), draw(notes)
    for texts in (annotations, labels):
        if draw(st.booleans()):
            texts[koordinator.NAME] = draw(gang_names)
    spec: Obj = {"containers": [], "schedulerName": "enbloc"}
    if draw(st.booleans()):
        spec["schedulingGroup"] = draw(st.sampled_from([None, 3, {}, {"podGroupName": 4}, {"podGroupName": "a"}]))
    name = draw(st.sampled_from(["p", "q", "r"]))
    stamp = f"2026-01-01T00:00:0{draw(st.integers(0, 9))}Z"
    metadata = {
        "name": name, "namespace": "default", "uid": name, "creationTimestamp": stamp, "annotations": annotations,
        "labels": labels,
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


group_specs = st.fixed_dictionaries(
    {},
    optional={
        "minMember": numbers,
        "minResources": st.dictionaries(st.sampled_from(["cpu", "x/y"]), st.sampled_from(["1", "-2", "1e30", "5Gi"])),
        "scheduleTimeoutSeconds": st.one_of(st.none(), numbers),
        "schedulingPolicy": st.sampled_from(
            [{}, {"basic": {}}, {"gang": {}}, {"gang": {"minCount": -1}}, {"gang": {"minCount": 2}, "basic": {}}]
        ),
        "disruptionMode": st.sampled_from(["Pod", "PodGroup", "?", {}, {"all": {}}, {"single": {}}]),
        "priorityClassName": st.text(max_size=5),
    },
)
versions = st.sampled_from(
    [f"{koordinator.GROUP}/v1alpha1", f"{coscheduling.GROUP}/v1alpha1"]
    + [f"{kubernetes.GROUP}/{version}" for version in KINDS[kubernetes.POD_GROUP].versions]
)


@st.composite
def pod_groups(draw: st.DrawFn) -> Obj:
    metadata = {
        "name": draw(st.sampled_from(["a", "b"])),
        "namespace": "default",
        "uid": "g",
        "annotations": draw(notes),
    }
    return {"apiVersion": draw(versions), "kind": "PodGroup", "metadata": metadata, "spec": draw(group_specs)}


events = st.lists(st.tuples(st.one_of(pods(), pod_groups()), st.booleans()), max_size=8)


@given(events)
def test_any_order_of_any_objects_is_read(happened: list[tuple[Obj, bool]]) -> None:
    book = GangRegistry()
    there: dict[str, Obj] = {}
    for obj, gone in happened:
        kind = kind_id(obj)
        if kind != "Pod" and decode_faults(obj):
            continue  # no API server would have taken it
        changed = book.observe_pod(obj, gone) if kind == "Pod" else book.observe(
            WatchEvent("DELETED" if gone else "ADDED", kind, obj)
        )  # fmt: skip
        book.complaints(obj)
        if kind == "Pod":
            there.pop(obj["metadata"]["uid"], None)
            if not gone:
                there[obj["metadata"]["uid"]] = obj
        for key in changed.gangs:
            spec = book.spec(key)
            assert spec is None or (spec.minimum >= 0 and spec.waiting_ns >= 0)
    for pod in there.values():
        membership = book.member(pod)
        spec = book.spec(membership.gang) or book.undeclared(membership.gang, 0, "default")
        assert spec.key == membership.gang
        assert 0 <= spec.minimum <= INT32_MAX
        if membership.gang.dialect == "koordinator":
            assert book.home(membership.gang) is not None


@given(st.builds(Written, *[st.one_of(st.none(), odd_texts)] * 6))
def test_values_are_good_or_complained_of(said: Written) -> None:
    values = read(said)
    for text, value in zip(said, (values.minimum, values.total, values.non_strict, values.groups, values.waiting_ns,
                                  values.policy), strict=True):  # fmt: skip
        assert text is None or value is not None or values.complaints
    counts: list[Any] = [values.minimum, values.total]
    assert all(count is None or 0 <= count <= INT32_MAX for count in counts)
