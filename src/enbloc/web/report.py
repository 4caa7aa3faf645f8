"""A simulation as one HTML file, with the views of the dashboard: `sim --report`, `enbloc dashboard RUN.json`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from enbloc.api.kinds import by_kind
from enbloc.api.meta import Obj
from enbloc.api.reasons import PendingReason
from enbloc.engine.core.why.cause import Cause, cause_of
from enbloc.engine.decisions import Reason
from enbloc.inspect.dashboard import dashboard_model, gang_detail
from enbloc.inspect.gang_states import FAILED, FINISHED, RUNNING, WAITING, WAITS
from enbloc.inspect.gangs import Reading
from enbloc.inspect.overview import Overview, explain, overview_of
from enbloc.web.assets import bundled
from enbloc.web.stays import GangOf, gang_finder, stays_of

_STATES: Final = {"running": RUNNING, "failed": FAILED, "waiting": WAITING}
_POINTS: Final = 4_000
"""At most this many points of a curve."""
_DETAILED: Final = 500
"""How many gangs have pods and events in the file; those that wait come first."""


def report_page(answer: Mapping[str, Any], title: str) -> str:
    """`answer`: what `enbloc sim -o json` prints. Raises `KeyError` or `TypeError` for another mapping."""
    return bundled(msgspec.json.encode(report_model(answer)), title)


def report_model(answer: Mapping[str, Any]) -> dict[str, Any]:
    objects = by_kind(answer["objects"])
    reading = Reading(objects)
    overview = overview_of(reading)
    model = dashboard_model(reading, overview, answer["end"], {})
    model["resource"] = _shown_first(model["resource"], model["total"], answer)
    at_end = {gang["gang"]: number for number, gang in enumerate(model["gangs"])}
    pending = {entry["gang"]: entry for entry in answer["pending"]}
    for played in answer["gangs"]:
        number = at_end.setdefault(played["gang"], len(model["gangs"]))
        if number == len(model["gangs"]):
            model["gangs"].append(_gone(played))
        _add_times(model["gangs"][number], played, pending.get(played["gang"]))
    timeline = answer.get("timeline", ())
    gang_of = gang_finder(reading.aliases(), [gang["gang"] for gang in model["gangs"]])
    claimed = _claimed(timeline, gang_of)
    for gang in model["gangs"]:
        gang["claimed"] = claimed.get(gang["gang"], [])
        if gang["gang"] not in pending and gang["state"] in WAITS:
            gang["state"] = FINISHED  # all its pods are gone
    played_names = {played["gang"] for played in answer["gangs"]}
    for gang in model["gangs"]:
        if gang["gang"] not in played_names:
            gang["came"] = gang["started"] = gang["ended"] = None
    return {
        **model,
        "virtual": True,
        "live": False,
        "series": _series(answer["series"], answer["gangs"], model["resource"]),
        "details": _details(reading, overview, model["gangs"], objects.get("Event", ()), pending),
        "moments": stays_of(timeline, model, gang_of, reading),
        "left": [f"{one['kind']} {one['name']}: {one['reason']}" for one in answer["without_effect"]],
    }


def _shown_first(scarce: str, total: Mapping[str, float], answer: Mapping[str, Any]) -> str:
    """The scarce resource; CPUs where no gang used it or waits for it."""
    asked = any(scarce in one["reason"] for entry in answer["pending"] for one in entry["reasons"])
    used = any(sample["use"].get(scarce) for sample in answer["series"])
    return scarce if asked or used or "cpu" not in total else "cpu"


def _gone(played: Mapping[str, Any]) -> dict[str, Any]:
    """A gang none of whose objects is left at the end."""
    return {
        **{key: played[key] for key in ("gang", "dialect", "queue", "priority")},
        "minimum": 0,
        "minima": {},
        "pods": {},
        "roles": {},
        "nodes": dict.fromkeys(played["nodes"], 1),
        "setAside": {},
        "reason": "",
        "expected": None,
    }


def _cause(pending: Mapping[str, Any]) -> Cause:
    return cause_of(PendingReason(pending["reason"]), msgspec.convert(pending["reasons"], list[Reason]))


def _add_times(gang: dict[str, Any], played: Mapping[str, Any], pending: Mapping[str, Any] | None) -> None:
    gang.update({key: played[key] for key in ("came", "started", "ended")})
    gang["ended"] = played.get("stopped", played["ended"])
    gang["state"] = WAITING if pending is not None else _STATES.get(played["outcome"], FINISHED)
    why = pending["message"] if pending is not None else played["why"]
    gang["cause"] = _cause(pending).words if pending is not None else ""
    gang["expected"] = (pending or {}).get("expected_start")
    if pending is not None:
        gang["sentence"] = f"It waits: {why}"
    elif why:
        gang["sentence"] = f"It waited: {why}"
    else:
        gang["sentence"] = "It started at once." if played["started"] is not None else ""


def _claimed(timeline: Sequence[Mapping[str, Any]], gang_of: GangOf) -> dict[str, list[list[float | None]]]:
    """By gang: from when to when room was reserved or held for some pod of it."""
    spans: dict[str, list[list[float | None]]] = {}
    held: dict[str, set[str]] = {}
    for line in timeline:
        if line["what"] not in ("reserved", "held", "released", "bound", "deleted") or line["kind"] != "Pod":
            continue
        pod = f"{line['namespace']}/{line['name']}"
        gang = gang_of(pod)
        pods = held.setdefault(gang, set())
        if line["what"] in ("reserved", "held"):
            if not pods:
                spans.setdefault(gang, []).append([line["t"], None])
            pods.add(pod)
        elif pod in pods:
            pods.remove(pod)
            if not pods:
                spans[gang][-1][1] = line["t"]
    return spans


def _series(samples: Sequence[Mapping[str, Any]], gangs: Sequence[Mapping[str, Any]], resource: str) -> list[Any]:
    """Use and waiting gangs at each instant at which one of them changed."""
    came = sorted(gang["came"] for gang in gangs if gang["came"] is not None)
    waited_until = (gang["ended"] if gang["started"] is None else gang["started"] for gang in gangs)
    started = sorted(time for time in waited_until if time is not None)
    sampled = [sample["t"] for sample in samples]
    times = sorted({*sampled, *came, *started})
    times = times[:: len(times) // _POINTS + 1]
    found = []
    for time in times:
        sample = samples[max(bisect_right(sampled, time) - 1, 0)]
        by_queue = {queue: use.get(resource, 0.0) for queue, use in sample.get("queues", {}).items()}
        found.append(
            {
                "t": time,
                "use": sample["use"].get(resource, 0.0),
                "waiting": bisect_right(came, time) - bisect_right(started, time),
                "queues": by_queue,
            }
        )
    return found


def _details(
    reading: Reading,
    overview: Overview,
    gangs: Sequence[Mapping[str, Any]],
    events: Sequence[Obj],
    pending: Mapping[str, Any],
) -> dict[str, Any]:
    first = sorted(gangs, key=lambda gang: gang["gang"] not in pending)[:_DETAILED]
    found = {}
    for gang in first:
        entry = pending.get(gang["gang"], {})
        known = {"remedies": entry.get("remedies") or [], "assumption": entry.get("assumption")}
        shown = explain(overview, gang["gang"]) if entry else None
        known["ahead"] = [name for name in shown.ahead if name in pending] if shown is not None else []
        found[gang["gang"]] = {**gang_detail(reading, gang["gang"], events), **known}
    return found
