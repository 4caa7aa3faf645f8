"""What is looked at on the terminal: the view, the selected row, the order, the filter. Keys change it.

Rows are made here from an overview; how they are put on the screen is left to `frame`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from enbloc.inspect.capacity import Node, Queue
from enbloc.inspect.gangs import Gang
from enbloc.inspect.overview import Overview, sentence
from enbloc.inspect.tables import (
    GANG_COLUMNS,
    QUEUE_COLUMNS,
    gang_cells,
    node_cells,
    node_columns,
    queue_cells,
)
from enbloc.units import natural_key


class View(StrEnum):
    ALL = "all"
    GANGS = "gangs"
    QUEUES = "queues"
    NODES = "nodes"
    EVENTS = "events"


VIEWS: Final = tuple(View)


class Row(NamedTuple):
    cells: tuple[str, ...]
    state: str = ""
    """Of a gang: it is coloured by it."""
    detail: str = ""
    """What is said of it in full when it is selected."""


class Rows(NamedTuple):
    columns: tuple[str, ...]
    rows: list[Row]


_OF_GANGS: Final[Mapping[str, Callable[[Gang], Any]]] = {
    "name": lambda gang: natural_key(gang.gang),
    "queue": lambda gang: (gang.queue, natural_key(gang.gang)),
    "age": lambda gang: (gang.created, natural_key(gang.gang)),
    "pods": lambda gang: (-sum(gang.pods.values()), natural_key(gang.gang)),
    "priority": lambda gang: (-gang.priority, natural_key(gang.gang)),
}
_OF_QUEUES: Final[Mapping[str, Callable[[Queue], Any]]] = {
    "waiting": lambda queue: (-queue.waiting, queue.queue),
    "running": lambda queue: (-queue.running, queue.queue),
    "weight": lambda queue: (-queue.weight, queue.queue),
}
_OF_NODES: Final[Mapping[str, Callable[[Node], Any]]] = {
    "fullest": lambda node: (-max((use.percent for use in node.resources.values()), default=0), natural_key(node.node)),
    "emptiest": lambda node: (max((use.percent for use in node.resources.values()), default=0), natural_key(node.node)),
    "pods": lambda node: (-node.pods, natural_key(node.node)),
}
ORDERS: Final[Mapping[View, tuple[str, ...]]] = {
    View.ALL: ("scheduling", *_OF_GANGS),
    View.GANGS: ("scheduling", *_OF_GANGS),
    View.QUEUES: ("name", *_OF_QUEUES),
    View.NODES: ("name", *_OF_NODES),
    View.EVENTS: ("newest first", "newest last"),
}


class Viewer:
    """Keys in, rows out."""

    def __init__(self) -> None:
        self.view = View.ALL
        self.selected = 0
        self.filter = ""
        self.is_typing = False
        self.shows_help = False
        self.ends = False
        """Whether the reader asked to end."""
        self._order = dict.fromkeys(VIEWS, 0)

    @property
    def order(self) -> str:
        return ORDERS[self.view][self._order[self.view]]

    def press(self, key: str, page: int) -> None:
        """`page`: how many rows are on the screen."""
        if self.shows_help:
            self.shows_help = False
        elif self.is_typing:
            self._type(key)
        elif key in ("tab", "back-tab"):
            self._show(VIEWS[(VIEWS.index(self.view) + (1 if key == "tab" else -1)) % len(VIEWS)])
        elif key in "12345":
            self._show(VIEWS[int(key) - 1])
        else:
            self._move(key, page)

    def _move(self, key: str, page: int) -> None:
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -page, "page-down": page, " ": page}
        if key in steps:
            self.selected = max(0, self.selected + steps[key])
        elif key in ("home", "g"):
            self.selected = 0
        elif key in ("end", "G"):
            self.selected = 10**9  # `fit` brings it back to the last row
        elif key == "s":
            self._order[self.view] = (self._order[self.view] + 1) % len(ORDERS[self.view])
            self.selected = 0
        elif key == "/":
            self.is_typing = True
        elif key == "escape":
            self.filter = ""
        elif key in ("?", "h"):
            self.shows_help = True
        elif key == "q":
            self.ends = True

    def _type(self, key: str) -> None:
        if key == "enter":
            self.is_typing = False
        elif key == "escape":
            self.is_typing, self.filter = False, ""
        elif key == "backspace":
            self.filter = self.filter[:-1]
        elif len(key) == 1:
            self.filter += key
        self.selected = 0

    def _show(self, view: View) -> None:
        self.view, self.selected = view, 0

    def fit(self, count: int) -> None:
        """The selected row is one of `count`."""
        self.selected = min(self.selected, max(0, count - 1))

    def rows(self, view: View, overview: Overview, events: Sequence[str], now_ns: int) -> Rows:
        order = ORDERS[view][self._order[self.view]] if view in (self.view, View.GANGS) else ""
        if view in (View.ALL, View.GANGS):
            gangs = sorted(overview.gangs, key=_OF_GANGS[order]) if order in _OF_GANGS else overview.gangs
            found = [Row(tuple(gang_cells(gang, now_ns)), gang.state, sentence(gang)) for gang in gangs]
            return Rows(GANG_COLUMNS, self._filtered(found))
        if view is View.QUEUES:
            queues = sorted(overview.queues, key=_OF_QUEUES[order]) if order in _OF_QUEUES else overview.queues
            return Rows(QUEUE_COLUMNS, self._filtered([Row(tuple(queue_cells(queue))) for queue in queues]))
        if view is View.NODES:
            nodes = sorted(overview.nodes, key=_OF_NODES[order]) if order in _OF_NODES else overview.nodes
            found = [Row(tuple(node_cells(node, overview)), detail=_reserved(node)) for node in nodes]
            return Rows(tuple(node_columns(overview)), self._filtered(found))
        lines = events if order == "newest last" else events[::-1]
        return Rows(("EVENT",), self._filtered([Row((line,), detail=line) for line in lines]))

    def _filtered(self, rows: list[Row]) -> list[Row]:
        words = self.filter.lower().split()
        return [row for row in rows if all(word in " ".join(row.cells).lower() for word in words)] if words else rows


def _reserved(node: Node) -> str:
    parts = ", ".join(f"{gang} ({count})" for gang, count in node.reserved.items())
    return f"{node.node}: reserved for {parts}" if parts else ""
