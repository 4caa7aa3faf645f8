"""S2: at admission our annotations are stripped from what others create, and their changes are refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from enbloc.admission.settings import Settings
from enbloc.api import json_patch
from enbloc.api.meta import Obj
from enbloc.gangs.own_annotations import COMMITTED, OWN_ANNOTATIONS
from enbloc.webhook.cache import ObjectCache, RecordingLookup
from enbloc.webhook.review import answer, evaluate, guard_records, read_request
from support import manifests as m
from support.webhook_api import NAMESPACE, job, review

CLAIM = "enbloc.dev/claim-reserve"
TENANT = {"username": "eve", "groups": ["system:authenticated"]}
SCHEDULER = {
    "username": f"system:serviceaccount:{NAMESPACE}:enbloc-scheduler",
    "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"],
}
ADMINISTRATOR = {"username": "admin", "groups": ["system:masters"]}
NAMESAKE = {"username": "x", "groups": [f"system:serviceaccounts:{NAMESPACE}-not"]}


def reviewed(question: dict[str, Any], *, mutates: bool = True) -> dict[str, Any]:
    request = read_request(json.dumps(question).encode())
    verdict = evaluate(request, RecordingLookup(ObjectCache()), Settings(), NAMESPACE)
    response: dict[str, Any] = json.loads(answer(request, verdict, mutates=mutates))["response"]
    return response


def guarded(question: dict[str, Any]) -> dict[str, Any]:
    request = read_request(json.dumps(question).encode())
    response: dict[str, Any] = json.loads(answer(request, guard_records(request, NAMESPACE), mutates=True))["response"]
    return response


def stored(obj: Obj, response: dict[str, Any]) -> Obj:
    assert response["allowed"] is True
    if "patch" not in response:
        return obj
    found: Obj = json_patch.apply(obj, json.loads(base64.b64decode(response["patch"])))
    return found


def noted(obj: Obj, **annotations: str) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "annotations": dict(annotations)}}


@pytest.mark.parametrize("user", [TENANT, NAMESAKE, {}], ids=["tenant", "another namespace", "unknown"])
@pytest.mark.parametrize("kind", ["PodGroup", "Job"])
def test_s2_our_annotations_are_stripped_on_create_with_a_warning(kind: str, user: dict[str, Any]) -> None:
    obj = noted(m.podgroup("g", 2) if kind == "PodGroup" else job(), **dict.fromkeys(OWN_ANNOTATIONS, "x"), mine="kept")
    response = reviewed(review("CREATE", obj, userInfo=user))
    annotations = stored(obj, response)["metadata"]["annotations"]
    assert not OWN_ANNOTATIONS & annotations.keys()
    assert annotations["mine"] == "kept"
    assert any(CLAIM in warning and "removed" in warning for warning in response["warnings"])


@pytest.mark.parametrize("user", [SCHEDULER, ADMINISTRATOR], ids=["scheduler", "administrator"])
def test_s2_our_accounts_write_them(user: dict[str, Any]) -> None:
    old, new = m.podgroup("g", 2), noted(m.podgroup("g", 2), **{CLAIM: "x"})
    for mutates in (True, False):
        response = reviewed(review("UPDATE", new, old, userInfo=user), mutates=mutates)
        assert stored(new, response)["metadata"]["annotations"][CLAIM] == "x"
        assert "warnings" not in response


@pytest.mark.parametrize("before", [{}, {CLAIM: "ours"}], ids=["added", "changed"])
@pytest.mark.parametrize("mutates", [True, False])
def test_s2_changes_are_refused_to_others(before: dict[str, str], mutates: bool) -> None:
    old, new = noted(m.podgroup("g", 2), **before), noted(m.podgroup("g", 2), **{CLAIM: "forged"})
    response = reviewed(review("UPDATE", new, old, userInfo=TENANT), mutates=mutates)
    assert response["allowed"] is False
    assert CLAIM in response["status"]["message"]


def test_s2_an_update_that_leaves_them_out_keeps_them() -> None:
    """As `kubectl replace` does with a file that has none of them."""
    old, new = noted(m.podgroup("g", 2), **{CLAIM: "ours"}), noted(m.podgroup("g", 2), mine="new")
    kept = stored(new, reviewed(review("UPDATE", new, old, userInfo=TENANT)))
    assert kept["metadata"]["annotations"] == {CLAIM: "ours", "mine": "new"}


def test_s2_an_update_of_other_things_is_not_touched() -> None:
    old = noted(m.podgroup("g", 2), **{CLAIM: "ours"})
    new = noted(m.podgroup("g", 2), **{CLAIM: "ours"}, mine="new")
    kept = stored(new, reviewed(review("UPDATE", new, old, userInfo=TENANT)))
    assert kept["metadata"] == new["metadata"]


def test_s2_pods_are_stripped_and_never_validated() -> None:
    pod = noted({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"bad": 1}}, **{COMMITTED: "2"})
    response = guarded(review("CREATE", pod, userInfo=TENANT))
    assert stored(pod, response)["metadata"]["annotations"] == {}
    assert response["warnings"]


@pytest.mark.parametrize("metadata", [None, [], {"annotations": 7}, {"annotations": []}, {"annotations": None}])
def test_s2_objects_of_any_shape_are_answered(metadata: Any) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}
    assert guarded(review("CREATE", pod, name="p", namespace="a", userInfo=TENANT)).get("allowed") is True
