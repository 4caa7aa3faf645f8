"""What a predicate is, for those who write one and for those who ask it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.nodes import Rows
from enbloc.engine.tables.resources import Bools, Ints


class Check(NamedTuple):
    """One standing requirement of a class: which of the rows meet it, and what is said of those that do not."""

    reason: str
    mask: Callable[[Rows], Bools]


class Placeable(Protocol):
    """What a moving predicate needs to know of a task."""

    @property
    def uid(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def cls(self) -> TaskClass: ...


class MovingPredicate(Protocol):
    """A predicate over what is placed."""

    def applies(self, task: Placeable) -> bool:
        """Whether it has anything to say about this task: if not, the task may be placed in bulk."""
        ...

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        """`(reason, rows that pass)` for each concern, over all rows of the table."""
        ...

    def score(self, task: Placeable) -> Ints | None:
        """What the task would rather have, 0..100 by row, or `None`."""
        ...

    def add(self, task: Placeable, row: int) -> None: ...

    def remove(self, task: Placeable, row: int) -> None: ...

    def digest(self) -> object:
        """Equal for equal states: the rollback property compares it."""
        ...
