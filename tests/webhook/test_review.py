"""AdmissionReviews in, answers out."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from enbloc.admission.review import REVIEWED
from enbloc.admission.settings import DEFAULTS, Settings
from enbloc.api.kinds import KINDS
from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent
from enbloc.cluster.embedded.http.warnings import Warnings
from enbloc.gangs.registry import GangRegistry
from enbloc.webhook.cache import ObjectCache, RecordingLookup
from enbloc.webhook.review import BadReview, answer, evaluate, read_request, warn
from support import manifests as m
from support.webhook_api import job, review


def lookup(*objects: Obj) -> RecordingLookup:
    known = ObjectCache()
    for obj in (m.queue("root"), m.queue("default"), *objects):
        known.observe(WatchEvent("ADDED", "Queue.scheduling.volcano.sh", obj))
    known.listed()
    return RecordingLookup(known)


def asked(question: dict[str, Any], *, mutates: bool = True, others: tuple[Obj, ...] = ()) -> dict[str, Any]:
    request = read_request(json.dumps(question).encode())
    reported = json.loads(answer(request, evaluate(request, lookup(*others), Settings()), mutates=mutates))
    assert reported["apiVersion"] == "admission.k8s.io/v1"
    assert reported["kind"] == "AdmissionReview"
    response: dict[str, Any] = reported["response"]
    assert response["uid"] == question["request"]["uid"]
    return response


def patch_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    assert response["patchType"] == "JSONPatch"
    operations: list[dict[str, Any]] = json.loads(base64.b64decode(response["patch"]))
    return operations


def test_a_job_gets_its_defaults_as_a_patch() -> None:
    response = asked(review("CREATE", job()))
    assert response["allowed"] is True
    by_path = {one["path"]: (one["op"], one["value"]) for one in patch_of(response)}
    assert by_path == {
        "/metadata/annotations": ("add", {"enbloc.dev/defaulted-minima": "worker,*"}),
        "/spec/queue": ("add", "default"),
        "/spec/schedulerName": ("add", "enbloc"),
        "/spec/maxRetry": ("add", 3),
        "/spec/minAvailable": ("add", 2),
        "/spec/tasks/0/maxRetry": ("add", 3),
        "/spec/tasks/0/minAvailable": ("add", 2),
    }


def test_keys_of_annotations_are_escaped() -> None:
    one = job()
    one["metadata"]["annotations"] = {"team": "a"}
    paths = [step["path"] for step in patch_of(asked(review("CREATE", one)))]
    assert "/metadata/annotations/enbloc.dev~1defaulted-minima" in paths


def test_what_has_all_its_defaults_is_not_patched() -> None:
    root = m.queue("team", parent="root", reclaimable=True)
    assert asked(review("CREATE", root)) == {"uid": review("CREATE", root)["request"]["uid"], "allowed": True}


def test_the_validating_webhook_answers_no_patch() -> None:
    response = asked(review("CREATE", job()), mutates=False)
    assert response["allowed"] is True
    assert "patch" not in response


@pytest.mark.parametrize("mutates", [True, False])
def test_m2_a_refusal_lists_every_fault_with_its_field(mutates: bool) -> None:
    bad = job(queue="nowhere", minAvailable=7)
    bad["spec"]["tasks"].append({"name": "worker", "replicas": -1, "template": {"spec": {"containers": []}}})
    response = asked(review("CREATE", bad), mutates=mutates)
    assert response["allowed"] is False
    assert "patch" not in response
    status = response["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"].startswith('Job "train" is invalid: ')
    causes = {cause["field"]: cause["message"] for cause in status["details"]["causes"]}
    assert causes.keys() >= {
        "spec.minAvailable",
        "spec.tasks[1].name",
        "spec.tasks[1].replicas",
        "spec.tasks[1].template.spec.containers",
        "spec.queue",
    }
    for cause in status["details"]["causes"]:
        assert f"{cause['field']}: {cause['message']}" in status["message"]
    assert status["details"] | {"causes": []} == {
        "name": "train",
        "group": "batch.volcano.sh",
        "kind": "Job",
        "causes": [],
    }


def test_what_cannot_be_read_is_refused_with_its_field() -> None:
    bad = job()
    bad["spec"]["tasks"][0]["replicas"] = "three"
    causes = asked(review("CREATE", bad))["status"]["details"]["causes"]
    assert [cause["field"] for cause in causes] == ["spec.tasks[0].replicas"]


def test_very_many_faults_are_cut_off() -> None:
    bad = job()
    bad["spec"]["tasks"] = [bad["spec"]["tasks"][0] | {"name": "A"}] * 200
    status = asked(review("CREATE", bad))["status"]
    assert len(status["details"]["causes"]) == 100
    assert status["message"].endswith(" more")


def test_m2_updates_are_judged_by_what_was_before() -> None:
    old = job(queue="default", minAvailable=2, schedulerName="enbloc", maxRetry=3)
    new = json.loads(json.dumps(old))
    new["spec"]["queue"] = "other"
    status = asked(review("UPDATE", new, old), others=(m.queue("other"),))["status"]
    assert [cause["field"] for cause in status["details"]["causes"]] == ["spec.queue"]
    assert asked(review("UPDATE", old, old))["allowed"] is True


def test_v4_protected_queues_are_not_deleted() -> None:
    response = asked(review("DELETE", None, m.queue("default")))
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (403, "Forbidden")
    assert "'default'" in response["status"]["message"]
    assert asked(review("DELETE", None, m.queue("team")))["allowed"] is True
    assert asked(review("DELETE", None, job()))["allowed"] is True


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE", "CONNECT"])
def test_kinds_without_rules_are_let_through(operation: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    assert asked(review(operation, pod, pod)) == {"uid": review("CREATE", pod)["request"]["uid"], "allowed": True}


def pod(**notes: str) -> Obj:
    spec = {"schedulerName": "enbloc", "containers": [{"name": "c", "image": "busybox"}]}
    metadata = {"name": "p", "namespace": "default", "annotations": notes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def warned(obj: Obj, settings: Settings = DEFAULTS) -> list[str]:
    return warn(read_request(json.dumps(review("CREATE", obj)).encode()), GangRegistry(), settings)


def test_n5_a_job_of_another_scheduler_is_warned_of() -> None:
    spec = {"schedulerName": "another", "tasks": []}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    ours = Settings(ours=frozenset({"enbloc"}))
    assert warned(job, ours)[0].startswith("spec.schedulerName: 'another' is not ours: no pods are created")
    assert Warnings(ours).on("Job.batch.volcano.sh", job)[0].startswith("299 - \"spec.schedulerName: 'another'")


def test_n1_n5_a_pod_without_annotations_is_warned_of_too() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "none"}]
    plain = {**pod(), "metadata": {"name": "p", "namespace": "default"}}
    plain = {**plain, "spec": {**plain["spec"], "resourceClaims": claims}}
    (said,) = warned(plain)
    assert said.startswith("spec.resourceClaims: ")
    (header,) = Warnings(DEFAULTS).on("Pod", plain)
    assert header.startswith('299 - "spec.resourceClaims: ')


def test_k3_what_is_read_as_something_else_is_reported() -> None:
    gang = {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "1"}
    assert warned(pod(**gang)) == []
    (reported,) = warned(pod(**gang, **{"gang.scheduling.koordinator.sh/mode": "Sometimes"}))
    assert "Sometimes" in reported
    (reported,) = warned(pod(**{"enbloc.dev/expected-duration": "soon"}))
    assert "enbloc.dev/expected-duration 'soon' is not a duration" in reported
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}}
    (reported,) = warned(group | {"spec": {"minMember": 1, "scheduleTimeoutSeconds": -1}})
    assert "scheduleTimeoutSeconds -1" in reported
    (reported,) = warned(group | {"spec": {"minMember": "many"}})
    assert reported.startswith("spec.minMember: ")


def test_warnings_refuse_nothing_and_go_by_the_validating_webhook() -> None:
    request = read_request(json.dumps(review("CREATE", job())).encode())
    verdict = msgspec.structs.replace(evaluate(request, lookup(), Settings()), warnings=["w"] * 99)
    reported = json.loads(answer(request, verdict, mutates=False))["response"]
    assert (reported["allowed"], reported["warnings"]) == (True, ["w"] * 10)
    assert "warnings" not in json.loads(answer(request, verdict, mutates=True))["response"]


def test_a_name_that_is_to_be_made_is_made_here() -> None:
    one = {
        "apiVersion": "arbitrator.incubator.k8s.io/v1alpha1",
        "kind": "QueueJob",
        "metadata": {"generateName": "sweep-", "namespace": "default"},
        "spec": {"taskSpecs": [{"template": {"spec": {"containers": [{"name": "c"}]}}}]},
    }
    operations = {step["path"]: step["value"] for step in patch_of(asked(review("CREATE", one)))}
    name = operations["/metadata/name"]
    assert name.startswith("sweep-")
    assert len(name) == len("sweep-") + 5
    assert operations["/spec/selector"] == {"matchLabels": {"enbloc.dev/queuejob": name}}
    again = {step["path"]: step["value"] for step in patch_of(asked(review("CREATE", one, uid="another")))}
    assert again["/metadata/name"] != name
    one["metadata"]["generateName"] = "x" * 200
    long = {step["path"]: step["value"] for step in patch_of(asked(review("CREATE", one)))}
    assert len(long["/metadata/name"]) == 63


def test_an_unreadable_object_from_before_can_lose_its_finalizers() -> None:
    old = job()
    old["spec"]["tasks"] = "nonsense"
    old["metadata"]["finalizers"] = ["x/y"]
    new = old | {"metadata": {"name": "train", "namespace": "default"}}
    assert asked(review("UPDATE", new, old)) == {"uid": review("UPDATE", new)["request"]["uid"], "allowed": True}
    assert asked(review("UPDATE", job(), old))["allowed"] is True, "made good, it is judged as new"
    assert asked(review("UPDATE", job(queue="nowhere"), old))["allowed"] is False


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b"null",
        b"{}",
        b"\xff\xfe",
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": null}',
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {}}',
        json.dumps(review("CREATE", job()) | {"kind": "Pod"}).encode(),
        json.dumps(review("CREATE", job()) | {"apiVersion": "admission.k8s.io/v1beta1"}).encode(),
        json.dumps(review("CREATE", None)).encode(),
        json.dumps(review("UPDATE", job())).encode(),
        json.dumps(review("DELETE", None)).encode(),
        json.dumps(review("CREATE", job(), uid="")).encode(),
        json.dumps(review("CREATE", job(), object=[])).encode(),
        b'{"apiVersion": ' + b"[" * 100_000,
    ],
)
def test_what_is_no_review_is_refused_with_the_reason(body: bytes) -> None:
    with pytest.raises(BadReview):
        read_request(body)


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"apiVersion": "batch.volcano.sh/v1alpha1"},
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"},
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": []},
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": 3}},
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "x"}},
        {"apiVersion": "batch.volcano.sh/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {}},
        {"apiVersion": 1, "kind": None, "metadata": {"generateName": "x-"}},
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "x"}, "spec": 3},
    ],
)
def test_objects_without_their_shape_are_refused_with_a_field(obj: Obj) -> None:
    for mutates in (True, False):
        response = asked(review("CREATE", obj), mutates=mutates)
        assert response["allowed"] is False
        assert response["status"]["details"]["causes"][0]["field"]


def test_every_kind_that_is_reviewed_has_rules() -> None:
    """An empty spec is refused, or filled in: no job passes unchanged."""
    for kind in map(KINDS.__getitem__, REVIEWED):
        obj = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "x"}, "spec": {"priority": 1}}
        response = asked(review("CREATE", obj))
        assert not response["allowed"] or "patch" in response, kind
