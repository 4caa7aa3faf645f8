"""Runs one scenario with the engine and with the oracle, and says where they disagree.

Compared is what rules promise: which pods are bound (and where), held, reserved, released, evicted and marked, and at
which instant; the phases of gangs and jobs; which gangs are pending at the end, what is missing and why. Inside one
instant the order is free. Where a rule leaves a choice free (which perfect packing, which victims), the oracle is
given the engine's choice, checks that the rule allows it, and goes on from there.
"""

from __future__ import annotations

import json
from typing import Any

from enbloc.runtime.waits_written import NUMBERS_EVERY_NS
from oracle import adapter, cycle, tenants
from support.restarts import changed_by_restarts, restart_step

WATCHED = ("bound", "evicted", "timeout", "held", "reserved", "released", "succeeded", "failed")


R6_SAYS = "no nodes are reserved for it: it needs more than"
Reading = tuple[str, ...]
UNTIL = 120 * adapter.SECOND
"""A run ends here: jobs that fail for ever would go on."""


def disagreements(
    documents: list[dict[str, Any]], settings: dict[str, Any] | None = None, engine: Any = None
) -> list[str]:
    """What differs, in words; empty if the two agree in one of the ways in which the oracle may read the scenario.
    `engine`: the engine's result, if it has run until `UNTIL` already."""
    engine = engine or run_engine(documents, settings)
    found = differing(documents, settings, (), engine)
    for reading in other_readings(documents, settings) if found else ():
        if not differing(documents, settings, reading, engine):
            return []
    return found


def run_engine(documents: list[dict[str, Any]], settings: dict[str, Any] | None, until: int = UNTIL) -> Any:
    return adapter.run_engine(documents, adapter.configured(settings), until)


def other_readings(documents: list[dict[str, Any]], settings: dict[str, Any] | None) -> list[Reading]:
    """Where the scheduler restarts, pods that went meanwhile may be those that carried the commit mark of their gang,
    or others. Under `backfill` in mode `easy` a gang that starts beside one that is packed may start in a later cycle
    of that instant. Which of two usages that differ by less than a microsecond come to be the same when they are
    rounded (G12) is left open: all that do not differ more, or those alone that do not differ at all."""
    asked = adapter.settings_of(adapter.configured(settings))
    found: list[Reading] = [()]
    if any(one.get("do") == "restart-scheduler" for one in documents):
        found += [("marks go",)]
    if asked["backfill"] == "easy":
        found += [(*one, "starts late") for one in found]
    if asked["fair"] is not None:
        found += [(*one, "nearly equal") for one in found]
    return found[1:]


def differing(
    documents: list[dict[str, Any]], settings: dict[str, Any] | None, reading: Reading, engine: Any
) -> list[str]:
    engine, (oracle, violations) = both(documents, settings, reading, engine)
    found = [*differences(engine, oracle), *tenants.s7_named(engine, settings)]
    return [*found, *violations] if found else []


def both(
    documents: list[dict[str, Any]], settings: dict[str, Any] | None, reading: Reading = (), engine: Any = None
) -> tuple[Any, Any]:
    engine = engine or run_engine(documents, settings)
    oracle, violations = cycle.run(documents, settings, hints_of(engine), UNTIL, reading)
    if (engine.ended, oracle.ended) == ("until", "idle"):
        # Numbers alone are written up to 30 s late (G10), of which the oracle knows nothing. Else nothing may come.
        engine = run_engine(documents, settings, UNTIL + NUMBERS_EVERY_NS)
    return engine, (oracle, violations)


def hints_of(engine: Any) -> dict[int, dict[str, Any]]:
    """Instant -> what the engine chose: where pods were bound and reserved, and who was evicted for whom."""
    start = adapter.parse_timestamp("2026-01-01T00:00:00Z")
    found: dict[int, dict[str, Any]] = {}
    last: Any = None
    early = not_best(engine)
    for line in engine.timeline:
        if line.what in ("bound", "held", "reserved", "evicted", "phase"):
            at = start + round(line.t * adapter.SECOND)
            chosen = found.setdefault(at, {"bound": {}, "held": {}, "reserved": {}, "evicted": {}, "not_best": early})
        if line.what in ("bound", "held", "reserved", "evicted"):
            if line.what == "evicted":
                verb, _, why = line.message.partition(": makes room for ")
                action = {"Preempted": "preempt", "Reclaimed": "reclaim"}.get(verb, verb)
                plans = chosen["evicted"].setdefault((action, why), [])
                if last != (at, action, why):
                    plans.append(set())
                last = (at, action, why)
                plans[-1].add((line.namespace, line.name))
            else:
                last = None
                chosen[line.what][line.namespace, line.name] = line.node
    return found


def not_best(engine: Any) -> set[str]:
    """T6: the gangs whose plan has a published score below 1: there may be a better one."""
    found = set()
    for obj in engine.objects:
        text = (obj["metadata"].get("annotations") or {}).get("enbloc.dev/domains")
        if text and any(part["score"] < 1 for part in json.loads(text)):
            owners = [one["name"] for one in obj["metadata"].get("ownerReferences") or () if one["kind"] == "Job"]
            found.add(f"{obj['metadata']['namespace']}/{(owners or [obj['metadata']['name']])[0]}")
    return found


def differences(engine: Any, oracle: Any) -> list[str]:
    if engine.ended != oracle.ended:
        return [f"the engine's run ended {engine.ended}, the oracle's {oracle.ended}"]
    found = in_timelines(engine, oracle)
    return found or in_pending(engine, oracle)


def in_timelines(engine: Any, oracle: Any) -> list[str]:
    """The first instant at which something differs, and what."""
    ours, theirs = by_instant(engine), by_instant(oracle)
    for at in sorted({*ours, *theirs}):
        mine, other = ours.get(at, []), theirs.get(at, [])
        if mine != other:
            only_engine = [line for line in mine if line not in other]
            only_oracle = [line for line in other if line not in mine]
            return [f"t={at:g} engine: {', '.join(only_engine) or '-'} | oracle: {', '.join(only_oracle) or '-'}"]
    return []


def by_instant(result: Any) -> dict[float, list[str]]:
    found: dict[float, list[str]] = {}
    for line in result.timeline:
        if line.kind == "Pod" and line.what in WATCHED:
            node = f"@{line.node}" if line.node and line.what != "evicted" else ""
            found.setdefault(line.t, []).append(f"{line.what} {line.namespace}/{line.name}{node}")
        elif line.what == "phase" and line.kind in ("Job", "PodGroup", "QueueJob"):
            found.setdefault(line.t, []).append(f"{line.kind} {line.namespace}/{line.name.split('-')[0]} is {line.to}")
    return {at: sorted(without_moves_in_place(lines)) for at, lines in found.items()}


def without_moves_in_place(lines: list[str]) -> list[str]:
    """A claim that ends and is made anew on the same node within one instant is no change, nor is one that is made or
    ends in the instant in which its pod is bound."""
    left = list(lines)
    for line in lines:
        what, _, rest = line.partition(" ")
        if what in ("reserved", "held") and f"released {rest}" in left and line in left:
            left.remove(line)
            left.remove(f"released {rest}")
    bound = {line.split(" ")[1].partition("@")[0] for line in lines if line.startswith("bound ")}
    claims = ("released ", "held ", "reserved ")
    return [line for line in left if not (line.startswith(claims) and line.split(" ")[1].partition("@")[0] in bound)]


def in_pending(engine: Any, oracle: Any) -> list[str]:
    ours = {(one["gang"], one["dialect"]): one for one in engine.pending}
    theirs = {(one["gang"], one["dialect"]): one for one in oracle.pending}
    found = []
    for key in sorted({*ours, *theirs}):
        mine, other = ours.get(key), theirs.get(key)
        if mine is None or other is None:
            found.append(f"pending at the end {key[0]}: engine {mine is not None}, oracle {other is not None}")
        elif is_of_one_cycle(engine, other) and later(mine.get("expectedStart"), other["now"]) != later(
            other["expected_start"], other["now"]
        ):
            found.append(f"{key[0]} starts: engine {mine.get('expectedStart')}, oracle {other['expected_start']}")
        elif (R6_SAYS in mine["message"]) != other["needs_more_nodes"]:
            found.append(f"{key[0]} says that it needs more nodes than may be reserved: engine {mine['message']}")
        elif mine["reason"] not in (other["reason"], *other["or"]):
            found.append(f"{key[0]} waits: engine {mine['reason']} ({mine['message']}), oracle {other['reason']}")
        elif mine["reason"] != other["reason"]:
            continue  # its own pods lack room too: the oracle's attempt ended before it counted them
        elif comparable(other) and mine["missing"] != other["missing"]:
            found.append(
                f"{key[0]} is missing: engine {mine['missing']} ({mine['message']}), "
                f"oracle {other['missing']} ({other['reason']})"
            )
    return found


def is_of_one_cycle(engine: Any, entry: dict[str, Any]) -> bool:
    """R8: plans of conservative backfill are made anew in every cycle, and the engine may have had a later one: numbers
    alone are written late (G10)."""
    ended = adapter.parse_timestamp("2026-01-01T00:00:00Z") + round(engine.end * adapter.SECOND)
    return not entry["is_planned_anew"] or ended <= entry["now"]


def later(start: Any, now: int) -> int | None:
    """R8: an expected start, unless it has passed: then it may be any moment, and none has to be published."""
    at = adapter.parse_timestamp(start) if isinstance(start, str) else start
    return at if at is not None and at > now else None


def comparable(entry: dict[str, Any]) -> bool:
    """Of a gang that is satisfied only surplus or replacements wait. Behind a packed one numbers are free (R8)."""
    return not (entry["satisfied"] or entry["any_numbers"])


# ---- I5


def restarts(documents: list[dict[str, Any]], settings: dict[str, Any] | None, most: int | None = None) -> list[str]:
    """I5: the engine restarted at instants at which something happened, against the engine that runs on: what differs;
    `most`: at no more than so many instants."""

    def run(at: float | None) -> Any:
        steps = [] if at is None else [restart_step(at)]
        return run_engine([*documents, *steps], settings)

    return changed_by_restarts(run, most)
