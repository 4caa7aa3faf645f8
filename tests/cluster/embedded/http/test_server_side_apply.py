"""Server-side apply of custom kinds: lists are merged as the schema of their definition says, with owners per item."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from cluster.embedded.http.serving import Api, serve
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.http.apply_shapes import ByName, BySchema
from enbloc.cluster.embedded.http.server_side_apply import Application, apply

TEXT = {"type": "string"}


def merged_by(*keys: str, **fields: Any) -> dict[str, Any]:
    items = {"type": "object", "properties": {**dict.fromkeys(keys, TEXT), **fields}}
    return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys), "items": items}


PORTS = merged_by("port", "protocol")
PORTS["items"]["properties"]["protocol"] = {"type": "string", "default": "TCP"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "jobs": merged_by("name", ports=PORTS, args={"type": "array", "items": TEXT}),
                "users": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
                "words": {"type": "array", "items": TEXT},
                "ref": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": TEXT, "b": TEXT}},
                "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "by_name": {"type": "object", "additionalProperties": merged_by("name")},
            },
        },
        "status": {"type": "object", "properties": {"conditions": merged_by("type")}},
    },
}


def applied(current: Any, manager: str, force: bool = False, subresource: str = "", **content: Any) -> Any:
    wanted = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, **content}
    shape = BySchema(SCHEMA, is_object=True)
    return apply(current, Application(manager, wanted, shape, force, "2026-01-01T00:00:00Z", subresource))


def refused(*given: Any, **content: Any) -> str:
    with pytest.raises(Refused) as caught:
        applied(*given, **content)
    return f"{caught.value.code} {caught.value.message}"


def owned(obj: Any, manager: str) -> Any:
    return next(entry["fieldsV1"] for entry in obj["metadata"]["managedFields"] if entry["manager"] == manager)


def test_items_of_two_managers_are_merged_by_key_and_owned_apart() -> None:
    one = applied(None, "trainer", spec={"jobs": [{"name": "a", "replicas": 1}, {"name": "b"}]})
    two = applied(one, "kueue", spec={"jobs": [{"name": "a", "image": "i"}, {"name": "c"}]})
    assert two["spec"]["jobs"] == [{"name": "a", "replicas": 1, "image": "i"}, {"name": "b"}, {"name": "c"}]
    a = 'k:{"name":"a"}'
    assert owned(two, "trainer")["f:spec"]["f:jobs"][a] == {".": {}, "f:name": {}, "f:replicas": {}}
    assert owned(two, "kueue")["f:spec"]["f:jobs"][a] == {".": {}, "f:name": {}, "f:image": {}}
    three = applied(two, "trainer", spec={"jobs": [{"name": "b"}]})
    assert three["spec"]["jobs"] == [{"name": "a", "image": "i"}, {"name": "b"}, {"name": "c"}]
    four = applied(three, "kueue", spec={"jobs": [{"name": "c"}]})
    assert four["spec"]["jobs"] == [{"name": "b"}, {"name": "c"}]
    assert applied(four, "kueue", spec={"jobs": [{"name": "c"}]}) == four


def test_a_conflict_is_one_of_fields_of_an_item() -> None:
    one = applied(None, "me", spec={"jobs": [{"name": "a", "replicas": 1, "image": "i"}]})
    assert refused(one, "you", spec={"jobs": [{"name": "a", "replicas": 2, "image": "i"}]}) == (
        '409 Apply failed with 1 conflict: conflict with "me": .spec.jobs[{"name":"a"}].replicas'
    )
    forced = applied(one, "you", True, spec={"jobs": [{"name": "a", "replicas": 2, "image": "i"}]})
    assert forced["spec"]["jobs"] == [{"name": "a", "replicas": 2, "image": "i"}]
    assert owned(forced, "me")["f:spec"]["f:jobs"]['k:{"name":"a"}'] == {".": {}, "f:name": {}, "f:image": {}}


def test_lists_in_items_are_merged_by_several_keys_of_which_one_has_a_default() -> None:
    one = applied(
        None, "me", spec={"jobs": [{"name": "a", "ports": [{"port": "1"}, {"port": "1", "protocol": "UDP"}]}]}
    )
    wanted = [{"port": "1", "protocol": "TCP", "name": "web"}]
    two = applied(one, "you", spec={"jobs": [{"name": "a", "ports": wanted}]})
    assert two["spec"]["jobs"][0]["ports"] == [*wanted, {"port": "1", "protocol": "UDP"}]


def test_sets_lists_without_a_type_and_atomic_mappings() -> None:
    spec = {"users": ["a", "b"], "words": ["x"], "ref": {"a": "1"}, "by_name": {"k": [{"name": "n"}]}}
    one = applied(None, "me", spec=spec)
    two = applied(one, "you", spec={"users": ["b", "c"], "by_name": {"k": [{"name": "m"}]}})
    assert two["spec"]["users"] == ["a", "b", "c"]
    assert two["spec"]["by_name"] == {"k": [{"name": "n"}, {"name": "m"}]}
    assert ".spec.words" in refused(two, "you", spec={"words": ["y"]})
    assert '"me": .spec.ref' in refused(two, "you", spec={"ref": {"b": "2"}})
    forced = applied(two, "you", True, spec={"words": ["y"], "ref": {"b": "2"}})
    assert (forced["spec"]["words"], forced["spec"]["ref"]) == (["y"], {"b": "2"})
    assert forced["spec"]["users"] == ["a", "b"], "c is no longer applied"


def test_what_no_schema_describes_is_merged_by_field_and_its_lists_are_replaced() -> None:
    one = applied(None, "me", spec={"anything": {"a": {"b": 1}, "conditions": [{"type": "A"}]}})
    two = applied(one, "you", True, spec={"anything": {"a": {"c": 2}, "conditions": [{"type": "B"}]}})
    assert two["spec"]["anything"] == {"a": {"b": 1, "c": 2}, "conditions": [{"type": "B"}]}


def test_the_order_is_that_of_the_last_applier_and_items_of_others_keep_their_place() -> None:
    one = applied(None, "me", spec={"jobs": [{"name": name} for name in "axb"]})
    two = applied(one, "you", spec={"jobs": [{"name": name} for name in "bca"]})
    assert "".join(job["name"] for job in two["spec"]["jobs"]) == "bcax"
    three = applied(two, "me", spec={"jobs": [{"name": name} for name in "abx"]})
    assert "".join(job["name"] for job in three["spec"]["jobs"]) == "abcx"


def test_metadata_is_that_of_every_object() -> None:
    wanted = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t", "finalizers": ["a"]}}
    shape = BySchema({}, is_object=True)
    one = apply(None, Application("me", wanted, shape, False, ""))
    wanted = {**wanted, "metadata": {"name": "t", "finalizers": ["b"]}}
    assert apply(one, Application("you", wanted, shape, False, ""))["metadata"]["finalizers"] == ["a", "b"]


def test_a_field_that_was_deleted_has_no_owner() -> None:
    one = applied(None, "me", spec={"jobs": [{"name": "a", "replicas": 1}, {"name": "b"}]})
    edited = {**one, "spec": {"jobs": [{"name": "b"}]}}
    two = applied(edited, "you", spec={"jobs": [{"name": "a", "replicas": 2}]})
    assert two["spec"]["jobs"] == [{"name": "b"}, {"name": "a", "replicas": 2}]
    assert list(owned(two, "me")["f:spec"]["f:jobs"]) == ['k:{"name":"b"}']


@pytest.mark.parametrize("gone", [{"labels"}, {"labels", "name"}])
def test_a_mapping_whose_fields_were_all_deleted_by_others_is_nobodys(gone: set[str]) -> None:
    made = applied(None, "me", metadata={"name": "t", "labels": {"k": "v"}}, spec={"users": ["u"], "words": ["w"]})
    edited = {**made, "metadata": {k: v for k, v in made["metadata"].items() if k not in gone}, "spec": {"users": []}}
    again = applied(edited, "me", spec={"words": ["w"]})
    assert again["metadata"]["name"] == "t"
    assert again["spec"] == {"users": [], "words": ["w"]}
    assert owned(again, "me") == {"f:spec": {"f:words": {}}}
    other = applied(edited, "you", spec={"users": ["x"]})  # no conflict with one who has no item there any more
    assert other["spec"]["users"] == ["x"]


@pytest.mark.parametrize("written", [{"f:metadata": {}}, {"f:metadata": {"f:name": {}, "f:uid": {}}}, {"f:kind": {}}])
def test_nobody_owns_the_identity_whatever_was_written_into_managed_fields(written: Any) -> None:
    made = applied(None, "me", spec={"words": ["w"]})
    made["metadata"] = {**made["metadata"], "uid": "u", "managedFields": [{"manager": "me", "fieldsV1": written}]}
    again = applied(made, "me", spec={"words": ["w"]})
    assert (again["apiVersion"], again["kind"]) == ("x.io/v1", "Thing")
    assert (again["metadata"]["name"], again["metadata"]["uid"]) == ("t", "u")


@pytest.mark.parametrize(
    "jobs, why",
    [
        ([{"name": "a"}, {"name": "a"}], '.spec.jobs[1]: Duplicate value: {"name":"a"}'),
        ([{"replicas": 1}], ".spec.jobs[0]: Required value: the list is merged by name"),
        (["a"], ".spec.jobs[0]: Required value: the list is merged by name"),
    ],
)
def test_a_list_that_cannot_be_merged_is_refused(jobs: Any, why: str) -> None:
    assert refused(None, "me", spec={"jobs": jobs}) == f"422 the applied object is invalid: {why}"
    assert "Duplicate" in refused(None, "me", spec={"users": ["a", "a"]})


THINGS = "/apis/x.io/v1/namespaces/default/things"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.x.io"},
    "spec": {
        "group": "x.io",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    },
}


def test_two_controllers_apply_conditions_of_one_status() -> None:
    async def test(api: Api) -> None:
        async def put(manager: str, where: str = "/status", **content: Any) -> Any:
            body = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, **content}
            path = f"{THINGS}/t{where}?fieldManager={manager}"
            code, made = await api("PATCH", path, body, media="application/apply-patch+yaml")
            assert code in (200, 201), made
            return made

        await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        await put("me", "", spec={"jobs": [{"name": "a"}]}, status={"conditions": [{"type": "Never"}]})
        await put(
            "me", spec={"jobs": []}, status={"conditions": [{"type": "A", "status": "True"}], "admission": {"q": "1"}}
        )
        both = await put("you", status={"conditions": [{"type": "B", "status": "True"}]})
        assert [one["type"] for one in both["status"]["conditions"]] == ["A", "B"]
        assert both["spec"] == {"jobs": [{"name": "a"}]}
        left = await put("me", status={"conditions": [{"type": "A", "status": "False"}]})
        assert left["status"] == {"conditions": [{"type": "A", "status": "False"}, {"type": "B", "status": "True"}]}
        managers = [(one["manager"], one.get("subresource", "")) for one in left["metadata"]["managedFields"]]
        assert managers == [("me", ""), ("you", "status"), ("me", "status")]
        gone = await put("me", "", spec={"jobs": []})
        assert gone["spec"] == {"jobs": []}
        assert gone["status"] == left["status"]

    serve(test)


NAMES = (
    "metadata",
    "spec",
    "status",
    "labels",
    "finalizers",
    "jobs",
    "users",
    "ref",
    "name",
    "managedFields",
    "",
    "f:x",
)
STEPS = (
    ".",
    "f:metadata",
    "f:labels",
    "f:spec",
    "f:jobs",
    'k:{"name":"a"}',
    "k:{",
    'v:"x"',
    "v:null",
    "f:",
    "x",
    "i:0",
)
LEAVES: tuple[Any, ...] = (None, True, 1, "x", "a", "", [], {})


def made(pick: random.Random, depth: int) -> Any:
    if depth == 0 or pick.random() < 0.3:
        return copy.deepcopy(pick.choice(LEAVES))
    count = pick.randrange(4)
    if pick.random() < 0.6:
        return {pick.choice(NAMES): made(pick, depth - 1) for _ in range(count)}
    return [made(pick, depth - 1) for _ in range(count)]


def tree(pick: random.Random, depth: int) -> Any:
    if depth == 0 or pick.random() < 0.2:
        return copy.deepcopy(pick.choice(({}, {}, None, 1, "x", ["a"])))
    return {pick.choice(STEPS): tree(pick, depth - 1) for _ in range(pick.randrange(4))}


def content(pick: random.Random) -> dict[str, Any]:
    jobs = [{"name": pick.choice("ab"), "ports": made(pick, 2)} for _ in range(pick.randrange(3))]
    return {"spec": pick.choice((made(pick, 4), {"jobs": jobs})), "status": made(pick, 2), "labels": made(pick, 1)}


@pytest.mark.parametrize("seed", range(100))
def test_whatever_is_there_and_applied_is_answered(seed: int) -> None:
    """Objects whose fields others changed, and `managedFields` of any content."""
    pick = random.Random(seed)
    shape = pick.choice((BySchema(SCHEMA, is_object=True), ByName()))
    live: Any = None
    for _ in range(6):
        if live is not None and pick.random() < 0.5:  # another writer, and sometimes one that writes managedFields
            managed = live["metadata"].get("managedFields", [])
            if pick.random() < 0.5:
                managed = [*managed, {"manager": pick.choice("abc"), "fieldsV1": tree(pick, 5)}]
            kept = {"name": "t", "uid": "u", "managedFields": managed}
            live = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": kept, **content(pick)}
        metadata = {"name": "t", **({"labels": {"k": "v"}} if pick.random() < 0.3 else {})}
        wanted = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": metadata, **content(pick)}
        asked = Application(pick.choice("abc"), wanted, shape, pick.random() < 0.5, "2026-01-01T00:00:00Z")
        try:
            after = apply(live, asked)
        except Refused:
            continue
        assert after["metadata"]["name"] == "t"
        assert after["metadata"].get("uid") == (live or {"metadata": {}})["metadata"].get("uid")
        live = after
