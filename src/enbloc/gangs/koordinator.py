"""Koordinator's dialect: a PodGroup that pods name by label, or annotations on the pods alone (K1–K4, K11).

The PodGroup may be Koordinator's own or scheduler-plugins' (see `coscheduling`): one name is one gang in both. Where
pods and PodGroup both set a value, the pods' annotations win (K2); where pods disagree, the oldest pod with a good
value does (K3). GangGroups are the engine's: here a gang only lists the gangs that it names.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from enbloc.api import coscheduling, koordinator
from enbloc.api.kinds import ref_of, view
from enbloc.api.meta import Obj, annotations_of, created_ns_of, labels_of, name_of, namespace_of, uid_of
from enbloc.api.topology import NETWORK_TOPOLOGY_SPEC
from enbloc.api.volcano import role_of
from enbloc.api.writes import WatchEvent
from enbloc.config import Koordinator as Settings
from enbloc.gangs import claim_records
from enbloc.gangs import coscheduling as plugins
from enbloc.gangs.dialect import NOTHING, Changed, queue_named_by
from enbloc.gangs.hints import NONE as NO_HINTS
from enbloc.gangs.hints import hints_of
from enbloc.gangs.koordinator_values import DIALECT, INT32_MAX, Values, Written, read, shown, written
from enbloc.gangs.model import (
    DEFAULT_QUEUE,
    ONCE_SATISFIED,
    Complaint,
    GangKey,
    GangSpec,
    GangStatus,
    Membership,
    with_records_of,
    without_group,
)
from enbloc.gangs.topology import PodTopology, multiples_of, of_gather_strategy
from enbloc.units import SECOND, is_dns_subdomain

_NAME_KEYS = (koordinator.NAME, koordinator.POD_GROUP_KEY + "/name", koordinator.POD_GROUP_KEY)
_NAME_LABELS = (*_NAME_KEYS, coscheduling.POD_GROUP_LABEL)
_ANY_NAME_KEY = frozenset(_NAME_KEYS)
_ANY_NAME_LABEL = frozenset(_NAME_LABELS)

STARTED = frozenset({"Scheduled", "Running"})
"""Phases of a PodGroup whose minimum was bound; they end when none of its pods is left."""

_STALE_BOUND = 64
"""Heaps are rebuilt when they hold more than 64 stale entries and as many stale as live ones."""

Age = tuple[int, str, str]
_T = TypeVar("_T")


class _Pod(NamedTuple):
    obj: Obj
    raw: Written
    age: Age
    """Creation, name, UID."""


class _Pods:
    """The pods of one gang, by their values and by age. Heaps keep stale entries until these reach the top, or are the
    majority."""

    def __init__(self) -> None:
        self.by_uid: dict[str, _Pod] = {}
        self._by_age: list[Age] = []
        self._by_raw: dict[Written, list[Age]] = {}
        self._entries = 0
        """Entries made since the heaps were last rebuilt."""

    def put(self, pod: Obj) -> None:
        metadata = pod["metadata"]
        age = (created_ns_of(pod), metadata["name"], uid_of(pod))
        raw = written(pod)
        known = self.by_uid.get(age[2])
        self.by_uid[age[2]] = _Pod(pod, raw, age)
        if known is None:
            heapq.heappush(self._by_age, age)
        if known is None or known.raw != raw:
            heapq.heappush(self._by_raw.setdefault(raw, []), age)
            self._entries += 1
            if self._entries > 2 * len(self.by_uid) + _STALE_BOUND:
                self._rebuild()

    def _rebuild(self) -> None:
        """Drops the entries of pods that are gone or have other values now."""
        self._by_age = sorted(pod.age for pod in self.by_uid.values())
        self._by_raw = {}
        for age in self._by_age:
            self._by_raw.setdefault(self.by_uid[age[2]].raw, []).append(age)
        self._entries = len(self._by_age)

    def remove(self, uid: str) -> None:
        self.by_uid.pop(uid, None)

    def oldest(self) -> Obj | None:
        while self._by_age:
            pod = self.by_uid.get(self._by_age[0][2])
            if pod is not None:
                return pod.obj
            heapq.heappop(self._by_age)
        return None

    def distinct(self) -> list[tuple[Written, Obj]]:
        """The distinct sets of values, each with the oldest pod that has it, the oldest first."""
        found: list[tuple[Age, Written, Obj]] = []
        for raw, ages in list(self._by_raw.items()):
            while ages:
                pod = self.by_uid.get(ages[0][2])
                if pod is not None and pod.raw == raw:
                    found.append((ages[0], raw, pod.obj))
                    break
                heapq.heappop(ages)
            else:
                del self._by_raw[raw]
        return [(raw, obj) for _, raw, obj in sorted(found, key=lambda one: one[0])]

    def signature(self) -> tuple[object, ...]:
        """While it is unchanged, so are the gang's facts."""
        oldest = self.oldest()
        home = (uid_of(oldest), claim_records.texts(annotations_of(oldest))) if oldest else None
        return (home, *((raw, uid_of(obj)) for raw, obj in self.distinct()))


class Koordinator:
    """Gangs declared with Koordinator's or scheduler-plugins' PodGroups, or with Koordinator's annotations."""

    name = DIALECT
    kinds = frozenset({koordinator.POD_GROUP, coscheduling.POD_GROUP})

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._groups: dict[GangKey, dict[str, Obj]] = {}
        """PodGroups by kind."""
        self._pods: dict[GangKey, _Pods] = {}
        self._gang_of: dict[str, GangKey] = {}

    # Watch events

    def observe(self, event: WatchEvent) -> Changed:
        key = GangKey(self.name, namespace_of(event.obj), name_of(event.obj))
        groups = self._groups.setdefault(key, {})
        if event.type == "DELETED":
            groups.pop(event.kind, None)
            if not groups:
                del self._groups[key]
        else:
            groups[event.kind] = event.obj
        return Changed((key,))

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        uid = uid_of(pod)
        name = gang_name(pod)
        key = GangKey(self.name, namespace_of(pod), name) if name and not gone else None
        before = self._gang_of.get(uid)
        if key is None and before is None:
            return NOTHING
        changed: list[GangKey] = []
        if before is not None and before != key:
            pods = self._pods[before]
            pods.remove(uid)
            del self._gang_of[uid]
            if not pods.by_uid:
                del self._pods[before]
            changed.append(before)
        if key is not None:
            pods = self._pods.setdefault(key, _Pods())
            was = pods.signature() if pods.by_uid else None
            pods.put(pod)
            self._gang_of[uid] = key
            if was != pods.signature():
                changed.append(key)
        return Changed(tuple(changed))

    # Gangs

    def member(self, pod: Obj) -> Membership | None:
        name = gang_name(pod)
        if not name:
            return None
        return Membership(GangKey(self.name, namespace_of(pod), name), role_of(pod), None)

    def spec(self, key: GangKey) -> GangSpec | None:
        group, pods = self.object(key), self._pods.get(key)
        if group is None and pods is None:
            return None
        combined = _combine(key, pods.distinct() if pods else [])
        by_pods, by_group = combined.values, read(written(group)) if group else Values()
        typed = view(group, koordinator.PodGroup).spec if group else koordinator.PodGroupSpec()
        minimum, problem = _minimum(key, group, typed, by_pods, by_group)
        home = self.home(key)
        assert home is not None, f"{key} has a PodGroup or pods"
        total = _either(by_pods.total, by_group.total)
        complaints = combined.disagreements
        if by_pods.total is not None and by_pods.minimum is None and by_pods.total < minimum and pods is not None:
            complaints += _low_total(pods, by_pods.total, minimum)
        waiting_ns = _either(by_pods.waiting_ns, by_group.waiting_ns) or _timeout_ns(typed)
        return GangSpec(
            key=key,
            title=f"{key.namespace}/{key.name}",
            dialect=plugins.NAME if group and plugins.is_coscheduling(group) else self.name,
            created_ns=created_ns_of(group or home),
            minimum=minimum,
            queue=queue_named_by(home) or DEFAULT_QUEUE,
            expected=max(total if total is not None else minimum, minimum),
            holds=bool(_either(by_pods.non_strict, by_group.non_strict)),
            group=_either(by_pods.groups, by_group.groups) or (),
            waiting_ns=waiting_ns or self._settings.default_waiting_ns,
            match_policy=_either(by_pods.policy, by_group.policy) or ONCE_SATISFIED,
            leftovers_in_turn=True,
            min_free_resources={
                name: amount.nanos for name, amount in (typed.min_resources or {}).items() if amount.nanos > 0
            },
            observed=with_records_of(
                home, GangStatus(started=group is not None and (group.get("status") or {}).get("phase") in STARTED)
            ),
            topology=of_gather_strategy(annotations_of(group).get(NETWORK_TOPOLOGY_SPEC)) if group else None,
            slices_of_role=_multiples(group),
            hints=hints_of(group) if group else NO_HINTS,
            object=ref_of(group) if group else None,
            object_uid=uid_of(group) if group else "",
            problem=problem or _uneven(minimum, home),
            complaints=complaints,
        )

    def undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        """Pods declare their gang themselves, or wait for their PodGroup (K4): `spec` covers both."""
        return self.spec(key) or without_group(key, created_ns, queue)

    def object(self, key: GangKey) -> Obj | None:
        groups = self._groups.get(key) or {}
        return groups.get(koordinator.POD_GROUP) or groups.get(coscheduling.POD_GROUP)

    def home(self, key: GangKey) -> Obj | None:
        """Its PodGroup, or, for a gang that has none, its oldest pod."""
        pods = self._pods.get(key)
        return self.object(key) or (pods.oldest() if pods else None)

    def complaints(self, obj: Obj) -> Iterator[str]:
        """The bad values of a pod or a PodGroup (K3)."""
        if obj["kind"] == "Pod":
            name = gang_name(obj)
            if not name:
                yield from _without_name(obj)
                return
            if not is_dns_subdomain(name):
                yield f"gang name {shown(name)} is not RFC 1123 (a-z, 0-9, '-' and '.'): the gang waits until it is"
        else:
            spec = view(obj, koordinator.PodGroup).spec
            if not 0 <= spec.min_member <= INT32_MAX:
                yield f"minMember {spec.min_member} is not from 0 to {INT32_MAX}: the gang waits until it is"
            seconds = spec.schedule_timeout_seconds
            if seconds is not None and not _timeout_ns(spec):
                yield f"scheduleTimeoutSeconds {seconds} is not above 0: the default counts"
            values = read(written(obj))
            if values.total is not None and values.minimum is None and values.total < spec.min_member:
                yield f"total-number {values.total} is below minMember {spec.min_member}: {spec.min_member} counts"
        yield from read(written(obj)).complaints


def _without_name(pod: Obj) -> Iterator[str]:
    """Gang annotations on a pod that names no gang: it is scheduled by itself."""
    present = [_FIELD_NAMES.get(field, "min-available") for field, text in written(pod)._asdict().items() if text]
    if present:
        yield f"{', '.join(present)} without a gang name ({koordinator.NAME}): the pod is scheduled by itself"


class _Combined(NamedTuple):
    values: Values
    disagreements: tuple[Complaint, ...]


def _combine(key: GangKey, distinct: list[tuple[Written, Obj]]) -> _Combined:
    """The values of all pods of a gang together: of each, the oldest pod's good one (K3)."""
    if len(distinct) == 1:
        return _Combined(read(distinct[0][0]), ())
    found, disagreements = Values(), []
    for raw, pod in distinct:
        values = read(raw)
        news = {field: getattr(values, field) for field in _FIELD_NAMES if getattr(values, field) is not None}
        merged = found._replace(**{field: value for field, value in news.items() if getattr(found, field) is None})
        bad = "" if merged.minimum is not None else found.bad_minimum or values.bad_minimum
        merged = merged._replace(bad_minimum=bad)
        differing = [field for field, value in news.items() if value != getattr(merged, field)]
        if differing:
            words = ", ".join(_FIELD_NAMES[field] for field in differing)
            message = f"pods of gang {key.namespace}/{key.name} disagree on {words}: the oldest pod's value counts"
            disagreements.append(Complaint(ref_of(pod), uid_of(pod), message))
        found = merged
    return _Combined(found, tuple(disagreements))


_FIELD_NAMES = {
    "minimum": "min-available",
    "total": "total-number",
    "non_strict": "mode",
    "groups": "groups",
    "waiting_ns": "waiting-time",
    "policy": "match-policy",
}


def _minimum(
    key: GangKey, group: Obj | None, spec: koordinator.PodGroupSpec, by_pods: Values, by_group: Values
) -> tuple[int, str]:
    """The minimum, and why the gang cannot be scheduled; empty if it can."""
    title = f"{key.namespace}/{key.name}"
    if not is_dns_subdomain(key.name):
        return 1, f"gang name {shown(key.name)} is not RFC 1123"
    for values in (by_pods, by_group):
        if values.minimum is not None:
            return values.minimum, ""
        if values.bad_minimum:
            return 1, values.bad_minimum
    if group is None:
        return 1, f"PodGroup {title} does not exist, and no pod sets min-available"
    if not 0 <= spec.min_member <= INT32_MAX:
        return 1, f"minMember {spec.min_member} is not from 0 to {INT32_MAX}"
    return spec.min_member, ""


def _low_total(pods: _Pods, total: int, minimum: int) -> tuple[Complaint, ...]:
    """The warning of a pod whose total-number is below the minimum that its PodGroup sets (K3)."""
    pod = next((one for raw, one in pods.distinct() if raw.total is not None), None)
    message = f"total-number {total} is below minMember {minimum}: {minimum} counts"
    return (Complaint(ref_of(pod), uid_of(pod), message),) if pod is not None else ()


def _timeout_ns(spec: koordinator.PodGroupSpec) -> int | None:
    seconds = spec.schedule_timeout_seconds
    return seconds * SECOND if seconds is not None and 0 < seconds <= INT32_MAX else None


def gang_name(pod: Obj) -> str:
    annotations, labels = annotations_of(pod), labels_of(pod)
    if annotations and not _ANY_NAME_KEY.isdisjoint(annotations):  # few pods have one, and every pod is asked
        for key in _NAME_KEYS:
            if annotations.get(key):
                return annotations[key]
    if labels and not _ANY_NAME_LABEL.isdisjoint(labels):
        for key in _NAME_LABELS:
            if labels.get(key):
                return labels[key]
    return ""


def _either(first: _T | None, second: _T | None) -> _T | None:
    return first if first is not None else second


def _multiples(group: Obj | None) -> dict[str, tuple[PodTopology, ...]]:
    """What a PodGroup says of the number of pods in each domain: its pods have no roles."""
    found = multiples_of(annotations_of(group).get(NETWORK_TOPOLOGY_SPEC)) if group else ()
    return {"": found} if found else {}


def _uneven(minimum: int, home: Obj) -> str:
    """Why no number of pods in each domain adds up to the minimum; empty: some do."""
    for one in multiples_of(annotations_of(home).get(NETWORK_TOPOLOGY_SPEC)):
        if one.slices and minimum % one.slices[-1]:
            return f"podCountMultiple {one.slices[-1]} does not divide its minimum of {minimum}"
    return ""
