"""Requests to one API server: how many at once, how long each may take, what is tried again, what is then unknown.

What a request means is left to those who send it. One thing they must be told, and are: whether an attempt whose answer
was lost may have been carried out (`Answer.unsure`), so that a refusal of the next attempt can be read rightly.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import msgspec
from yarl import URL

from enbloc.api.writes import Refused
from enbloc.cluster.kube.credentials import Credentials, NoCredentials

log = logging.getLogger(__name__)

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
WATCHES_MOST = 64
READ_BUFFER = 2**20
_TOO_MANY = 429
_UNAUTHORIZED = 401
_UNTAKEN = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""What went wrong before anything was sent. After any other error the server may have done what it was asked."""


class Bounds(msgspec.Struct, frozen=True):
    """How long, how often, how much. The defaults are for clusters; tests have less time."""

    attempt_s: float = 5.0
    """One attempt of a write or a small read."""
    patience_s: float = 12.0
    """All attempts of a write together. Less than a usual lease: who lost the lead must not write much later."""
    page_s: float = 60.0
    """One attempt of one page of a list, and all of them together."""
    page: int = 500
    """Objects a page."""
    errors_most: int = 3
    """Attempts that may end in 500: mostly a webhook that is down, and callers have their own timers for that."""
    backoff_s: float = 0.05
    """Before the second attempt; then twice as much each time."""
    backoff_most_s: float = 1.0
    reconnect_most_s: float = 5.0
    """The most between two attempts to watch."""
    connect_s: float = 5.0
    watch_s: float = 300.0
    """How long a watch is asked to last, give or take a third."""
    stall_s: float = 90.0
    """A watch from which no byte came for so long is taken as dead. Bookmarks come once a minute."""
    fresh_s: float = 30.0
    """A watch that is cut counts as healthy for so long."""
    rediscover_s: float = 10.0
    """How often kinds that are not served are looked for."""


class Answer(NamedTuple):
    """What the server said in the end. `unsure`: an earlier attempt may have been carried out as well."""

    status: int
    body: bytes
    unsure: bool = False

    @property
    def is_good(self) -> bool:
        return self.status < 300


class Api:
    """A session with one API server."""

    def __init__(self, credentials: Credentials, in_flight: int, bounds: Bounds) -> None:
        self.bounds = bounds
        self._credentials = credentials
        self._in_flight = asyncio.Semaphore(in_flight)
        self._base = credentials.base_url
        self._fixed: dict[str, Any] = {}
        if credentials.server_name:
            self._fixed["server_hostname"] = credentials.server_name
        if credentials.proxy:
            self._fixed["proxy"] = credentials.proxy
        self._attempt = aiohttp.ClientTimeout(total=bounds.attempt_s, sock_connect=bounds.connect_s)
        self._page = aiohttp.ClientTimeout(total=bounds.page_s, sock_connect=bounds.connect_s)
        self._stream = aiohttp.ClientTimeout(total=None, sock_connect=bounds.connect_s, sock_read=bounds.stall_s)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=in_flight + WATCHES_MOST,
                ssl=credentials.tls if credentials.tls is not None else True,
                keepalive_timeout=60,
            ),
            # Packing would cost both sides more time than the wire does.
            headers={"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": "enbloc"},
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
        )
        self._authorized_until = float("-inf")
        self._authorizing = asyncio.Lock()
        self._generation = 0

    async def close(self) -> None:
        await self._session.close()

    # -- one request, one answer

    async def read(self, path: str, *, is_page: bool = False) -> Answer:
        """A GET, tried until it is answered or patience ends."""
        if is_page:
            return await self._insist("GET", path, None, None, self._page, self.bounds.page_s)
        return await self._insist("GET", path, None, None, self._attempt, self.bounds.patience_s)

    async def write(
        self, method: str, path: str, body: bytes, content_type: str = JSON, *, at_most_once: bool = False
    ) -> Answer:
        """A write, tried until it is answered or patience ends; or, if it must not happen twice, until it is unsure.
        If it may have been carried out and nobody can say, the answer is 504, whatever the last attempt was told."""
        headers = {"Content-Type": content_type}
        bounds = self.bounds
        answer = await self._insist(method, path, body, headers, self._attempt, bounds.patience_s, at_most_once)
        if answer.unsure and (answer.status == _TOO_MANY or answer.status >= 500):
            return _untold(answer)
        return answer

    async def _insist(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str] | None,
        timeout: aiohttp.ClientTimeout,
        patience_s: float,
        at_most_once: bool = False,
    ) -> Answer:
        url = URL(self._base + path, encoded=True)
        loop = asyncio.get_running_loop()
        until = loop.time() + patience_s
        unsure = False
        renewed = False
        errors = 0
        for attempt in range(1_000):
            try:
                if loop.time() >= self._authorized_until:
                    await self._authorize()
                generation = self._generation
                async with (
                    self._in_flight,
                    self._session.request(
                        method, url, data=body, headers=headers, timeout=timeout, **self._fixed
                    ) as response,
                ):
                    status, answer = response.status, await response.read()
                    retry_after = response.headers.get("Retry-After") if status >= 400 else None
            except (aiohttp.ClientError, TimeoutError, OSError) as why:
                unsure = unsure or not isinstance(why, _UNTAKEN)
                wait_s = backoff_s(self.bounds, attempt, self.bounds.backoff_most_s)
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
                wait_s = max(backoff_s(self.bounds, attempt, self.bounds.backoff_most_s), _seconds(retry_after))
                hopeless = errors >= self.bounds.errors_most or (at_most_once and unsure)
                if hopeless or loop.time() + wait_s >= until:
                    return Answer(status, answer, unsure)
            await asyncio.sleep(wait_s)
        raise AssertionError("patience is shorter than a thousand attempts")

    async def _authorize(self, *, refused: int | None = None) -> None:
        """Asks who we are. `refused`: the generation of the answer that the server did not take."""
        async with self._authorizing:
            now = asyncio.get_running_loop().time()
            if (now < self._authorized_until) if refused is None else (refused != self._generation):
                return  # somebody else has asked meanwhile
            try:
                key = await self._credentials.authorization(refused=refused is not None)
            except NoCredentials as why:
                if refused is not None or not self._generation:
                    raise Refused(_UNAUTHORIZED, "Unauthorized", str(why)) from None
                log.warning("cannot renew who we are, going on as before: %s", why)
                self._authorized_until = now + self._credentials.refresh_s / 4
                return
            if key:
                self._session.headers["Authorization"] = key
            else:
                self._session.headers.pop("Authorization", None)
            self._authorized_until = now + self._credentials.refresh_s
            self._generation += 1

    # -- one request, a stream of answers

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """An open watch. Raises what aiohttp raises when it is cut or stalls; `Refused` if the server will not."""
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


class _Details(msgspec.Struct):
    name: str = ""


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    details: _Details | None = None


_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Gone",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_status_decoder = msgspec.json.Decoder(_Status)


def refusal(answer: Answer) -> Refused:
    """What the server said no with. A body that is no Status (a proxy's, say) is quoted."""
    said = _status(answer)
    reason = said.reason or _REASONS.get(answer.status, "Unknown")
    return Refused(answer.status, reason, said.message or reason)


def is_unserved(answer: Answer) -> bool:
    """Whether a 404 is about the path rather than about an object that is not there."""
    details = _status(answer).details
    return details is None or not details.name


def _status(answer: Answer) -> _Status:
    try:
        return _status_decoder.decode(answer.body)
    except msgspec.DecodeError:
        return _Status(answer.body[:300].decode(errors="replace").strip())


def _untold(answer: Answer) -> Answer:
    said = {"reason": _REASONS[504], "message": refusal(answer).message}
    return Answer(504, msgspec.json.encode(said), unsure=True)


def _no_answer(method: str, path: str, why: BaseException, unsure: bool) -> Answer:
    """Patience has ended without an answer: 504 if it may have been carried out, 503 if it was not."""
    what = " ".join(str(why).split())[:300] or type(why).__name__
    status = 504 if unsure else 503
    said = {"reason": _REASONS[status], "message": f"{method} {path.partition('?')[0]}: no answer: {what}"}
    return Answer(status, msgspec.json.encode(said), unsure)


def backoff_s(bounds: Bounds, attempt: int, most_s: float) -> float:
    """Before the next attempt, in seconds: longer each time, and not the same for everybody."""
    longest_s = min(bounds.backoff_s * 2 ** min(attempt, 30), most_s)
    return random.uniform(longest_s / 2, longest_s)


def _seconds(retry_after: str | None) -> float:
    """Retry-After in seconds; dates, which Kubernetes does not send, count as nothing."""
    return float(retry_after) if retry_after and retry_after.isdecimal() and len(retry_after) < 10 else 0.0
