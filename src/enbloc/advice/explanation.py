"""The explanation of one gang, from a cluster's objects: why it waits, what is in its way, what would let it start,
when it is expected to, and what happened to it.

A scheduler with the same engine is started on the objects, in virtual time: reason, sentence and figures are those of
its diagnosis, for the very state that is shown (G10). Nothing is written to the cluster.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence, Set
from typing import Any, Final

import msgspec

from enbloc.admission.settings import settings_of
from enbloc.advice.case import Case
from enbloc.advice.change import Change
from enbloc.advice.remedies import Remedy, remedies, shown
from enbloc.advice.sources import recreated_by_top
from enbloc.advice.start_assumption import assumption
from enbloc.advice.trials import Trials
from enbloc.api.events import first_seen, last_seen
from enbloc.api.kinds import by_kind, kind_id
from enbloc.api.meta import Obj, annotations_of, condition_of, controller_of, key_of, name_of, namespace_of, owner_key
from enbloc.api.reasons import LACKS_MEMBERS, PendingReason
from enbloc.config import Config, default_scheduler_name, scheduler_names
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why.reporter import is_pending
from enbloc.engine.engine import Engine
from enbloc.gangs.own_annotations import DECISION
from enbloc.inspect.gangs import Gang
from enbloc.inspect.overview import (
    UNKNOWN,
    Explanation,
    Overview,
    Scheduler,
    ended,
    explain_shown,
    find,
    read_overview,
    waits_sentence,
)
from enbloc.listing import listed
from enbloc.sim.without_effect import without_effect
from enbloc.units import SECOND, format_timestamp, instant_of

NOT_OURS: Final = "NotOurs"
MOST_STORY: Final = 20
TOGETHER_NS: Final = 5 * SECOND
"""Events of one message that are no further apart are of one happening."""
AT_ONCE: Final = "at once, when a scheduler runs"
_REASONS: Final = frozenset(reason.value for reason in PendingReason if reason is not PendingReason.SCHEDULING_GATED)


def explain(
    objects: Sequence[Obj], now_ns: int, config: Config, name: str, scheduler: Scheduler = UNKNOWN
) -> Explanation | None:
    """`name`: NAMESPACE/NAME of a gang, of its object or Job, of a pod, or of an object that makes pods; a name alone
    is of namespace `default`. `None`: there is nothing of that name."""
    config = with_names_in_use(config, objects)
    overview = read_overview(by_kind(objects), config)
    wanted = name if "/" in name else f"default/{name}"
    row = find(overview, wanted) or find(overview, _gang_below(objects, overview, wanted))
    if row is None:
        return _without_gang(objects, config, wanted)
    base = msgspec.structs.replace(explain_shown(overview, row), story=_story(objects, overview, row))
    if not row.waits and not row.pods.get("waiting"):
        return base
    trials = Trials(objects, now_ns, config)
    gang = gang_of(trials.engine, row)
    if gang is None:
        own = {name for name, title in overview.aliases.items() if title == row.gang} | {row.gang}
        return _foreign(base, row, own, trials, config, now_ns)
    if not row.waits:
        why, count = trials.engine.diagnosis(gang), row.pods["waiting"]
        text = f"{base.sentence} {count} more pod{' waits' if count == 1 else 's wait'}: {why.message}"
        return msgspec.structs.replace(base, sentence=ended(text))
    found = _waiting(base, row, gang, trials, config, now_ns)
    if found.assumption == AT_ONCE:
        return msgspec.structs.replace(found, sentence=_can_start(scheduler))
    if scheduler.runs is False:
        return msgspec.structs.replace(found, sentence=f"{found.sentence} No scheduler runs: {scheduler.how}.")
    return found


def _can_start(scheduler: Scheduler) -> str:
    """Of a gang that a scheduler would bind at once."""
    if scheduler.runs:
        return f"It can start now. A scheduler runs ({scheduler.how}) and has not bound it yet: ask again in a moment."
    if scheduler.runs is None:
        return f"It can start now, and whether a scheduler runs is not known: {scheduler.how}."
    return f"It can start now, but no scheduler runs: {scheduler.how}."


def nearest_gang(objects: Sequence[Obj], config: Config, name: str) -> str:
    """The gang, or the object or pod of one, whose name is most like a name that nothing has; empty: none is."""
    overview = read_overview(by_kind(objects), config)
    known = {*(row.gang for row in overview.gangs), *overview.aliases}
    wanted = name if "/" in name else f"default/{name}"
    return next(iter(difflib.get_close_matches(wanted, sorted(known), n=1, cutoff=0.75)), "")


def with_names_in_use(config: Config, objects: Iterable[Obj]) -> Config:
    """The config with the scheduler names that this cluster's scheduler answers to: those of the config, and those of
    pods that carry its mark or its reasons."""
    names = set(scheduler_names(config, alone=False))
    for obj in objects:
        if kind_id(obj) == "Pod" and (spec := obj.get("spec")):
            condition = condition_of(obj, "PodScheduled") or {}
            if DECISION in annotations_of(obj) or condition.get("reason") in _REASONS:
                names.add(spec.get("schedulerName") or "default-scheduler")
    own = config.scheduler_names or ()
    ordered = [*own, *sorted(names - set(own), key=lambda one: (one != "enbloc", one))]
    return msgspec.structs.replace(config, scheduler_names=tuple(ordered))


def gang_of(engine: Engine, row: Gang) -> GangState | None:
    for gang in engine.state.gangs.values():
        if gang.spec.title == row.gang and (gang.spec.dialect or gang.key.dialect) == row.dialect:
            return gang
    return None


def _waiting(base: Explanation, row: Gang, gang: GangState, trials: Trials, config: Config, now_ns: int) -> Explanation:
    engine = trials.engine
    case = Case(trials.simulation.store, engine, config, gang)
    if row.reason == PendingReason.INTERNAL_ERROR:  # as the scheduler found it, whatever a trial finds (S8)
        text = "unknown: it is tried again by itself, and when its objects change"
        return msgspec.structs.replace(base, reason=row.reason, sentence=waits_sentence(row.message), assumption=text)
    if not is_pending(gang):
        has = row.pods.get("running", 0) + row.pods.get("starting", 0)
        when = AT_ONCE if gang.total_occupied > has else "unknown: none of its pods waits"
        return msgspec.structs.replace(base, assumption=when)
    entry = next((one for one in engine.pending() if one.gang == row.gang and one.dialect == row.dialect), None)
    message = entry.message if entry is not None else case.why.message
    starts = trials.forecast([row.gang])
    start_ns = starts.get(row.gang)
    details = engine.details(gang)
    found = remedies(case, trials, start_ns)
    return msgspec.structs.replace(
        base,
        reason=str(case.why.reason),
        sentence=waits_sentence(message),
        numbers={**base.numbers, **details.numbers},
        in_the_way=[msgspec.to_builtins(one) for one in details.in_the_way],
        remedies=shown(found, lambda after_ns: format_timestamp(now_ns + after_ns)),
        ahead=_ahead(engine, base.ahead),
        expected_start=None if start_ns is None else format_timestamp(now_ns + start_ns),
        assumption=assumption(case, start_ns is not None),
    )


def _foreign(base: Explanation, row: Gang, own: Set[str], trials: Trials, config: Config, now_ns: int) -> Explanation:
    """A gang none of whose pods is ours; `own`: their names."""
    ours = default_scheduler_name(config)
    store = trials.simulation.store
    pods = [pod for pod in store.list("Pod")[0] if f"{namespace_of(pod)}/{name_of(pod)}" in own]
    names = sorted({str(pod["spec"].get("schedulerName") or "default-scheduler") for pod in pods})
    if not pods or set(names) <= set(scheduler_names(config, alone=False)):
        return base

    def edit(role: str, spec: dict[str, Any]) -> bool:
        spec["schedulerName"] = ours
        return True

    change = Change(f"set schedulerName: {ours} instead of {listed(names)}", recreated_by_top(store, pods, edit))
    start_ns = trials.start_after(row.gang, change.steps)
    found = [] if start_ns is None else [Remedy(change.text, start_ns, change.steps)]
    return msgspec.structs.replace(
        base,
        state=NOT_OURS,
        reason=str(PendingReason.OTHER_SCHEDULER),
        sentence=f"Not ours: its schedulerName is {listed(names)}, and ours is {ours}.",
        in_the_way=[{"kind": "scheduler", "name": name, "what": "is named by its pods"} for name in names],
        remedies=shown(found, lambda after_ns: format_timestamp(now_ns + after_ns)),
        ahead=[],
        assumption=f"unknown: that is up to {listed(names)}",
    )


def _ahead(engine: Engine, ahead: Sequence[str]) -> list[str]:
    """Of the gangs before it in its queue, those that are attempted before it."""
    invalid = {
        *LACKS_MEMBERS,
        PendingReason.GANG_INVALID,
        PendingReason.UNSUPPORTED_CONSTRAINT,
        PendingReason.INTERNAL_ERROR,
        PendingReason.CLAIM_NOT_ALLOWED,
        PendingReason.TIMED_OUT,
    }
    tried = {one.gang for one in engine.pending() if one.reason not in invalid and "can never start" not in one.message}
    return [title for title in ahead if title in tried]


def _gang_below(objects: Sequence[Obj], overview: Overview, wanted: str) -> str:
    """The gang of a pod, PodGroup or Job; or of the first waiting pod that an object makes, through any owners."""
    known = overview.aliases.get(wanted)
    if known is not None:
        return known
    owned: dict[str, list[Obj]] = {}
    for obj in objects:
        owner = controller_of(obj)
        if owner:
            owned.setdefault(owner_key(obj, owner), []).append(obj)
    named = [obj for obj in objects if f"{namespace_of(obj)}/{name_of(obj)}" == wanted and obj["kind"] != "Event"]
    pods: list[Obj] = []
    for _ in range(4):
        named = [child for obj in named for child in owned.get(key_of(obj), ())]
        pods += [obj for obj in named if kind_id(obj) == "Pod"]
    pods.sort(key=lambda pod: (bool((pod.get("spec") or {}).get("nodeName")), name_of(pod)))
    names = [f"{namespace_of(pod)}/{name_of(pod)}" for pod in pods]
    return next((overview.aliases.get(name, name) for name in names), "")


def _without_gang(objects: Sequence[Obj], config: Config, wanted: str) -> Explanation | None:
    """An object that is no gang: nothing acts on it, or it makes no pods."""
    for one in without_effect(objects, settings_of(config, alone=False)):
        if wanted in (f"{one.namespace}/{one.name}", f"default/{one.name}" if not one.namespace else ""):
            return _not_ours(wanted, f"{one.kind} {wanted}: {one.reason}.")
    kinds = [obj["kind"] for obj in objects if f"{namespace_of(obj)}/{name_of(obj)}" == wanted]
    kinds = [kind for kind in kinds if kind != "Event"]
    return _not_ours(wanted, f"{kinds[0]} {wanted} has no pods.") if kinds else None


def _not_ours(wanted: str, sentence: str) -> Explanation:
    return Explanation(gang=wanted, state=NOT_OURS, reason="", sentence=sentence, numbers={})


def _story(objects: Sequence[Obj], overview: Overview, row: Gang) -> list[dict[str, Any]]:
    """The Events about a gang, its Job and its pods, the oldest first, each message once a while. Of those of one
    second, the one that was written first is first. Events of an object that had its name before are not its own."""
    namespace, _, name = row.gang.partition("/")
    titles = {gang.gang for gang in overview.gangs}
    born_ns = min(map(_created_ns, (obj for obj in objects if _is_called(obj, namespace, name))), default=0)
    found: list[tuple[tuple[int, int, str], dict[str, Any]]] = []
    for obj in objects:
        if obj["kind"] != "Event" or namespace_of(obj) != namespace:
            continue
        about = obj.get("involvedObject") or obj.get("regarding") or {}
        target = f"{namespace}/{about.get('name') or ''}"
        if (overview.aliases.get(target) or _named_after(target, titles)) != row.gang:
            continue
        what, message = obj.get("reason") or "", obj.get("message") or obj.get("note") or ""
        subject = f"{about.get('kind')} {about.get('name')}"
        version = str(obj["metadata"].get("resourceVersion") or "")
        place = int(version) if version.isdecimal() else 0
        for at in dict.fromkeys((first_seen(obj), last_seen(obj))):
            entry = {"at": at, "about": subject, "what": what, "message": message}
            found.append(((instant_of(at), place, subject), entry))
    return _each_once([one for one in found if one[0][0] >= born_ns])[-MOST_STORY:]


def _each_once(found: list[tuple[tuple[int, int, str], dict[str, Any]]]) -> list[dict[str, Any]]:
    """In order; what is said of several objects at about the same time is said once."""
    kept: list[dict[str, Any]] = []
    last_ns: dict[str, int] = {}
    for (at_ns, _, _), entry in sorted(found, key=lambda one: one[0]):
        message = entry["message"]
        if message not in last_ns or at_ns - last_ns[message] > TOGETHER_NS:
            kept.append(entry)
        last_ns[message] = at_ns
    return kept


def _is_called(obj: Obj, namespace: str, name: str) -> bool:
    return name_of(obj) == name and namespace_of(obj) == namespace and obj["kind"] != "Event"


def _created_ns(obj: Obj) -> int:
    return instant_of(obj["metadata"].get("creationTimestamp"))


def _named_after(target: str, titles: Set[str]) -> str:
    """The gang that an object which is no longer there belonged to, by its name: the longest that it begins with."""
    while target and target not in titles:
        target = target.rpartition("-")[0]
    return target
