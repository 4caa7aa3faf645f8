"""SPDY/3.1 frames, as far as port forwarding needs them: streams that the client opens, data, and their ends.

Pure: bytes in, events out, and the other way round. There is no flow control, as in the clients of Kubernetes.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, Literal, NamedTuple

FRAME_BYTES: Final = 1 << 20
HEADER_BYTES: Final = 1 << 16
_VERSION: Final = 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_FIN: Final = 1
_CANCEL: Final = 5
_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status|200 OK|version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_REST: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _dictionary() -> bytes:
    """The text that both sides prime the compression of headers with: common words with their lengths, then more."""
    words = [word for part in _WORDS.split("|") for word in ([part] if part == "200 OK" else part.split())]
    return b"".join(struct.pack(">I", len(word)) + word.encode() for word in words) + _REST.encode()


DICTIONARY: Final = _dictionary()


class BadFrame(Exception):
    """The other side does not speak SPDY/3.1, or sends frames without bound."""


class Event(NamedTuple):
    """A stream was opened (with headers), got data, was closed by its sender, or was reset."""

    what: Literal["open", "data", "reset"]
    stream: int
    headers: dict[str, str]
    data: bytes
    is_last: bool
    """No data follows on this stream."""


class Connection:
    """The server's side of one connection."""

    def __init__(self) -> None:
        self._rest = b""
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self.answers: list[bytes] = []
        """Frames to send without further ado: answers to pings."""

    def receive(self, data: bytes) -> list[Event]:
        """The events of the frames that are complete. Raises `BadFrame`."""
        self._rest += data
        events = []
        while len(self._rest) >= 8:
            first, second = struct.unpack_from(">II", self._rest)
            length = second & 0xFFFFFF
            if length > FRAME_BYTES:
                raise BadFrame(f"a frame of {length} bytes")
            if len(self._rest) < 8 + length:
                break
            body, self._rest = self._rest[8 : 8 + length], self._rest[8 + length :]
            event = self._frame(first, second >> 24, body)
            if event is not None:
                events.append(event)
        return events

    def accept(self, stream: int) -> bytes:
        """The answer to a stream that was opened."""
        headers = self._deflate.compress(struct.pack(">I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(_SYN_REPLY, 0, struct.pack(">I", stream) + headers)

    def data(self, stream: int, data: bytes, *, is_last: bool = False) -> bytes:
        return struct.pack(">II", stream & 0x7FFFFFFF, (_FIN if is_last else 0) << 24 | len(data)) + data

    def reset(self, stream: int) -> bytes:
        return _control(_RST_STREAM, 0, struct.pack(">II", stream, _CANCEL))

    def _frame(self, first: int, flags: int, body: bytes) -> Event | None:
        is_last = bool(flags & _FIN)
        if not first >> 31:
            return Event("data", first, {}, body, is_last)
        if (first >> 16) & 0x7FFF != _VERSION:
            raise BadFrame("another version than SPDY/3")
        kind = first & 0xFFFF
        if kind == _SYN_STREAM and len(body) >= 10:
            stream = struct.unpack_from(">I", body)[0] & 0x7FFFFFFF
            return Event("open", stream, self._headers(body[10:]), b"", is_last)
        if kind == _RST_STREAM and len(body) >= 8:
            return Event("reset", struct.unpack_from(">I", body)[0] & 0x7FFFFFFF, {}, b"", True)
        if kind == _PING:
            self.answers.append(_control(_PING, 0, body))
        return None

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, HEADER_BYTES)
            if self._inflate.unconsumed_tail:
                raise BadFrame(f"headers of more than {HEADER_BYTES} bytes")
            at = 4
            found = {}
            for _ in range(struct.unpack_from(">I", plain)[0]):
                name, at = _text(plain, at)
                value, at = _text(plain, at)
                found[name.lower()] = value
        except (zlib.error, struct.error, UnicodeDecodeError) as why:
            raise BadFrame(f"headers cannot be read: {why}") from None
        return found


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">I", data, at)
    end = at + 4 + length
    if end > len(data):
        raise BadFrame("headers end early")
    return data[at + 4 : end].decode(), end


def _control(kind: int, flags: int, body: bytes) -> bytes:
    return struct.pack(">HHI", 0x8000 | _VERSION, kind, flags << 24 | len(body)) + body
