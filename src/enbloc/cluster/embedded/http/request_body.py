"""Request bodies: bounded in size, time and depth, and decoded as untrusted input."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import yaml
from aiohttp import ClientPayloadError, StreamReader, web
from aiohttp.http_exceptions import HttpProcessingError
from yaml.composer import Composer

from enbloc.api.nesting import DEPTH, is_too_deep
from enbloc.cluster.embedded.http.protobuf import MEDIA, decode_protobuf
from enbloc.cluster.embedded.http.status import refusal

BODY_BYTES = 3 * 1024 * 1024
BODY_S = 30.0
"""Maximum nesting of a document; Kubernetes' own schemas stay far below."""

YAML_BYTES = 1_536 * 1_024
"""Of a body in YAML, whose decoding takes a hundred times as long as that of JSON."""
LONG_YAML_BYTES = 16 * 1024
"""A longer one is decoded on a thread, so that other requests are served meanwhile."""

JSON = "application/json"
YAML = "application/yaml"

_YAMLS = (YAML, "application/apply-patch+yaml", "text/yaml")
_decode = msgspec.json.Decoder().decode


async def read_body(request: web.BaseRequest) -> bytes:
    """The whole body. Raises `Refused`: 413 if too large (without reading on), 408 if it takes too long, 415 if it is
    compressed, 400 if it is malformed."""
    if not request.body_exists:
        return b""
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise refusal(415, "compressed bodies are not supported")
    if (request.content_length or 0) > BODY_BYTES:
        raise _too_large()
    content = request.content
    try:
        if content.is_eof():  # it arrived with the headers
            found = content.read_nowait()
            if len(found) > BODY_BYTES:
                raise _too_large()
            return found
        async with asyncio.timeout(BODY_S):
            return await _read_pieces(content)
    except TimeoutError:
        raise refusal(408, "the request's body did not arrive in time") from None
    except (ClientPayloadError, HttpProcessingError) as why:
        raise refusal(400, f"the request's body is malformed: {str(why)[:200]}") from None


async def _read_pieces(content: StreamReader) -> bytes:
    pieces, size = [], 0
    while piece := await content.readany():
        size += len(piece)
        if size > BODY_BYTES:
            raise _too_large()
        pieces.append(piece)
    return b"".join(pieces)


def _too_large() -> Exception:
    return refusal(413, f"Request entity too large: limit is {BODY_BYTES}")


def media_type(request: web.BaseRequest) -> str:
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


async def decoded(body: bytes, media: str) -> Any:
    """As `decode`, on a thread if it takes long."""
    if media in _YAMLS and len(body) > LONG_YAML_BYTES:
        return await asyncio.to_thread(decode, body, media)
    return decode(body, media)


def decode(body: bytes, media: str) -> Any:
    """Plain JSON from JSON or YAML. Raises `Refused`: 400 if it cannot be decoded, 415 for other media types."""
    if media in (JSON, "", "application/octet-stream", "application/x-www-form-urlencoded"):
        found = decode_json(body)
    elif media in _YAMLS:
        found = _decode_yaml(body)
    elif media == MEDIA:
        found = decode_protobuf(body)
    else:
        raise unsupported(media, (JSON, YAML))
    return found


def unsupported(media: str, good: tuple[str, ...]) -> Exception:
    return refusal(
        415, f"the body of the request was in an unknown format ({media[:80]!r}); accepted are: {', '.join(good)}"
    )


def decode_json(body: bytes) -> Any:
    try:
        found = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as why:
        raise refusal(400, f"the body cannot be decoded as JSON: {str(why)[:200]}") from None
    if body.count(b"{") + body.count(b"[") > DEPTH and is_too_deep(found):
        raise _too_deep()
    return found


def _decode_yaml(body: bytes) -> Any:
    if body[:1] == b"{":
        return decode_json(body)
    if len(body) > YAML_BYTES:
        raise refusal(413, f"Request entity too large: limit is {YAML_BYTES} for YAML")
    try:
        found = yaml.load(body, Loader=_Loader)
        encoded = msgspec.json.encode(found)  # only JSON types pass: no dates, no sets
    except (yaml.YAMLError, msgspec.MsgspecError, TypeError, ValueError, RecursionError) as why:
        raise refusal(400, f"the body cannot be decoded as YAML: {str(why)[:200]}") from None
    if len(encoded) > BODY_BYTES:
        raise _too_large()
    return decode_json(encoded)


class _Loader(Composer, yaml.CSafeLoader):
    """YAML with JSON's types: what looks like a date is a string. There are no aliases, since a few of them make a
    document of any size. Depth is bounded while it is parsed: libyaml's time is the number of tokens times their
    depth."""

    def __init__(self, body: bytes) -> None:
        yaml.CSafeLoader.__init__(self, body)
        Composer.__init__(self)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise refusal(400, "aliases in YAML are not supported")
        if self._depth > DEPTH:
            raise _too_deep()
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def _too_deep() -> Exception:
    return refusal(400, f"the body is nested deeper than {DEPTH} levels")
