"""The two interfaces of a filter: `Check` for static ones, `StatefulFilter` for those over assigned pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple, Protocol

from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import Rows
from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.events import NODE_EVENTS, EventKind


class Check(NamedTuple):
    """One static requirement of a class."""

    reason: str
    """Reported for the rows that do not meet it."""
    mask: Callable[[Rows], Bools]
    """Which of the given rows meet it."""
    wakes_on: frozenset[EventKind] = NODE_EVENTS
    """The events after which more rows may meet it. Every gang that did not fit wakes on the default; a check that
    reads more than the node declares more."""


class Placeable(Protocol):
    """What a stateful filter reads of a task."""

    @property
    def uid(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def cls(self) -> TaskClass: ...


class StatefulFilter(Protocol):
    """A filter over assigned pods."""

    wakes_on: ClassVar[frozenset[EventKind]]
    """The events after which more rows may pass."""

    def applies(self, task: Placeable) -> bool:
        """Whether the filter concerns this task. A task that none concerns may be placed in bulk."""
        ...

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        """`(reason, rows that pass)` for each requirement, over all rows of the table."""
        ...

    def add(self, task: Placeable, row: int) -> None: ...

    def remove(self, task: Placeable, row: int) -> None: ...

    def digest(self) -> object:
        """Equal for equal states: the rollback property compares it."""
        ...
