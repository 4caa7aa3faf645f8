"""Which gangs there are: objects in every dialect go in, gang facts come out.

The book remembers the objects that define gangs, and says after each event which gangs have to be read anew. It knows
pods only as far as they tell which gang they belong to; it counts nothing and decides nothing.
"""

from __future__ import annotations

import re

from enbloc.api import volcano as volcano_api
from enbloc.api.meta import Obj, annotations_of, controller_of, labels_of, name_of, namespace_of, uid_of
from enbloc.api.writes import WatchEvent
from enbloc.gangs import volcano
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, Membership

POD = "pod"
"""The dialect of a pod that speaks none: a gang of one."""

PRIORITY_CLASS = "PriorityClass.scheduling.k8s.io"
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

_INDEX_AT_END = re.compile(r"(\d{1,9})$", re.ASCII)


class GangBook:
    """All gangs of a cluster, as their authors wrote them."""

    kinds = frozenset({volcano_api.POD_GROUP, volcano_api.JOB, PRIORITY_CLASS})

    def __init__(self) -> None:
        self._groups: dict[GangKey, Obj] = {}
        self._jobs: dict[str, Obj] = {}
        self._groups_of_job: dict[str, GangKey] = {}
        self._priorities: dict[str, int] = {}
        self._defaults: dict[str, int] = {}
        """Classes that count for whoever names none; the lowest does, as in Kubernetes."""

    def observe(self, event: WatchEvent) -> list[GangKey]:
        """Takes an object in (any of `kinds`) and returns the gangs that it changed."""
        gone = event.type == "DELETED"
        if event.kind == volcano_api.POD_GROUP:
            return self._observe_group(event.obj, gone)
        if event.kind == volcano_api.JOB:
            return self._observe_job(event.obj, gone)
        return self._observe_class(event.obj, gone)

    def spec(self, key: GangKey) -> GangSpec | None:
        """The gang as it stands now; `None` if nobody wrote it down (its pods may exist all the same)."""
        group = self._groups.get(key)
        if group is None:
            return None
        owner = controller_of(group)
        job = self._jobs.get(owner["uid"]) if owner else None
        return volcano.gang(group, job, self._priority)

    def group(self, key: GangKey) -> Obj | None:
        """The object behind a gang, as it is now."""
        return self._groups.get(key)

    def _observe_group(self, group: Obj, gone: bool) -> list[GangKey]:
        key = GangKey(volcano.NAME, namespace_of(group), name_of(group))
        owner = controller_of(group)
        if gone:
            self._groups.pop(key, None)
            if owner:
                self._groups_of_job.pop(owner["uid"], None)
        else:
            self._groups[key] = group
            if owner:
                self._groups_of_job[owner["uid"]] = key
        return [key]

    def _observe_job(self, job: Obj, gone: bool) -> list[GangKey]:
        uid = uid_of(job)
        known = self._jobs.get(uid)
        if gone:
            self._jobs.pop(uid, None)
        else:
            self._jobs[uid] = job
        if not gone and known is not None and known["spec"] is job["spec"]:
            return []  # only its status changed
        key = self._groups_of_job.get(uid)
        return [key] if key else []

    def _observe_class(self, obj: Obj, gone: bool) -> list[GangKey]:
        name = name_of(obj)
        self._priorities.pop(name, None)
        self._defaults.pop(name, None)
        if not gone:
            value = self._priorities[name] = int(obj.get("value") or 0)
            if obj.get("globalDefault"):
                self._defaults[name] = value
        return sorted(self._groups)

    def _priority(self, class_name: str) -> int | None:
        if not class_name:
            return min(self._defaults.values(), default=0)
        return self._priorities.get(class_name, SYSTEM_CLASSES.get(class_name))


def member(pod: Obj) -> Membership:
    """The gang a pod belongs to: the first dialect that it speaks, else itself."""
    found = volcano.member(pod)
    if found is None:
        return Membership(GangKey(POD, namespace_of(pod), name_of(pod)), "", None)
    if found.number is None:
        return found._replace(number=index_of(name_of(pod)))
    return found


def index_of(name: str) -> int | None:
    """The number that ends a name (O2)."""
    match = _INDEX_AT_END.search(name)
    return int(match[1]) if match else None


def queue_hint(pod: Obj) -> str:
    """The queue that a pod without a group asks for."""
    for where in (annotations_of(pod), labels_of(pod)):
        for key in volcano_api.QUEUE_KEYS:
            if where.get(key):
                return where[key]
    return DEFAULT_QUEUE


def undeclared(key: GangKey, created: int, queue: str) -> GangSpec:
    """The facts of a gang that has no object: a pod alone, or pods whose PodGroup does not exist."""
    if key.dialect == volcano.NAME:
        return volcano.early(key, created)
    return GangSpec(key=key, title=f"{key.namespace}/{key.name}", created=created, minimum=1, queue=queue)
