"""kube-arbitrator's SchedulingSpec and QueueJob at admission: what is filled in, and every fault at once (A1, A3)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.admission.review import admit
from enbloc.api.meta import Fault, Obj

API = "arbitrator.incubator.k8s.io/v1alpha1"
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}


class Classes:
    """A lookup over priority classes."""

    def __init__(self, complete: bool = True, default: str = "", **values: int) -> None:
        self._complete = complete
        self._classes = {
            name: {
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "globalDefault": name == default,
            }
            for name, value in values.items()
        }

    def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        return self._classes.get(name)

    def list(self, kind: str) -> list[Obj]:
        return list(self._classes.values())

    def complete(self, kind: str) -> bool:
        return self._complete


KNOWN = Classes(high=100, low=10)


def spec(**fields: Any) -> Obj:
    return {
        "apiVersion": API,
        "kind": "SchedulingSpec",
        "metadata": {"name": "s", "namespace": "default"},
        "spec": fields,
    }


def role(name: str = "w", replicas: int = 1, **more: Any) -> Obj:
    return {"name": name, "replicas": replicas, "template": TEMPLATE, **more}


def queue_job(*roles: Obj, name: str = "q", sched: Obj | None = None, **more: Any) -> Obj:
    found: Obj = {"taskSpecs": list(roles), **more}
    if sched is not None:
        found["schedSpec"] = sched
    return {"apiVersion": API, "kind": "QueueJob", "metadata": {"name": name, "namespace": "default"}, "spec": found}


def admitted(obj: Obj, lookup: Classes = KNOWN, old: Obj | None = None) -> tuple[Obj, list[Fault]]:
    return admit("UPDATE" if old else "CREATE", obj, old, lookup)


def kept(obj: Obj, lookup: Classes = KNOWN, old: Obj | None = None) -> Obj:
    found, faults = admitted(obj, lookup, old)
    assert faults == []
    return found


def faults_of(obj: Obj, lookup: Classes = KNOWN, old: Obj | None = None) -> dict[str, str]:
    return {fault.field: fault.message for fault in admitted(obj, lookup, old)[1]}


@pytest.mark.parametrize(
    "fields, lookup, priority",
    [
        ({"priorityClassName": "high"}, KNOWN, 100),
        ({"priorityClassName": "high", "priority": 100}, KNOWN, 100),
        ({"priorityClassName": "system-node-critical"}, KNOWN, 2_000_001_000),
        ({"priorityClassName": "system-cluster-critical"}, KNOWN, 2_000_000_000),
        ({}, KNOWN, None),
        ({"priority": 0}, KNOWN, 0),
        ({}, Classes(default="usual", usual=30), 30),
        ({"priorityClassName": "high"}, Classes(default="usual", usual=30, high=100), 100),
        ({"priorityClassName": "unseen"}, Classes(complete=False), None),
        ({"priorityClassName": "unseen", "priority": 7}, Classes(complete=False), 7),
    ],
)
def test_a1_priority_is_filled_in_from_the_class(fields: Obj, lookup: Classes, priority: int | None) -> None:
    assert kept(spec(**fields), lookup)["spec"].get("priority") == priority
    assert kept(queue_job(role(), sched=fields), lookup)["spec"]["schedSpec"].get("priority") == priority


@pytest.mark.parametrize(
    "fields, lookup, field, word",
    [
        ({"priorityClassName": "high", "priority": 7}, KNOWN, "priority", "7 differs: priority class 'high' has 100"),
        ({"priority": 7}, KNOWN, "priority", "7 differs: without a priority class it is 0"),
        ({"priority": 7}, Classes(default="usual", usual=30), "priority", "it is 30"),
        ({"priorityClassName": "system-node-critical", "priority": 7}, KNOWN, "priority", "2000001000"),
        ({"priorityClassName": "nowhere"}, KNOWN, "priorityClassName", "'nowhere' does not exist"),
        ({"minAvailable": -1}, KNOWN, "minAvailable", "-1 is below 0"),
        ({"nodeSelector": {"a": "no value!"}}, KNOWN, "nodeSelector[a]", "not a valid label value"),
    ],
)
def test_a1_faults_of_what_is_asked_of_the_scheduler(fields: Obj, lookup: Classes, field: str, word: str) -> None:
    assert word in faults_of(spec(**fields), lookup)[f"spec.{field}"]
    assert word in faults_of(queue_job(role(), sched=fields), lookup)[f"spec.schedSpec.{field}"]


def test_a1_a_changed_class_brings_its_own_priority() -> None:
    old = kept(spec(priorityClassName="high", minAvailable=2))
    assert kept(spec(**old["spec"] | {"priorityClassName": "low"}), old=old)["spec"]["priority"] == 10
    without = {"priority": 100, "minAvailable": 2}
    assert "priority" not in kept(spec(**without), old=old)["spec"]
    assert faults_of(spec(**old["spec"] | {"priority": 50}), old=old) == {
        "spec.priority": "50 differs: priority class 'high' has 100"
    }


def test_a1_a_changed_label_is_not_judged_anew() -> None:
    old = spec(priorityClassName="gone", priority=5)
    assert kept(old | {"metadata": old["metadata"] | {"labels": {"a": "b"}}}, old=old)


def test_a3_everything_is_written_out() -> None:
    unnamed = role()
    del unnamed["name"], unnamed["replicas"]
    found = kept(queue_job(unnamed, role("b", 2), sched={"minAvailable": 2, "priorityClassName": "low"}))["spec"]
    assert found == {
        "schedSpec": {"minAvailable": 2, "priorityClassName": "low", "priority": 10},
        "schedulerName": "enbloc",
        "selector": {"matchLabels": {"enbloc.dev/queuejob": "q"}},
        "taskSpecs": [role("task0", 1), role("b", 2)],
    }
    assert kept(queue_job(role()))["spec"]["schedSpec"] == {}


def test_a3_what_the_user_wrote_stays() -> None:
    own = {"matchLabels": {"mine": "yes"}}
    found = kept(queue_job(role(), selector=own, schedulerName="kar-scheduler"))["spec"]
    assert (found["selector"], found["schedulerName"]) == (own, "kar-scheduler")


def test_a3_admitting_twice_changes_nothing() -> None:
    once = kept(queue_job(role(), sched={"priorityClassName": "high"}))
    assert kept(once, old=once) == once
    assert kept(once) == once


def test_a3_two_names_of_one_thing() -> None:
    alias = kept(queue_job(role("w", 3), schedulingSpec={"minAvailable": 2, "priorityClassName": "low"}))
    both = {"minAvailable": 2, "priorityClassName": "low", "priority": 10}
    assert (alias["spec"]["schedSpec"], alias["spec"]["schedulingSpec"]) == (both, both)
    assert kept(queue_job(role("w", 3), sched={"minAvailable": 2}, schedulingSpec={"minAvailable": 2}))
    faults = faults_of(queue_job(role("w", 3), sched={"minAvailable": 2}, schedulingSpec={"minAvailable": 3}))
    assert "two names of one field" in faults["spec.schedulingSpec"]
    for name in ("schedSpec", "schedulingSpec"):  # the one that was changed counts
        changed = alias | {"spec": alias["spec"] | {name: both | {"minAvailable": 3}}}
        found = kept(changed, old=alias)["spec"]
        assert found["schedSpec"]["minAvailable"] == found["schedulingSpec"]["minAvailable"] == 3


def test_a3_every_fault_at_once() -> None:
    bad = queue_job(
        role("w", -1), role("w", 2), role("No Name", 1), role("x", 2**31),
        role("y", 1, template={"spec": {"containers": []}}),
        name="a" * 64, sched={"minAvailable": -2, "priorityClassName": "nowhere"},
        selector={"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
    )  # fmt: skip
    assert sorted(faults_of(bad)) == [
        "metadata.name",
        "spec.schedSpec.minAvailable",
        "spec.schedSpec.priorityClassName",
        "spec.selector",
        "spec.taskSpecs[0].replicas",
        "spec.taskSpecs[1].name",
        "spec.taskSpecs[2].name",
        "spec.taskSpecs[3].replicas",
        "spec.taskSpecs[4].template.spec.containers",
    ]


@pytest.mark.parametrize(
    "obj, field, word",
    [
        (
            queue_job(role("w", 3), sched={"minAvailable": 4}),
            "spec.schedSpec.minAvailable",
            "4 is above the 3 replicas",
        ),
        (
            queue_job(role("w", 3), schedulingSpec={"minAvailable": 4}),
            "spec.schedulingSpec.minAvailable",
            "above the 3",
        ),
        (queue_job(), "spec.taskSpecs", "at least one role"),
        (queue_job(role("w" * 64)), "spec.taskSpecs[0].name", "not a valid role name"),
        (queue_job({"name": "w"}), "spec.taskSpecs[0].template", "is missing"),
        (queue_job(role("w", template={"spec": {}})), "spec.taskSpecs[0].template.spec.containers", "is missing"),
        (queue_job(role("w", "two")), "spec.taskSpecs[0].replicas", "int"),  # type: ignore[arg-type]
        (spec(minAvailable="many"), "spec.minAvailable", "int"),
    ],
)
def test_a3_faults(obj: Obj, field: str, word: str) -> None:
    assert word in faults_of(obj)[field]


def test_a6_anything_may_change() -> None:
    old = kept(queue_job(role("w", 3), sched={"minAvailable": 3}))
    other = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    new = queue_job(role("x", 5, template=other), sched={"minAvailable": 5, "priorityClassName": "low"})
    assert kept(new, old=old)["spec"]["taskSpecs"][0]["name"] == "x"
    assert (
        "above" in faults_of(queue_job(role("w", 1), sched={"minAvailable": 3}), old=old)["spec.schedSpec.minAvailable"]
    )
