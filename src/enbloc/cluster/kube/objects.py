"""Decodes objects from HTTP bodies, with their kind and without fields that this program does not read."""

from __future__ import annotations

from typing import Any

import msgspec

from enbloc.api.meta import Obj
from enbloc.api.nesting import shallow
from enbloc.api.writes import Refused
from enbloc.cluster.kube.discovery import Resource

_object_decoder: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


class PageMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct):
    """A part of a list."""

    metadata: PageMeta
    items: list[dict[str, Any]] | None = None


class _Head(msgspec.Struct):
    """Of a page, its metadata alone."""

    metadata: PageMeta


_page_decoder = msgspec.json.Decoder(Page)
_head_decoder = msgspec.json.Decoder(_Head)


def read_object(body: bytes) -> Obj:
    return pruned(_decode(_object_decoder, body))


def page_token(body: bytes) -> str:
    """With which the next page is asked for; empty for the last one."""
    head: _Head = _decode(_head_decoder, body)
    return head.metadata.continue_


def read_page(body: bytes, resource: Resource) -> Page:
    """A page whose objects have apiVersion and kind: inside a list the API server leaves them out."""
    page: Page = _decode(_page_decoder, body)
    for item in page.items or ():
        item.setdefault("apiVersion", resource.api_version)
        item.setdefault("kind", resource.name)
        pruned(item)
    return page


def pruned(obj: Obj) -> Obj:
    """The object, not shared yet, without `managedFields`, which is often half of it."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return obj


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """What is nested too deep is left out: one object must not end a list or a watch (S8)."""
    try:
        return decoder.decode(body)
    except RecursionError:
        return decoder.decode(shallow(body))


def _decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    try:
        return decoded(decoder, body)
    except msgspec.DecodeError as why:
        raise Refused(502, "BadGateway", f"the server does not answer as a Kubernetes API does: {why}") from None
