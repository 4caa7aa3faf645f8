"""YuniKorn's dialect: pods of one application whose annotations name task groups. A task group is a role.

YuniKorn sets room aside with placeholder pods: `minMember` of each task group are placed together before any pod of the
application starts, and each pod takes the place of a placeholder when it is created. Here the members that exist are
placed together with room for those that do not (`later`, as D5 has it), so an application whose first pod creates the
others starts too. The claim record is on the oldest pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from enbloc.api import core, yunikorn
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, annotations_of, created_ns_of, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.writes import WatchEvent
from enbloc.gangs.dialect import NOTHING, Changed, queue_named_by
from enbloc.gangs.hints import hints_of
from enbloc.gangs.koordinator_values import INT32_MAX
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, Membership, Template, with_records_of
from enbloc.units import parse_quantity

MOST_MEMBERS = 2000
"""The placeholders of one application are bounded: an annotation costs its author nothing (S2)."""
_PLACEHOLDER_FIELDS = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")

_AS_THE_FIRST = ("priorityClassName", "activeDeadlineSeconds")
"""What members have as the oldest pod has it: it decides which quotas count them (S9)."""


class TaskGroups(NamedTuple):
    """The task groups that a pod declares, as templates; or why they cannot be read."""

    templates: dict[str, Template]
    problem: str = ""


class _Member(NamedTuple):
    pod: Obj
    role: str
    counts: bool
    """Whether it is a member now: it has not failed, is not gated and not terminating."""
    age: tuple[str, str]


class _Application:
    """The pods of one application that name or declare task groups."""

    def __init__(self) -> None:
        self.members: dict[str, _Member] = {}
        self.counts: Counter[str] = Counter()

    def put(self, uid: str, member: _Member | None) -> None:
        before = self.members.pop(uid, None)
        if before is not None and before.counts:
            self.counts[before.role] -= 1
        if member is not None:
            self.members[uid] = member
            self.counts[member.role] += member.counts

    def oldest(self) -> Obj | None:
        return min(self.members.values(), key=lambda one: one.age).pod if self.members else None

    def declared(self) -> TaskGroups | None:
        """Those of the oldest pod that declares any; `None`: no pod does."""
        found = [one for one in self.members.values() if annotations_of(one.pod).get(yunikorn.TASK_GROUPS)]
        if not found:
            return None
        return read_task_groups(annotations_of(min(found, key=lambda one: one.age).pod)[yunikorn.TASK_GROUPS])


class Yunikorn:
    """Gangs declared by YuniKorn's task groups, by application."""

    name = "yunikorn"
    kinds: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._applications: dict[GangKey, _Application] = {}

    def observe(self, event: WatchEvent) -> Changed:
        return NOTHING

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        membership = self.member(pod)
        if membership is None:
            return NOTHING
        key, uid = membership.gang, uid_of(pod)
        application = self._applications.setdefault(key, _Application())
        before = application.members.get(uid)
        age = (pod["metadata"].get("creationTimestamp") or "", name_of(pod))
        member = None if gone else _Member(pod, membership.role, _counts(pod), age)
        application.put(uid, member)
        if not application.members:
            del self._applications[key]
        is_alike = before is not None and member is not None and _facts(before) == _facts(member)
        return NOTHING if is_alike else Changed((key,))

    def member(self, pod: Obj) -> Membership | None:
        annotations = annotations_of(pod)
        role = annotations.get(yunikorn.TASK_GROUP_NAME) or ""
        if not role and not annotations.get(yunikorn.TASK_GROUPS):
            return None
        return Membership(GangKey(self.name, namespace_of(pod), yunikorn.application_of(pod)), role, None)

    def spec(self, key: GangKey) -> GangSpec | None:
        application = self._applications.get(key)
        declared = application.declared() if application is not None else None
        home = application.oldest() if application is not None else None
        if application is None or declared is None or home is None:
            return None
        own = {key: home["spec"][key] for key in _AS_THE_FIRST if home["spec"].get(key) is not None}
        templates = {
            role: msgspec.structs.replace(one, pod_spec={**own, **one.pod_spec}) if own else one
            for role, one in declared.templates.items()
        }
        minima = {role: min(one.count, application.counts[role]) for role, one in templates.items()}
        lacking = {role: one.count - minima[role] for role, one in templates.items()}
        return GangSpec(
            key=key,
            title=f"{key.namespace}/{key.name}",
            created_ns=created_ns_of(home),
            minimum=sum(minima.values()) + application.counts[""],
            minima={role: minimum for role, minimum in minima.items() if minimum},
            waves=True,
            later={role: msgspec.structs.replace(templates[role], count=n) for role, n in lacking.items() if n},
            templates=templates,
            expected=sum(one.count for one in templates.values()),
            queue=queue_named_by(home) or DEFAULT_QUEUE,
            observed=with_records_of(home),
            hints=hints_of(home),
            problem=declared.problem or _undeclared(application, templates),
        )

    def undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        problem = f"no pod of application {key.name} declares its task groups ({yunikorn.TASK_GROUPS})"
        title = f"{key.namespace}/{key.name}"
        return GangSpec(key=key, title=title, created_ns=created_ns, minimum=1, queue=queue, problem=problem)

    def object(self, key: GangKey) -> Obj | None:
        return None

    def home(self, key: GangKey) -> Obj | None:
        """Its oldest pod."""
        application = self._applications.get(key)
        return application.oldest() if application is not None else None

    def complaints(self, obj: Obj) -> Iterator[str]:
        text = annotations_of(obj).get(yunikorn.TASK_GROUPS) if obj["kind"] == "Pod" else None
        if text:
            problem = read_task_groups(text).problem
            if problem:
                yield f"{problem}: the application waits"


def _facts(member: _Member) -> tuple[object, ...]:
    """What its gang depends on."""
    return member.role, member.counts, member.age, annotations_of(member.pod)


def _counts(pod: Obj) -> bool:
    failed = (pod.get("status") or {}).get("phase") == "Failed"
    return not failed and not is_terminating(pod) and not pod["spec"].get("schedulingGates")


def _undeclared(application: _Application, templates: dict[str, Template]) -> str:
    names = sorted(role for role, count in application.counts.items() if count and role and role not in templates)
    return f"task group {names[0]} is not declared in {yunikorn.TASK_GROUPS}" if names else ""


@lru_cache(maxsize=256)
def read_task_groups(text: str) -> TaskGroups:
    """The JSON list of task groups. Nothing in here raises, whatever the text."""
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raw = None
    if not isinstance(raw, list) or not all(isinstance(one, dict) for one in raw):
        return TaskGroups({}, f"{yunikorn.TASK_GROUPS} is not a JSON list of objects")
    templates: dict[str, Template] = {}
    for index, one in enumerate(raw):
        problem = _fault(one) or ("its name is used twice" if one["name"] in templates else "")
        if problem:
            return TaskGroups({}, f"{yunikorn.TASK_GROUPS}[{index}]: {problem}")
        templates[one["name"]] = _template(one)
    members = sum(one.count for one in templates.values())
    if members > MOST_MEMBERS:
        return TaskGroups({}, f"{yunikorn.TASK_GROUPS} asks for {members} members, more than {MOST_MEMBERS}")
    return TaskGroups(templates)


def _fault(one: dict[str, Any]) -> str:
    name, minimum = one.get("name"), one.get("minMember")
    if not isinstance(name, str) or not name:
        return "name is missing"
    if not isinstance(minimum, int) or isinstance(minimum, bool) or not 1 <= minimum <= INT32_MAX:
        return f"minMember is not a whole number from 1 to {INT32_MAX}"
    asked = one.get("minResource")
    if not isinstance(asked, dict):
        return "minResource is missing"
    for resource, amount in asked.items():
        try:
            bad = parse_quantity(amount).nanos < 0
        except (ValueError, TypeError):
            bad = True
        if bad:
            return f"minResource.{resource} is not a quantity"
    labels = one.get("labels") or {}
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        return "labels is not a mapping of strings"
    try:
        view(dict(_template(one).pod_spec), core.PodSpec)
    except msgspec.ValidationError as why:
        return str(why)
    return ""


def _template(one: dict[str, Any]) -> Template:
    """A placeholder of the task group, as a pod."""
    container = {"name": "placeholder", "resources": {"requests": dict(one["minResource"])}}
    pod_spec = {"containers": [container], **{key: one[key] for key in _PLACEHOLDER_FIELDS if one.get(key)}}
    return Template(one["minMember"], pod_spec, one.get("labels") or {})
