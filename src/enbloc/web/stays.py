"""Where the pods of a simulation were, and when: so that a saved one can be shown at any instant.

Read from the timeline of the answer. A pod that is gone at the end requests what its namesake requests, or else
another pod of its role; if none is left, its amounts are not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from enbloc.inspect.gangs import Reading
from enbloc.units import NANO

MOST: Final = 100_000
"""A longer simulation is shown at its end only."""
_ENDS: Final = ("succeeded", "failed", "deleted")
_NUMBER: Final = re.compile(r"-\d+$")

GangOf = Callable[[str], str]
Line = Mapping[str, Any]


def gang_finder(aliases: Mapping[str, str], gangs: Iterable[str]) -> GangOf:
    """The gang of a pod, by name. A pod that is gone belongs to the gang whose name its own begins with."""
    by_length = sorted(gangs, key=len, reverse=True)

    def found(pod: str) -> str:
        return aliases.get(pod) or next((name for name in by_length if pod.startswith(name)), pod)

    return found


def stays_of(
    timeline: Sequence[Line], model: Mapping[str, Any], gang_of: GangOf, reading: Reading
) -> dict[str, Any] | None:
    """`stays`: [gang, node, from, to, amounts, claimed], by place in the model and in `amounts`; `to` is `None` at the
    end. `None` if there are too many."""
    gangs = {gang["gang"]: number for number, gang in enumerate(model["gangs"])}
    nodes = {node["node"]: number for number, node in enumerate(model["nodes"])}
    amounts = _Amounts(reading)
    present: dict[tuple[str, bool], list[Any]] = {}
    stays: list[list[Any]] = []
    since: dict[int, float] = {}
    for line in timeline:
        what, name, t = line["what"], line["name"], line["t"]
        if line["kind"] == "Node" and what == "created" and name in nodes:
            since[nodes[name]] = t
        if line["kind"] != "Pod":
            continue
        pod = f"{line['namespace']}/{name}"
        if what in ("bound", "released", *_ENDS):
            _end(present, (pod, True), t)
        if what in _ENDS:
            _end(present, (pod, False), t)
        claimed = what in ("reserved", "held")
        if (claimed or what == "bound") and line["node"] in nodes:
            _end(present, (pod, claimed), t)
            entry = [gangs.get(gang_of(pod), -1), nodes[line["node"]], t, None, amounts.of(pod), claimed]
            present[pod, claimed] = entry
            stays.append(entry)
            if len(stays) > MOST:
                return None
    return {"stays": stays, "amounts": amounts.found, "since": [since.get(number, 0.0) for number in range(len(nodes))]}


def _end(present: dict[tuple[str, bool], list[Any]], key: tuple[str, bool], t: float) -> None:
    entry = present.pop(key, None)
    if entry is not None:
        entry[3] = t


class _Amounts:
    """What pods request, each different set of amounts once; the first is that of pods of which nothing is known."""

    def __init__(self, reading: Reading) -> None:
        self.found: list[dict[str, float]] = [{}]
        self._numbers: dict[tuple[tuple[str, float], ...], int] = {(): 0}
        self._of: dict[str, int] = {}
        for task in reading.state.tasks.values():
            amounts = {name: nanos / NANO for name, nanos in reading.requests(task).items()}
            number, name = self._number(amounts), f"{task.namespace}/{task.name}"
            self._of[name] = number
            self._of.setdefault(_NUMBER.sub("", name), number)

    def of(self, pod: str) -> int:
        return self._of.get(pod, self._of.get(_NUMBER.sub("", pod), 0))

    def _number(self, amounts: Mapping[str, float]) -> int:
        key = tuple(sorted(amounts.items()))
        if key not in self._numbers:
            self._numbers[key] = len(self.found)
            self.found.append(dict(amounts))
        return self._numbers[key]
