"""A proxy between a client and an API server that makes trouble: by chance from a seed, or by a script.

    with FaultProxy(plane, seed=7, chances=Chances(each=0.05)) as proxy:
        run_something(proxy.kubeconfig)
        proxy.calm()                                     # from here on it only passes on
    proxy.script("POST", r"/binding$", Refuse(500), nth=3)   # or: the third POST to …/binding is answered with 500

Whether a request meets with trouble depends on the seed, on its verb and path, and on how many such requests came
before; not on what else happens at the time. So a seed replays what it did, however tasks take turns. Every fault is
kept in `injected` and told by `story()`.

A fault comes `before` the API server has seen the request, or `after` it has done what was asked: then the client does
not learn that it was done, and that is where clients go wrong.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import ssl
import threading
from collections import Counter
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

import aiohttp
from aiohttp import web
from yarl import URL

from e2e.certificates import LOOPBACK
from e2e.control_plane import ControlPlane

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete"]
When = Literal["before", "after"]
REASONS = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
BODY_AT_MOST = 64 * 1024 * 1024
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "upgrade", "te", "trailer"}


@dataclass(frozen=True)
class Refuse:
    """An answer with this status code."""

    code: int
    retry_after_s: int | None = None
    when: When = "before"


@dataclass(frozen=True)
class Hang:
    """No answer; after `at_most_s` the connection is reset, so that nothing hangs for ever."""

    at_most_s: float = 60
    when: When = "before"


@dataclass(frozen=True)
class Reset:
    """The connection breaks."""

    when: When = "before"


@dataclass(frozen=True)
class Delay:
    """Passed on after a while: so many seconds as follow from the seed and the request."""

    at_most_s: float
    at_least_s: float = 0


@dataclass(frozen=True)
class Cut:
    """A watch (or a long list) breaks in the middle of the line after so many whole lines."""

    lines: int = 0


@dataclass(frozen=True)
class Expire:
    """A watch tells, after so many lines, that its version is too old, as an event of type ERROR; then it ends."""

    lines: int = 0


Fault = Refuse | Hang | Reset | Delay | Cut | Expire


class Injected(NamedTuple):
    """A fault that was done: to the `nth` request with this verb and path."""

    seed: int | None
    verb: Verb
    path: str
    nth: int
    fault: Fault


@dataclass(frozen=True)
class Chances:
    """How often by chance, and what: each request meets with trouble with probability `each`.

    What makes no sense is left out: only writes conflict, only lists and watches expire, only watches are cut."""

    each: float = 0.05
    hang_at_most_s: float = 2
    retry_after_s: int = 1
    lines_at_most: int = 5
    verbs: frozenset[Verb] = frozenset({"get", "list", "watch", "create", "update", "patch", "delete"})

    def draw(self, seed: int, verb: Verb, path: str, nth: int) -> Fault | None:
        """The same for the same arguments, always."""
        dice = random.Random(f"{seed} {verb} {path} {nth}")
        if dice.random() >= self.each or verb not in self.verbs:
            return None
        when: When = dice.choice(("before", "after"))
        choices: list[Fault] = [
            Refuse(429, self.retry_after_s),
            Refuse(500, when=when),
            Hang(self.hang_at_most_s, when),
            Reset(when),
        ]
        if verb in ("create", "update", "patch", "delete"):
            choices.append(Refuse(409))
        if verb in ("list", "watch"):
            choices.append(Refuse(410))
        if verb == "watch":
            lines = dice.randint(0, self.lines_at_most)
            choices += [Cut(lines), Cut(lines), Expire(lines)]
        return dice.choice(choices)


@dataclass
class _Line:
    """A line of the script."""

    method: str
    path: re.Pattern[str]
    fault: Fault
    first: int
    last: int
    seen: int = field(default=0)


class FaultProxy:
    """Listens on loopback with TLS, in a thread of its own, so that it serves any kind of test.

    With `seed=None` nothing happens by chance. `kubeconfig` leads to it as the owner of `token`, an administrator if
    there is none; a client's certificate would not get past it."""

    def __init__(
        self, plane: ControlPlane, *, seed: int | None = None, chances: Chances | None = None, token: str = ""
    ) -> None:
        self.seed = seed
        self.injected: list[Injected] = []
        self.url = ""
        self.kubeconfig = Path()
        self._plane = plane
        self._chances = chances or Chances()
        self._token = token or plane.token
        self._calm = False
        self._lines: list[_Line] = []
        self._counts: Counter[tuple[Verb, str]] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faults", daemon=True)
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        self._do(self._open())
        name = f"proxy-{self.url.rpartition(':')[2]}"
        self.kubeconfig = self._plane.write_kubeconfig(name, self.url, {"token": self._token})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._do(self._close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._loop.close()
        if kind is not None:
            print(self.story())

    def script(self, method: str, path: str, fault: Fault, *, nth: int = 1, times: int = 1) -> None:
        """The `nth` request from now (and `times` of them in a row) with this method and a path in which the
        expression `path` is found meets with `fault`. Method `WATCH` is a GET that watches."""
        line = _Line(method.upper(), re.compile(path), fault, nth, nth + times - 1)
        self._loop.call_soon_threadsafe(self._lines.append, line)

    def calm(self) -> None:
        """From now on everything is passed on as it is."""
        self._calm = True

    def storm(self) -> None:
        """Takes `calm` back."""
        self._calm = False

    def story(self) -> str:
        """What was done to whom; the seed does it again."""
        lines = [f"  {each.verb} {each.path} (number {each.nth}): {each.fault}" for each in list(self.injected)]
        return "\n".join([f"faults with seed {self.seed}: {len(lines)}", *lines])

    # -- inside the loop

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        done: Future[None] = asyncio.run_coroutine_threadsafe(work, self._loop)
        done.result(30)

    async def _open(self) -> None:
        outward = ssl.create_default_context(cafile=str(self._plane.authority.certificate))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=outward, limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            auto_decompress=False,
        )
        served = self._plane.authority.server("proxy")
        inward = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        inward.load_cert_chain(served.certificate, served.key)
        app = web.Application(client_max_size=BODY_AT_MOST)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, LOOPBACK, 0, ssl_context=inward)
        await site.start()
        self.url = f"https://{LOOPBACK}:{self._runner.addresses[0][1]}"

    async def _close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()
        await asyncio.sleep(0.05)  # TLS connections say goodbye in the background

    def _fault_for(self, request: web.Request, verb: Verb) -> Injected | None:
        key = (verb, request.path)
        self._counts[key] += 1
        nth = self._counts[key]
        chosen: Fault | None = None
        for line in self._lines:
            if line.method in (request.method, verb.upper()) and line.path.search(request.path):
                line.seen += 1
                if line.first <= line.seen <= line.last and chosen is None:
                    chosen = line.fault
        if chosen is None and self.seed is not None:
            chosen = self._chances.draw(self.seed, verb, request.path, nth)
        if chosen is None or self._calm:
            return None
        return Injected(self.seed, verb, request.path, nth, chosen)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        verb = verb_of(request.method, request.path, request.query.get("watch", ""))
        injected = self._fault_for(request, verb)
        fault = injected.fault if injected is not None else None
        body = await request.read()
        if injected is not None and isinstance(fault, Delay):
            self.injected.append(injected)
            dice = random.Random(f"{self.seed} {injected.path} {injected.nth}")
            await asyncio.sleep(dice.uniform(fault.at_least_s, fault.at_most_s))
            injected = None
        if injected is not None and not isinstance(fault, Cut | Expire):
            self.injected.append(injected)
            if fault is not None and getattr(fault, "when", "") == "after":
                await self._send_unheard(request, body)
            if isinstance(fault, Refuse):
                return _refusal(fault)
            if isinstance(fault, Hang):
                await asyncio.sleep(fault.at_most_s)
            _abort(request)
            return web.Response(status=502)  # nobody hears it
        return await self._pass_on(request, body, injected)

    async def _send_unheard(self, request: web.Request, body: bytes) -> None:
        """The API server does what was asked, if it is there; a watch is not waited for."""
        if request.query.get("watch") in ("1", "true"):
            return
        try:
            async with await self._ask(request, body) as answer:
                await answer.read()
        except aiohttp.ClientError:
            pass

    async def _ask(self, request: web.Request, body: bytes) -> aiohttp.ClientResponse:
        """The same request to the API server, with nothing added."""
        assert self._session is not None
        return await self._session.request(
            request.method,
            URL(f"{self._plane.url}{request.raw_path}", encoded=True),
            headers=_headers(request.headers),
            data=body or None,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            allow_redirects=False,
        )

    async def _pass_on(self, request: web.Request, body: bytes, injected: Injected | None) -> web.StreamResponse:
        try:
            answer = await self._ask(request, body)
        except aiohttp.ClientError:  # the API server itself is away: to the client that is a broken connection
            _abort(request)
            return web.Response(status=502)
        async with answer:
            response = web.StreamResponse(status=answer.status, headers=_headers(answer.headers))
            await response.prepare(request)
            lines = 0
            try:
                async for chunk in answer.content.iter_any():
                    if injected is not None:
                        allowed = injected.fault.lines if isinstance(injected.fault, Cut | Expire) else 0
                        if lines + chunk.count(b"\n") > allowed:
                            return await self._break_off(request, response, chunk, allowed - lines, injected)
                        lines += chunk.count(b"\n")
                    await response.write(chunk)
                await response.write_eof()
            except aiohttp.ClientError:  # either side is gone
                _abort(request)
        return response

    async def _break_off(
        self, request: web.Request, response: web.StreamResponse, chunk: bytes, whole: int, injected: Injected
    ) -> web.StreamResponse:
        """Passes on `whole` more lines of the chunk, and then does what is to be done."""
        self.injected.append(injected)
        lines = chunk.split(b"\n")
        head = b"".join(line + b"\n" for line in lines[:whole])
        if isinstance(injected.fault, Expire):
            status = _status(410, "too old resource version")
            await response.write(head + json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
            await response.write_eof()
            return response
        half = lines[whole]
        await response.write(head + half[: max(1, len(half) // 2)])
        await asyncio.sleep(0.05)  # let what was written leave before the connection breaks
        _abort(request)
        return response


def verb_of(method: str, path: str, watch: str) -> Verb:
    """What Kubernetes would call it. A path ends in a name if it has a name after the resource."""
    if method in ("GET", "HEAD"):
        if watch in ("1", "true"):
            return "watch"
        parts = [part for part in path.split("/") if part]
        rest = parts[2:] if parts[:1] == ["api"] else parts[3:] if parts[:1] == ["apis"] else []
        if len(rest) > 2 and rest[0] == "namespaces":
            rest = rest[2:]
        return "list" if len(rest) == 1 else "get"
    verbs: dict[str, Verb] = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    return verbs.get(method, "get")


def _headers(headers: Any) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name.lower() not in _HOP_BY_HOP]


def _status(code: int, message: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": REASONS.get(code, "Unknown"),
        "code": code,
    }


def _refusal(fault: Refuse) -> web.Response:
    headers = {} if fault.retry_after_s is None else {"Retry-After": str(fault.retry_after_s)}
    return web.json_response(_status(fault.code, "a fault of the test's"), status=fault.code, headers=headers)


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
