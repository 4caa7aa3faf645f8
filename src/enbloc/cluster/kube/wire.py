"""Small writes over kept connections: 7 % more Bindings from the same CPU than through aiohttp, API server included.

HTTP/1.1 and nothing more of it than an API server and its proxies use. A Binding is a request of 500 bytes and an
answer of 300. A general client spends more time on its own layers than on those bytes (0.93 ms of CPU a Binding with
its watch events, here 0.71), and during a backlog that time is missing to the API server beside it (2.5 ms). Here a
request is one `send` and its answer mostly one `recv` on a non-blocking socket. Lists, watches, and everything through
a proxy are aiohttp's part (`http`), retries too.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

READ_BYTES: Final = 2**16
MOST_HEAD_BYTES: Final = 2**16
MOST_BODY_BYTES: Final = 2**26
"""No answer to a write is nearly as large; a longer one means that the server is broken."""
IDLE_S: Final = 60.0
"""A connection that was not used for this long is closed: a proxy on the way may have forgotten it."""
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([^\r]*?)[ \t]*(?=\r\n)")
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:[^\r]*\bchunked[ \t]*\r\n")
_CLOSE: Final = re.compile(rb"\r\nconnection:[^\r]*\bclose\b")
_RETRY_AFTER: Final = re.compile(rb"\r\nretry-after:[ \t]*([^\r]*?)[ \t]*\r\n")
_STATUS: Final = re.compile(rb"http/1\.[01] ([1-9]\d\d)(?: [^\r]*)?\r\n")
_CHUNK: Final = re.compile(rb"[0-9a-f]{1,8}", re.IGNORECASE)
_WITHOUT_BODY: Final = frozenset({204, 304})


class NotSent(OSError):
    """Nothing was sent: no connection was made."""


class NotTrusted(NotSent):
    """The two sides do not agree on TLS; another attempt would end the same."""


class Broken(OSError):
    """The connection ended, or what came is no answer: the server may have executed the request."""


class Received(NamedTuple):
    """An answer. `retry_after` is its header, if it has one."""

    status: int
    body: bytes
    retry_after: str | None
    closes: bool
    """Whether the connection ends with it."""


class Wire:
    """Connections to one API server, each with one request under way or none."""

    def __init__(
        self,
        base_url: str,
        tls: ssl.SSLContext | None,
        server_name: str | None,
        connect_s: float,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        at = urlsplit(base_url)
        self._tls = (tls or ssl.create_default_context()) if at.scheme == "https" else None
        self._host = at.hostname or ""
        self._port = at.port or (443 if self._tls is not None else 80)
        self._name = server_name or self._host
        self._prefix = at.path.encode()
        host = at.netloc.rpartition("@")[2]
        self._fixed = f"Host: {host}\r\nUser-Agent: enbloc\r\nAccept: application/json\r\nAccept-Encoding: identity\r\n"
        self._fixed += "".join(f"{name}: {value}\r\n" for name, value in headers)
        self._headers = self._fixed.encode()
        self._connect_s = connect_s
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._reached: Any = None
        """The address that answered last: it is tried first."""

    def authorize(self, authorization: str | None) -> None:
        """The `Authorization` header from now on. Raises `ValueError` for what would be more than one header."""
        if authorization and not authorization.isprintable():
            raise ValueError("control characters in the Authorization header")
        text = f"{self._fixed}Authorization: {authorization}\r\n" if authorization else self._fixed
        self._headers = text.encode()

    def renew(self, tls: ssl.SSLContext | None = None) -> None:
        """Idle connections are used no more: they were made with another client certificate. `tls`: for the next."""
        self._tls = tls or self._tls
        while self._idle:
            self._idle.pop().close()

    async def request(self, method: str, path: str, body: bytes, content_type: str, within_s: float) -> Received:
        """One attempt. Raises `NotSent`, `Broken` or `TimeoutError`; after `close` a `RuntimeError`."""
        if not path.isascii() or any(mark in path for mark in " \r\n"):
            raise NotSent(f"not a path: {path[:200]!r}")
        loop = asyncio.get_running_loop()
        until_s = loop.time() + within_s
        connection = self._take(until_s - within_s) or await self._connect(min(within_s, self._connect_s))
        connection.until_s = until_s
        if self._sweep is None:
            self._look_later(loop, within_s)
        head = b"%s %s%s HTTP/1.1\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (
            method.encode(),
            self._prefix,
            path.encode(),
            self._headers,
            content_type.encode(),
            len(body),
        )
        try:
            received = await connection.ask(head + body)
        except BaseException:  # a cancelled request too: its answer would be taken for that of the next
            connection.close()
            raise
        if received.closes:
            connection.close()
        else:
            connection.idle_since_s = loop.time()
            self._idle.append(connection)
        return received

    def close(self) -> None:
        """Requests that are under way break."""
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for connection in list(self._open):
            connection.fail(Broken("the connection was closed by this side"))

    def _take(self, now_s: float) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()  # the one used last: those that are not needed grow old
            if connection.is_open and now_s - connection.idle_since_s < IDLE_S:
                return connection
            connection.close()
        return None

    async def _connect(self, within_s: float) -> _Connection:
        self._must_be_open()
        try:
            async with asyncio.timeout(within_s):
                connected = await self._socket(within_s)
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError) as why:
            raise NotSent(f"{self._host}:{self._port} ended the handshake: {why}") from None
        except ssl.SSLError as why:
            raise NotTrusted(f"TLS: {why}") from None
        except TimeoutError:
            raise NotSent(f"no connection to {self._host}:{self._port} within {within_s:g} s") from None
        except (OSError, UnicodeError) as why:
            raise NotSent(f"cannot connect to {self._host}:{self._port}: {why}") from None
        connection = _Connection(connected, self._open.discard)
        self._open.add(connection)
        try:
            self._must_be_open()  # it may have been closed meanwhile
        except RuntimeError:
            connection.close()
            raise
        return connection

    def _must_be_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("the connections to the API server are closed")

    async def _socket(self, within_s: float) -> socket.socket:
        """A connected socket, by the first address that answers. Each gets its part of the time: one that drops
        packets, as IPv6 often does, must not use up that of the others."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + within_s
        why: OSError = OSError("the name has no address")
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        found.sort(key=lambda one: one[4] != self._reached)
        for left, (family, kind, protocol, _, address) in zip(range(len(found), 0, -1), found, strict=True):
            plain = socket.socket(family, kind, protocol)
            try:
                plain.setblocking(False)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                async with asyncio.timeout((until_s - loop.time()) / left):
                    await loop.sock_connect(plain, address)
                self._reached = address
                return plain if self._tls is None else await _secured(plain, self._tls, self._name)
            except ssl.SSLError:
                plain.close()
                raise
            except OSError as error:
                plain.close()
                why = error
            except BaseException:
                plain.close()
                raise
        raise why

    def _look_later(self, loop: asyncio.AbstractEventLoop, within_s: float) -> None:
        """One timer for all requests: each of its own would cost as much as the request."""
        self._sweep = loop.call_later(max(0.005, min(0.25, within_s / 8)), self._end_late, loop, within_s)

    def _end_late(self, loop: asyncio.AbstractEventLoop, within_s: float) -> None:
        now_s = loop.time()
        for connection in list(self._open):
            if connection.is_busy and connection.until_s <= now_s:
                connection.fail(TimeoutError("no answer in time"))
        self._sweep = None
        if any(connection.is_busy for connection in self._open):
            self._look_later(loop, within_s)


async def _secured(plain: socket.socket, tls: ssl.SSLContext, name: str) -> ssl.SSLSocket:
    """The socket after the handshake."""
    loop = asyncio.get_running_loop()
    secured = tls.wrap_socket(plain, server_hostname=name, do_handshake_on_connect=False)
    try:
        while True:
            ready: asyncio.Future[None] = loop.create_future()
            try:
                secured.do_handshake()
                return secured
            except ssl.SSLWantReadError:
                add, remove = loop.add_reader, loop.remove_reader
            except ssl.SSLWantWriteError:
                add, remove = loop.add_writer, loop.remove_writer
            add(secured, _done, ready)
            try:
                await ready
            finally:
                remove(secured)
    except BaseException:
        secured.close()
        raise


def _done(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


class _Connection:
    """One socket. It is read from whenever there is something, so that an end is seen while it is idle."""

    def __init__(self, connected: socket.socket, closed: Callable[[_Connection], None]) -> None:
        self._socket = connected
        self._closed = closed
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Received] | None = None
        self._read = bytearray()
        self._unsent = memoryview(b"")
        self._waits_to_write = False
        self.is_open = True
        self.until_s = 0.0
        self.idle_since_s = 0.0
        self._pending = connected.pending if isinstance(connected, ssl.SSLSocket) else lambda: 0
        self._loop.add_reader(connected, self._readable)

    @property
    def is_busy(self) -> bool:
        return self._answer is not None

    async def ask(self, request: bytes) -> Received:
        self._answer = self._loop.create_future()
        self._unsent = memoryview(request)
        self._write()
        try:
            return await self._answer
        finally:
            self._answer = None

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._closed(self)

    def fail(self, why: Exception) -> None:
        self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(why)

    # -- bytes

    def _write(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except (BlockingIOError, InterruptedError, ssl.SSLWantWriteError):
            self._loop.add_writer(self._socket, self._write)
            self._waits_to_write = True
        except ssl.SSLWantReadError:
            pass  # it goes on when something was read
        except OSError as why:
            self.fail(Broken(f"the connection was lost: {why}"))
        else:
            if self._waits_to_write:
                self._loop.remove_writer(self._socket)
                self._waits_to_write = False

    def _readable(self) -> None:
        try:
            while True:
                got = self._socket.recv(READ_BYTES)
                if not got:
                    self._ended()
                    return
                self._take(got)
                if not self.is_open:
                    return
                if self._unsent:
                    self._write()
                if not self._pending():
                    return
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if self._unsent and not self._waits_to_write:
                self._write()  # TLS had to read before it could go on
        except OSError as why:
            self.fail(Broken(f"the connection was lost: {why}"))

    def _take(self, got: bytes) -> None:
        answer = self._answer
        if answer is None or answer.done():
            self.close()  # nothing was asked for: whatever it is, it must not be the next one's answer
            return
        self._read += got
        try:
            received = parse(self._read)
        except ValueError as why:
            self.fail(Broken(str(why)))
            return
        if received is not None:
            self._read.clear()
            answer.set_result(received._replace(closes=True) if self._unsent else received)

    def _ended(self) -> None:
        """The server has closed the connection. An answer without a length ends so."""
        try:
            received = parse(self._read, ended=True) if self.is_busy else None
        except ValueError:
            received = None
        if received is not None and self._answer is not None and not self._answer.done():
            self.close()
            self._answer.set_result(received)
        else:
            self.fail(Broken("the server closed the connection"))


def parse(data: bytearray, *, ended: bool = False) -> Received | None:
    """The answer that begins there, if all of it has come; `ended`: nothing more comes. Raises `ValueError` for what is
    no answer to one request."""
    while True:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > MOST_HEAD_BYTES:
                raise ValueError(f"a head of more than {MOST_HEAD_BYTES} bytes")
            return None
        head = bytes(data[: end + 2]).lower()
        line = _STATUS.match(head)
        if line is None:
            raise ValueError(f"not an answer: {bytes(data[:80])!r}")
        status = int(line[1])
        if status >= 200:
            break
        if status == 101:
            raise ValueError("the server switched protocols")
        del data[: end + 4]  # an interim answer
    start = end + 4
    closes = _CLOSE.search(head) is not None or head.startswith(b"http/1.0")
    if status in _WITHOUT_BODY:
        body, after = b"", start
    elif _CHUNKED.search(head):
        chunked = _chunks(data, start)
        if chunked is None:
            return None
        body, after = chunked
    elif lengths := set(_LENGTH.findall(head)):
        length = lengths.pop()
        if lengths or not length.isdigit() or len(length) > 12:
            raise ValueError(f"not the length of a body: {length[:20]!r}")
        after = start + int(length)
        if after - start > MOST_BODY_BYTES:
            raise ValueError(f"a body of more than {MOST_BODY_BYTES} bytes")
        if len(data) < after:
            return None
        body = bytes(data[start:after])
    elif ended:
        body, after, closes = bytes(data[start:]), len(data), True
    elif len(data) > MOST_BODY_BYTES:
        raise ValueError(f"a body of more than {MOST_BODY_BYTES} bytes")
    else:
        return None
    if len(data) > after:
        raise ValueError("more than one answer to one request")
    again = _RETRY_AFTER.search(head) if status >= 400 else None
    return Received(status, body, again[1].decode("latin-1") if again else None, closes)


def _chunks(data: bytearray, at: int) -> tuple[bytes, int] | None:
    """A chunked body and where it ends; `None`: not all of it has come."""
    spans: list[tuple[int, int]] = []
    size = 0
    while (line := _line(data, at)) is not None:
        end, text = line
        text = text.partition(b";")[0].strip()
        if not _CHUNK.fullmatch(text):
            raise ValueError(f"not the size of a chunk: {text[:20]!r}")
        length = int(text, 16)
        size += length
        if size > MOST_BODY_BYTES:
            raise ValueError(f"a body of more than {MOST_BODY_BYTES} bytes")
        at = end
        if not length:
            break
        end = at + length
        if len(data) < end + 2:
            return None
        if data[end : end + 2] != b"\r\n":
            raise ValueError("a chunk is longer than it says")
        spans.append((at, end))
        at = end + 2
    else:
        return None
    trailers = at
    while (line := _line(data, at)) is not None:  # trailers, then an empty line
        at, text = line
        if not text:
            return b"".join(bytes(data[begin:end]) for begin, end in spans), at
        if at - trailers > MOST_HEAD_BYTES:
            raise ValueError(f"trailers of more than {MOST_HEAD_BYTES} bytes")
    return None


def _line(data: bytearray, at: int) -> tuple[int, bytes] | None:
    """The end of the line that begins there, and its text; `None`: not all of it has come."""
    end = data.find(b"\r\n", at)
    if (len(data) if end < 0 else end) - at > MOST_HEAD_BYTES:
        raise ValueError(f"a line of more than {MOST_HEAD_BYTES} bytes")
    return None if end < 0 else (end + 2, bytes(data[at:end]))
