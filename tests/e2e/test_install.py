"""`enbloc install` on a real API server: applied, applied again, used through the webhook, and removed."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.api import MERGE_PATCH, Api, Json
from e2e.control_plane import ControlPlane, free_port
from enbloc.api.kinds import KINDS, ref_of
from enbloc.api.writes import Create, Patch, Refused, Write
from enbloc.config import parse
from enbloc.install.definitions import DEFINED
from enbloc.webhook.cache import ObjectCache
from enbloc.webhook.certificate_rotation import MUTATING, VALIDATING
from enbloc.webhook.server import Server

ROOT = Path(__file__).parent.parent.parent
NAMESPACE = "enbloc-system"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def printed() -> str:
    command = [sys.executable, "-c", "from enbloc.cli.main import main; main()", "install"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def path_of(kind: str, namespace: str = "", name: str = "") -> str:
    known = KINDS[kind]
    root = f"/apis/{known.api_version}" if known.group else f"/api/{known.api_version}"
    within = f"/namespaces/{namespace}" if known.namespaced and namespace else ""
    return f"{root}{within}/{known.plural}" + (f"/{name}" if name else "")


class Account:
    """A service account's view of the API, as the webhook wants it."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def get(self, kind: str, namespace: str, name: str) -> Json | None:
        return await self._ask("GET", path_of(kind, namespace, name), missing=True)

    async def list(self, kind: str) -> list[Json]:
        answer = await self._ask("GET", path_of(kind))
        known = KINDS[kind]
        return [{"apiVersion": known.api_version, "kind": known.name, **item} for item in (answer or {})["items"]]

    async def execute(self, write: Write) -> Json | None:
        match write:
            case Create(obj=obj):
                ref = ref_of(obj)
                return await self._ask("POST", path_of(ref.kind, ref.namespace), obj)
            case Patch(ref=ref, patch=patch):
                body = {
                    **patch,
                    "metadata": {**(patch.get("metadata") or {}), "resourceVersion": write.resource_version},
                }
                return await self._ask("PATCH", path_of(ref.kind, ref.namespace, ref.name), body, MERGE_PATCH)
        raise AssertionError(write)

    async def _ask(
        self, method: str, path: str, body: Json | None = None, content: str = "application/json", missing: bool = False
    ) -> Json | None:
        answer = await asyncio.to_thread(self._api.request, method, path, body, content)
        if answer.status == 404 and missing:
            return None
        if answer.status >= 300:
            raise Refused(answer.status, str(answer.body.get("reason")), str(answer.body.get("message")))
        return answer.body


class Webhook:
    """The webhook, with no more rights than `enbloc install` gives it, on a port that the API server can reach."""

    def __init__(self, plane: ControlPlane) -> None:
        self.port = free_port()
        token = plane.account_token(NAMESPACE, "enbloc-webhook")
        self._api = Api(plane.url, plane.authority.certificate, token)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    async def _run(self) -> None:
        self._server = Server(
            Account(self._api),
            ObjectCache(),
            parse(None),
            namespace=NAMESPACE,
            names=("localhost",),
            host="127.0.0.1",
            port=self.port,
        )
        self._task = asyncio.current_task()
        serving = asyncio.create_task(self._server.serve())
        while self._server.address is None:
            assert not serving.done(), serving.exception()
            await asyncio.sleep(0.02)
        self._ready.set()
        try:
            await serving
        except asyncio.CancelledError:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await asyncio.sleep(0.5)  # TLS connections say good-bye

    def __enter__(self) -> Webhook:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._task is not None
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(30)
        self._loop.close()


def versions(plane: ControlPlane, text: str) -> dict[tuple[str, str], str]:
    """The version of every object that was applied."""
    found = json.loads(plane.kubectl("get", "-f", "-", "-o", "json", stdin=text))["items"]
    return {(one["kind"], one["metadata"]["name"]): one["metadata"]["resourceVersion"] for one in found}


@pytest.fixture(scope="module")
def installed(plane: ControlPlane) -> str:
    text = printed()
    plane.kubectl("apply", "-f", "-", stdin=text)
    return text


@pytest.fixture
def webhook(plane: ControlPlane, installed: str) -> Iterator[Webhook]:
    """There is no Service network here, so the API server is told an address; all else is as it was installed."""
    hook = Webhook(plane)
    for kind in (MUTATING, VALIDATING):
        hooks = plane.api.get(path_of(kind, name="enbloc")).must()["webhooks"]
        for one in hooks:
            one["clientConfig"] = {"url": f"https://localhost:{hook.port}{one['clientConfig']['service']['path']}"}
        plane.api.patch(path_of(kind, name="enbloc"), {"webhooks": hooks})
    with hook:
        yield hook
    plane.kubectl("replace", "-f", "-", stdin=of_kind(installed, "WebhookConfiguration"))


def of_kind(text: str, suffix: str) -> str:
    return yaml.safe_dump_all(one for one in yaml.safe_load_all(text) if one["kind"].endswith(suffix))


def create(plane: ControlPlane, obj: Json, within_s: float = 10) -> Json:
    """API servers take a moment to hear of a changed webhook."""
    collection = path_of(f"{obj['kind']}.{obj['apiVersion'].partition('/')[0]}", obj["metadata"].get("namespace", ""))
    for _ in range(int(within_s / 0.1)):
        answer = plane.api.request("POST", collection, obj)
        if answer.status != 500:
            return answer.must()
        threading.Event().wait(0.1)
    raise AssertionError(answer)


def queue(name: str) -> Json:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}


def job(name: str, **spec: Any) -> Json:
    template = {"spec": {"containers": [{"name": "main", "image": "x", "someday": 1}], "runtimeClassName": "r"}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"tasks": [{"name": "worker", "replicas": 2, "template": template}], **spec},
    }


def test_a_second_apply_changes_nothing(plane: ControlPlane, installed: str) -> None:
    before = versions(plane, installed)
    said = plane.kubectl("apply", "-f", "-", stdin=installed).splitlines()
    assert len(said) == len(before) == len(list(yaml.safe_load_all(installed)))
    # kubectl says of every PodDisruptionBudget that it is configured, since it never compares selectors.
    assert [line for line in said if "unchanged" not in line and "poddisruptionbudget" not in line] == []
    assert versions(plane, installed) == before


def test_definitions_are_established_and_structural(plane: ControlPlane, installed: str) -> None:
    for kind in DEFINED:
        name = f"{KINDS[kind].plural}.{KINDS[kind].group}"
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        found = plane.api.wait(path, lambda one: one.get("status", {}).get("conditions"))
        conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
        assert conditions["Established"] == "True"
        assert conditions["NamesAccepted"] == "True"
        assert "NonStructuralSchema" not in conditions


def test_accounts_may_do_what_they_must_and_no_more(plane: ControlPlane, installed: str) -> None:
    def may(account: str, verb: str, resource: str, *more: str) -> bool:
        who = f"--as=system:serviceaccount:{NAMESPACE}:enbloc-{account}"
        return plane.kubectl("auth", "can-i", verb, resource, who, *more, check=False).strip() == "yes"

    assert may("scheduler", "create", "pods", "--subresource=binding", "-A")
    assert may("controllers", "create", "pods", "-A")
    assert may("controllers", "patch", "jobs.batch.volcano.sh", "--subresource=status", "-A")
    assert may("webhook", "get", "secrets/enbloc-webhook-certificates", "-n", NAMESPACE)
    for account in ("scheduler", "controllers", "webhook"):
        assert not may(account, "list", "secrets", "-A")
        assert not may(account, "*", "*", "-A")
    assert not may("webhook", "get", "secrets/another", "-n", NAMESPACE)
    assert not may("webhook", "create", "secrets", "-n", NAMESPACE)
    assert not may("controllers", "create", "pods", "--subresource=binding", "-A")


def test_the_scheduler_patches_metadata_of_pods_and_nothing_else(plane: ControlPlane, installed: str) -> None:
    """RBAC cannot say it, a ValidatingAdmissionPolicy can. API servers take a moment to hear of one."""
    api = Api(plane.url, plane.authority.certificate, plane.account_token(NAMESPACE, "enbloc-scheduler"))
    pod = {"metadata": {"name": "narrow"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    plane.api.create("/api/v1/namespaces/default/pods", pod)
    path = "/api/v1/namespaces/default/pods/narrow"
    until = time.monotonic() + 20
    for number in itertools.count():
        image = {"spec": {"containers": [{"name": "a", "image": f"evil:{number}"}]}}
        refused = api.request("PATCH", path, image, "application/strategic-merge-patch+json")
        if refused.status == 422:
            break
        assert time.monotonic() < until, refused
        time.sleep(0.2)
    assert "changes no spec" in refused.body["message"]
    assert api.request("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH).status == 422
    api.request("PATCH", path, {"metadata": {"annotations": {"enbloc.dev/x": "y"}}}, MERGE_PATCH).must()
    plane.api.delete(path)


def test_our_priority_class_is_for_our_namespace(plane: ControlPlane, installed: str) -> None:
    pod = {
        "metadata": {"generateName": "high-"},
        "spec": {"priorityClassName": "enbloc-system", "containers": [{"name": "a", "image": "b"}]},
    }
    until = time.monotonic() + 20
    while (answer := plane.api.request("POST", "/api/v1/namespaces/default/pods", pod)).status != 422:
        assert time.monotonic() < until, answer
        time.sleep(0.2)
    assert "is for the namespace enbloc-system only" in answer.body["message"]
    plane.api.delete("/api/v1/namespaces/default/pods")


def test_without_the_webhook_nothing_of_ours_is_taken_and_pods_are(plane: ControlPlane, installed: str) -> None:
    answer = plane.impatient_api(30).request("POST", JOBS, job("unseen"))  # it may wait for ten seconds itself
    assert answer.status == 500
    assert "mutate.enbloc.dev" in answer.body["message"]
    pod = {
        "metadata": {"name": "free"},
        "spec": {"schedulerName": "enbloc", "containers": [{"name": "a", "image": "b"}]},
    }
    plane.api.create("/api/v1/namespaces/default/pods", pod)


def test_objects_go_through_the_webhook(plane: ControlPlane, webhook: Webhook) -> None:
    for name in ("root", "default"):
        create(plane, queue(name))
    kept = create(plane, job("good"))["spec"]
    assert (kept["queue"], kept["minAvailable"], kept["tasks"][0]["minAvailable"]) == ("default", 2, 2)
    assert kept["tasks"][0]["template"] == job("good")["spec"]["tasks"][0]["template"], "unknown fields are kept"
    made = create(plane, {**job(""), "metadata": {"generateName": "made-", "namespace": "default"}})
    assert made["metadata"]["name"].startswith("made-")
    bad = job("bad", queue="nowhere", minAvailable=9)
    answer = plane.api.request("POST", JOBS, bad)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert {cause["field"] for cause in answer.body["details"]["causes"]} == {"spec.minAvailable", "spec.queue"}
    assert plane.api.request("DELETE", f"{QUEUES}/default").status == 403
    changed = plane.api.request("PATCH", f"{JOBS}/good", {"spec": {"queue": "other"}}, MERGE_PATCH)
    assert changed.status == 422
    columns = plane.kubectl("get", "vcjob", "good").splitlines()[0].split()
    assert columns == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    assert "good" in plane.kubectl("get", "vj", "-o", "wide")


def test_k3_the_author_of_a_pod_is_warned_of_what_is_read_as_something_else(
    plane: ControlPlane, webhook: Webhook
) -> None:
    """Nothing is refused, others' pods are not asked about, nor those that say nothing."""

    def said(name: str, scheduler: str, notes: dict[str, str]) -> str:
        metadata = {"name": name, "annotations": {f"gang.scheduling.koordinator.sh/{key}": notes[key] for key in notes}}
        spec = {"schedulerName": scheduler, "containers": [{"name": "a", "image": "b"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return plane.kubectl("create", "-f", "-", stdin=json.dumps(pod), with_errors=True)

    bad = {"name": "g", "min-available": "1", "mode": "Sometimes"}
    until = time.monotonic() + 10  # API servers take a moment to hear of a changed webhook
    while "Warning" not in (reported := said(f"told-{time.monotonic_ns()}", "enbloc", bad)):
        assert time.monotonic() < until, reported
        time.sleep(0.2)
    assert "Sometimes" in reported
    assert "Strict" in reported
    assert "created" in reported
    assert "Warning" not in said("not-ours", "default-scheduler", bad)
    assert "Warning" not in said("good", "enbloc", bad | {"mode": "Strict"})
    assert "Warning" not in said("plain", "enbloc", {})
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 1, "scheduleTimeoutSeconds": -1},
    }
    reported = plane.kubectl("create", "-f", "-", stdin=json.dumps(group), with_errors=True)
    assert "scheduleTimeoutSeconds -1 is not above 0" in reported
    plane.api.delete("/api/v1/namespaces/default/pods")


def test_s2_a_tenant_does_not_write_the_annotations_of_the_scheduler(plane: ControlPlane, webhook: Webhook) -> None:
    """Attack T2: the webhook took the forged annotation. It is stripped on create, with a warning, and its changes are
    refused: by the webhook for our kinds, by a policy for pods."""
    claim = "enbloc.dev/claim-reserve"
    subject = [{"kind": "ServiceAccount", "name": "tenant", "namespace": "default"}]
    plane.api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "tenant"}})
    admin = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
    plane.api.create(bindings, {"metadata": {"name": "tenant"}, "roleRef": admin, "subjects": subject})
    tenant = Api(plane.url, plane.authority.certificate, plane.account_token("default", "tenant"))
    pods, groups = "/api/v1/namespaces/default/pods", "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    spec = {"schedulerName": "enbloc", "containers": [{"name": "a", "image": "b"}]}
    until = time.monotonic() + 20  # API servers take a moment to hear of a changed webhook
    for number in itertools.count():
        forged = {"metadata": {"name": f"forged-{number}", "annotations": {claim: "x", "mine": "y"}}, "spec": spec}
        made = tenant.create(pods, forged)
        if claim not in made["metadata"]["annotations"]:
            break
        assert time.monotonic() < until, made
        time.sleep(0.2)
    assert made["metadata"]["annotations"] == {"mine": "y"}
    change = {"metadata": {"annotations": {claim: "x"}}}
    while (refused := tenant.request("PATCH", f"{pods}/forged-{number}", change, MERGE_PATCH)).status != 422:
        assert time.monotonic() < until, refused
        time.sleep(0.2)
    assert "changed by it alone" in refused.body["message"]
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    group = {**kind, "metadata": {"name": "forged", "annotations": {claim: "x"}}, "spec": {"minMember": 1}}
    assert claim not in (tenant.create(groups, group)["metadata"].get("annotations") or {})
    assert tenant.request("PATCH", f"{groups}/forged", change, MERGE_PATCH).status == 422
    scheduler = Api(plane.url, plane.authority.certificate, plane.account_token(NAMESPACE, "enbloc-scheduler"))
    for path in (f"{pods}/forged-{number}", f"{groups}/forged"):
        assert scheduler.request("PATCH", path, change, MERGE_PATCH).must()["metadata"]["annotations"][claim] == "x"
        mine = {"metadata": {"annotations": {"mine": "new"}}}
        assert tenant.request("PATCH", path, mine, MERGE_PATCH).must()["metadata"]["annotations"][claim] == "x"
    plane.api.delete(pods)
    plane.api.delete(groups)


def test_applying_again_leaves_the_authorities(plane: ControlPlane, webhook: Webhook, installed: str) -> None:
    def bundle() -> str:
        hook = plane.api.get(path_of(MUTATING, name="enbloc")).must()["webhooks"][0]
        return str(hook["clientConfig"].get("caBundle", ""))

    before = bundle()
    assert before
    text = of_kind(installed, "Secret")
    plane.kubectl("apply", "-f", "-", stdin=text)
    secret = plane.api.get(path_of("Secret", NAMESPACE, "enbloc-webhook-certificates")).must()
    assert secret["data"].keys() == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    hooks = [one for one in yaml.safe_load_all(installed) if one["kind"] == "MutatingWebhookConfiguration"]
    for hook in hooks[0]["webhooks"]:
        path = hook["clientConfig"]["service"]["path"]
        hook["clientConfig"] = {"url": f"https://localhost:{webhook.port}{path}"}
    for _ in range(2):
        plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(hooks))
        assert bundle() == before


@pytest.mark.parametrize("example", ["quickstart", "roles-and-minima", "depends-on", "queues"])
def test_examples_are_taken_as_they_are(plane: ControlPlane, webhook: Webhook, example: str) -> None:
    name = f"example-{example}"
    plane.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    objects = list(yaml.safe_load_all((ROOT / "examples" / f"{example}.yaml").read_text()))
    ours = [one for one in objects if one["apiVersion"].endswith(("volcano.sh/v1alpha1", "volcano.sh/v1beta1"))]
    assert ours
    for one in ours:
        if one["kind"] == "Job":
            one["metadata"]["namespace"] = name
        create(plane, one)


def test_schemas_hold_where_the_webhook_was_taken_away(plane: ControlPlane, installed: str) -> None:
    for kind in (MUTATING, VALIDATING):
        plane.api.delete(path_of(kind, name="enbloc"))

    def problems(**spec: Any) -> str:
        answer = plane.api.request("POST", JOBS, job("loose", **spec))
        assert answer.status == 422, answer
        return str(answer.body["message"])

    try:
        for _ in range(100):
            if plane.impatient_api(30).request("POST", f"{JOBS}?dryRun=All", job("probe")).status < 300:
                break
            threading.Event().wait(0.1)
        role = job("x")["spec"]["tasks"][0]
        assert "role names must be unique" in problems(tasks=[role, role])
        assert "minAvailable is above replicas" in problems(tasks=[role | {"minAvailable": 3}])
        assert "spec.minAvailable" in problems(minAvailable=-1)
        plane.api.create(JOBS, job("loose", queue="here", minAvailable=None, tasks=[role | {"minAvailable": None}]))
        moved = plane.api.request("PATCH", f"{JOBS}/loose", {"spec": {"queue": "there"}}, MERGE_PATCH)
        assert moved.status == 422
        most = [role | {"name": "r" * 59 + f"-{index:03}"} for index in range(256)]
        plane.api.create(JOBS, job("many", tasks=most))
    finally:
        plane.kubectl("apply", "-f", "-", stdin=installed)


def test_it_can_be_removed_though_its_server_is_gone(plane: ControlPlane, installed: str) -> None:
    for again in range(4):
        words = ("delete", "-f", "-", "--ignore-not-found", "--timeout=30s")
        plane.kubectl(*words, stdin=installed, timeout_s=60, check=again == 3)
        if not plane.kubectl("get", "crd", "-o", "name"):
            break
        # An API server that is busy may put a definition's finalizer off until the definition changes again.
        plane.kubectl("annotate", "crd", "--all", f"again={again}", "--overwrite", check=False)
    plane.api.wait_gone(f"/api/v1/namespaces/{NAMESPACE}")
    assert plane.api.get(JOBS).status == 404
    assert plane.kubectl("get", "crd", "-o", "name", check=False) == ""
    plane.kubectl("apply", "-f", "-", stdin=installed)
