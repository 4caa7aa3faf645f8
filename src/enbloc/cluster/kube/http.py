"""Requests to one API server: concurrency, timeouts, retries, and lost answers.

The meaning of a request is left to its sender. The sender learns whether an attempt whose answer was lost may have been
executed (`Answer.unsure`), so that it can interpret a refusal of the next attempt.

aiohttp does the rest. An HTTP client of our own for small writes needed 0.2 s less CPU for 1,000 Bindings, and made no
more of them a second (144, 167 and 172 against 154, 170 and 173).
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import msgspec
from yarl import URL

from enbloc.api.writes import REASONS, Refused
from enbloc.cluster.kube.credentials import Credentials, NoCredentials
from enbloc.cluster.session_sockets import SessionSockets

log = logging.getLogger(__name__)

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
MAX_WATCHES = 64
READ_BUFFER = 2**20
_TOO_MANY = 429
_UNAUTHORIZED = 401
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""Errors before anything was sent. After any other error the server may have executed the request."""


class Bounds(msgspec.Struct, frozen=True):
    """Time and retry limits. The defaults are for clusters; tests use smaller ones."""

    attempt_s: float = 5.0
    """One attempt of a write or a small read."""
    patience_s: float = 12.0
    """All attempts of a write together. Less than a usual lease: a replica that lost the lease must not write much
    later."""
    page_s: float = 60.0
    """One page of a list: one attempt, and all attempts together."""
    page: int = 500
    """Objects per page."""
    max_server_errors: int = 3
    """Attempts that may end in 500: mostly a webhook that is down, and callers have their own timers for that."""
    backoff_s: float = 0.05
    """Delay before the second attempt; doubled each time."""
    max_backoff_s: float = 1.0
    max_reconnect_s: float = 5.0
    """The longest delay between two attempts to watch."""
    connect_s: float = 5.0
    watch_s: float = 300.0
    """The requested duration of a watch, give or take a third."""
    stall_s: float = 90.0
    """A watch without a byte for this long is considered dead. Bookmarks come once a minute."""
    fresh_s: float = 30.0
    """A disconnected watch counts as healthy for this long."""
    rediscover_s: float = 10.0
    """How often kinds that are not served are looked up."""


class Answer(NamedTuple):
    """The server's final answer. `unsure`: an earlier attempt may have been executed as well."""

    status: int
    body: bytes
    unsure: bool = False

    @property
    def is_good(self) -> bool:
        return self.status < 300


Measure = Callable[[str, int, float, bool], None]
"""Called after each attempt of a request: its method, the code of the answer (0: none), seconds, and whether it was a
retry."""


class Api:
    """A session with one API server."""

    def __init__(
        self, credentials: Credentials, in_flight: int, bounds: Bounds, measure: Measure | None = None
    ) -> None:
        self.bounds = bounds
        self._measure = measure
        self._credentials = credentials
        self._in_flight = asyncio.Semaphore(in_flight)
        self._base = credentials.base_url
        is_https = self._base.startswith("https:")
        headers = [("Accept", JSON), ("Accept-Encoding", "identity"), ("User-Agent", "enbloc"), *credentials.headers]
        # Without compression, which would cost both sides more time than the network does.
        self._fixed: dict[str, Any] = {"ssl": _ssl(credentials)}
        if credentials.server_name:
            self._fixed["server_hostname"] = credentials.server_name
        if credentials.proxy:
            self._fixed["proxy"] = credentials.proxy
        if is_https and credentials.proxy_headers:
            self._fixed["proxy_headers"] = credentials.proxy_headers
        if not is_https:
            headers += credentials.proxy_headers.items()
        self._attempt = aiohttp.ClientTimeout(total=bounds.attempt_s, sock_connect=bounds.connect_s)
        self._page = aiohttp.ClientTimeout(total=bounds.page_s, sock_connect=bounds.connect_s)
        self._stream = aiohttp.ClientTimeout(total=None, sock_connect=bounds.connect_s, sock_read=bounds.stall_s)
        self._sockets = SessionSockets()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=in_flight + MAX_WATCHES,
                socket_factory=self._sockets.make,
                keepalive_timeout=60,
            ),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
            middlewares=[_send_once],
        )
        self._authorized_until = float("-inf")
        self._authorizing = asyncio.Lock()
        self._generation = 0

    async def close(self) -> None:
        await self._session.close()
        await self._sockets.close()

    # -- one request, one answer

    async def read(self, path: str, *, is_page: bool = False) -> Answer:
        """A GET, retried until it is answered or `patience_s` is over."""
        if is_page:
            return await self._retry("GET", path, None, "", self._page, self.bounds.page_s)
        return await self._retry("GET", path, None, "", self._attempt, self.bounds.patience_s)

    async def write(
        self, method: str, path: str, body: bytes, content_type: str = JSON, *, at_most_once: bool = False
    ) -> Answer:
        """A write, retried until it is answered or `patience_s` is over; or, if it must not be executed twice, until
        its outcome is unknown. If the outcome stays unknown the answer is 504, whatever the last attempt returned."""
        patience_s = self.bounds.patience_s
        answer = await self._retry(method, path, body, content_type, self._attempt, patience_s, at_most_once)
        if answer.unsure and (answer.status == _TOO_MANY or answer.status >= 500):
            return _outcome_unknown(answer)
        return answer

    async def _retry(
        self,
        method: str,
        path: str,
        body: bytes | None,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
        patience_s: float,
        at_most_once: bool = False,
    ) -> Answer:
        loop = asyncio.get_running_loop()
        until = loop.time() + patience_s
        unsure = False
        renewed = False
        errors = 0
        for attempt in range(1_000):
            began_s = loop.time()
            try:
                if loop.time() >= self._authorized_until:
                    await self._authorize()
                generation = self._generation
                began_s = loop.time()
                async with self._in_flight:
                    status, answer, retry_after = await self._send(method, path, body, content_type, timeout)
                self._measured(method, status, began_s, attempt)
            except (aiohttp.ClientError, TimeoutError, OSError) as why:
                self._measured(method, 0, began_s, attempt)
                unsure = unsure or not isinstance(why, _NOT_SENT)
                wait_s = backoff_s(self.bounds, attempt, self.bounds.max_backoff_s)
                hopeless = isinstance(why, aiohttp.ClientSSLError) or (at_most_once and unsure)
                if hopeless or loop.time() + wait_s >= until:
                    return _no_answer(method, path, why, unsure)
            else:
                if status < 400:
                    return Answer(status, answer, unsure)
                if status == _UNAUTHORIZED and not renewed:
                    renewed = True
                    await self._authorize(refused=generation)
                    continue
                if status != _TOO_MANY and status < 500:
                    return Answer(status, answer, unsure)
                errors += status == 500
                unsure = unsure or status != _TOO_MANY
                wait_s = max(backoff_s(self.bounds, attempt, self.bounds.max_backoff_s), _seconds(retry_after))
                hopeless = errors >= self.bounds.max_server_errors or (at_most_once and unsure)
                if hopeless or loop.time() + wait_s >= until:
                    return Answer(status, answer, unsure)
            await asyncio.sleep(wait_s)
        raise AssertionError("unreachable: patience_s allows fewer than a thousand attempts")

    async def _send(
        self, method: str, path: str, body: bytes | None, content_type: str, timeout: aiohttp.ClientTimeout
    ) -> tuple[int, bytes, str | None]:
        """One attempt: status, body and `Retry-After` of its answer."""
        url = URL(self._base + path, encoded=True)
        headers = {"Content-Type": content_type} if body is not None else None
        async with self._session.request(
            method, url, data=body, headers=headers, timeout=timeout, allow_redirects=body is None, **self._fixed
        ) as response:
            return response.status, await response.read(), response.headers.get("Retry-After")

    def _measured(self, method: str, code: int, began_s: float, attempt: int) -> None:
        if self._measure is not None:
            self._measure(method, code, asyncio.get_running_loop().time() - began_s, attempt > 0)

    async def _authorize(self, *, refused: int | None = None) -> None:
        """Gets the present credentials. `refused`: the generation of those that the server rejected."""
        async with self._authorizing:
            now = asyncio.get_running_loop().time()
            if (now < self._authorized_until) if refused is None else (refused != self._generation):
                return  # another request has refreshed them meanwhile
            try:
                key = await self._credentials.authorization(refused=refused is not None)
            except NoCredentials as why:
                if refused is not None or not self._generation:
                    raise Refused(_UNAUTHORIZED, "Unauthorized", str(why)) from None
                log.warning("cannot refresh credentials, using the old ones: %s", why)
                self._authorized_until = now + self._credentials.refresh_s / 4
                return
            self._fixed["ssl"] = _ssl(self._credentials)  # connections with another one are not used any more
            if key:
                self._session.headers["Authorization"] = key
            else:
                self._session.headers.pop("Authorization", None)
            self._authorized_until = now + self._credentials.refresh_s
            self._generation += 1

    # -- one request, a stream of answers

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """An open watch. Raises aiohttp's errors when it breaks or stalls; `Refused` if the server refuses it."""
        if asyncio.get_running_loop().time() >= self._authorized_until:
            await self._authorize()
        generation = self._generation
        url = URL(self._base + path, encoded=True)
        async with self._session.get(url, timeout=self._stream, **self._fixed) as response:
            if response.status != 200:
                if response.status == _UNAUTHORIZED:
                    await self._authorize(refused=generation)
                raise refusal(Answer(response.status, await response.read()))
            yield response


async def _send_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """aiohttp repeats a PUT or DELETE itself when these two end it: the sender would not learn that it may have been
    executed."""
    try:
        return await handler(request)
    except _NOT_SENT:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as why:
        raise aiohttp.ClientConnectionError(str(why) or type(why).__name__) from why


def _ssl(credentials: Credentials) -> ssl.SSLContext | bool:
    return True if credentials.tls is None else credentials.tls


class _Details(msgspec.Struct):
    name: str = ""


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    details: _Details | None = None


_status_decoder = msgspec.json.Decoder(_Status)


def refusal(answer: Answer) -> Refused:
    """The server's refusal. A body that is not a Status (a proxy's, for example) is quoted."""
    status = _status(answer)
    reason = status.reason or REASONS.get(answer.status, "Unknown")
    return Refused(answer.status, reason, status.message or reason)


def is_unserved(answer: Answer) -> bool:
    """Whether a 404 is about the path, not about a missing object."""
    details = _status(answer).details
    return details is None or not details.name


def _status(answer: Answer) -> _Status:
    try:
        return _status_decoder.decode(answer.body)
    except msgspec.DecodeError:
        return _Status(answer.body[:300].decode(errors="replace").strip())


def _outcome_unknown(answer: Answer) -> Answer:
    body = {"reason": REASONS[504], "message": refusal(answer).message}
    return Answer(504, msgspec.json.encode(body), unsure=True)


def _no_answer(method: str, path: str, why: BaseException, unsure: bool) -> Answer:
    """No answer within `patience_s`: 504 if the request may have been executed, 503 if it was not."""
    what = " ".join(str(why).split())[:300] or type(why).__name__
    status = 504 if unsure else 503
    body = {"reason": REASONS[status], "message": f"{method} {path.partition('?')[0]}: no answer: {what}"}
    return Answer(status, msgspec.json.encode(body), unsure)


def backoff_s(bounds: Bounds, attempt: int, max_s: float) -> float:
    """The delay before the next attempt, in seconds: longer each time, with jitter."""
    longest_s = min(bounds.backoff_s * 2 ** min(attempt, 30), max_s)
    return random.uniform(longest_s / 2, longest_s)


def _seconds(retry_after: str | None) -> float:
    """Retry-After in seconds; dates, which Kubernetes does not send, count as 0."""
    return float(retry_after) if retry_after and retry_after.isdecimal() and len(retry_after) < 10 else 0.0
