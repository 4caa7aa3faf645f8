"""Changes around a gang: the end of gangs in its way, a higher priority, a PodGroup that its pods name."""

from __future__ import annotations

import difflib
from typing import Any

from enbloc.advice.candidates.pods import NEAR
from enbloc.advice.case import Case
from enbloc.advice.change import Candidates, Change, StepDoc, create, delete, patch
from enbloc.advice.sources import own_object, recreated, sources_of, with_edited_pods
from enbloc.api import volcano
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, annotations_of, name_of, namespace_of
from enbloc.engine.core.tables.tasks import GangState
from enbloc.gangs.priority_classes import PRIORITY_CLASS
from enbloc.gangs.volcano import Volcano

MOST_ENDS = 4
MOST_CLASSES = 2


def ends(case: Case) -> Candidates:
    """The end of one gang in its way, of the lowest priority first, then the smallest; else of two or three."""
    gangs = gangs_in_the_way(case)
    for gang in gangs[:MOST_ENDS]:
        title = gang.spec.title
        text = (
            f"wait for the end of {title}, or delete it" if gang.total_occupied else f"delete {title}, which waits too"
        )
        yield Change(text, ending(case, [gang]))
    for count in (2, 3):
        if len(gangs) >= count:
            titles = " and ".join(gang.spec.title for gang in gangs[:count])
            verb = "wait for the end of" if all(gang.total_occupied for gang in gangs[:count]) else "delete"
            yield Change(f"{verb} {titles}", ending(case, gangs[:count]))


def gangs_in_the_way(case: Case) -> list[GangState]:
    by_title = {gang.spec.title: gang for gang in case.engine.state.gangs.values()}
    found = [one.name for one in case.engine.details(case.gang).in_the_way if one.kind == "gang"]
    return [by_title[name] for name in dict.fromkeys(found) if name in by_title]


def ending(case: Case, gangs: list[GangState]) -> tuple[StepDoc, ...]:
    """The Steps that remove gangs with all their pods."""
    steps: list[StepDoc] = []
    for gang in gangs:
        sources = sources_of(case.store, gang)
        own = own_object(case.store, gang)
        objects: list[Obj] = [*sources]
        if own is not None and all(kind_id(source) == "Pod" for source in sources):
            objects.append(own)
        steps += [delete(obj) for obj in objects]
    return tuple(steps)


def higher_priority(case: Case) -> Candidates:
    """The next higher priority classes."""
    classes = [
        (obj.get("value") or 0, name_of(obj))
        for obj in case.store.list(PRIORITY_CLASS)[0]
        if not name_of(obj).startswith("system-") and (obj.get("value") or 0) > case.gang.priority
    ]
    for value, name in sorted(classes)[:MOST_CLASSES]:
        text = f"set priorityClassName: {name} ({value})"
        if case.job is not None:
            yield Change(text, (patch(case.job, {"spec": {"priorityClassName": name}}),))
        elif case.own is not None and kind_id(case.own) == volcano.POD_GROUP:
            yield Change(text, (patch(case.own, {"spec": {"priorityClassName": name}}),))
        else:
            yield Change(text, with_edited_pods(case.sources, _classed(name)))


def _classed(name: str) -> Any:
    def edit(role: str, spec: dict[str, Any]) -> bool:
        spec.pop("priority", None)
        spec.pop("preemptionPolicy", None)
        spec["priorityClassName"] = name
        return True

    return edit


def known_group(case: Case) -> Candidates:
    """Pods that name a PodGroup that does not exist name the one with the nearest name; else it is created."""
    key = case.gang.key
    if case.own is not None or key.dialect != Volcano.name:
        return
    groups = [obj for obj in case.store.list(volcano.POD_GROUP)[0] if namespace_of(obj) == key.namespace]
    for near in difflib.get_close_matches(key.name, [name_of(group) for group in groups], n=1, cutoff=NEAR):

        def rename(made: Obj, near: str = near) -> None:
            annotations = dict(annotations_of(made))
            for name in volcano.GROUP_NAME_KEYS:
                if name in annotations:
                    annotations[name] = near
            made["metadata"]["annotations"] = annotations

        steps = [step for source in case.sources if kind_id(source) == "Pod" for step in recreated(source, rename)]
        if steps:
            yield Change(f"name PodGroup {near} instead of {key.name}", tuple(steps), f"{key.namespace}/{near}")


def new_group(case: Case) -> Candidates:
    key = case.gang.key
    if case.own is not None or key.dialect != Volcano.name or not case.gang.tasks:
        return
    least = len(case.waiting) or 1
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {"minMember": least},
    }
    yield Change(f"create PodGroup {key.name} with minMember {least}", (create(group),))
