"""What a client with the token cannot do to `enbloc up`: make it grow without bound or stop answering (U1 to U4).

Costs are counted in bytes that are kept and in events of a parser. Patches are applied at full size: with a quadratic
cost they would take minutes.
"""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest
import yaml

from cluster.embedded.http.serving import MAPS, TOKEN, Api, config_map, fresh_store, pod, serve
from enbloc.api import json_patch
from enbloc.api.meta import Ref
from enbloc.api.nesting import DEPTH
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.store import OBJECT_BYTES
from enbloc.cluster.embedded.api.watch_log import Bounds, WatchLog
from enbloc.cluster.embedded.http import request_body, server_side_apply, streaming
from enbloc.cluster.embedded.http.access import Access
from enbloc.cluster.embedded.http.apply_shapes import ByName
from enbloc.cluster.embedded.http.facade import Facade
from enbloc.cluster.embedded.http.listener import Listener
from enbloc.cluster.embedded.http.server_side_apply import Application, apply
from enbloc.cluster.embedded.http.strategic import strategic_merge
from enbloc.cluster.embedded.http.streaming import Unsent

MERGE, JSON_PATCH, APPLY = (
    f"application/{name}" for name in ("merge-patch+json", "json-patch+json", "apply-patch+yaml")
)


@pytest.mark.parametrize("media", [MERGE, JSON_PATCH, APPLY])
def test_u1_patches_do_not_make_an_object_larger_than_etcd_stores(media: str) -> None:
    async def test(api: Api) -> None:
        await api.post(MAPS, config_map())
        version = api.store.version
        codes = []
        for number in range(8):
            part = {f"part-{number}": "x" * 400_000}
            body: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": part}
            query = ""
            if media == JSON_PATCH:
                body = [{"op": "add", "path": f"/data/part-{number}", "value": part[f"part-{number}"]}]
            elif media == APPLY:
                query = f"?fieldManager=m{number}"
            code, answer = await api("PATCH", f"{MAPS}/cm{query}", body, media=media)
            codes.append(code)
        assert codes == [200, 200, 200, 413, 413, 413, 413, 413]
        assert answer["reason"] == "RequestEntityTooLarge"
        assert answer["message"].startswith(
            f"Request entity too large: limit is {OBJECT_BYTES}; ConfigMap 'cm' would have"
        )
        assert api.store.version == version + 3
        assert len(json.dumps(await api.get(f"{MAPS}/cm"))) < OBJECT_BYTES

    serve(test)


def test_u1_a_new_object_that_is_too_large_is_refused_and_a_dry_run_says_so() -> None:
    async def test(api: Api) -> None:
        for query in ("", "?dryRun=All"):
            code, answer = await api("POST", MAPS + query, config_map(a="x" * OBJECT_BYTES))
            assert (code, answer["reason"]) == (413, "RequestEntityTooLarge")
        assert api.store.get("ConfigMap", "default", "cm") is None

    serve(test)


def test_u1_history_is_bounded_in_bytes() -> None:
    store = fresh_store()
    store._log = WatchLog(Bounds(history_bytes=1_000_000, client_bytes=3_000_000))
    store._log.begin(1)
    unread = store.watch_for_client(["ConfigMap"], store.version)
    ours = store.watch(None, store.version)
    store.create({**config_map("big"), "metadata": {"name": "big", "namespace": "default"}})
    for number in range(100):
        store.patch(Ref("ConfigMap", "default", "big"), {"data": {"a": f"{number}" + "x" * 100_000}})
        assert len(ours.drain()) == (2 if number == 0 else 1), "what this process reads soon is kept for it"
        assert sum(len(event.obj["data"]["a"]) for event in store._log._events) < 5_000_000
    with pytest.raises(Refused) as refused:
        unread.take(1)
    assert refused.value.code == 410
    assert store.watch_for_client(["ConfigMap"], store.version - 5).take(10**9)


def test_u1_a_watch_reads_the_history_in_pieces() -> None:
    store = fresh_store()
    watch = store.watch_for_client(["ConfigMap"], store.version)
    for number in range(10):
        store.create(
            {**config_map(f"c{number}", a="x" * 1_000), "metadata": {"name": f"c{number}", "namespace": "default"}}
        )
    pieces = []
    while piece := watch.take(3_900):
        pieces.append([event.obj["metadata"]["name"] for event in piece])
    assert [name for piece in pieces for name in piece] == [f"c{number}" for number in range(10)]
    assert [len(piece) for piece in pieces] == [3, 3, 3, 1]
    assert len(store.watch_for_client(["ConfigMap"], store.version - 10).take(0)) == 1


def unread_watches(api: Api, count: int, path: str = f"{MAPS}?watch=true") -> list[socket.socket]:
    found = []
    for _ in range(count):
        client = socket.create_connection(("127.0.0.1", api.port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        found.append(client)
    return found


def test_u1_a_write_that_is_being_ended_is_not_ended_again() -> None:
    """Its timeout has fired, and it is not over yet when others come: they are counted, and in the end none is."""
    unsent = Unsent(10)

    async def write() -> None:
        async with asyncio.timeout(60) as limit:
            with unsent.counted(8, limit):
                try:
                    await asyncio.sleep(60)
                finally:
                    await asyncio.sleep(0.01)

    async def test() -> None:
        writes = []
        for _ in range(4):
            writes.append(asyncio.ensure_future(write()))
            for _ in range(3):
                await asyncio.sleep(0)
        writes[-1].cancel()
        ended = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(one) for one in ended] == [TimeoutError] * 3 + [asyncio.CancelledError]
        assert unsent.bytes == 0

    asyncio.run(test())


@pytest.mark.parametrize("path", [f"{MAPS}?watch=true", MAPS, f"{MAPS}/cm-0"])
def test_u1_what_clients_do_not_read_is_bounded_for_all_together(path: str) -> None:
    """60 clients that read nothing, of 12 objects of 1 MB: those that wait for longest are disconnected."""
    most = 10_000_000

    async def test(api: Api) -> None:
        unsent = api.facade._unsent
        unsent._bound_bytes = most
        for number in range(12):
            await api.post(MAPS, config_map(f"cm-{number}", a="x" * 1_000_000))
        clients = unread_watches(api, 60, path)
        largest = 0
        for _ in range(200):
            await asyncio.sleep(0.01)
            largest = max(largest, unsent.bytes)
        assert largest > 0
        assert unsent.bytes <= most + 2_000_000
        code, _ = await api("GET", f"{MAPS}/cm-0")
        assert code == 200, "a client that reads is served"
        for client in clients:
            client.close()

    serve(test, send_buffer_bytes=65_536)


def test_u1_a_long_answer_that_is_not_read_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "STALL_S", 0.2)

    async def test(api: Api) -> None:
        await api.post(MAPS, config_map("cm-0", a="x" * 1_400_000))
        clients = unread_watches(api, 20, f"{MAPS}/cm-0")
        while api.facade._unsent.bytes == 0:
            await asyncio.sleep(0.01)
        while api.facade._unsent.bytes > 0:
            await asyncio.sleep(0.01)
        for client in clients:
            client.close()

    serve(test, send_buffer_bytes=65_536)


BOMBS = {
    "flow sequences": b"[" * 80_000,
    "flow mappings": b"{a: " * 20_000,
    "compact block sequences": b"- " * 40_000,
    "block mappings": b"".join(b" " * depth + b"a:\n" for depth in range(1_000)),
    "complex keys": b"? " * 40_000,
    "an alias bomb": b"a: &a [x, x]\n"
    + b"".join(b"%c: &%c [*%c, *%c]\n" % (c + 1, c + 1, c, c) for c in range(97, 121)),
    "a self alias": b"a: &a [*a]",
    "an anchor as a merge key": b"a: &a {b: 1}\nc: {<<: *a}",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_u2_yaml_that_is_deep_or_has_aliases_is_refused_before_it_costs(bomb: str) -> None:
    """libyaml is quadratic in depth: 80 KB of `[` took 22 s."""
    events = 0
    seen = request_body._Loader.get_event

    class Counting(request_body._Loader):
        def get_event(self) -> Any:
            nonlocal events
            events += 1
            return seen(self)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(request_body, "_Loader", Counting)
        with pytest.raises(Refused) as refused:
            request_body.decode(BOMBS[bomb], request_body.YAML)
    assert refused.value.code == 400
    assert events < 1_000


def test_u2_plain_yaml_is_read_as_before() -> None:
    text = "a: {b: [1, 2.5, true, null, x]}\nd: 2026-01-01\ne: 0x10\nf: |\n  [[[\n  *x\ng: ''\n1: one\n"
    expected = {**yaml.safe_load(text), "d": "2026-01-01", "1": "one"}
    del expected[1]
    assert request_body.decode(text.encode(), request_body.YAML) == expected
    deep = "[" * DEPTH + "]" * DEPTH
    assert request_body.decode(deep.encode(), request_body.YAML) == json.loads(deep)


def test_u3_long_yaml_is_bounded_and_other_requests_are_answered_meanwhile() -> None:
    async def test(api: Api) -> None:
        code, answer = await api("POST", MAPS, b"a: 1\n" * 400_000, media=request_body.YAML)
        assert (code, answer["reason"]) == (413, "RequestEntityTooLarge")
        long = b"".join(b"k%d: v\n" % number for number in range(20_000))
        writing = asyncio.create_task(api("POST", MAPS, long, media=request_body.YAML))
        answered = 0
        while not writing.done():
            assert await api.get(MAPS)
            answered += 1
        assert (await writing)[0] in (400, 422)
        assert answered > 1

    serve(test)


LONG = 700_000


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/data/l/5", "value": 1},
        {"op": "add", "path": "/data/l/-", "value": 1},
        {"op": "remove", "path": "/data/l/690000"},
        {"op": "test", "path": "/data/l/5", "value": 0},
        {"op": "copy", "from": "/data/l/5", "path": "/data/x"},
        {"op": "move", "from": "/data/l/699000", "path": "/data/l/699500"},
    ],
    ids=lambda operation: str(operation["op"]),
)
def test_u3_ten_thousand_operations_on_a_long_list_copy_it_once(operation: dict[str, Any]) -> None:
    given = {"data": {"l": [0] * LONG}}
    patched = json_patch.apply(given, [operation] * json_patch.MAX_OPERATIONS)
    assert given == {"data": {"l": [0] * LONG}}
    assert len(patched["data"]["l"]) >= LONG - json_patch.MAX_OPERATIONS


def test_u3_insertions_at_the_head_of_a_long_list_are_bounded() -> None:
    operation = {"op": "add", "path": "/l/0", "value": 1}
    assert json_patch.apply({"l": [0] * LONG}, [operation] * 100)["l"][:101] == [1] * 100 + [0]
    with pytest.raises(Refused) as refused:
        json_patch.apply({"l": [0] * LONG}, [operation] * json_patch.MAX_OPERATIONS)
    assert refused.value.code == 413


def test_u3_copies_of_copies_share_nothing_and_are_bounded() -> None:
    copy = {"op": "copy", "from": "/a", "path": "/b"}
    patched = json_patch.apply({"a": {"x": []}}, [copy, {"op": "add", "path": "/b/x/-", "value": 1}])
    assert patched == {"a": {"x": []}, "b": {"x": [1]}}
    doubling = [{"op": "copy", "from": "/l", "path": "/l/-"}] * 40
    with pytest.raises(Refused) as refused:
        json_patch.apply({"l": ["x"]}, doubling)
    assert refused.value.code == 422  # as the API server says it


MANY = 10_000


def test_u3_strategic_merges_of_long_sets_are_linear() -> None:
    had, other = [f"a{number}" for number in range(MANY)], [f"b{number}" for number in range(MANY)]
    assert len(strategic_merge({"finalizers": had}, {"finalizers": other})["finalizers"]) == 2 * MANY
    assert strategic_merge({"l": had}, {"$deleteFromPrimitiveList/l": had[::-1]})["l"] == []
    retained = strategic_merge({"m": dict.fromkeys(had, 1)}, {"m": {"$retainKeys": had[::-1]}})
    assert len(retained["m"]) == MANY


def container(number: int, image: str) -> dict[str, str]:
    return {"name": f"c{number}", "image": image}


def applied(current: Any, manager: str, content: Any, *, force: bool = False) -> Any:
    wanted = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": content}
    return apply(current, Application(manager, wanted, ByName(), force, "2026-01-01T00:00:00Z"))


def test_u3_server_side_apply_of_long_lists_is_linear() -> None:
    many = {"containers": [container(number, "1") for number in range(MANY)]}
    once = applied(None, "me", many)
    twice = applied(once, "you", many)
    assert applied(twice, "me", {})["spec"]["containers"] == many["containers"], "the other still applies them"
    assert applied(once, "me", {"containers": [container(0, "1")]})["spec"]["containers"] == [container(0, "1")]
    with pytest.raises(Refused) as refused:
        applied(once, "you", {"containers": [container(number, "2") for number in range(MANY)]})
    assert refused.value.message.startswith(f"Apply failed with {MANY} conflicts: ")
    assert len(refused.value.message) < 2_000


def test_u3_managers_of_one_object_are_bounded() -> None:
    obj = None
    for number in range(server_side_apply.MANAGERS):
        obj = applied(obj, f"m{number}", {"nodeName": "n"})
    with pytest.raises(Refused) as refused:
        applied(obj, "one-more", {"nodeName": "n"})
    assert refused.value.code == 422
    assert applied(obj, "m7", {"nodeName": "n"})["spec"] == {"nodeName": "n"}


@pytest.mark.parametrize("fields", [{"f:spec": 1}, {"f:spec": {"f:nodeName": [1]}}, {"f:spec": {"f:containers": "x"}}])
def test_u3_managed_fields_that_clients_write_are_read_as_far_as_they_can_be(fields: Any) -> None:
    content = {"nodeName": "n", "containers": [container(0, "1")]}
    live = pod("p", nodeName="n")
    live["metadata"]["managedFields"] = [
        {"manager": "other", "fieldsV1": fields},
        {"manager": "me", "fieldsV1": fields},
    ]
    assert applied(live, "me", content, force=True)["spec"]["containers"][-1] == container(0, "1")


def test_u1_an_object_does_not_get_deeper_patch_by_patch() -> None:
    """Each patch is of bounded depth; the object is measured as a whole."""

    async def test(api: Api) -> None:
        await api.post(MAPS, config_map())
        path, deepest = "/deep", 0
        code, _ = await api("PATCH", f"{MAPS}/cm", [{"op": "add", "path": path, "value": {}}], media=JSON_PATCH)
        while code == 200 and deepest < 10_000:
            inner: Any = {}
            for _ in range(90):
                inner = {"a": inner}
            patch = [
                {"op": "copy", "from": "/deep", "path": "/other"},
                {"op": "replace", "path": "/deep", "value": inner},
            ]
            tail = "/deep" + "/a" * 90
            patch.append({"op": "move", "from": "/other", "path": tail})
            code, _ = await api("PATCH", f"{MAPS}/cm", patch, media=JSON_PATCH)
            deepest += 90
        assert code == 400
        assert (await api("GET", f"{MAPS}/cm"))[0] == 200

    serve(test)


def test_u4_a_page_on_another_loopback_address_is_served() -> None:
    async def story() -> None:
        async def page(request: Any) -> Any:
            from aiohttp import web

            return web.Response(text="hello")

        facade = Facade(fresh_store(), Access(TOKEN), {"/": page})
        listener = Listener(facade)
        _, port = await listener.start("127.0.0.2", 0)
        try:
            for host, code in (("127.0.0.2", 200), ("localhost", 200), ("[::1]", 200), ("evil.example", 403)):
                reader, writer = await asyncio.open_connection("127.0.0.2", port)
                writer.write(f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
                answer = await reader.read()
                assert f" {code} ".encode() in answer.split(b"\r\n")[0], host
                assert code != 200 or b"nosniff" in answer
                writer.close()
        finally:
            facade.close()
            await listener.stop()

    asyncio.run(story())
