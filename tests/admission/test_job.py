"""Volcano's Job at admission: M1's table, M2's faults, queues and classes (V4), dependencies (D1)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.admission.review import Settings, admit, admit_delete
from enbloc.api import volcano
from enbloc.api.meta import Fault, Obj

Numbers = tuple[int | None, int | None]


class Objects:
    """A lookup over a handful of objects."""

    def __init__(self, *objects: Obj, complete: bool = True) -> None:
        self.objects = list(objects)
        self._complete = complete

    def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        return next((obj for obj in self.list(kind) if obj["metadata"]["name"] == name), None)

    def list(self, kind: str) -> list[Obj]:
        return [obj for obj in self.objects if obj["kind"] == kind.partition(".")[0]]

    def complete(self, kind: str) -> bool:
        return self._complete


def queue(name: str, state: str = "Open", **spec: Any) -> Obj:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"state": state},
    }


DEFAULT = Objects(queue("default"))
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}


def role(name: str = "worker", replicas: int | None = 1, minimum: int | None = None, **more: Any) -> dict[str, Any]:
    task: dict[str, Any] = {"name": name, "template": TEMPLATE, **more}
    if replicas is not None:
        task["replicas"] = replicas
    if minimum is not None:
        task["minAvailable"] = minimum
    return task


def job(*roles: dict[str, Any], name: str = "train", **spec: Any) -> Obj:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"tasks": list(roles), **{key: value for key, value in spec.items() if value is not None}},
    }


def create(obj: Obj, lookup: Objects = DEFAULT, *, relaxed: bool = False) -> tuple[Obj, list[Fault]]:
    return admit("CREATE", obj, None, lookup, Settings(relaxed=relaxed))


def faults_of(obj: Obj, lookup: Objects = DEFAULT, *, relaxed: bool = False) -> dict[str, str]:
    return {fault.field: fault.message for fault in create(obj, lookup, relaxed=relaxed)[1]}


def minima_of(obj: Obj) -> tuple[int, list[int]]:
    return obj["spec"]["minAvailable"], [task["minAvailable"] for task in obj["spec"]["tasks"]]


@pytest.mark.parametrize(
    "job_minimum, roles, expected",
    [
        # no role sets one, nor does the job: all of all
        (None, [(3, None)], (3, [3])),
        (0, [(3, None)], (3, [3])),
        (None, [(3, 0)], (3, [3])),
        (None, [(2, None), (3, 0)], (5, [2, 3])),
        (0, [(2, 0), (3, 0)], (5, [2, 3])),
        # some role sets one, the job none: the sum, an unset one counts its replicas
        (None, [(5, 3), (3, 2)], (5, [3, 2])),
        (None, [(5, 3), (3, None)], (6, [3, 3])),
        (0, [(5, 3), (3, 0)], (3, [3, 0])),
        # the job sets one, no role does
        (2, [(3, None)], (2, [2])),
        (2, [(3, 0)], (2, [2])),
        (5, [(2, None), (3, None)], (5, [2, 3])),
        (5, [(2, 0), (3, None)], (5, [2, 3])),
        # both do
        (5, [(5, 3), (3, 2)], (5, [3, 2])),
        (6, [(5, 3), (3, None)], (6, [3, 3])),
        (3, [(5, 3), (3, 0)], (3, [3, 0])),
        (3, [(5, 3)], (3, [3])),
    ],
)
def test_m1_table_accepts_and_writes_out(
    job_minimum: int | None, roles: list[tuple[int, int | None]], expected: tuple[int, list[int]]
) -> None:
    tasks = [role(f"r{i}", replicas, minimum) for i, (replicas, minimum) in enumerate(roles)]
    kept, faults = create(job(*tasks, minAvailable=job_minimum))
    assert faults == []
    assert minima_of(kept) == expected


@pytest.mark.parametrize(
    "job_minimum, roles",
    [
        (3, [(2, None), (3, None)]),
        (4, [(5, 3), (3, 2)]),
        (6, [(5, 3), (3, 2)]),
        (3, [(5, 3), (3, None)]),
        (2, [(3, 1)]),
        (6, [(5, 3), (3, 0)]),
    ],
)
def test_m1_table_rejects(job_minimum: int, roles: list[tuple[int, int | None]]) -> None:
    tasks = [role(f"r{i}", replicas, minimum) for i, (replicas, minimum) in enumerate(roles)]
    faults = faults_of(job(*tasks, minAvailable=job_minimum))
    assert list(faults) == ["spec.minAvailable"]
    assert str(job_minimum) in faults["spec.minAvailable"]
    assert "r0" in faults["spec.minAvailable"]


@pytest.mark.parametrize(
    "job_minimum, roles, expected",
    [
        (3, [(2, None), (3, None)], (3, [0, 0])),
        (4, [(5, 3), (3, None)], (4, [3, 0])),
        (2, [(5, 3), (3, 1)], (4, [3, 1])),
        (5, [(2, None), (3, None)], (5, [2, 3])),
        (2, [(3, None)], (2, [2])),
        (None, [(2, None), (3, 1)], (3, [2, 1])),
    ],
)
def test_m1_relaxed_accepts_any_total(
    job_minimum: int | None, roles: list[tuple[int, int | None]], expected: tuple[int, list[int]]
) -> None:
    tasks = [role(f"r{i}", replicas, minimum) for i, (replicas, minimum) in enumerate(roles)]
    kept, faults = create(job(*tasks, minAvailable=job_minimum), relaxed=True)
    assert faults == []
    assert minima_of(kept) == expected


def test_m1_relaxed_still_rejects_more_than_there_are() -> None:
    assert "spec.minAvailable" in faults_of(job(role("a", 2), role("b", 2), minAvailable=5), relaxed=True)


def test_m1_mutation_is_idempotent() -> None:
    once, _ = create(job(role("a", 2), role("b", 2, 1)))
    assert admit("UPDATE", once, once, DEFAULT) == (once, [])


def test_v1_defaults_as_volcanos_webhook() -> None:
    kept, faults = create(job({"template": TEMPLATE}, {"template": TEMPLATE, "replicas": 2}))
    assert faults == []
    spec = kept["spec"]
    assert (spec["queue"], spec["maxRetry"], spec["schedulerName"]) == ("default", 3, "enbloc")
    assert [(task["name"], task["replicas"]) for task in spec["tasks"]] == [("default0", 0), ("default1", 2)]
    assert create(job(role(), schedulerName="volcano"))[0]["spec"]["schedulerName"] == "volcano"


def test_v1_admission_never_changes_what_it_was_given() -> None:
    given = job(role("a", 2))
    create(given)
    assert given == job(role("a", 2))


def policy(**fields: Any) -> Obj:
    return job(role(), policies=[fields])


@pytest.mark.parametrize(
    "obj, field, value",
    [
        (job(role("a", 2, 3)), "spec.tasks[0].minAvailable", "3"),
        (job(role("a", 2, -1)), "spec.tasks[0].minAvailable", "-1"),
        (job(role("a", -1)), "spec.tasks[0].replicas", "-1"),
        (job(role("a", 2), minAvailable=3), "spec.minAvailable", "3"),
        (job(role("a", 2), minAvailable=-3), "spec.minAvailable", "-3"),
        (job(role("a"), role("a")), "spec.tasks[1].name", "'a'"),
        (job(), "spec.tasks", "role"),
        (job(role("Upper")), "spec.tasks[0].name", "Upper"),
        (job(role("a.b")), "spec.tasks[0].name", "a.b"),
        (job(role("r" * 64)), "spec.tasks[0].name", "rrr"),
        (job(role("a"), name="j" * 64), "metadata.name", "jjj"),
        (job(role("a" * 30), name="j" * 40, plugins={"svc": []}), "spec.tasks[0].name", "host"),
        (policy(event="PodExploded", action="AbortJob"), "spec.policies[0].event", "PodExploded"),
        (policy(events=["PodFailed", "Boo"], action="AbortJob"), "spec.policies[0].events[1]", "Boo"),
        (policy(event="PodFailed", action="Explode"), "spec.policies[0].action", "Explode"),
        (policy(event="PodFailed"), "spec.policies[0].action", "missing"),
        (policy(event="PodFailed", exitCode=3, action="AbortJob"), "spec.policies[0]", "both"),
        (policy(action="AbortJob"), "spec.policies[0]", "needs"),
        (policy(exitCode=0, action="AbortJob"), "spec.policies[0].exitCode", "0"),
        (policy(exitCodes=[3, 3], action="AbortJob"), "spec.policies[0].exitCodes[1]", "3"),
        (policy(events=["*", "PodFailed"], action="AbortJob"), "spec.policies", "'*'"),
        (policy(event="PodFailed", action="AbortJob", timeout="soon"), "spec.policies[0].timeout", "soon"),
        (
            job(role(policies=[{"event": "Boo", "action": "AbortJob"}])),
            "spec.tasks[0].policies[0].event",
            "Boo",
        ),
        (job(role(), plugins={"horovod": []}), "spec.plugins.horovod", "horovod"),
        (job(role(), volumes=[{"volumeClaimName": "c"}]), "spec.volumes[0].mountPath", "missing"),
        (job(role(), volumes=[{"mountPath": "/a"}]), "spec.volumes[0]", "needs"),
        (
            job(role(), volumes=[{"mountPath": "/a", "volumeClaimName": "c", "volumeClaim": {}}]),
            "spec.volumes[0]",
            "both",
        ),
        (
            job(role(), volumes=[{"mountPath": "/a", "volumeClaimName": x} for x in "cd"]),
            "spec.volumes[1].mountPath",
            "/a",
        ),
        (job(role(), ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished", "-1"),
        (job(role(), maxRetry=-1), "spec.maxRetry", "-1"),
        (job(role(), minSuccess=0), "spec.minSuccess", "0"),
        (job(role(), minSuccess=2), "spec.minSuccess", "2"),
        (
            job({"name": "a", "template": {"spec": {"containers": []}}}),
            "spec.tasks[0].template.spec.containers",
            "container",
        ),
        (job(role(), priorityClassName="urgent"), "spec.priorityClassName", "urgent"),
    ],
)
def test_m2_each_fault_names_its_field_and_value(obj: Obj, field: str, value: str) -> None:
    faults = faults_of(obj)
    assert list(faults) == [field]
    assert value in faults[field]


def test_m2_one_answer_lists_every_fault() -> None:
    obj = job(role("a", 2, 3), role("a", -1), role("b", 1, -2), queue="nope", maxRetry=-1, plugins={"x": None})
    assert set(faults_of(obj)) == {
        "spec.tasks[0].minAvailable",
        "spec.tasks[1].name",
        "spec.tasks[1].replicas",
        "spec.tasks[2].minAvailable",
        "spec.queue",
        "spec.maxRetry",
        "spec.plugins.x",
    }


def test_m2_what_cannot_be_read_is_a_fault_too() -> None:
    assert [fault.field for fault in create(job(role("a", replicas="two")))[1]] == ["spec.tasks[0].replicas"]  # type: ignore[arg-type]


def update(old: Obj, **changes: Any) -> tuple[Obj, list[Fault]]:
    tasks = [dict(task) for task in old["spec"]["tasks"]]
    for index, fields in changes.pop("tasks", {}).items():
        tasks[index].update(fields)
    return admit("UPDATE", old | {"spec": old["spec"] | {"tasks": tasks} | changes}, old, DEFAULT)


@pytest.mark.parametrize(
    "obj, changes, expected",
    [
        (job(role("a", 2), role("b", 3)), {"tasks": {0: {"replicas": 4}}}, (7, [4, 3])),
        (job(role("a", 2), role("b", 3)), {"tasks": {0: {"replicas": 0}}}, (3, [0, 3])),
        (job(role("a", 4, 2)), {"tasks": {0: {"replicas": 6}}}, (2, [2])),
        (job(role("a", 4, 2)), {"tasks": {0: {"minAvailable": 3}}}, (3, [3])),
        (job(role("a", 4), minAvailable=2), {"minAvailable": 3}, (3, [3])),
        (job(role("a", 4), minAvailable=2), {"tasks": {0: {"replicas": 3}}}, (2, [2])),
        (job(role("a", 4), role("b", 2)), {"tasks": {0: {"minAvailable": 1}}}, (3, [1, 2])),
    ],
)
def test_m2_a_defaulted_minimum_follows(obj: Obj, changes: dict[str, Any], expected: tuple[int, list[int]]) -> None:
    old, _ = create(obj)
    kept, faults = update(old, **changes)
    assert faults == []
    assert minima_of(kept) == expected


def test_m2_a_minimum_that_was_written_does_not_follow() -> None:
    old, _ = create(job(role("a", 4, 4)))
    kept, faults = update(old, tasks={0: {"replicas": 6}})
    assert (minima_of(kept), faults) == ((4, [4]), [])
    assert [fault.field for fault in update(old, tasks={0: {"replicas": 3}})[1]] == ["spec.tasks[0].minAvailable"]


def test_m2_update_refuses_each_other_change() -> None:
    old, _ = create(job(role("a", 2)))
    template = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    _, faults = update(old, queue="q2", maxRetry=5, tasks={0: {"template": template}})
    assert {fault.field for fault in faults} == {
        "spec.queue",
        "spec.maxRetry",
        "spec.tasks[0].template.spec.containers[0].image",
    }
    assert 'from "busybox" to "other"' in next(str(fault) for fault in faults if "image" in fault.field)


def test_m2_roles_may_not_come_or_go() -> None:
    old, _ = create(job(role("a", 2), role("b", 2)))
    faults = admit("UPDATE", job(role("a", 2), role("c", 2)), old, DEFAULT)[1]
    assert [fault.field for fault in faults] == ["spec.tasks[1]", "spec.tasks"]


def test_m2_priority_class_may_change_to_one_that_exists() -> None:
    old, _ = create(job(role("a", 2)))
    assert [fault.field for fault in update(old, priorityClassName="nope")[1]] == ["spec.priorityClassName"]
    assert update(old, priorityClassName="system-cluster-critical")[1] == []


def test_v4_a_job_in_a_queue_closed_since_may_still_be_scaled() -> None:
    old, _ = create(job(role("a", 2)))
    new = old | {"spec": old["spec"] | {"tasks": [old["spec"]["tasks"][0] | {"replicas": 3}]}}
    assert admit("UPDATE", new, old, Objects(queue("default", "Closed")))[1] == []


@pytest.mark.parametrize(
    "name, lookup, word",
    [
        ("gone", Objects(queue("default")), "does not exist"),
        ("shut", Objects(queue("shut", "Closed")), "closed"),
        ("shut", Objects(queue("shut", "Closing")), "closed"),
        ("shut", Objects(queue("shut", "Closed"), complete=False), "closed"),
        ("root", Objects(queue("root")), "accepts no jobs"),
        ("dept", Objects(queue("dept"), queue("team", parent="dept")), "team"),
    ],
)
def test_v4_a_queue_that_takes_no_jobs(name: str, lookup: Objects, word: str) -> None:
    faults = faults_of(job(role(), queue=name), lookup)
    assert list(faults) == ["spec.queue"]
    assert repr(name) in faults["spec.queue"]
    assert word in faults["spec.queue"]


def test_v4_absence_proves_nothing_where_not_all_is_known() -> None:
    assert faults_of(job(role(), queue="gone", priorityClassName="urgent"), Objects(complete=False)) == {}


def test_v3_plugins_bring_those_they_need() -> None:
    kept, faults = create(job(role(), plugins={"mpi": ["--master=a"]}))
    assert faults == []
    assert kept["spec"]["plugins"] == {"mpi": ["--master=a"], "svc": [], "ssh": []}


def depends(*names: str, **more: Any) -> dict[str, Any]:
    return {"dependsOn": {"name": list(names), **more}}


@pytest.mark.parametrize(
    "roles, field, words",
    [
        ([role("a"), role("b", **depends("c"))], "spec.tasks[1].dependsOn.name[0]", ["'c'", "a, b"]),
        ([role("a", **depends("a"))], "spec.tasks[0].dependsOn.name[0]", ["itself", "cycle", "a → a"]),
        (
            [role("a", **depends("b")), role("b", **depends("a"))],
            "spec.tasks[0].dependsOn",
            ["cycle", "a → b → a"],
        ),
        (
            [
                role("x", **depends("a")),
                role("a", **depends("b")),
                role("b", **depends("c")),
                role("c", **depends("a")),
            ],
            "spec.tasks[1].dependsOn",
            ["cycle", "a → b → c → a"],
        ),
        ([role("a"), role("b", **depends("a", iteration="some"))], "spec.tasks[1].dependsOn.iteration", ["some"]),
    ],
)
def test_d1_dependencies_that_make_no_sense(roles: list[dict[str, Any]], field: str, words: list[str]) -> None:
    faults = faults_of(job(*roles))
    assert list(faults) == [field]
    assert all(word in faults[field] for word in words)


def test_d1_a_dependent_job_is_marked() -> None:
    diamond = [role("a"), role("b", **depends("a")), role("c", **depends("a")), role("d", **depends("b", "c"))]
    kept, faults = create(job(*diamond))
    assert faults == []
    assert kept["metadata"]["annotations"][volcano.DEPENDENT_JOB] == "true"


def group(**spec: Any) -> Obj:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": spec,
    }


def test_v1_podgroup_goes_to_the_default_queue() -> None:
    kept, faults = create(group(minMember=2))
    assert (kept["spec"]["queue"], faults) == ("default", [])


@pytest.mark.parametrize(
    "spec, field",
    [
        ({"minMember": -1}, "spec.minMember"),
        ({"minTaskMember": {"a": -1}}, "spec.minTaskMember.a"),
        ({"minResources": {"cpu": "-1"}}, "spec.minResources.cpu"),
        ({"queue": "gone"}, "spec.queue"),
    ],
)
def test_v1_podgroup_faults(spec: dict[str, Any], field: str) -> None:
    assert list(faults_of(group(**spec))) == [field]


def test_v4_a_jobs_own_podgroup_is_not_judged_by_the_queue_again() -> None:
    obj = group(queue="default")
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    obj["metadata"]["ownerReferences"] = [owner]
    assert faults_of(obj, Objects(queue("default", "Closed"))) == {}


def test_v4_queue_defaults() -> None:
    spec = create(queue("q"))[0]["spec"]
    assert spec == {"weight": 1, "reclaimable": True, "parent": "root"}
    assert "parent" not in create(queue("root"))[0]["spec"]


@pytest.mark.parametrize(
    "obj, field, word",
    [
        (queue("q", weight=0), "spec.weight", "0"),
        (queue("q", parent="gone"), "spec.parent", "gone"),
        (queue("q", parent="q"), "spec.parent", "cycle"),
        (queue("q", parent="below"), "spec.parent", "q → below → q"),
        (queue("q", dequeueStrategy="lifo"), "spec.dequeueStrategy", "lifo"),
        (queue("q", deserved={"cpu": 3}, capability={"cpu": 2}), "spec.deserved.cpu", "above capability 2"),
        (queue("q", guarantee={"resource": {"cpu": 3}}, deserved={"cpu": 2}), "spec.guarantee.resource.cpu", "3"),
        (queue("q", "Ajar"), "status.state", "Ajar"),
    ],
)
def test_v4_queue_faults(obj: Obj, field: str, word: str) -> None:
    faults = faults_of(obj, Objects(queue("below", parent="q")))
    assert list(faults) == [field]
    assert word in faults[field]


def test_v4_queue_dimensions_named_only_once_are_not_compared() -> None:
    obj = queue("q", guarantee={"resource": {"cpu": 9}}, deserved={"memory": "1Gi"}, dequeueStrategy="FIFO")
    assert faults_of(obj) == {}


def test_v4_root_default_and_parents_may_not_be_deleted() -> None:
    lookup = Objects(queue("dept"), queue("team", parent="dept"))
    for name in ("root", "default", "dept"):
        assert [name in fault.message for fault in admit_delete(queue(name), lookup)] == [True]
    assert admit_delete(queue("team", parent="dept"), lookup) == []


def test_other_kinds_pass_unchanged() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
    assert create(pod) == (pod, [])


def test_m2_the_number_of_roles_is_bounded() -> None:
    template = {"spec": {"containers": [{"name": "main"}]}}
    for count, reported in ((256, []), (257, ["spec.tasks"])):
        roles = [{"name": f"r{index}", "replicas": 1, "template": template} for index in range(count)]
        obj = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "wide", "namespace": "default"},
            "spec": {"tasks": roles},
        }
        _, faults = admit("CREATE", obj, None, Objects(queue("default")))
        assert [fault.field for fault in faults] == reported
