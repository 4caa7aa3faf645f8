"""Frames of SPDY: split anywhere they mean the same; what is no frame, or has no bound, is refused."""

from __future__ import annotations

import struct
import zlib

import pytest

from enbloc.cluster.embedded.http.spdy import DICTIONARY, FRAME_BYTES, HEADER_BYTES, BadFrame, Connection


def control(kind: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack(">HHI", 0x8003, kind, flags << 24 | len(body)) + body


def opening(stream: int, headers: dict[str, str], flags: int = 0) -> bytes:
    plain = struct.pack(">I", len(headers))
    for text in (part for pair in headers.items() for part in pair):
        plain += struct.pack(">I", len(text)) + text.encode()
    packed = zlib.compressobj(zdict=DICTIONARY)
    block = packed.compress(plain) + packed.flush(zlib.Z_SYNC_FLUSH)
    return control(1, struct.pack(">IIH", stream, 0, 0) + block, flags)


def test_frames_may_be_split_anywhere() -> None:
    text = opening(1, {"streamtype": "data", "port": "80"}) + struct.pack(">II", 1, 1 << 24 | 2) + b"hi"
    whole = Connection().receive(text)
    one = Connection()
    assert [event for byte in text for event in one.receive(bytes([byte]))] == whole
    assert [(event.what, event.stream, event.data, event.is_last) for event in whole] == [
        ("open", 1, b"", False),
        ("data", 1, b"hi", True),
    ]
    assert whole[0].headers == {"streamtype": "data", "port": "80"}


def test_a_ping_is_answered() -> None:
    connection = Connection()
    ping = control(6, struct.pack(">I", 7))
    assert connection.receive(ping) == []
    assert connection.answers == [ping]


@pytest.mark.parametrize(
    "text",
    [
        struct.pack(">II", 1, FRAME_BYTES + 1),
        struct.pack(">HHI", 0x8002, 1, 0),
        control(1, bytes(10) + b"no zlib"),
        control(1, bytes(10)),
        opening(1, {"port": "9" * HEADER_BYTES}),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_frame_is_refused(text: bytes) -> None:
    with pytest.raises(BadFrame):
        Connection().receive(text)
