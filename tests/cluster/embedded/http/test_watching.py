"""Watches over HTTP: from the start, from a version, with selectors, in every form; slow ones and dead ones."""

from __future__ import annotations

import asyncio
import socket

from cluster.embedded.http.serving import MAPS, PODS, Api, config_map, fresh_store, pod, serve
from enbloc.cluster.embedded.api.watch_log import Bounds
from enbloc.cluster.embedded.http import streaming

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def test_a_watch_shows_what_there_is_then_what_happens() -> None:
    async def test(api: Api) -> None:
        await api.post(MAPS, config_map("a"))
        async with api.watch(MAPS) as following:
            event = await following()
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
            await api.post(MAPS, config_map("b"))
            assert (await following())["object"]["metadata"]["name"] == "b"
            await api("PATCH", f"{MAPS}/b", {"data": {"x": "y"}}, media="application/merge-patch+json")
            event = await following()
            assert (event["type"], event["object"]["data"]["x"]) == ("MODIFIED", "y")
            await api("DELETE", f"{MAPS}/b")
            assert (await following())["type"] == "DELETED"

    serve(test)


def test_a_watch_goes_on_from_a_version() -> None:
    async def test(api: Api) -> None:
        await api.post(MAPS, config_map("a"))
        version = (await api.get(MAPS))["metadata"]["resourceVersion"]
        await api.post(MAPS, config_map("b"))
        await api.post(PODS, pod())
        async with api.watch(f"{MAPS}?resourceVersion={version}") as following:
            assert (await following())["object"]["metadata"]["name"] == "b"
            await api.post(MAPS, config_map("c"))
            assert (await following())["object"]["metadata"]["name"] == "c"

    serve(test)


def test_a_version_that_is_too_old_or_of_another_life_has_expired() -> None:
    store = fresh_store()
    store._log._bounds = Bounds(history=10)
    store._log._trim_at = 20

    async def test(api: Api) -> None:
        for number in range(40):
            await api.post(MAPS, config_map(f"cm-{number}"))
        for version in ("1", "99999"):
            async with api.watch(f"{MAPS}?resourceVersion={version}") as following:
                event = await following()
                assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
                assert await following() is None

    serve(test, store)


def test_a_selector_turns_changes_into_coming_and_going() -> None:
    async def test(api: Api) -> None:
        merge = "application/merge-patch+json"
        await api.post(MAPS, config_map("a"))
        async with api.watch(f"{MAPS}?labelSelector=on") as following:
            await api("PATCH", f"{MAPS}/a", {"metadata": {"labels": {"on": "1"}}}, media=merge)
            assert (await following())["type"] == "ADDED"
            await api("PATCH", f"{MAPS}/a", {"data": {"x": "y"}}, media=merge)
            assert (await following())["type"] == "MODIFIED"
            await api("PATCH", f"{MAPS}/a", {"metadata": {"labels": None}}, media=merge)
            assert (await following())["type"] == "DELETED"
            await api("DELETE", f"{MAPS}/a")
            await api.post(MAPS, {**config_map("b"), "metadata": {"name": "b", "labels": {"on": ""}}})
            assert (await following())["object"]["metadata"]["name"] == "b"

    serve(test)


def test_bookmarks_timeouts_and_initial_events() -> None:
    async def test(api: Api) -> None:
        await api.post(MAPS, config_map("a"))
        asked = "allowWatchBookmarks=true&timeoutSeconds=1"
        async with api.watch(f"{MAPS}?{asked}") as following:
            assert (await following())["type"] == "ADDED"
            event = await following()
            assert event["type"] == "BOOKMARK"
            assert event["object"]["metadata"]["resourceVersion"] == str(api.store.version)
            assert await following() is None
        more = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        async with api.watch(f"{MAPS}?{asked}&{more}") as following:
            assert (await following())["type"] == "ADDED"
            event = await following()
            assert event["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}

    serve(test)


def test_a_watch_in_tables() -> None:
    async def test(api: Api) -> None:
        await api.post(PODS, pod("a"))
        async with api.watch(PODS, Accept=TABLE) as following:
            first = (await following())["object"]
            assert first["kind"] == "Table"
            assert first["columnDefinitions"]
            await api.post(PODS, pod("b"))
            second = (await following())["object"]
            assert second["columnDefinitions"] == []
            assert second["rows"][0]["cells"][0] == "b"

    serve(test)


def test_a_client_that_reads_nothing_is_cut_off_and_no_other_client_notices(monkeypatch) -> None:
    monkeypatch.setattr(streaming, "STALL_S", 0.5)

    async def test(api: Api) -> None:
        slow = socket.create_connection(("127.0.0.1", api.port))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer let-me-in\r\n\r\n".encode())
        async with api.watch(MAPS) as following:
            await asyncio.sleep(0.1)
            assert api.facade.watch_count == 2
            for number in range(40):
                await api.post(MAPS, config_map(f"cm-{number}", text="x" * 300_000))
                assert (await following())["object"]["metadata"]["name"] == f"cm-{number}"
            for _ in range(50):
                if api.facade.watch_count == 1:
                    break
                await asyncio.sleep(0.1)
            assert api.facade.watch_count == 1
        slow.close()

    serve(test)


def test_clients_that_hang_up_or_close_half_leave_no_watch_behind() -> None:
    async def test(api: Api) -> None:
        request = f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer let-me-in\r\n\r\n".encode()
        for half in (True, False):
            connection = socket.create_connection(("127.0.0.1", api.port))
            connection.sendall(request)
            await asyncio.sleep(0.1)
            assert api.facade.watch_count == 1
            if half:
                connection.shutdown(socket.SHUT_WR)
            else:
                connection.close()
            await asyncio.sleep(0.1)
            assert api.facade.watch_count == 0
            connection.close()

    serve(test)


def test_watches_that_wait_for_nothing_keep_no_past() -> None:
    store = fresh_store()
    store._log._bounds = Bounds(history=100)
    store._log._trim_at = 200

    async def test(api: Api) -> None:
        async with api.watch(MAPS) as following:
            await asyncio.sleep(0.05)
            for number in range(5_000):
                api.store.create({**pod(f"p-{number}"), "metadata": {"name": f"p-{number}", "namespace": "default"}})
            assert len(api.store._log._events) < 4_000
            await api.post(MAPS, config_map("a"))
            assert (await following())["object"]["metadata"]["name"] == "a"

    serve(test, store)
