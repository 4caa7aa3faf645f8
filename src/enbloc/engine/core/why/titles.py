"""How messages name gangs: with `tenancy: isolated` only those of the reader's own namespace (S7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from enbloc.engine.core.tables.tasks import GangState
from enbloc.gangs.model import GangKey
from enbloc.listing import listed

FOREIGN: Final = "a gang of another namespace"
MOST_NAMED: Final = 5


class Titles:
    def __init__(self, isolated: bool) -> None:
        self._isolated = isolated

    def of(self, gang: GangState, reader: str) -> str:
        """A gang, for readers of a namespace."""
        return gang.spec.title if self.names(gang.key, reader) else FOREIGN

    def listed(self, gangs: Iterable[GangState], reader: str) -> str:
        """Several gangs, the first few by name."""
        return listed(sorted({self.of(gang, reader) for gang in gangs}), MOST_NAMED)

    def names(self, key: GangKey, reader: str) -> bool:
        """Whether a gang is named to readers of a namespace."""
        return not self._isolated or key.namespace == reader

    def hidden(self, keys: Iterable[GangKey], reader: GangKey) -> set[GangKey]:
        """Those of the gangs that are not named to one of them."""
        return {key for key in keys if key != reader and not self.names(key, reader.namespace)}
