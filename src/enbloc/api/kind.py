"""One kind of the API: its names, its scope, and the view that reads its objects."""

from __future__ import annotations

import msgspec

from enbloc.api.meta import TypedObject


class Kind(msgspec.Struct, frozen=True):
    """One kind's names in the API, and the view that reads it (`None`: not read)."""

    group: str
    versions: tuple[str, ...]
    name: str
    plural: str
    namespaced: bool
    view: type[TypedObject] | None = None
    has_status: bool = True
    short_names: tuple[str, ...] = ()
    stored_as: str = ""
    """The id of another kind whose objects these are."""

    @property
    def id(self) -> str:
        return self.stored_as or (f"{self.name}.{self.group}" if self.group else self.name)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.versions[0]}" if self.group else self.versions[0]
