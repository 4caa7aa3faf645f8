"""Which kinds a cluster serves, and under which paths.

A kind's id (`Pod`, `Job.batch.volcano.sh`) has its group. Of the served versions the first known one is used
(`api.kinds`); for unknown kinds the one that the cluster prefers. A kind that is not served may be served later, when
its definition is installed: so a negative answer is never cached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TypeVar
from urllib.parse import quote

import msgspec

from enbloc.api.kinds import KINDS
from enbloc.api.writes import Refused
from enbloc.cluster.kube.http import Answer, Api, refusal


class Resource(msgspec.Struct, frozen=True):
    """A kind as this cluster serves it."""

    kind: str
    """The kind's id."""
    name: str
    """The `kind` of its objects."""
    api_version: str
    plural: str
    namespaced: bool
    has_status: bool

    @property
    def root(self) -> str:
        return f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"

    def collection(self, namespace: str | None = None) -> str:
        """The path of all objects, or of those in one namespace."""
        if self.namespaced and namespace is not None:
            return f"{self.root}/namespaces/{quote(namespace or 'default', safe='')}/{self.plural}"
        return f"{self.root}/{self.plural}"

    def object(self, namespace: str, name: str) -> str:
        return f"{self.collection(namespace)}/{quote(name, safe=':')}"


POD = Resource("Pod", "Pod", "v1", "pods", namespaced=True, has_status=True)
EVENT = Resource("Event", "Event", "v1", "events", namespaced=True, has_status=False)


class _Version(msgspec.Struct, rename="camel"):
    version: str


class _Group(msgspec.Struct, rename="camel"):
    name: str
    versions: list[_Version] = []
    preferred_version: _Version | None = None


class _Groups(msgspec.Struct):
    groups: list[_Group] = []


class _Entry(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool = False


class _Entries(msgspec.Struct):
    resources: list[_Entry] = []


_T = TypeVar("_T")
_groups_decoder = msgspec.json.Decoder(_Groups)
_entries_decoder = msgspec.json.Decoder(_Entries)


class Discovery:
    """The served kinds that are known."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[str, Resource] = {}

    def known(self, kind: str) -> Resource | None:
        return self._known.get(kind)

    async def find(self, kind: str) -> Resource | None:
        """The kind as it is served, discovered if necessary. Raises `Refused` if the server does not answer."""
        found = self._known.get(kind)
        if found is None:
            await self.look_up([kind])
            found = self._known.get(kind)
        return found

    async def look_up(self, kinds: Collection[str]) -> None:
        """Discovers these kinds again. Those no longer served are forgotten."""
        groups = {group for _, _, group in (kind.partition(".") for kind in kinds)}
        versions = await self._versions() if groups - {""} else {}
        versions[""] = ["v1"]
        wanted = sorted({_path(group, version) for group in groups for version in versions.get(group, ())})
        pages = dict(zip(wanted, await asyncio.gather(*map(self._entries, wanted)), strict=True))
        for kind in kinds:
            name, _, group = kind.partition(".")
            found = None
            for version in _in_our_order(kind, versions.get(group, [])):
                found = _resource(kind, name, _api_version(group, version), pages[_path(group, version)])
                if found is not None:
                    break
            if found is not None:
                self._known[kind] = found
            else:
                self._known.pop(kind, None)

    async def _versions(self) -> dict[str, list[str]]:
        """The versions of each group, the preferred one first."""
        groups = _decoded(await self._api.read("/apis"), _groups_decoder).groups
        found = {}
        for group in groups:
            preferred = group.preferred_version.version if group.preferred_version else ""
            versions = sorted((one.version for one in group.versions), key=lambda version: version != preferred)
            found[group.name] = versions
        return found

    async def _entries(self, path: str) -> list[_Entry]:
        answer = await self._api.read(path)
        if answer.status == 404:  # it was removed between two requests
            return []
        return _decoded(answer, _entries_decoder).resources


def _in_our_order(kind: str, versions: list[str]) -> list[str]:
    ours = KINDS.get(kind)
    return versions if ours is None else [version for version in ours.versions if version in versions]


def _resource(kind: str, name: str, api_version: str, entries: list[_Entry]) -> Resource | None:
    for entry in entries:
        if entry.kind == name and "/" not in entry.name:
            has_status = any(other.name == f"{entry.name}/status" for other in entries)
            return Resource(kind, name, api_version, entry.name, entry.namespaced, has_status)
    return None


def _api_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _path(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def _decoded(answer: Answer, decoder: msgspec.json.Decoder[_T]) -> _T:
    if not answer.is_good:
        raise refusal(answer)
    try:
        return decoder.decode(answer.body)
    except msgspec.DecodeError as why:
        raise Refused(502, "BadGateway", f"the server does not answer as a Kubernetes API does: {why}") from None
