"""Plays scenarios, and writes down what was decided and what was said, in lines for people.

Decisions: the timeline, which pods one decision binds, and the records on objects. Sentences: warnings, the conditions
of pods and gangs, and the gangs that wait at the end. Conditions and records count as an instant leaves them: what is
written twice within it, or in another order, is no difference. UIDs, digests and the layout of records are left out,
since UIDs follow from how many objects were created before. Usage (G12), a sum of floats, is left out too: what is
decided by it is there.

`python -m golden.playing` reads scenarios, a JSON text a line, and writes what happened, a JSON text a line: so another
revision's engine plays them.
"""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from oracle import adapter

OWN = "enbloc.dev/"
DECISION = OWN + "decision"
RECORDS = ("committed", "domains", "expected-start", "begun-roles", "failed-create", "lapsed")
"""Annotations that are kept word for word, but for their signature."""
CLAIM = OWN + "claim-"
SIGNATURE = re.compile(r"^hmac:[^:]*:[^:]*:")
UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")

Obj = dict[str, Any]
Timed = tuple[float, str]
"""The second at which something happened, and its line."""
Said = dict[str, str]
"""Condition or record → its text, on one object."""


class Played(NamedTuple):
    decisions: list[str]
    sentences: list[str]
    error: str = ""
    """A traceback: the engine raised."""


def play(text: str) -> Played:
    return play_watched(text)[1]


def play_watched(text: str) -> tuple[Any, Played]:
    """With the simulation's result, which the oracle compares."""
    asked = json.loads(text)
    heard = Heard()
    result = adapter.run_watched(asked["documents"], asked["settings"], asked["until"], heard.instant)
    timeline = [(line.t, without_uids(str(line))) for line in result.timeline if line.what != "warning"]
    warnings = [(line.t, without_uids(str(line))) for line in result.timeline if line.what == "warning"]
    decisions, sentences = by_instant(timeline, heard.decisions), by_instant(warnings, heard.sentences)
    for entry in result.pending:
        said = {key: entry[key] for key in sorted(entry) if key not in ("gang", "message")}
        sentences.append(without_uids(f"waits {entry['gang']}: {entry['message']} {json.dumps(said)}"))
    return result, Played([*decisions, f"ended {result.ended} at {duration(result.end)}"], sentences)


def by_instant(timeline: list[Timed], heard: list[Timed]) -> list[str]:
    """Within an instant the timeline keeps its order, and what was heard comes after it."""
    return [line for _, line in sorted([*timeline, *heard], key=lambda timed: timed[0])]


def duration(seconds: float) -> str:
    return adapter.format_duration(round(seconds * adapter.SECOND))


def without_uids(text: str) -> str:
    return UID.sub("UID", text)


class Heard:
    """What is written on objects, instant by instant."""

    def __init__(self) -> None:
        self.decisions: list[Timed] = []
        self.sentences: list[Timed] = []
        self._records: dict[str, Said] = {}
        self._conditions: dict[str, Said] = {}
        """By UID, as those below."""
        self._decided: dict[str, str] = {}
        """The decisions that bound pods."""

    def instant(self, seconds: float, events: list[Any]) -> None:
        """An instant is over, and these were its events."""
        last: dict[str, tuple[str, Obj | None]] = {}
        bound: dict[str, set[str]] = {}
        for event in events:
            if event.kind not in ("Event", "Node"):
                now = event.obj if event.type != "DELETED" else None
                last[event.obj["metadata"]["uid"]] = (subject_of(event.obj), now)
                self._note_decision(event.obj, bound)
        at = f"t={duration(seconds)}"
        for names in sorted(map(sorted, bound.values())):
            self.decisions.append((seconds, f"{at} one decision binds {', '.join(names)}"))
        for uid, (subject, obj) in sorted(last.items(), key=lambda one: (one[1][0], one[0])):
            about = without_uids(f"{at} {subject}")
            recorded = changed(self._records, uid, obj, records_of)
            self.decisions += [(seconds, f"{about} {line}") for line in recorded]
            said = changed(self._conditions, uid, obj, conditions_of)
            self.sentences += [(seconds, f"{about} {line}") for line in said]

    def _note_decision(self, obj: Obj, bound: dict[str, set[str]]) -> None:
        metadata = obj["metadata"]
        decision = (metadata.get("annotations") or {}).get(DECISION)
        if decision and self._decided.get(metadata["uid"]) != decision:
            self._decided[metadata["uid"]] = decision
            bound.setdefault(decision, set()).add(f"{metadata['namespace']}/{metadata['name']}")


def changed(known: dict[str, Said], uid: str, obj: Obj | None, read: Callable[[Obj], Said]) -> list[str]:
    """A line for each text of an object that is another one now, and nothing for an object that is gone."""
    before = known.pop(uid, {})
    if obj is None:
        return []
    now = known[uid] = read(obj)
    keys = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
    return [without_uids(f"{key}: {now.get(key, '(removed)')}") for key in keys]


def subject_of(obj: Obj) -> str:
    metadata = obj["metadata"]
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj['kind']} {place}{metadata['name']}"


def records_of(obj: Obj) -> Said:
    notes = obj["metadata"].get("annotations") or {}
    found = {name: SIGNATURE.sub("", notes[OWN + name]) for name in RECORDS if OWN + name in notes}
    # The timeline has the pods and nodes of a claim.
    found.update({key.removeprefix(OWN): "recorded" for key in notes if key.startswith(CLAIM)})
    return found


def conditions_of(obj: Obj) -> Said:
    found = {}
    for one in (obj.get("status") or {}).get("conditions") or ():
        if "type" in one and (obj["kind"] != "Pod" or one["type"] == "PodScheduled"):
            parts = (one.get("status"), one.get("reason"), one.get("message"))
            found[one["type"]] = " ".join(str(part) for part in parts if part)
    return found


def main() -> None:
    for text in sys.stdin:
        try:
            played = play(text)
        except Exception:
            error = traceback.format_exc(limit=-3)
            played = Played([f"raised {error.splitlines()[-1]}"], [], error)
        print(json.dumps(played), flush=True)


if __name__ == "__main__":
    main()
