"""Events of `events.k8s.io/v1`: the same objects as those of `v1`, with other names of fields."""

from __future__ import annotations

from typing import Any

from cluster.embedded.http.serving import Api, serve
from enbloc.api.meta import Ref
from enbloc.api.writes import EmitEvent

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
AT = "2026-01-01T00:00:00.000000Z"
REGARDING = {"kind": "JobSet", "name": "j", "namespace": "default", "apiVersion": "jobset.x-k8s.io/v1alpha2"}
EVENT: dict[str, Any] = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "regarding": REGARDING,
    "related": {"kind": "Pod", "name": "p"},
    "note": "all jobs started",
    "reason": "Started",
    "action": "Starting",
    "type": "Normal",
    "eventTime": AT,
    "reportingController": "jobset",
    "reportingInstance": "jobset-1",
}


def test_an_event_is_created_in_one_group_and_read_in_both() -> None:
    async def test(api: Api) -> None:
        made = await api.post(NEW, EVENT)
        assert {key: made[key] for key in EVENT if key != "metadata"} == {
            key: value for key, value in EVENT.items() if key != "metadata"
        }
        core = await api.get(f"{CORE}/e")
        assert (core["apiVersion"], core["message"], core["involvedObject"]) == ("v1", "all jobs started", REGARDING)
        assert (core["reportingComponent"], core["reportingInstance"], core["action"]) == (
            "jobset",
            "jobset-1",
            "Starting",
        )
        assert not {"note", "regarding", "reportingController"} & core.keys()
        (listed,) = (await api.get(NEW))["items"]
        assert listed == made
        code, planned = await api("POST", f"{NEW}?dryRun=All", {**EVENT, "metadata": {"name": "f"}})
        assert (code, planned["note"]) == (201, "all jobs started")

    serve(test)


def test_an_event_of_the_core_group_has_its_old_fields_as_deprecated_ones() -> None:
    async def test(api: Api) -> None:
        api.store.emit(EmitEvent(Ref("Pod", "default", "p"), "u", "Warning", "Failed", "no room"))
        (event,) = (await api.get(NEW))["items"]
        assert (event["note"], event["deprecatedCount"], event["deprecatedSource"]) == (
            "no room",
            1,
            {"component": "enbloc"},
        )
        assert event["deprecatedFirstTimestamp"] == event["deprecatedLastTimestamp"] != ""
        assert event["reportingController"] == "enbloc"
        assert not {"message", "involvedObject", "count", "source", "firstTimestamp"} & event.keys()

    serve(test)


def test_a_series_is_patched_replaced_and_shown_as_repeated() -> None:
    async def test(api: Api) -> None:
        made = await api.post(NEW, EVENT)
        series = {"series": {"count": 3, "lastObservedTime": "2026-01-01T00:05:00.000000Z"}, "note": "again"}
        for media in ("application/strategic-merge-patch+json", "application/merge-patch+json"):
            code, patched = await api("PATCH", f"{NEW}/e", series, media=media)
            assert (code, patched["note"], patched["series"]["count"]) == (200, "again", 3)
        core = await api.get(f"{CORE}/e")
        assert (core["message"], core["series"]["count"]) == ("again", 3)
        columns = await api.get(f"{NEW}/e", Accept=TABLE)
        names = [one["name"] for one in columns["columnDefinitions"]]
        cells = dict(zip(names, columns["rows"][0]["cells"], strict=True))
        assert (cells["Message"], cells["Count"], cells["Object"]) == ("again", 3, "jobset/j")
        code, replaced = await api("PUT", f"{NEW}/e", {**made, "metadata": {"name": "e"}, "note": "last"})
        assert (code, replaced["note"]) == (200, "last")
        assert (await api.get(f"{CORE}/e"))["message"] == "last"

    serve(test)


def test_both_groups_watch_the_same_events_and_select_by_their_own_fields() -> None:
    async def test(api: Api) -> None:
        async with api.watch(f"{NEW}?fieldSelector=regarding.name=j") as new, api.watch(CORE) as core:
            await api.post(CORE, {"metadata": {"name": "o"}, "involvedObject": {"kind": "Pod", "name": "p"}})
            await api.post(NEW, EVENT)
            seen = await new()
            assert (seen["type"], seen["object"]["apiVersion"], seen["object"]["note"]) == (
                "ADDED",
                "events.k8s.io/v1",
                "all jobs started",
            )
            assert (await core())["object"]["metadata"]["name"] == "o"
            assert (await core())["object"]["message"] == "all jobs started"
        code, _ = await api("DELETE", f"{NEW}/e")
        assert code == 200
        assert [one["metadata"]["name"] for one in (await api.get(CORE))["items"]] == ["o"]

    serve(test)


def test_the_group_is_discovered_after_the_core_group() -> None:
    async def test(api: Api) -> None:
        names = [one["name"] for one in (await api.get("/apis"))["groups"]]
        assert "events.k8s.io" in names
        (resource,) = (await api.get("/apis/events.k8s.io/v1"))["resources"]
        assert (resource["name"], resource["kind"], resource["namespaced"]) == ("events", "Event", True)
        document = await api.get("/openapi/v3/apis/events.k8s.io/v1")
        (schema,) = document["components"]["schemas"].values()
        assert schema["x-kubernetes-group-version-kind"][0]["group"] == "events.k8s.io"

    serve(test)
