"""Webhooks of others on the embedded API: real HTTPS servers that change, refuse or ignore what is written."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cluster.embedded.http.serving import MAPS, PODS, Api, config_map, fresh_store, pod, serve
from enbloc.cluster.embedded.http.webhook_calls import WebhookCalls
from support.https_webhook import NAMESPACE, SERVICE, HttpsWebhook, allow, deny, labelling, webhook

MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SERVICES = "/api/v1/namespaces/default/services"


def with_webhooks(test: Callable[[Api], Awaitable[None]]) -> None:
    store = fresh_store()

    async def closing(api: Api) -> None:
        try:
            await test(api)
        finally:
            await calls.close()

    calls = WebhookCalls(store)
    serve(closing, store, webhooks=calls)


def test_a_mutating_webhook_changes_what_is_stored() -> None:
    with webhook(labelling("seen", "yes")) as server:

        async def test(api: Api) -> None:
            await api.post(MUTATING, server.configuration())
            made = await api.post(PODS, pod())
            assert made["metadata"]["labels"] == {"seen": "yes"}
            assert (await api.get(f"{PODS}/p"))["metadata"]["labels"] == {"seen": "yes"}

        with_webhooks(test)
        (request,) = server.requests
        assert request["operation"] == "CREATE"
        assert request["resource"]["resource"] == "pods"
        assert request["object"]["spec"]["schedulerName"], "it sees the API server's defaults"
        assert request["userInfo"]["username"] == "enbloc-admin"
        assert request["oldObject"] is None


def test_a_validating_webhook_refuses_with_its_words_and_nothing_is_stored() -> None:
    with webhook(deny) as server:

        async def test(api: Api) -> None:
            await api.post(VALIDATING, server.configuration("Validating"))
            code, body = await api("POST", PODS, pod())
            assert code == 422
            assert body["message"] == 'admission webhook "hook.example.org" denied the request: not on a Tuesday'
            assert not (await api.get(PODS))["items"]

        with_webhooks(test)


def test_a_validating_webhook_sees_what_mutating_ones_and_the_api_left() -> None:
    with webhook(labelling("seen", "yes")) as first, webhook(allow) as second:

        async def test(api: Api) -> None:
            await api.post(MUTATING, first.configuration())
            await api.post(VALIDATING, second.configuration("Validating"))
            await api.post(PODS, pod())

        with_webhooks(test)
        (request,) = second.requests
        assert request["object"]["metadata"]["labels"] == {"seen": "yes"}
        assert len(first.requests) == 1


def test_what_a_webhook_made_of_an_object_is_validated() -> None:
    def broken(request: dict[str, Any]) -> dict[str, Any]:
        patch = json.dumps([{"op": "replace", "path": "/spec/containers", "value": "none"}]).encode()
        return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}

    with webhook(broken) as server:

        async def test(api: Api) -> None:
            await api.post(MUTATING, server.configuration())
            code, body = await api("POST", PODS, pod())
            assert code == 422
            assert "spec.containers" in body["message"]

        with_webhooks(test)


def test_updates_and_deletions_are_reviewed_with_the_old_object() -> None:
    def refuse_deletion(request: dict[str, Any]) -> dict[str, Any]:
        return deny(request) if request["operation"] == "DELETE" else allow(request)

    with webhook(refuse_deletion) as server:
        rule = {"operations": ["UPDATE", "DELETE"], "resources": ["configmaps"]}

        async def test(api: Api) -> None:
            await api.post(VALIDATING, server.configuration("Validating", rule=rule))
            await api.post(MAPS, config_map(a="1"))
            await api("PUT", f"{MAPS}/cm", config_map(a="2"))
            await api("PATCH", f"{MAPS}/cm", {"data": {"a": "3"}}, media="application/merge-patch+json")
            assert (await api("DELETE", f"{MAPS}/cm"))[0] == 422
            assert (await api("DELETE", MAPS))[0] == 422
            assert (await api.get(f"{MAPS}/cm"))["data"] == {"a": "3"}

        with_webhooks(test)
        seen = [(one["operation"], one["oldObject"]["data"]["a"]) for one in server.requests]
        assert seen == [("UPDATE", "1"), ("UPDATE", "2"), ("DELETE", "3"), ("DELETE", "3")]
        assert server.requests[-1]["object"] is None


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize("fault", ["answers 500", "is down", "has another certificate", "is slow", "wrong uid"])
def test_a_webhook_that_gives_no_answer_counts_as_its_failure_policy_says(policy: str, fault: str) -> None:
    def answer(request: dict[str, Any]) -> dict[str, Any] | None:
        if fault == "is slow":
            time.sleep(1.5)
        return None if fault == "answers 500" else {"allowed": True, "uid": "x"} if fault == "wrong uid" else allow({})

    with webhook(answer) as server, webhook(allow) as other:
        configuration = server.configuration(failurePolicy=policy, timeoutSeconds=1)
        client = configuration["webhooks"][0]["clientConfig"]
        if fault == "has another certificate":
            client["caBundle"] = other.bundle
        elif fault == "is down":
            client["url"] = "https://127.0.0.1:1/"

        async def test(api: Api) -> None:
            await api.post(MUTATING, configuration)
            code, body = await api("POST", PODS, pod())
            assert code == (500 if policy == "Fail" else 201), body
            if policy == "Fail":
                assert 'failed calling webhook "hook.example.org"' in body["message"]

        with_webhooks(test)


@pytest.mark.parametrize(
    ("fields", "called"),
    [
        ({}, True),
        ({"rule": {"resources": ["configmaps"]}}, False),
        ({"rule": {"resources": ["*/*"], "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"]}}, True),
        ({"rule": {"resources": ["pods/status"]}}, False),
        ({"rule": {"operations": ["UPDATE"]}}, False),
        ({"rule": {"apiVersions": ["v2"]}}, False),
        ({"rule": {"scope": "Cluster"}}, False),
        ({"objectSelector": {"matchLabels": {"app": "web"}}}, True),
        ({"objectSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        (
            {
                "namespaceSelector": {
                    "matchExpressions": [
                        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}
                    ]
                }
            },
            False,
        ),
    ],
)
def test_rules_and_selectors_decide_whether_a_webhook_is_called(fields: dict[str, Any], called: bool) -> None:
    with webhook(allow) as server:

        async def test(api: Api) -> None:
            await api.post(MUTATING, server.configuration(**fields))
            one = pod()
            one["metadata"]["labels"] = {"app": "web"}
            await api.post(PODS, one)

        with_webhooks(test)
        assert bool(server.requests) is called


def test_a_webhook_that_wants_it_is_called_again_after_a_later_one_changed_the_object() -> None:
    with webhook(allow) as first, webhook(labelling("seen", "yes")) as second:

        async def test(api: Api) -> None:
            await api.post(MUTATING, first.configuration(name="a", reinvocationPolicy="IfNeeded"))
            await api.post(MUTATING, second.configuration(name="b"))
            await api.post(PODS, pod())

        with_webhooks(test)
        labels = [one["object"]["metadata"].get("labels") for one in first.requests]
        assert labels == [None, {"seen": "yes"}]
        assert len(second.requests) == 1


def test_match_conditions_cannot_be_evaluated_and_that_is_said() -> None:
    with webhook(allow) as server:

        async def test(api: Api) -> None:
            conditions = [{"name": "c", "expression": "true"}]
            await api.post(MUTATING, server.configuration(matchConditions=conditions))
            code, body = await api("POST", PODS, pod())
            assert code == 500
            assert "matchConditions" in body["message"]

        with_webhooks(test)
        assert not server.requests


def test_warnings_of_webhooks_reach_the_user_and_a_dry_run_says_so_and_stores_nothing() -> None:
    with webhook(lambda _: {"allowed": True, "warnings": ["think again"]}) as server:

        async def test(api: Api) -> None:
            await api.post(MUTATING, server.configuration())
            body = json.dumps(pod()).encode()
            async with api.session.post(f"{PODS}?dryRun=All", data=body) as answer:
                assert answer.status == 201
                assert answer.headers.getall("Warning") == ['299 - "think again"']
            assert not (await api.get(PODS))["items"]

        with_webhooks(test)
        assert server.requests[0]["dryRun"] is True


def test_generated_names_stay_the_same_while_webhooks_are_asked() -> None:
    with webhook(labelling("seen", "yes")) as server:

        async def test(api: Api) -> None:
            await api.post(MUTATING, server.configuration())
            one = pod()
            one["metadata"] = {"generateName": "p-"}
            names = [(await api.post(PODS, one))["metadata"]["name"] for _ in range(3)]
            assert names == [request["name"] for request in server.requests]
            assert len(set(names)) == 3

        with_webhooks(test)


def test_an_old_object_that_changes_while_webhooks_are_asked_is_asked_about_anew() -> None:
    """A webhook that forbids a change must see what is changed."""
    with webhook(allow) as server:

        async def test(api: Api) -> None:
            rule = {"operations": ["UPDATE"], "resources": ["configmaps"]}
            await api.post(MAPS, config_map(a="1"))
            await api.post(VALIDATING, server.configuration("Validating", rule=rule))

            def meanwhile(request: dict[str, Any]) -> dict[str, Any]:
                if len(server.requests) == 1:
                    api.store.replace(config_map(a="locked") | {"metadata": request["oldObject"]["metadata"]})
                return deny(request) if request["oldObject"]["data"]["a"] == "locked" else allow(request)

            server.answer = meanwhile
            assert (await api("PUT", f"{MAPS}/cm", config_map(a="2")))[0] == 422
            assert (await api.get(f"{MAPS}/cm"))["data"] == {"a": "locked"}

        with_webhooks(test)


def test_an_object_that_changes_while_webhooks_are_asked_is_asked_about_anew() -> None:
    """The second answer is about the object as it is stored, not as it was at first."""
    with webhook(allow) as server:

        async def test(api: Api) -> None:
            rule = {"operations": ["UPDATE"], "resources": ["configmaps"]}
            await api.post(MAPS, config_map(a="1"))
            await api.post(VALIDATING, server.configuration("Validating", rule=rule))

            def meanwhile(request: dict[str, Any]) -> dict[str, Any]:
                if len(server.requests) == 1:
                    api.store.replace(config_map(a="1", b="other") | {"metadata": request["oldObject"]["metadata"]})
                return allow(request)

            server.answer = meanwhile
            await api("PATCH", f"{MAPS}/cm", {"data": {"a": "2"}}, media="application/merge-patch+json")
            assert (await api.get(f"{MAPS}/cm"))["data"] == {"a": "2", "b": "other"}

        with_webhooks(test)
        assert [one["object"]["data"] for one in server.requests] == [{"a": "2"}, {"a": "2", "b": "other"}]


def _service(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE}, "spec": spec}


def _behind_service(server: HttpsWebhook, port: int) -> dict[str, Any]:
    made = server.configuration(rule={"resources": ["configmaps"]})
    service = {"namespace": NAMESPACE, "name": SERVICE, "path": "/review", "port": port}
    made["webhooks"][0]["clientConfig"] = {"service": service, "caBundle": server.bundle}
    return made


def test_a_service_leads_to_its_external_name() -> None:
    with webhook(labelling("seen", "yes")) as server:

        async def test(api: Api) -> None:
            await api.post(SERVICES, _service(type="ExternalName", externalName="localhost"))
            await api.post(MUTATING, _behind_service(server, server.port))
            assert (await api.post(MAPS, config_map()))["metadata"]["labels"] == {"seen": "yes"}

        with_webhooks(test)


def test_a_webhook_in_simulated_pods_is_not_called_and_the_user_is_warned() -> None:
    with webhook(deny) as server:

        async def test(api: Api) -> None:
            await api.post(SERVICES, _service(selector={"app": "operator"}, ports=[{"port": 443}]))
            await api.post(MUTATING, _behind_service(server, 443))
            async with api.session.post(MAPS, data=json.dumps(config_map()).encode()) as answer:
                assert answer.status == 201
                assert "the pods of Service default/hooks are simulated" in answer.headers["Warning"]

        with_webhooks(test)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sideEffects": "Some"}, "sideEffects"),
        ({"admissionReviewVersions": ["v1beta1"]}, "admissionReviewVersions"),
        ({"timeoutSeconds": 31}, "timeoutSeconds"),
        ({"failurePolicy": "Sometimes"}, "failurePolicy"),
        ({"clientConfig": {}}, "clientConfig"),
        ({"clientConfig": {"url": "http://127.0.0.1/"}}, "clientConfig.url"),
        ({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}, "objectSelector"),
        ({"rules": "all"}, "webhooks"),
    ],
)
def test_configurations_that_a_real_api_server_refuses_are_refused(changes: dict[str, Any], field: str) -> None:
    with webhook(allow) as server:

        async def test(api: Api) -> None:
            code, body = await api("POST", MUTATING, server.configuration(**changes))
            assert code == 422, body
            assert field in body["message"]

        with_webhooks(test)
