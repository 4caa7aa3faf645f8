"""The API over HTTP: reading, writing, and every way to be refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cluster.embedded.http.serving import JOBS, MAPS, PODS, Api, config_map, pod, serve

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def test_an_object_is_created_shown_replaced_and_deleted() -> None:
    async def test(api: Api) -> None:
        made = await api.post(MAPS, config_map())
        assert made["metadata"]["uid"]
        assert await api.get(f"{MAPS}/cm") == made
        code, changed = await api("PUT", f"{MAPS}/cm", {**made, "data": {"a": "2"}})
        assert (code, changed["data"]) == (200, {"a": "2"})
        code, status = await api("PUT", f"{MAPS}/cm", {**made, "data": {"a": "3"}})
        assert (code, status["reason"]) == (409, "Conflict")
        code, status = await api("DELETE", f"{MAPS}/cm")
        assert (code, status["status"], status["details"]["name"]) == (200, "Success", "cm")
        code, status = await api("GET", f"{MAPS}/cm")
        assert (code, status["reason"], status["message"]) == (404, "NotFound", 'configmaps "cm" not found')

    serve(test)


def test_without_the_token_there_is_only_health_and_version() -> None:
    async def test(api: Api) -> None:
        for path in ("/healthz", "/readyz", "/livez", "/version"):
            assert (await api("GET", path, Authorization=""))[0] == 200
        for token in ("", "Bearer nonsense", "Basic x"):
            code, status = await api("GET", PODS, Authorization=token)
            assert (code, status["reason"], status["kind"]) == (401, "Unauthorized", "Status")

    serve(test)


REFUSED: list[tuple[str, str, Any, str, int, str]] = [
    ("GET", "/nonsense", None, "", 404, "NotFound"),
    ("GET", "/api/v1/nonsense", None, "", 404, "NotFound"),
    ("GET", "/api/v2/pods", None, "", 404, "NotFound"),
    ("GET", "/apis/batch/v1beta1/jobs", None, "", 404, "NotFound"),
    ("GET", f"{PODS}/p/nonsense", None, "", 404, "NotFound"),
    ("GET", f"{MAPS}/p/status", None, "", 404, "NotFound"),
    ("GET", f"{PODS}?labelSelector=a%3D%3D%3Db", None, "", 400, "BadRequest"),
    ("GET", f"{PODS}?fieldSelector=spec.color%3Dred", None, "", 400, "BadRequest"),
    ("GET", f"{PODS}?limit=many", None, "", 400, "BadRequest"),
    ("GET", f"{PODS}?continue=nonsense", None, "", 400, "BadRequest"),
    ("GET", f"{PODS}?watch=perhaps", None, "", 400, "BadRequest"),
    ("GET", f"{PODS}?resourceVersion=new", None, "", 400, "BadRequest"),
    ("GET", f"{PODS}?resourceVersion=999999", None, "", 504, "Timeout"),
    ("GET", f"{PODS}?resourceVersion=1&resourceVersionMatch=Exact", None, "", 410, "Expired"),
    ("GET", f"{PODS}?resourceVersionMatch=Exact", None, "", 422, "Invalid"),
    ("GET", f"{PODS}?watch=1&sendInitialEvents=true", None, "", 422, "Invalid"),
    ("POST", "/api/v1/pods", pod(), "", 405, "MethodNotAllowed"),
    ("DELETE", "/api/v1/pods", None, "", 405, "MethodNotAllowed"),
    ("PUT", PODS, pod(), "", 405, "MethodNotAllowed"),
    ("POST", PODS, b"{", "", 400, "BadRequest"),
    ("POST", PODS, b"", "", 400, "BadRequest"),
    ("POST", PODS, b"[" * 5000, "", 400, "BadRequest"),
    ("POST", PODS, b'{"a":' * 150 + b"1" + b"}" * 150, "", 400, "BadRequest"),
    ("POST", PODS, [1], "", 400, "BadRequest"),
    ("POST", PODS, pod(), "application/vnd.kubernetes.protobuf", 400, "BadRequest"),
    (
        "POST",
        PODS,
        b"k8s\x00\x0a\x08\x0a\x00\x12\x04Knob",
        "application/vnd.kubernetes.protobuf",
        415,
        "UnsupportedMediaType",
    ),
    ("POST", PODS, b"k8s\x00\x0a\xff", "application/vnd.kubernetes.protobuf", 400, "BadRequest"),
    ("POST", PODS, pod(), "application/cbor", 415, "UnsupportedMediaType"),
    ("POST", PODS, {**pod(), "kind": "Node"}, "", 400, "BadRequest"),
    ("POST", PODS, {**pod(), "metadata": {}}, "", 422, "Invalid"),
    ("POST", PODS, {**pod(), "metadata": {"name": "p", "namespace": "other"}}, "", 400, "BadRequest"),
    ("POST", "/api/v1/namespaces/nowhere/pods", pod(), "", 404, "NotFound"),
    ("POST", f"{PODS}?dryRun=Some", pod(), "", 422, "Invalid"),
    ("POST", f"{PODS}?fieldValidation=Maybe", pod(), "", 422, "Invalid"),
    ("PUT", f"{PODS}/other", pod(), "", 400, "BadRequest"),
    ("PUT", f"{PODS}/p", pod(), "", 404, "NotFound"),
    ("PATCH", f"{PODS}/p", {}, "application/merge-patch+json", 404, "NotFound"),
    ("PATCH", f"{JOBS}/j", {}, "application/strategic-merge-patch+json", 415, "UnsupportedMediaType"),
    ("PATCH", f"{PODS}/p", {}, "application/json", 415, "UnsupportedMediaType"),
    ("PATCH", f"{PODS}/p", pod(), "application/apply-patch+yaml", 422, "Invalid"),
    ("DELETE", f"{PODS}/p", {"propagationPolicy": "Sideways"}, "", 422, "Invalid"),
    ("DELETE", f"{PODS}/p?gracePeriodSeconds=-1", None, "", 400, "BadRequest"),
]


@pytest.mark.parametrize("method, path, body, media, code, reason", REFUSED)
def test_what_cannot_be_done_is_refused_with_a_status(
    method: str, path: str, body: Any, media: str, code: int, reason: str
) -> None:
    async def test(api: Api) -> None:
        got, status = await api(method, path, body, media=media or "application/json")
        assert (got, status["reason"], status["kind"], status["code"]) == (code, reason, "Status", code), status

    serve(test)


def test_every_refused_creation_names_its_object() -> None:
    """Whatever refuses it: an object of that name, a quota, admission, or the shape of the object."""

    async def test(api: Api) -> None:
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
        await api.post(PODS.replace("pods", "resourcequotas"), quota)
        await api.post(MAPS, config_map())
        for path, obj, reason, name in (
            (MAPS, config_map(), "AlreadyExists", "cm"),
            (PODS, pod(), "Forbidden", pod()["metadata"]["name"]),
            (JOBS, {"metadata": {"name": "j"}, "spec": {"minAvailable": 9, "tasks": []}}, "Invalid", "j"),
            (MAPS, {"metadata": {"name": "m", "labels": 7}}, "Invalid", "m"),
        ):
            _, status = await api("POST", path, obj)
            assert (status["reason"], status["details"].get("name")) == (reason, name), status

    serve(test)


def test_admission_lists_every_fault_as_a_cause() -> None:
    async def test(api: Api) -> None:
        job = {"metadata": {"name": "j"}, "spec": {"minAvailable": 9, "tasks": [{"replicas": 1, "template": {}}]}}
        code, status = await api("POST", JOBS, job)
        assert (code, status["reason"]) == (422, "Invalid")
        assert status["details"]["causes"][0]["field"].startswith("spec.")

    serve(test)


def test_a_list_is_given_in_pages_of_one_moment() -> None:
    async def test(api: Api) -> None:
        for number in range(7):
            await api.post(MAPS, config_map(f"cm-{number}"))
        first = await api.get(f"{MAPS}?limit=3")
        await api.post(MAPS, config_map("cm-55"))
        second = await api.get(f"{MAPS}?limit=3&continue={first['metadata']['continue']}")
        third = await api.get(f"{MAPS}?limit=3&continue={second['metadata']['continue']}")
        names = [item["metadata"]["name"] for page in (first, second, third) for item in page["items"]]
        assert names == [f"cm-{number}" for number in range(7)]
        assert first["metadata"]["remainingItemCount"] == 4
        assert "continue" not in third["metadata"]
        assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {
            first["metadata"]["resourceVersion"]
        }
        code, status = await api("GET", f"{PODS}?limit=3&continue={first['metadata']['continue']}")
        assert (code, status["reason"]) == (410, "Expired")

    serve(test)


def test_selectors_choose() -> None:
    async def test(api: Api) -> None:
        for name, labels in (("a", {"tier": "x"}), ("b", {"tier": "y"}), ("c", {})):
            await api.post(PODS, {**pod(name), "metadata": {"name": name, "labels": labels}})
        api.store.bind("default", "b", "", "node-1")

        async def names(query: str) -> str:
            return "".join(item["metadata"]["name"] for item in (await api.get(f"{PODS}?{query}"))["items"])

        assert await names("labelSelector=tier") == "ab"
        assert await names("labelSelector=!tier") == "c"
        assert await names("labelSelector=tier%20in%20(x,z)") == "a"
        assert await names("labelSelector=tier%20notin%20(x)") == "bc"
        assert await names("labelSelector=tier!%3Dx,tier") == "b"
        assert await names("fieldSelector=spec.nodeName%3Dnode-1") == "b"
        assert await names("fieldSelector=spec.nodeName%3D") == "ac"
        assert await names("fieldSelector=metadata.name%3Dc") == "c"
        assert await names("fieldSelector=metadata.name!%3Dc,status.phase%3DPending") == "ab"

    serve(test)


def test_tables_show_our_columns() -> None:
    async def test(api: Api) -> None:
        await api.post(PODS, pod())
        table = await api.get(PODS, Accept=TABLE)
        assert table["kind"] == "Table"
        names = [column["name"] for column in table["columnDefinitions"] if column["priority"] == 0]
        assert names == ["Name", "Ready", "Status", "Restarts", "Age"]
        assert table["rows"][0]["cells"][:4] == ["p", "0/1", "Pending", "0"]
        assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
        one = await api.get(f"{PODS}/p?includeObject=Object", Accept=TABLE)
        assert one["rows"][0]["object"]["spec"]["containers"]
        code, status = await api("GET", PODS, Accept="application/vnd.kubernetes.protobuf")
        assert (code, status["reason"]) == (406, "NotAcceptable")

    serve(test)


def test_a_dry_run_changes_nothing() -> None:
    async def test(api: Api) -> None:
        made = await api.post(f"{MAPS}?dryRun=All", config_map())
        assert made["metadata"]["uid"]
        assert (await api("GET", f"{MAPS}/cm"))[0] == 404
        await api.post(MAPS, config_map())
        version = api.store.version
        merge = "application/merge-patch+json"
        code, shown = await api("PATCH", f"{MAPS}/cm?dryRun=All", {"data": {"b": "2"}}, media=merge)
        assert (code, shown["data"]) == (200, {"a": "1", "b": "2"})
        assert (await api("DELETE", f"{MAPS}/cm", {"dryRun": ["All"]}))[0] == 200
        assert (await api("DELETE", f"{MAPS}?dryRun=All"))[0] == 200
        assert api.store.version == version

    serve(test)


def test_generated_names() -> None:
    async def test(api: Api) -> None:
        body = {**config_map(), "metadata": {"generateName": "cm-"}}
        names = {(await api.post(MAPS, body))["metadata"]["name"] for _ in range(3)}
        assert len(names) == 3
        assert all(name.startswith("cm-") and len(name) == 8 for name in names)

    serve(test)


def test_the_status_is_written_apart() -> None:
    async def test(api: Api) -> None:
        made = await api.post(PODS, pod())
        merge = "application/merge-patch+json"
        code, shown = await api("PATCH", f"{PODS}/p", {"status": {"phase": "Running"}}, media=merge)
        assert (code, shown["status"]["phase"]) == (200, "Pending")
        code, shown = await api("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, media=merge)
        assert (code, shown["status"]["phase"]) == (200, "Running")
        code, _ = await api("PUT", f"{PODS}/p/status", {**made, "status": {"phase": "Failed"}})
        assert code == 409
        code, shown = await api("PUT", f"{PODS}/p/status", {**shown, "status": {"phase": "Failed"}})
        assert (code, shown["status"]["phase"]) == (200, "Failed")

    serve(test)


def test_binding_and_eviction() -> None:
    async def test(api: Api) -> None:
        made = await api.post(PODS, {**pod(), "metadata": {"name": "p", "labels": {"app": "a"}}})
        binding = {
            "metadata": {"name": "p", "uid": made["metadata"]["uid"], "annotations": {"k": "v"}},
            "target": {"kind": "Node", "name": "n1"},
        }
        code, status = await api("POST", f"{PODS}/p/binding", binding)
        assert (code, status["status"]) == (201, "Success")
        shown = await api.get(f"{PODS}/p")
        assert (shown["spec"]["nodeName"], shown["metadata"]["annotations"]) == ("n1", {"k": "v"})
        assert (await api("POST", f"{PODS}/p/binding", binding))[0] == 409
        assert (await api("POST", f"{PODS}/p/binding", {}))[0] == 422
        ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        merge = "application/merge-patch+json"
        assert (await api("PATCH", f"{PODS}/p/status", ready, media=merge))[0] == 200
        budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}}
        await api.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
        code, status = await api("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
        assert (code, status["reason"]) == (429, "TooManyRequests")
        assert "needs 1 healthy pods and has 1" in status["details"]["causes"][0]["message"]
        await api("DELETE", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b")
        code, status = await api("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
        assert (code, status["status"]) == (201, "Success")
        assert (await api.get(f"{PODS}/p"))["metadata"]["deletionTimestamp"]

    serve(test)


def test_deletions_follow_their_options() -> None:
    async def test(api: Api) -> None:
        owner = await api.post(MAPS, config_map("owner"))
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        await api.post(MAPS, {**config_map("child"), "metadata": {"name": "child", "ownerReferences": [reference]}})
        code, status = await api("DELETE", f"{MAPS}/owner", {"preconditions": {"uid": "another"}})
        assert (code, status["reason"]) == (409, "Conflict")
        code, status = await api("DELETE", f"{MAPS}/owner", {"preconditions": {"resourceVersion": "1"}})
        assert (code, status["reason"]) == (409, "Conflict")
        code, left = await api("DELETE", f"{MAPS}/owner?propagationPolicy=Foreground")
        assert (code, left["metadata"]["finalizers"]) == (200, ["foregroundDeletion"])
        api.store.collect_garbage()
        assert (await api.get(MAPS))["items"] == []
        for name in "abc":
            await api.post(MAPS, {**config_map(), "metadata": {"name": name, "labels": {name: "x"}}})
        code, gone = await api("DELETE", f"{MAPS}?labelSelector=!b")
        assert (code, len(gone["items"])) == (200, 2)
        assert [item["metadata"]["name"] for item in (await api.get(MAPS))["items"]] == ["b"]

    serve(test)


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "farms.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Farm", "plural": "farms", "shortNames": ["fm"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
            }
        ],
    },
}


def test_a_definition_brings_its_resource() -> None:
    async def test(api: Api) -> None:
        farms = "/apis/example.com/v1/namespaces/default/farms"
        assert (await api("GET", farms))[0] == 404
        made = await api.post(DEFINITIONS, CRD)
        assert {one["type"] for one in made["status"]["conditions"]} == {"NamesAccepted", "Established"}
        await api.post(farms, {"metadata": {"name": "f"}, "spec": {"replicas": 2}})
        assert [item["kind"] for item in (await api.get(farms))["items"]] == ["Farm"]
        listed = await api.get("/apis/example.com/v1")
        assert [one["name"] for one in listed["resources"]] == ["farms", "farms/status", "farms/scale"]
        scale = await api.get(f"{farms}/f/scale")
        assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 2)
        merge = "application/merge-patch+json"
        code, scale = await api("PATCH", f"{farms}/f/scale", {"spec": {"replicas": 5}}, media=merge)
        assert (code, scale["spec"]["replicas"]) == (200, 5)
        assert (await api.get(f"{farms}/f"))["spec"]["replicas"] == 5
        assert (await api("PUT", f"{farms}/f/scale", {**scale, "spec": {"replicas": -1}}))[0] == 422
        assert (await api("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/farms.example.com"))[
            0
        ] == 200
        assert (await api("GET", farms))[0] == 404

    serve(test)


def test_discovery_is_served_in_both_ways() -> None:
    async def test(api: Api) -> None:
        assert (await api.get("/api"))["versions"] == ["v1"]
        groups = [group["name"] for group in (await api.get("/apis"))["groups"]]
        assert groups[:4] == ["apps", "batch", "batch.volcano.sh", "scheduling.volcano.sh"]
        assert "pods/eviction" in [one["name"] for one in (await api.get("/api/v1"))["resources"]]
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        core = await api.get("/api", Accept=accept)
        assert core["kind"] == "APIGroupDiscoveryList"
        pods = next(one for one in core["items"][0]["versions"][0]["resources"] if one["resource"] == "pods")
        assert {one["subresource"] for one in pods["subresources"]} == {"status", "binding", "eviction", "log"}
        assert (await api("GET", "/apis/nonsense"))[0] == 404
        assert (await api("GET", "/apis/nonsense/v1"))[0] == 404
        assert (await api.get("/openapi/v3"))["paths"]["api/v1"]
        document = await api.get("/openapi/v3/apis/batch.volcano.sh/v1alpha1")
        assert document["components"]["schemas"]

    serve(test)


def test_a_body_that_is_too_large_is_refused_without_reading_it() -> None:
    async def test(api: Api) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        head = f"POST {PODS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer let-me-in\r\n"
        writer.write((head + f"Content-Length: {100 * 2**20}\r\n\r\n").encode() + b" " * 1000)
        answer = await asyncio.wait_for(reader.read(), 5)
        assert b" 413 " in answer.splitlines()[0]
        assert b"RequestEntityTooLarge" in answer
        writer.close()
        big = b'{"a":"' + b"x" * (4 * 2**20) + b'"}'

        async def chunks() -> Any:
            for at in range(0, len(big), 65_536):
                yield big[at : at + 65_536]

        async with api.session.post(PODS, data=chunks()) as response:
            assert response.status == 413

    serve(test)


def test_reviews_say_yes() -> None:
    async def test(api: Api) -> None:
        body = {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}}
        made = await api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
        assert made["status"]["allowed"] is True

    serve(test)


def test_broken_and_compressed_bodies_are_refused() -> None:
    async def test(api: Api) -> None:
        head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer let-me-in\r\n"
        body = b'{"metadata":{"name":"x"}}'
        for headers, sent, codes in (
            ("Transfer-Encoding: chunked\r\n", b"zz\r\nnonsense\r\n0\r\n\r\n", (400,)),
            (f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n", body, (415,)),
            (f"Content-Length: {len(body)}\r\n", body, (201,)),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
            writer.write(f"{head}{headers}Connection: close\r\n\r\n".encode() + sent)
            answer = await asyncio.wait_for(reader.read(), 5)
            assert int(answer[9:12]) in codes, answer
            writer.close()

    serve(test)
