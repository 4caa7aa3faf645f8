"""Makes a scenario on which engine and oracle disagree smaller, as long as they still do."""

from __future__ import annotations

import copy
import re
from typing import Any

from oracle import compare

Obj = dict[str, Any]


KEPT = (
    *(
        "apiVersion",
        "kind",
        "name",
        "containers",
        "resources",
        "image",
        "schedulerName",
        "allocatable",
        "cpu",
        "memory",
    ),
    *("pods", "minMember", "minAvailable", "gang.scheduling.koordinator.sh/min-available"),
)
"""What is not taken away: without it a scenario would show something else."""


def smallest(documents: list[Obj], settings: Obj, rounds: int = 6) -> list[Obj]:
    """Leaves documents out, then simplifies what is left, until nothing more can go. What is left disagrees in the same
    way: in the timelines on the same kind of line, in what is pending on the same two reasons."""
    settings = {"settings": settings, "way": way(compare.disagreements(documents, settings))}
    for _ in range(rounds):
        size = len(str(documents))
        documents = fewer(documents, settings)
        documents = simpler(documents, settings)
        if len(str(documents)) == size:
            break
    return documents


def disagrees(documents: list[Obj], wanted: Obj) -> bool:
    try:
        return way(compare.disagreements(documents, wanted["settings"])) == wanted["way"]
    except Exception:
        return False


def way(found: list[str]) -> list[str]:
    """The words of a disagreement that are no names and no numbers."""
    words = re.findall(
        r"engine|oracle|\| |bound|held|reserved|released|evicted|timeout|\b[A-Z][a-z]+[A-Z]\w+", "".join(found[:1])
    )
    return list(dict.fromkeys(words))


def fewer(documents: list[Obj], settings: Obj) -> list[Obj]:
    position = len(documents) - 1
    while position >= 0:
        without = documents[:position] + documents[position + 1 :]
        if disagrees(without, settings):
            documents = without
        position -= 1
    return documents


def simpler(documents: list[Obj], settings: Obj) -> list[Obj]:
    for position in range(len(documents)):
        for path in list(paths(documents[position])):
            attempt = copy.deepcopy(documents)
            if remove(attempt[position], path) and disagrees(attempt, settings):
                documents = attempt
    return documents


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document from which something could be taken away, the largest first."""
    found: list[tuple[Any, ...]] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in KEPT:
                found.append((*path, key))
            found += paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found.append((*path, index))
            found += paths(inner, (*path, index))
    return found


def remove(document: Obj, path: tuple[Any, ...]) -> bool:
    place: Any = document
    try:
        for step in path[:-1]:
            place = place[step]
        if isinstance(place[path[-1]], int) and place[path[-1]] > 1:
            place[path[-1]] -= 1
        else:
            del place[path[-1]]
    except (KeyError, IndexError, TypeError):
        return False
    return True
