"""I5: what a restart of the scheduler may not change: decisions, the records on objects, and what pending gangs say."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from enbloc.gangs import claim_records
from enbloc.gangs.own_annotations import COMMITTED, DECISION
from enbloc.sim.result import Result

DECIDED = ("bound", "evicted", "held", "released", "reserved", "timeout", "phase", "succeeded", "failed")
"""Lines of the timeline that the scheduler, or what follows from its decisions, writes."""

_UID = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")

Run = Callable[[float | None], Result]
"""One run of a scenario, restarted at an instant, or not at all."""
RunOften = Callable[[Sequence[float]], Result]
"""One run of a scenario, restarted at each of these instants."""
Allows = Callable[[Sequence[float]], bool]
"""Whether restarts at these instants may change the run: records went with what carried them (I5, Words)."""
AFTER_S = 0.001
"""A restart at an instant comes before the decisions of that instant; one so long after it, after them."""


def nothing_is_allowed(moments: Sequence[float]) -> bool:
    return False


def restart_step(at: float) -> dict[str, Any]:
    return {"apiVersion": "sim.enbloc.dev/v1", "kind": "Step", "at": f"{at:g}s", "do": "restart-scheduler"}


def instants(result: Result, most: int | None = None) -> list[float]:
    """The instants at which something happened; `most`: no more than so many, evenly chosen."""
    found = sorted({line.t for line in result.timeline})
    return found if most is None else found[:: max(1, -(-len(found) // most))]


def changed_by_restarts(run: Run, most: int | None = None, allows: Allows = nothing_is_allowed) -> list[str]:
    """What differs from the run that is not restarted, by the instant of the restart."""
    plain = run(None)
    found = []
    for at in instants(plain, most):
        why = difference(plain, run(at))
        if why and not allows((at,)):
            found.append(f"restarted at {at:g} s: {why}")
    return found


def changed_by_frequent_restarts(run: RunOften, allows: Allows = nothing_is_allowed) -> list[str]:
    """What differs from the run that is not restarted if the scheduler is restarted at every instant, before what is
    decided then, and if it is restarted right after every instant: two runs for all of them."""
    plain = run(())
    often = instants(plain)
    tried = {"at": often, "after": [at + AFTER_S for at in often]}
    why = {word: difference(plain, run(moments)) for word, moments in tried.items()}
    return [f"restarted {word} every instant: {text}" for word, text in why.items() if text and not allows(tried[word])]


def difference(plain: Result, restarted: Result) -> str:
    for what in (decided, records, pending):
        before, after = what(plain), what(restarted)
        if before != after:
            gone = [str(one) for one in before if one not in after]
            new = [str(one) for one in after if one not in before]
            return f"{what.__name__}: without {'; '.join(gone) or '-'} | with {'; '.join(new) or '-'}"
    return ""


def decided(result: Result) -> list[tuple[Any, ...]]:
    """What happened, as far as the scheduler decides it; two things of one instant may happen in either order."""
    lines = [line for line in result.timeline if line.what in DECIDED]
    return sorted(
        (line.t, line.what, line.kind, _UID.sub("", line.name), line.node or "", getattr(line, "to", ""))
        for line in lines
    )


def records(result: Result) -> list[tuple[Any, ...]]:
    """Our records on objects: claims, commit marks, and which pods were bound by one decision."""
    found = []
    decisions: dict[str, list[tuple[str, ...]]] = {}
    for obj in result.objects:
        metadata = obj["metadata"]
        name = (obj["kind"], metadata.get("namespace") or "", _UID.sub("", metadata["name"]))
        for key, text in sorted((metadata.get("annotations") or {}).items()):
            if key in claim_records.ANNOTATIONS:
                record = claim_records.read(text)
                found.append((*name, key, str(record)))
            elif key == COMMITTED:
                found.append((*name, key, text))
            elif key == DECISION:
                decisions.setdefault(text, []).append(name)
    return sorted([*found, *(("decision", *sorted(names)) for names in decisions.values())], key=str)


def pending(result: Result) -> list[tuple[Any, ...]]:
    """What the gangs that wait at the end lack, and why."""
    return sorted((one["gang"], one["dialect"], str(one["missing"]), one["message"]) for one in result.pending)
