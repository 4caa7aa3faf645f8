"""The status of Volcano's PodGroups: how many members run or ended, and the phases that follow from it (K13).

`Pending` → `Inqueue` is the scheduler's step alone, and so are the conditions; neither is touched here.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref, annotations_of, controller_of, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.writes import Patch, Refused, WatchEvent, Write
from enbloc.controllers.merge_diff import difference
from enbloc.controllers.retry import Retries, watch_tells
from enbloc.controllers.states.situation import FINISHED

_COUNTED = ("Running", "Succeeded", "Failed")

Key = tuple[str, str]


class _Member(msgspec.Struct, frozen=True, gc=False):
    uid: str
    group: Key
    phase: str
    assigned: bool


class _Members:
    """The pods of one group, counted as they come and go."""

    def __init__(self) -> None:
        self.phases: Counter[str] = Counter()
        self.assigned = 0

    def count(self, member: _Member, by: int) -> None:
        self.phases[member.phase] += by
        self.assigned += by * member.assigned


class PodGroupController:
    """Keeps the status of each Volcano PodGroup."""

    kinds = frozenset({volcano.POD_GROUP, volcano.JOB, "Pod"})

    def __init__(self) -> None:
        self._groups: dict[Key, Obj] = {}
        self._pods: dict[Key, _Member] = {}
        self._members: dict[Key, _Members] = {}
        self._jobs: dict[str, tuple[Key, str]] = {}  # job UID → its group and its phase
        self._dirty: set[Key] = set()
        self._retries: Retries[Key] = Retries()

    def observe(self, event: WatchEvent) -> None:
        key = (namespace_of(event.obj), name_of(event.obj))
        match event.kind:
            case volcano.POD_GROUP:
                if event.type == "DELETED":
                    self._groups.pop(key, None)
                    self._dirty.discard(key)
                else:
                    self._groups[key] = event.obj
                    self._dirty.add(key)
            case volcano.JOB:
                uid = uid_of(event.obj)
                group = (key[0], f"{key[1]}-{uid}")
                if event.type == "DELETED":
                    self._jobs.pop(uid, None)
                else:
                    phase = ((event.obj.get("status") or {}).get("state") or {}).get("phase") or ""
                    self._jobs[uid] = (group, phase)
                self._look_at(group)
            case "Pod":
                self._observe_pod(event, key)

    def _look_at(self, key: Key) -> None:
        """Something of a group changed. A group that is not there is looked at when it comes."""
        if key in self._groups:
            self._dirty.add(key)

    def _observe_pod(self, event: WatchEvent, key: Key) -> None:
        before = self._pods.get(key)
        if event.type == "DELETED" and before is not None and before.uid != uid_of(event.obj):
            return  # a namesake has come since
        if before is not None:
            del self._pods[key]
            self._members[before.group].count(before, -1)
            if not self._members[before.group].phases.total():
                del self._members[before.group]
            self._look_at(before.group)
        group = group_of(event.obj)
        if group is None or event.type == "DELETED":
            return
        member = _member(event.obj, (key[0], group))
        self._pods[key] = member
        self._members.setdefault(member.group, _Members()).count(member, 1)
        self._look_at(member.group)

    def reconcile(self, now: int) -> list[Write]:
        writes: list[Write] = []
        for key in sorted(self._dirty.union(self._retries.take_due(now))):
            group = self._groups.get(key)
            if group is None or is_terminating(group):
                self._retries.forget(key)
                continue
            patch = difference(group.get("status") or {}, self._wanted(group, key))
            if patch:
                version = group["metadata"].get("resourceVersion") or ""  # the scheduler sets phases too
                ref = Ref(volcano.POD_GROUP, *key)
                writes.append(Patch(ref, {"status": patch}, "status", uid_of(group), version))
            else:
                self._retries.forget(key)
        self._dirty.clear()
        return writes

    def _wanted(self, group: Obj, key: Key) -> dict[str, Any]:
        members = self._members.get(key) or _Members()
        counts = {name.lower(): members.phases[name] for name in _COUNTED}
        phase = (group.get("status") or {}).get("phase") or ""
        return {"phase": self._next_phase(group, phase, members), **counts}

    def _next_phase(self, group: Obj, phase: str, members: _Members) -> str:
        minimum = (group.get("spec") or {}).get("minMember") or 0
        running, succeeded = members.phases["Running"], members.phases["Succeeded"]
        if phase in ("", "Pending", "Completed"):
            return phase or "Pending"
        if self._has_ended(group, members, minimum):
            return "Completed"
        if phase in ("Inqueue", "Unknown") and running + succeeded >= minimum and running + succeeded > 0:
            return "Running"
        if members.phases["Pending"] == 0 or members.assigned + succeeded >= minimum or phase == "Inqueue":
            return phase
        return "Unknown" if members.assigned + succeeded > 0 else "Inqueue"  # with nobody left it starts anew (G7)

    def _has_ended(self, group: Obj, members: _Members, minimum: int) -> bool:
        """A job's group ends with its job; another one when all members there are succeeded, and they are enough."""
        owner = controller_of(group) or {}
        job = self._jobs.get(owner.get("uid") or "")
        if job is not None:
            return job[1] in FINISHED
        return members.phases["Succeeded"] == members.phases.total() >= max(minimum, 1)

    def refused(self, write: Write, error: Refused, now: int) -> None:
        """A status that was out of date follows when the watch brings the newer group, any other after a while."""
        if isinstance(write, Patch) and not watch_tells(error):
            self._retries.refuse((write.ref.namespace, write.ref.name), now)

    def due(self) -> int | None:
        return self._retries.next()


def group_of(pod: Obj) -> str | None:
    """The name of the Volcano PodGroup that a pod belongs to."""
    notes = annotations_of(pod)
    return next((notes[key] for key in volcano.GROUP_NAME_KEYS if notes.get(key)), None)


def _member(pod: Obj, group: Key) -> _Member:
    phase = "Terminating" if is_terminating(pod) else (pod.get("status") or {}).get("phase") or "Pending"
    assigned = phase in ("Pending", "Running") and bool((pod.get("spec") or {}).get("nodeName"))
    return _Member(uid_of(pod), group, phase, assigned)
