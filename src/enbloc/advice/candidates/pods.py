"""Changes of the gang's own pods: what they select, tolerate, request, and what holds them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from enbloc.advice.case import Case, allocatable_of, requests_of
from enbloc.advice.change import Candidates, Change, StepDoc, patch
from enbloc.advice.sources import Edit, pod_parts, recreated, with_edited_pods
from enbloc.api.koordinator import TIMEOUT
from enbloc.api.meta import Obj, labels_of, name_of, namespace_of
from enbloc.config import default_scheduler_name, scheduler_names
from enbloc.engine.core.tables.nodes import TaintFact
from enbloc.engine.core.tables.tasks import TaskStatus
from enbloc.gangs.compatibility import constraints_of, pod_constraints
from enbloc.listing import listed
from enbloc.units import format_amount, format_quantity

NEAR = 0.75
"""How like a known name a word must be to count as a misspelling of it."""


def ungated(case: Case) -> Candidates:
    pods = [case.store.get("Pod", task.namespace, task.name) for task in case.waiting]
    gated = [pod for pod in pods if pod is not None and pod["spec"].get("schedulingGates")]
    if gated:
        gates = sorted({gate["name"] for pod in gated for gate in pod["spec"]["schedulingGates"]})
        text = f"remove scheduling gate {listed(gates)} from {listed([name_of(pod) for pod in gated])}"
        yield Change(text, tuple(patch(pod, {"spec": {"schedulingGates": None}}) for pod in gated))


def not_timed_out(case: Case) -> Candidates:
    pods = [
        case.store.get("Pod", task.namespace, task.name)
        for task in case.gang.tasks.values()
        if task.status is TaskStatus.TIMED_OUT
    ]
    found = [pod for pod in pods if pod is not None]
    if found:
        text = f"remove annotation {TIMEOUT} from {listed([name_of(pod) for pod in found])}"
        yield Change(text, tuple(patch(pod, {"metadata": {"annotations": {TIMEOUT: None}}}) for pod in found))


def and_not_timed_out(family: Callable[[Case], Candidates]) -> Callable[[Case], Candidates]:
    """The changes of a family, and the annotation off the pods that are not created anew."""

    def both(case: Case) -> Candidates:
        for cleared in not_timed_out(case):
            for change in family(case):
                anew = {step["target"]["name"] for step in change.steps if step["do"] == "delete"}
                rest = tuple(step for step in cleared.steps if step["target"]["name"] not in anew)
                text = f"{change.text}, and {cleared.text}" if rest else change.text
                yield Change(text, (*change.steps, *rest), change.gang)

    return both


def our_scheduler(case: Case) -> Candidates:
    """Pods that name another scheduler name ours."""
    ours = default_scheduler_name(case.config)
    known = scheduler_names(case.config, alone=False)
    names = {str(pod["spec"].get("schedulerName") or "default-scheduler") for pod in case.foreign_pods}
    foreign = names - known
    if not foreign:
        return

    def edit(role: str, spec: dict[str, Any]) -> bool:
        if (spec.get("schedulerName") or "default-scheduler") not in foreign:
            return False
        spec["schedulerName"] = ours
        return True

    steps = with_edited_pods(case.sources, edit)
    if steps:
        yield Change(f"set schedulerName: {ours} instead of {listed(sorted(foreign))}", steps)


def missing_resources(case: Case) -> dict[str, str]:
    """Resources that are requested and no node has → the known name that is nearest, or nothing."""
    known = sorted({name for node in case.nodes for name in allocatable_of(node)})
    asked = {name for spec in case.roles.values() for name in requests_of(spec)}
    return {
        name: next(iter(difflib.get_close_matches(name, known, n=1, cutoff=NEAR)), "")
        for name in sorted(asked - set(known))
    }


def known_resources(case: Case) -> Candidates:
    """A resource that no node has is a misspelling of one that some node has."""
    for name, near in missing_resources(case).items():
        if near:

            def edit(role: str, spec: dict[str, Any], name: str = name, near: str = near) -> bool:
                return sum(_rename(part, name, near) for part in _resource_maps(spec)) > 0

            yield Change(f"request {near} instead of {name}", with_edited_pods(case.sources, edit))


def without_resources(case: Case) -> Candidates:
    """Without the requests that no node could serve."""
    names = [name for name, near in missing_resources(case).items() if not near]

    def edit(role: str, spec: dict[str, Any]) -> bool:
        return sum(part.pop(name, None) is not None for part in _resource_maps(spec) for name in names) > 0

    if names:
        yield from _if_any(case, f"remove the request of {listed(names)}, which no node has", edit)


def _resource_maps(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        for kind in ("requests", "limits"):
            if isinstance(resources.get(kind), dict):
                yield resources[kind]


def _rename(amounts: dict[str, Any], name: str, near: str) -> bool:
    if name not in amounts:
        return False
    amounts[near] = amounts.pop(name)
    return True


def known_labels(case: Case) -> Candidates:
    """A label value or key that no node has is a misspelling of one that some node has."""
    for key, value in _selected(case):
        values = sorted({labels_of(node)[key] for node in case.nodes if key in labels_of(node)})
        if value in values:
            continue
        for near in difflib.get_close_matches(value, values, n=1, cutoff=NEAR):
            yield _selector(case, key, value, f"select {key}={near} instead of {key}={value}", {key: near})
        if not values:
            keys = sorted({name for node in case.nodes for name, text in labels_of(node).items() if text == value})
            for near in difflib.get_close_matches(key, keys, n=1, cutoff=NEAR):
                yield _selector(case, key, value, f"select {near}={value} instead of {key}={value}", {near: value})


def known_claims(case: Case) -> Candidates:
    """A claim that does not exist is a misspelling of one that does; else its volume is left out."""
    known = [
        name_of(claim) for claim in case.store.list("PersistentVolumeClaim")[0] if namespace_of(claim) == case.namespace
    ]
    volumes = [volume for spec in case.roles.values() for volume in spec.get("volumes") or ()]
    asked = [(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes]
    for name in dict.fromkeys(claim for claim in asked if claim and claim not in known):
        for near in difflib.get_close_matches(name, known, n=1, cutoff=NEAR):
            yield Change(f"mount claim {near} instead of {name}", with_edited_pods(case.sources, _claiming(name, near)))
        yield Change(f"remove the volume of claim {name}", with_edited_pods(case.sources, _claiming(name, "")))


def _claiming(name: str, instead: str) -> Edit:
    def edit(role: str, spec: dict[str, Any]) -> bool:
        found = [
            v for v in spec.get("volumes") or () if (v.get("persistentVolumeClaim") or {}).get("claimName") == name
        ]
        for volume in found:
            if instead:
                volume["persistentVolumeClaim"]["claimName"] = instead
            else:
                spec["volumes"].remove(volume)
                for container in spec.get("containers") or ():
                    mounts = container.get("volumeMounts") or []
                    container["volumeMounts"] = [mount for mount in mounts if mount.get("name") != volume["name"]]
        return bool(found)

    return edit


def without_selector(case: Case) -> Candidates:
    for key, value in _selected(case):
        yield _selector(case, key, value, f"remove nodeSelector {key}={value}", {})
    if len(_selected(case)) > 1:

        def edit(role: str, spec: dict[str, Any]) -> bool:
            return bool(spec.pop("nodeSelector", None))

        yield Change("remove the nodeSelector", with_edited_pods(case.sources, edit))
    if case.own is not None and not case.gang.spec.recreated_by_us:
        for key, value in sorted(case.gang.spec.node_selector.items()):
            text = f"remove nodeSelector {key}={value} of the SchedulingSpec"
            yield Change(text, (patch(case.own, {"spec": {"nodeSelector": {key: None}}}),))


def _selected(case: Case) -> list[tuple[str, str]]:
    return sorted({pair for spec in case.roles.values() for pair in (spec.get("nodeSelector") or {}).items()})


def _selector(case: Case, key: str, value: str, text: str, instead: dict[str, str]) -> Change:
    def edit(role: str, spec: dict[str, Any]) -> bool:
        selector = spec.get("nodeSelector") or {}
        if selector.get(key) != value:
            return False
        del selector[key]
        selector.update(instead)
        return True

    return Change(text, with_edited_pods(case.sources, edit))


_TERMS = (
    ("nodeAffinity", "required node affinity"),
    ("podAffinity", "required pod affinity"),
    ("podAntiAffinity", "required pod anti-affinity"),
)


def without_affinity(case: Case) -> Candidates:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    for kind, words in _TERMS:

        def edit(role: str, spec: dict[str, Any], kind: str = kind) -> bool:
            return bool(((spec.get("affinity") or {}).get(kind) or {}).pop(required, None))

        yield from _if_any(case, f"remove the {words}", edit)

    def unspread(role: str, spec: dict[str, Any]) -> bool:
        found = spec.get("topologySpreadConstraints") or []
        soft = [{**one, "whenUnsatisfiable": "ScheduleAnyway"} for one in found]
        changed = soft != found
        if changed:
            spec["topologySpreadConstraints"] = soft
        return changed

    yield from _if_any(case, "set whenUnsatisfiable: ScheduleAnyway in topologySpreadConstraints", unspread)

    def portless(role: str, spec: dict[str, Any]) -> bool:
        ports = [port for container in spec.get("containers") or () for port in container.get("ports") or ()]
        return sum(port.pop("hostPort", None) is not None for port in ports) > 0

    yield from _if_any(case, "remove hostPort", portless)


def _if_any(case: Case, text: str, edit: Any) -> Candidates:
    steps = with_edited_pods(case.sources, edit)
    if steps:
        yield Change(text, steps)


def tolerating(case: Case) -> Candidates:
    """Tolerations for taints of nodes, the taint of most nodes first; then for all of them."""
    taints = [taint for taint in case.tainted() if taint.effect != "PreferNoSchedule"][:3]
    for chosen in [[taint] for taint in taints] + ([taints] if len(taints) > 1 else []):

        def edit(role: str, spec: dict[str, Any], chosen: list[TaintFact] = chosen) -> bool:
            spec["tolerations"] = [*(spec.get("tolerations") or ()), *map(_toleration, chosen)]
            return True

        yield Change(f"tolerate taint {listed(list(map(taint_text, chosen)))}", with_edited_pods(case.sources, edit))


def _toleration(taint: TaintFact) -> dict[str, str]:
    key, value, effect = taint
    found = {"key": key, "operator": "Equal" if value else "Exists", "effect": effect}
    return {**found, "value": value} if value else found


def taint_text(taint: TaintFact) -> str:
    key, value, effect = taint
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def smaller(case: Case) -> Candidates:
    """A pod that requests more than the largest node has requests what that node has."""
    for name, asked, most in too_large(case):
        if most <= 0:
            continue

        def edit(role: str, spec: dict[str, Any], name: str = name, most: int = most) -> bool:
            containers = spec.get("containers") or ()
            if requests_of(spec).get(name, 0) <= most or len(containers) != 1:
                return False
            for amounts in _resource_maps(spec):
                if name in amounts:
                    amounts[name] = format_quantity(most)
            return True

        text = f"request at most {format_amount(name, most)} {name} per pod instead of {format_amount(name, asked)}"
        steps = with_edited_pods(case.sources, edit)
        if steps:
            yield Change(text, steps)


def too_large(case: Case) -> Iterator[tuple[str, int, int]]:
    """`(resource, requested by one pod, most that a node has)` for requests beyond every node whose taints the pods
    tolerate."""
    largest: dict[str, int] = {}
    for node in [node for node in case.nodes if not case.untolerated(node)] or case.nodes:
        for name, nanos in allocatable_of(node).items():
            largest[name] = max(nanos, largest.get(name, 0))
    asked: dict[str, int] = {}
    for spec in case.roles.values():
        for name, nanos in requests_of(spec).items():
            asked[name] = max(nanos, asked.get(name, 0))
    for name, nanos in sorted(asked.items()):
        if nanos > largest.get(name, 0):
            yield name, nanos, largest.get(name, 0)


def without_unsupported(case: Case) -> Candidates:
    """Without the fields that this version does not honour."""
    steps: list[StepDoc] = []
    fields: list[str] = []
    objects = {id(obj): obj for obj in [*case.sources, *([case.own] if case.own is not None else [])]}
    for obj in objects.values():
        own = [one.field for one in constraints_of(obj) if one.holds]
        of_pods = [one.field for _, part in pod_parts(obj) for one in pod_constraints(_as_pod(part)) if one.holds]
        if own or of_pods:
            fields += own + of_pods
            steps += recreated(obj, partial(_drop, own=own, of_pods=of_pods))
    if steps:
        yield Change(f"remove {listed(list(dict.fromkeys(fields)))}", tuple(steps))


def _as_pod(part: dict[str, Any]) -> Obj:
    return {**part, "apiVersion": "v1", "kind": "Pod", "metadata": part.get("metadata") or {}}


def _drop(made: Obj, own: list[str], of_pods: list[str]) -> None:
    for path in own:
        _remove(made, path)
    for path in of_pods:
        for _, part in pod_parts(made):
            _remove(part, path)


def _remove(value: Any, path: str) -> None:
    """Removes `spec.tasks[0].x` or `metadata.annotations[KEY]` from an object, if it is there."""
    steps = path.replace("]", "").replace("[", "\0").split("\0")
    keys = [key for number, step in enumerate(steps) for key in (_split(step) if number % 2 == 0 else [step])]
    for key in keys[:-1]:
        if isinstance(value, list):
            value = value[int(key)] if key.isdecimal() and int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value.pop(keys[-1], None)


def _split(text: str) -> list[str]:
    return [part for part in text.split(".") if part]
