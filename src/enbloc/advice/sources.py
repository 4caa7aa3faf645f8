"""The objects that a gang's pods come from: Jobs and other owners with pod templates, or the pods themselves.

A pod cannot be changed much once it exists, so a change of its spec means that its source is created anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from enbloc.advice.change import StepDoc, as_written, create, delete
from enbloc.api import volcano
from enbloc.api.kinds import kind_id, ref_of
from enbloc.api.meta import Obj, Ref, controller_of, namespace_of, uid_of
from enbloc.cluster.embedded.api.store import Store
from enbloc.engine.core.tables.tasks import GangState

Edit = Callable[[str, dict[str, Any]], bool]
"""Changes the spec of a pod or template of a role in place; whether it changed anything."""


def sources_of(store: Store, gang: GangState, more: Sequence[Obj] = ()) -> list[Obj]:
    """The objects to create anew in order to change the gang's pods, or to delete in order to end it. `more`: pods that
    belong to it and are no tasks of the engine."""
    found: dict[Ref, Obj] = {}
    pods = [store.get("Pod", task.namespace, task.name) for task in gang.tasks.values()]
    for pod in [*pods, *more]:
        if pod is not None:
            source = _topmost(store, pod)
            found.setdefault(ref_of(source), source)
    own = own_object(store, gang)
    if own is not None:
        source = _topmost(store, own)
        if source is not own:
            found.setdefault(ref_of(source), source)
    return list(found.values())


def own_object(store: Store, gang: GangState) -> Obj | None:
    """The object that declares the gang: its PodGroup or SchedulingSpec."""
    return store.get(*gang.spec.object) if gang.spec.object is not None else None


def _topmost(store: Store, obj: Obj) -> Obj:
    """The last owner up the chain that has pod templates; the object itself without one."""
    at = best = obj
    for _ in range(8):
        owner = controller_of(at) or {}
        if not owner.get("apiVersion") or not owner.get("kind"):
            break
        found = store.get(kind_id(owner), namespace_of(obj), owner.get("name") or "")
        if found is None or uid_of(found) != owner.get("uid"):
            break
        at = found
        if any(pod_parts(found)):
            best = found
    return best


def pod_parts(obj: Obj) -> Iterator[tuple[str, dict[str, Any]]]:
    """`(role, pod or template)` for each that the object has; to be changed only in a copy."""
    if kind_id(obj) == "Pod":
        yield volcano.role_of(obj), obj
        return
    yield from _templates(obj.get("spec"), "")


def _templates(value: Any, role: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        template = value.get("template")
        if isinstance(template, dict) and isinstance(template.get("spec"), dict):
            name = value.get("name")
            yield name if isinstance(name, str) else role, template
        for key, child in value.items():
            if key != "template":
                yield from _templates(child, role)
    elif isinstance(value, list):
        for child in value:
            yield from _templates(child, role)


def with_edited_pods(sources: Sequence[Obj], edit: Edit) -> tuple[StepDoc, ...]:
    """The Steps that create the sources anew with changed pods; those that the edit leaves alone stay."""
    steps: list[StepDoc] = []
    for source in sources:
        made = as_written(source)
        changed = [edit(role, part["spec"]) for role, part in pod_parts(made)]
        if any(changed):
            steps += [delete(source), create(made)]
    return tuple(steps)


def recreated(source: Obj, edit: Callable[[Obj], None]) -> tuple[StepDoc, ...]:
    """The Steps that create an object anew with a change."""
    made = as_written(source)
    edit(made)
    return (delete(source), create(made))


def recreated_by_top(store: Store, pods: Sequence[Obj], edit: Edit) -> tuple[StepDoc, ...]:
    """The Steps that create pods, or the objects that make them, anew with changed pods."""
    tops = {ref_of(top): top for pod in pods for top in (_topmost(store, pod),)}
    return with_edited_pods(list(tops.values()), edit)
