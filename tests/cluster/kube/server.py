"""An API server on loopback that speaks just enough of the protocol, and misbehaves when it is told to.

It keeps objects by path, remembers what happened for watches, and does next what `script` says about the requests that
match: answer with an error, lose the answer after carrying the request out, drop the request, or never answer.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from aiohttp import web

from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent, merge_patch
from enbloc.cluster.kube.cluster import KubeCluster
from enbloc.cluster.kube.credentials import Credentials
from enbloc.cluster.kube.http import Bounds

QUICK = Bounds(
    attempt_s=0.5,
    patience_s=3.0,
    page_s=3.0,
    page=3,
    backoff_s=0.002,
    max_backoff_s=0.02,
    max_reconnect_s=0.02,
    stall_s=0.3,
    fresh_s=0.2,
    rediscover_s=0.05,
)
CORE = [
    ("pods", "Pod", True, True),
    ("nodes", "Node", False, True),
    ("events", "Event", True, False),
    ("configmaps", "ConfigMap", True, False),
]


class Fail(NamedTuple):
    """Answers with an error and does nothing."""

    code: int
    reason: str = ""
    message: str = "as scripted"
    retry_after: str = ""


LOST = "carry it out, but lose the answer"
DROP = "do nothing and hang up"
HANG = "do nothing and never answer"


class Stream:
    """An open watch. `None` in its queue ends it cleanly, an exception cuts it."""

    def __init__(self, collection: str) -> None:
        self.collection = collection
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.is_silent = False

    def say(self, type_: str, obj: Obj) -> None:
        self.lines.put_nowait(json.dumps({"type": type_, "object": obj}).encode() + b"\n")

    def cut(self, after: bytes = b"") -> None:
        """Hangs up, after these last bytes."""
        if after:
            self.lines.put_nowait(after)
        self.lines.put_nowait(b"")

    def end(self) -> None:
        self.lines.put_nowait(None)


class ApiServer:
    def __init__(self) -> None:
        self.objects: dict[str, Obj] = {}
        self.groups: dict[str, list[tuple[str, str, bool, bool]]] = {"v1": list(CORE)}
        self.script: list[tuple[str, str, Fail | str]] = []
        """(method, part of the path and query, what to do): the first that matches is done once."""
        self.requests: list[tuple[str, str]] = []
        self.tokens: list[str | None] = []
        self.streams: list[Stream] = []
        self.token = ""
        self.version = 100
        self.oldest = 0
        self.history: list[tuple[int, str, str, Obj]] = []
        self.snapshots: dict[tuple[str, str], list[Obj]] = {}
        self.uids = itertools.count(1)
        self.in_flight = self.most_in_flight = 0
        self.port = 0
        self.opened = 0
        """How many watches there were."""

    # -- what tests do to it

    def next(self, method: str, part: str, *steps: Fail | str) -> None:
        self.script += [(method, part, step) for step in steps]

    def put(self, obj: Obj) -> Obj:
        """Somebody creates an object, or changes one."""
        path = self.path_of(obj)
        known = self.objects.get(path)
        metadata = {"uid": known["metadata"]["uid"] if known else f"uid-{next(self.uids)}", **obj["metadata"]}
        return self._save(path, {**obj, "metadata": metadata})

    def remove(self, path: str) -> None:
        last = self.objects.pop(path)
        self.version += 1
        last = {**last, "metadata": {**last["metadata"], "resourceVersion": str(self.version)}}
        self._happened(path, "DELETED", last)

    def forget(self) -> None:
        """Everything that happened until now, as a compaction does."""
        self.oldest = self.version
        self.history.clear()

    def asked(self, method: str, part: str = "") -> list[str]:
        return [path for verb, path in self.requests if verb == method and part in path]

    @contextmanager
    def unheard(self) -> Iterator[None]:
        """What happens in here does not reach the watches that are open."""
        streams, self.streams = self.streams, []
        yield
        self.streams += streams

    def path_of(self, obj: Obj) -> str:
        plural = next(plural for plural, kind, _, _ in self.groups[obj["apiVersion"]] if kind == obj["kind"])
        root = f"/apis/{obj['apiVersion']}" if "/" in obj["apiVersion"] else "/api/v1"
        namespace = obj["metadata"].get("namespace")
        return f"{root}/{f'namespaces/{namespace}/' if namespace else ''}{plural}/{obj['metadata']['name']}"

    # -- what it does

    def _save(self, path: str, obj: Obj) -> Obj:
        known = self.objects.get(path)
        self.version += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version), "managedFields": [{}]}}
        self.objects[path] = obj
        self._happened(path, "MODIFIED" if known else "ADDED", obj)
        return obj

    def _happened(self, path: str, type_: str, obj: Obj) -> None:
        collection = _cluster_wide(path.rpartition("/")[0])
        self.history.append((self.version, collection, type_, obj))
        for stream in self.streams:
            if stream.collection == collection and not stream.is_silent:
                stream.say(type_, obj)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        self.tokens.append(request.headers.get("Authorization"))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._handle(request)
        finally:
            self.in_flight -= 1

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return _status(401, "Unauthorized", "who are you?")
        step = self._next_step(request)
        if isinstance(step, Fail):
            return _status(step.code, step.reason, step.message, step.retry_after)
        if step == HANG:
            await asyncio.sleep(30)
        answer: web.StreamResponse = web.Response()
        if step != DROP:
            if request.query.get("watch"):
                return await self._watch(request)
            answer = self._answer(request, json.loads(body) if body else None)
        if step is not None:
            assert request.transport is not None
            request.transport.abort()
        return answer

    def _next_step(self, request: web.BaseRequest) -> Fail | str | None:
        for number, (method, part, step) in enumerate(self.script):
            if method == request.method and part in request.path_qs:
                del self.script[number]
                return step
        return None

    def _answer(self, request: web.BaseRequest, body: Any) -> web.Response:
        path = request.path
        if path == "/apis":
            return web.json_response({"groups": self._groups()})
        version = path.removeprefix("/apis/").removeprefix("/api/")
        if version in self.groups:
            return web.json_response({"resources": self._resources(version)})
        if not self._is_served(path):
            return web.Response(status=404, text="404 page not found")
        match request.method:
            case "GET" if path in self.objects:
                return web.json_response(self.objects[path])
            case "GET" if path.rpartition("/")[2] in self._plurals():
                return self._list(request)
            case "POST" if path.endswith("/binding"):
                return self._bind(path.removesuffix("/binding"), body)
            case "POST":
                return self._create(path, body)
            case "PATCH":
                return self._patch(path, body, request.content_type)
            case "DELETE":
                return self._delete(path, body)
        return _not_found(path)

    def _plurals(self) -> set[str]:
        return {plural for entries in self.groups.values() for plural, *_ in entries}

    def _is_served(self, path: str) -> bool:
        steps = path.split("/")
        version = steps[2] if steps[1] == "api" else "/".join(steps[2:4])
        return any(plural in steps for plural, *_ in self.groups.get(version, ()))

    def _groups(self) -> list[Obj]:
        versions: dict[str, list[str]] = {}
        for name in self.groups:
            group, slash, version = name.partition("/")
            if slash:
                versions.setdefault(group, []).append(version)
        return [
            {"name": group, "versions": [{"groupVersion": f"{group}/{one}", "version": one} for one in found]}
            for group, found in versions.items()
        ]

    def _resources(self, version: str) -> list[Obj]:
        found = []
        for plural, kind, namespaced, has_status in self.groups[version]:
            found.append({"name": plural, "kind": kind, "namespaced": namespaced})
            if has_status:
                found.append({"name": f"{plural}/status", "kind": kind, "namespaced": namespaced})
        return found

    def _list(self, request: web.BaseRequest) -> web.Response:
        """Later pages are as things were when the first was asked for."""
        collection = _cluster_wide(request.path)
        version, _, begun = request.query.get("continue", "").partition("-")
        if not version:
            version = str(self.version)
            self.snapshots[version, collection] = [
                {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
                for path, obj in sorted(self.objects.items())
                if _cluster_wide(path.rpartition("/")[0]) == collection
            ]
        every = self.snapshots[version, collection]
        begin = int(begun or "0")
        end = begin + int(request.query.get("limit", "100000"))
        metadata = {"resourceVersion": version}
        if end < len(every):
            metadata["continue"] = f"{version}-{end}"
        return web.json_response({"metadata": metadata, "items": every[begin:end]})

    def _create(self, collection: str, obj: Obj) -> web.Response:
        path = f"{collection}/{obj['metadata']['name']}"
        if path in self.objects:
            return _status(409, "AlreadyExists", "there is one")
        return web.json_response(self._save(path, _with_uid(obj, f"uid-{next(self.uids)}")), status=201)

    def _patch(self, path: str, patch: Obj, content_type: str) -> web.Response:
        if path.endswith("/status") and path.startswith("/apis/"):  # of a custom resource: no look at the UID
            patch = {**patch, "metadata": {**(patch.get("metadata") or {})}}
            patch["metadata"].pop("uid", None)
        path = path.removesuffix("/status")
        known = self.objects.get(path)
        if known is None:
            return _not_found(path)
        pinned = patch.get("metadata") or {}
        if pinned.get("uid", known["metadata"]["uid"]) != known["metadata"]["uid"]:
            return _status(409, "Conflict", "Precondition failed: UID")
        if pinned.get("resourceVersion", known["metadata"]["resourceVersion"]) != known["metadata"]["resourceVersion"]:
            return _status(409, "Conflict", "the object has been modified")
        if "strategic" in content_type:
            names = {one["type"] for one in patch["status"]["conditions"]}
            had = (known.get("status") or {}).get("conditions") or []
            kept = [one for one in had if one["type"] not in names]
            patch = {**patch, "status": {"conditions": [*kept, *patch["status"]["conditions"]]}}
        return web.json_response(self._save(path, merge_patch(known, patch)))

    def _delete(self, path: str, options: Obj) -> web.Response:
        known = self.objects.get(path)
        if known is None:
            return _not_found(path)
        if (options.get("preconditions") or {}).get("uid", known["metadata"]["uid"]) != known["metadata"]["uid"]:
            return _status(409, "Conflict", "the UID in the precondition does not match")
        self.remove(path)
        return web.json_response({"kind": "Status", "status": "Success"})

    def _bind(self, path: str, binding: Obj) -> web.Response:
        pod = self.objects.get(path)
        if pod is None:
            return _not_found(path)
        if pod["metadata"]["uid"] != binding["metadata"]["uid"]:
            return _status(409, "Conflict", "Precondition failed: UID")
        if pod["spec"].get("nodeName"):
            return _status(409, "Conflict", "already assigned")
        metadata = {**pod["metadata"], "annotations": binding["metadata"].get("annotations") or {}}
        self._save(path, {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": binding["target"]["name"]}})
        return _status(201, "", "bound")

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        if not self._is_served(request.path):
            return web.Response(status=404, text="404 page not found")
        since = int(request.query["resourceVersion"])
        if since < self.oldest:
            return _status(410, "Expired", "too old resource version")
        stream = Stream(_cluster_wide(request.path))
        for version, collection, type_, obj in self.history:
            if version > since and collection == stream.collection:
                stream.say(type_, obj)
        self.streams.append(stream)
        self.opened += 1
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            while (line := await stream.lines.get()) is not None:
                if not line:
                    assert request.transport is not None
                    request.transport.close()
                    break
                await response.write(line)
        except ConnectionResetError:
            pass  # the client has left
        finally:
            self.streams.remove(stream)
        return response


def _cluster_wide(path: str) -> str:
    """`/api/v1/namespaces/x/pods` and `/api/v1/pods` are one collection here."""
    head, found, tail = path.partition("/namespaces/")
    return f"{head}/{tail.partition('/')[2]}" if found and "/" in tail else path


def _with_uid(obj: Obj, uid: str) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "uid": uid}}


def _status(code: int, reason: str, message: str, retry_after: str = "") -> web.Response:
    said = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": {"name": "x"}}
    return web.json_response(said, status=code, headers={"Retry-After": retry_after} if retry_after else None)


def _not_found(path: str) -> web.Response:
    return _status(404, "NotFound", f"{path} not found")


class SeenEvents(list[tuple[str, str, str]]):
    """What an observer heard: type, name and UID."""

    def __call__(self, event: WatchEvent) -> None:
        metadata = event.obj["metadata"]
        assert "managedFields" not in metadata
        assert event.obj["kind"] == event.kind.partition(".")[0]
        self.append((event.type, metadata["name"], metadata["uid"]))


async def until(is_so: Callable[[], bool], within_s: float = 5.0) -> None:
    """Lets things happen until that is so."""
    async with asyncio.timeout(within_s):
        while not is_so():
            await asyncio.sleep(0.002)


@asynccontextmanager
async def a_cluster(
    bounds: Bounds = QUICK, in_flight: int = 64, credentials: Callable[[str], Credentials] = Credentials
) -> AsyncIterator[tuple[ApiServer, KubeCluster]]:
    """A server and a cluster that talks to it."""
    server = ApiServer()
    runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        async with KubeCluster(credentials(f"http://127.0.0.1:{server.port}"), in_flight, bounds) as cluster:
            yield server, cluster
    finally:
        for stream in server.streams:
            stream.end()
        await runner.cleanup()


def play(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs one story in an event loop of its own, within a bound."""

    async def bounded() -> None:
        async with asyncio.timeout(20):
            await story()

    asyncio.run(bounded())


def pod(name: str, **spec: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "none"}], **spec},
    }


def node(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
