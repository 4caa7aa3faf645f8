"""The HTTP front of the API server: parses a request, finds its target, calls the store, and writes the answer.

Every answer is JSON, every refusal a `Status`. Every request gets an answer: an unexpected exception is answered with
500, with the traceback in this process's log, and is a bug.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from aiohttp import web

from enbloc.admission.settings import DEFAULTS, Settings
from enbloc.api import json_patch
from enbloc.api.events import as_version
from enbloc.api.meta import Obj, Ref, name_of
from enbloc.api.writes import Refused, WatchEvent, merge_patch
from enbloc.cluster.embedded.api.pods import container_name
from enbloc.cluster.embedded.api.served_kinds import CRD
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.api.webhooks import Question, Review
from enbloc.cluster.embedded.http import request_body, usage
from enbloc.cluster.embedded.http.access import GROUPS, REVIEWS, USER, Access, review
from enbloc.cluster.embedded.http.columns import Column
from enbloc.cluster.embedded.http.discovery import DiscoveryDocuments
from enbloc.cluster.embedded.http.encoding import Encodings, encode
from enbloc.cluster.embedded.http.listing import Lists, Page
from enbloc.cluster.embedded.http.notify import Changes, Committed
from enbloc.cluster.embedded.http.openapi import OpenApi, version_2
from enbloc.cluster.embedded.http.printer_columns import columns_for
from enbloc.cluster.embedded.http.queries import (
    Form,
    check_field_validation,
    flag,
    is_dry_run,
    list_query,
    requested_form,
)
from enbloc.cluster.embedded.http.resources import Resources, Target, no_such_path
from enbloc.cluster.embedded.http.status import failure, refusal
from enbloc.cluster.embedded.http.streaming import CHUNK_BYTES, Unsent, send, streaming
from enbloc.cluster.embedded.http.tables import META, included, partial, table
from enbloc.cluster.embedded.http.warnings import Warnings
from enbloc.cluster.embedded.http.watching import Watches
from enbloc.cluster.embedded.http.webhook_calls import WebhookCalls
from enbloc.cluster.embedded.http.writing import APPLY_PATCH, Answer, Writer, check_patch, delete_options
from enbloc.version import __version__

KUBERNETES = "v1.36.0"
"""The version reported to clients: the API that they may expect."""

Made = TypeVar("Made")
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_HEALTH = ("/healthz", "/livez", "/readyz")
_HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
_ELSEWHERE = "real containers run on a Kubernetes cluster, such as one of kind"
_log = logging.getLogger(__name__)


class Facade:
    """Serves one store. `pages` are further handlers by path (`Access` says which need the token); `webhooks` asks
    those of others before objects are stored; `committed` is awaited before a write is acknowledged. `failure` says
    why writes are not kept any more: only health is served then, since the store may hold what was not kept."""

    def __init__(
        self,
        store: Store,
        access: Access,
        pages: Mapping[str, Handler] | None = None,
        committed: Committed | None = None,
        failure: Callable[[], str | None] | None = None,
        settings: Settings = DEFAULTS,
        webhooks: WebhookCalls | None = None,
    ) -> None:
        self._webhooks = webhooks
        self._store = store
        self._access = access
        self._pages = dict(pages or {})
        self._committed = committed
        self._failure = failure if failure is not None else lambda: None
        self._encodings = Encodings()
        self._resources = Resources(store)
        self._discovery = DiscoveryDocuments(self._resources)
        self._openapi = OpenApi(store, self._resources)
        self._lists = Lists(store, store.now)
        self._changes = Changes(committed)
        self._unsent = Unsent()
        self._watches = Watches(store, self._lists, self._changes, self._encodings, self._unsent)
        self._writer = Writer(store, self._lists, self._resources)
        self._warnings = Warnings(settings)
        store.listeners.append(self._note)

    def close(self) -> None:
        """Ends every watch and stops listening to the store."""
        self._watches.close()
        if self._note in self._store.listeners:
            self._store.listeners.remove(self._note)

    @property
    def watch_count(self) -> int:
        return self._watches.count

    def _note(self, event: WatchEvent) -> None:
        """Called during a write: records the event and does nothing else."""
        if event.type == "DELETED":
            self._encodings.forget(event.obj)
        if event.kind == CRD:
            self._resources.forget()
        self._changes.note(event)
        self._watches.note(event)

    # -- dispatch

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        return await send(request, await self._answer(request), self._unsent)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        ref: Ref | None = None
        try:
            path = request.path
            self._check_kept(path)
            page = self._page(path)
            if page is not None:
                self._access.check_page(request)
                if request.method not in ("GET", "HEAD"):
                    raise _bad_method()
                shown = await page(request)
                if not shown.prepared:
                    shown.headers.setdefault("X-Content-Type-Options", "nosniff")
                return shown
            if path in _HEALTH or path.startswith(("/livez/", "/readyz/", "/healthz/")):
                return web.Response(text="ok")
            if path == "/version":
                return _json(_version())
            self._access.check_token(request)
            segments = path.split("/")[1:]
            if segments[-1] == "":
                segments.pop()
            special = await self._special(request, path, segments)
            if special is not None:
                return special
            target = self._target(segments)
            ref = target.ref
            return await self._serve(request, target)
        except Refused as why:
            return _refuse(request, why, ref)
        except RecursionError:
            return _refuse(request, refusal(400, "the request is nested too deeply"), ref)
        except (web.HTTPException, ConnectionError, asyncio.CancelledError):
            raise
        except Exception:
            _log.exception("%s %s", request.method, request.path)
            return _refuse(request, refusal(500, "Internal error occurred: see the server's log"), ref)

    def _check_kept(self, path: str) -> None:
        """Raises `Refused` (503) once a write could not be kept. The process is alive all the same."""
        failure = self._failure()
        if failure is not None and not path.startswith("/livez"):
            self._watches.close()
            raise refusal(503, f"{failure}; nothing is served until enbloc is restarted on a disk that can be written")

    async def _until_kept(self) -> None:
        if self._committed is not None:
            try:
                await self._committed()
            except Exception:
                self._check_kept("")
                raise

    def _page(self, path: str) -> Handler | None:
        found = self._pages.get(path)
        if found is None and self._pages:
            prefix, _, _ = path.rpartition("/")
            while prefix and found is None:
                found = self._pages.get(prefix + "/*")
                prefix = prefix.rpartition("/")[0]
        return found

    def _target(self, segments: list[str]) -> Target:
        least = {"api": 3, "apis": 4}.get(segments[0] if segments else "")
        if least is None or len(segments) < least:
            raise no_such_path()
        return self._resources.find(segments)

    async def _special(self, request: web.BaseRequest, path: str, segments: list[str]) -> web.StreamResponse | None:
        """Requests that are not about a resource of the store: discovery, schemas, reviews, usage, a namespace's
        bindings."""
        if path in REVIEWS:
            if request.method != "POST":
                raise _bad_method()
            raw = await request_body.read_body(request) or b"{}"
            body = await request_body.decoded(raw, request_body.media_type(request))
            return _json(review(REVIEWS[path], body), 201)
        if segments[:1] == ["api"] and len(segments) == 5 and segments[2] == "namespaces" and segments[4] == "bindings":
            target = self._resources.find([*segments[:4], "pods"])
            return await self._execute(request, target, self._writer.bind)
        reads = request.method in ("GET", "HEAD")
        if reads and segments[:3] == ["apis", usage.GROUP, usage.VERSION] and segments[3:]:
            return _json(usage.usage(self._store, segments[3:], request.query))
        if not reads or len(segments) > 6:
            return None
        if path == "/openapi/v2":
            body, media = version_2(request.headers.get("Accept", ""))
            return web.Response(body=body, headers={"Content-Type": media})
        document = self._document(request, segments)
        return None if document is None else _json(*document)

    def _document(self, request: web.BaseRequest, segments: list[str]) -> tuple[Any, int, str] | None:
        accept = request.headers.get("Accept", "")
        found: Any = None
        media = "application/json"
        match segments:
            case ["api"] | ["apis"] if _AGGREGATED in accept:
                found = self._discovery.aggregated(core=segments == ["api"])
                media = _AGGREGATED
            case ["api"]:
                found = self._discovery.core(request.headers.get("Host", ""))
            case ["apis"]:
                found = self._discovery.groups()
            case ["apis", group]:
                found = self._discovery.group(group)
            case ["api", version]:
                found = self._discovery.resources("", version)
            case ["apis", group, version]:
                found = self._discovery.resources(group, version)
            case ["openapi", "v3"]:
                found = self._openapi.index()
            case ["openapi", "v3", "api", version]:
                found = self._openapi.document("", version)
            case ["openapi", "v3", "apis", group, version]:
                found = self._openapi.document(group, version)
            case _:
                return None
        if found is None:
            raise no_such_path()
        return found, 200, media

    async def _serve(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        if target.subresource:
            return await self._serve_subresource(request, target)
        match request.method, bool(target.name):
            case "GET" | "HEAD", True:
                if flag(request.query, "watch"):
                    return await self._collection(request, target)
                return self._show(request, 200, target, self._writer.existing(target))
            case "GET" | "HEAD", False:
                return await self._collection(request, target)
            case "POST", False:
                if target.kind.namespaced and not target.namespace:
                    raise _bad_method()
                check_field_validation(request.query)
                return await self._execute(request, target, self._writer.create)
            case "PUT", True:
                check_field_validation(request.query)
                return await self._execute(request, target, self._writer.replace)
            case "PATCH", True:
                check_field_validation(request.query)
                return await self._patch(request, target)
            case "DELETE", _:
                return await self._delete(request, target)
        raise _bad_method()

    async def _serve_subresource(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        match target.subresource, request.method:
            case "status", _ if not target.kind.has_status:
                raise no_such_path()
            case "status", "GET" | "HEAD":
                return self._show(request, 200, target, self._writer.existing(target))
            case "status", "PUT":
                return await self._execute(request, target, self._writer.replace)
            case "status", "PATCH":
                return await self._patch(request, target)
            case "scale", "GET" | "HEAD":
                return _json(self._writer.scale(target))
            case "scale", "PUT":
                return await self._execute(request, target, self._writer.set_scale, plain=True)
            case "scale", "PATCH":
                return await self._patch_scale(request, target)
            case "finalize", "PUT" if target.kind.id == "Namespace":
                return await self._execute(request, target, self._writer.replace)
            case "binding", "POST" if target.kind.id == "Pod":
                return await self._execute(request, target, self._writer.bind, plain=True)
            case "eviction", "POST" if target.kind.id == "Pod":
                return await self._execute(request, target, self._writer.evict, plain=True)
            case "log", "GET" | "HEAD" if target.kind.id == "Pod":
                return self._pod_log(request, target)
            case "exec" | "attach" | "portforward", "GET" | "POST" if target.kind.id == "Pod":
                name = name_of(self._writer.existing(target))
                raise refusal(400, f"pod {name} is simulated and runs no process: {_ELSEWHERE}")
            case "status" | "scale" | "binding" | "eviction" | "log", _:
                raise _bad_method()
        raise no_such_path()

    # -- reading

    def _show(self, request: web.BaseRequest, code: int, target: Target, obj: Obj) -> web.Response:
        """One object, in the requested representation."""
        form = requested_form(request.headers.get("Accept", ""))
        if obj.get("kind") == "Status":
            return _json(obj, code)
        if form == "object" and obj["apiVersion"] != target.api_version:
            return _json(_in_version(target, obj), code)
        if form == "object":
            return web.Response(body=self._encodings.raw(obj), status=code, headers=_HEADERS)
        if form == "metadata":
            return _json(partial(obj), code)
        include = included(request.query.get("includeObject", ""))
        metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return _json(
            table(self._columns(target), [obj], self._store.now(), include, metadata, target.api_version), code
        )

    def _columns(self, target: Target) -> tuple[Column, ...]:
        return columns_for(self._store.discovery, target.kind.id, target.version)

    async def _collection(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        query = request.query
        asked = list_query(query)
        if target.name:  # a watch on one object
            fields = f"metadata.name={target.name}"
            asked = list_query({**query, "fieldSelector": fields})
        form = requested_form(request.headers.get("Accept", ""))
        include = included(query.get("includeObject", ""))
        if asked.watch:
            return await self._watches.serve(request, target, asked, form, include)
        page = self._lists.page(target, asked)
        metadata: dict[str, Any] = {"resourceVersion": str(page.version)}
        if page.after:
            metadata["continue"] = page.after
            if not asked.labels and not asked.fields:
                metadata["remainingItemCount"] = page.remaining
        if form == "table":
            columns = self._columns(target)
            return _json(table(columns, page.items, self._store.now(), include, metadata, target.api_version))
        return await self._stream(request, self._list_pieces(target, page, metadata, form))

    def _list_pieces(self, target: Target, page: Page, metadata: dict[str, Any], form: Form) -> Iterator[bytes]:
        api_version = target.api_version
        if form == "metadata":
            kind, of_list = "PartialObjectMetadataList", META
        else:
            kind, of_list = f"{target.kind.name}List", api_version
        raw = self._encodings.raw
        head = encode({"kind": kind, "apiVersion": of_list, "metadata": metadata})
        pieces = [head[:-1], b',"items":[']
        size = 0
        first = True
        for obj in page.items:
            if form == "metadata":
                one = encode(partial(obj))
            elif obj["apiVersion"] == api_version:
                one = raw(obj)
            else:
                one = encode(as_version(obj, api_version))
            if not first:
                pieces.append(b",")
            first = False
            pieces.append(one)
            size += len(one)
            if size >= CHUNK_BYTES:
                yield b"".join(pieces)
                pieces, size = [], 0
        pieces.append(b"]}\n")
        yield b"".join(pieces)

    async def _stream(self, request: web.BaseRequest, pieces: Iterator[bytes]) -> web.StreamResponse:
        """A long answer in chunks, so that it is never in memory as a whole and other requests are served meanwhile."""
        first = next(pieces)
        second = next(pieces, None)
        if second is None:
            return web.Response(body=first, headers=_HEADERS)
        async with streaming(request, _HEADERS, self._unsent) as stream:
            await stream.write(first)
            await stream.write(second)
            for piece in pieces:
                await asyncio.sleep(0)
                await stream.write(piece)
        return stream.response

    def _pod_log(self, request: web.BaseRequest, target: Target) -> web.Response:
        """The log of a simulated container: one line that says so."""
        container = container_name(self._writer.existing(target), request.query.get("container", ""))
        name = f"{target.namespace}/{target.name}/{container}"
        return web.Response(text=f"{name} is simulated and has no output: {_ELSEWHERE}\n")

    # -- writing

    async def _execute(
        self,
        request: web.BaseRequest,
        target: Target,
        write: Callable[[Target, Any, bool], Answer],
        *,
        plain: bool = False,
    ) -> web.StreamResponse:
        """Reads the body, executes the write, and answers when it is durable."""
        query = request.query
        dry_run = bool(query) and is_dry_run(query.getall("dryRun", ()))
        body = await request_body.read_body(request)
        given = await request_body.decoded(body, request_body.media_type(request))
        (code, obj), warnings = await self._write(lambda: write(target, given, dry_run))
        return await self._acknowledge(request, target, code, obj, warnings, plain=plain or dry_run)

    async def _write(self, write: Callable[[], Made]) -> tuple[Made, list[str]]:
        """A user's write, repeated until all webhooks that it concerns have answered. Returns the warnings, too."""
        review = Review(USER, GROUPS) if self._webhooks is not None else None
        while True:
            try:
                with self._store.as_user(review) as warnings:
                    made = write()
                return made, [*warnings, *(review.warnings if review is not None else ())]
            except Question as question:
                if review is None or self._webhooks is None:
                    raise AssertionError("only a review asks") from None
                await self._webhooks.answer(review, question)

    async def _acknowledge(
        self,
        request: web.BaseRequest,
        target: Target,
        code: int,
        obj: Obj,
        warnings: Sequence[str] = (),
        *,
        plain: bool = False,
    ) -> web.StreamResponse:
        """`warnings`: those of admission."""
        response = _json(_in_version(target, obj), code) if plain else self._show(request, code, target, obj)
        if request.method != "DELETE" and not target.subresource:
            for warning in self._warnings.on(target.kind.id, obj, warnings):
                response.headers.add("Warning", warning)
        await self._until_kept()
        return response

    async def _patch(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        query = request.query
        dry_run = is_dry_run(query.getall("dryRun", ()))
        body = await request_body.read_body(request)
        media = request_body.media_type(request)
        check_patch(target, media)
        json_media = media if media == APPLY_PATCH else request_body.JSON
        patch = await request_body.decoded(body, json_media)
        (code, obj), warnings = await self._write(lambda: self._writer.patch(target, patch, media, query, dry_run))
        return await self._acknowledge(request, target, code, obj, warnings, plain=dry_run)

    async def _patch_scale(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        body = request_body.decode_json(await request_body.read_body(request))
        dry_run = is_dry_run(request.query.getall("dryRun", ()))

        def write() -> Answer:
            scale = self._writer.scale(target)
            wanted = json_patch.apply(scale, body) if isinstance(body, list) else merge_patch(scale, body)
            return self._writer.set_scale(target, wanted, dry_run)

        (code, obj), warnings = await self._write(write)
        return await self._acknowledge(request, target, code, obj, warnings, plain=True)

    async def _delete(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        query = request.query
        raw = await request_body.read_body(request)
        body = await request_body.decoded(raw, request_body.media_type(request)) if raw else None
        options = delete_options(body, query, query.getall("dryRun", []))
        if target.name:
            (code, obj), _ = await self._write(lambda: self._writer.delete(target, options))
            return await self._acknowledge(request, target, code, obj, plain=obj.get("kind") == "Status")
        if target.kind.namespaced and not target.namespace:
            raise _bad_method()
        asked = list_query({key: value for key, value in query.items() if key not in ("dryRun", "watch")})
        found, _ = await self._write(lambda: self._writer.delete_collection(target, asked, options))
        await self._until_kept()
        page = Page(found, self._store.version)
        metadata = {"resourceVersion": str(page.version)}
        return await self._stream(request, self._list_pieces(target, page, metadata, "object"))


def _version() -> dict[str, str]:
    major, minor = KUBERNETES.lstrip("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{KUBERNETES}+enbloc.{__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "python",
        "platform": "any",
    }


def _in_version(target: Target, obj: Obj) -> Obj:
    """An object of the requested kind in the requested version; another, such as a Status or a Scale, as it is."""
    return as_version(obj, target.api_version) if obj.get("kind") == target.kind.name else obj


def _bad_method() -> Exception:
    return refusal(405, "the server does not allow this method on the requested resource")


def _json(body: Any, code: int = 200, media: str = "application/json") -> web.Response:
    return web.Response(body=encode(body), status=code, headers={**_HEADERS, "Content-Type": media})


def _refuse(request: web.BaseRequest, why: Refused, ref: Ref | None) -> web.Response:
    response = _json(failure(why, ref), why.code if 400 <= why.code < 600 else 500)
    if why.code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if why.code == 429:
        response.headers["Retry-After"] = "1"
    if why.code in (408, 413):  # do not wait for the rest of the body
        response.force_close()
    return response
