"""The admission chain: what the API server itself validates and defaults before it stores an object.

Hooks run in order; each returns the object (a new one, if it changed it) or raises `Refused`. They run on create and on
every update but those of the status subresource. The order: types, namespace, runtime class, defaults, priority, then
the caller's hooks (this project's webhooks), then quota, which counts the object as all the others left it. Validation
of Volcano Jobs and Queues is left to `enbloc.admission`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, get_type_hints

import msgspec

from enbloc.api import arbitrator
from enbloc.api.kinds import KINDS, all_decode_faults, kind_id, view
from enbloc.api.meta import Fault, Obj, ObjectMeta, annotations_of, condition_of, is_terminating
from enbloc.api.pod_amounts import qos_class
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api import pods
from enbloc.cluster.embedded.api.schema_defaults import fill
from enbloc.cluster.embedded.api.served_kinds import CRD
from enbloc.cluster.embedded.api.workload_defaults import admit_workload
from enbloc.gangs.priority_classes import PRIORITY_CLASS, SYSTEM_CLASSES
from enbloc.units import is_dns_label, parse_quantity

if TYPE_CHECKING:
    from enbloc.cluster.embedded.api.store import Store

Operation = Literal["CREATE", "UPDATE"]
AdmissionHook = Callable[[Operation, Obj, Obj | None], Obj]
DeletionHook = Callable[[Obj], None]
"""Raises `Refused` if the object must not be deleted."""

SYSTEM_NAMESPACES = ("default", "kube-system")
ANNOTATIONS_BYTES: Final = 256 * 1024
"""What all annotations of an object, keys and values, may have together."""


def built_in(store: Store) -> tuple[AdmissionHook, ...]:
    """The hooks that run before the caller's."""
    return (
        check_shape,
        _Namespaces(store),
        _CustomDefaults(store),
        _RuntimeClasses(store),
        default_pod,
        _workloads,
        _autoscalers,
        _Definitions(store),
        _Priorities(store),
    )


def bootstrap(store: Store) -> None:
    """Creates what every cluster has from the start: namespaces and the system's priority classes."""
    for name in SYSTEM_NAMESPACES:
        store.provide({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for name, value in sorted(SYSTEM_CLASSES.items()):
        store.provide(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "preemptionPolicy": "PreemptLowerPriority",
                "description": "Used for system critical pods.",
            }
        )


def invalid(obj: Any, faults: list[Fault]) -> Refused:
    """The refusal of an invalid object: 422, with every fault."""
    known = obj if isinstance(obj, dict) else {}
    metadata = known.get("metadata")
    name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
    what = f"{known.get('kind', 'object')} {name!r}".replace("'", '"')
    return Refused(422, "Invalid", f"{what} is invalid: {'; '.join(map(str, faults))}", tuple(faults), name=name)


def check_shape(operation: Operation, obj: Obj, old: Obj | None) -> Obj:
    """Names are valid, and every field that this program reads has the right type."""
    if old is not None and _differs_in_metadata_only(old, obj) and not _metadata_faults(obj):
        return obj  # the rest was checked when it was stored
    obj = arbitrator.canonical(obj)
    faults = all_decode_faults(obj)[0]  # a wrong type hides no other (N2)
    if not faults and not _has_view(obj):
        faults = _metadata_faults(obj)  # owners and finalizers are read for every kind
    if not faults and not isinstance(obj.get("status") or {}, dict):
        faults = [Fault("status", "must be a mapping")]
    faults = faults or _annotation_faults(obj)
    if not faults:
        namespace = obj["metadata"].get("namespace")
        if namespace and not is_dns_label(namespace):
            faults = [Fault("metadata.namespace", f"{namespace[:80]!r} is not a DNS label (a-z, 0-9 and '-')")]
        elif obj["kind"] == "Namespace" and not is_dns_label(obj["metadata"]["name"]):
            faults = [Fault("metadata.name", "a namespace's name must be a DNS label (a-z, 0-9 and '-')")]
        elif kind_id(obj) == pods.POD:
            faults = _container_faults(obj["spec"])
        elif kind_id(obj) == "Node":
            faults = _node_faults(obj.get("status") or {})
    if faults:
        raise invalid(obj, faults)
    return obj


class _CustomDefaults:
    """Fills in what a kind's definition says."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, operation: Operation, obj: Obj, old: Obj | None) -> Obj:
        defaults = self._store.discovery.defaults(kind_id(obj), obj["apiVersion"].rpartition("/")[2])
        return obj if defaults is None else fill(obj, defaults)


def _has_view(obj: Obj) -> bool:
    kind = KINDS.get(kind_id(obj))
    return kind is not None and kind.view is not None


@cache
def _status_type(kind: str) -> Any:
    known = KINDS.get(kind)
    return None if known is None or known.view is None else get_type_hints(known.view).get("status")


def is_good_status(kind: str, status: Any) -> bool:
    """Whether the types of a status alone are right: the rest of the object is not decoded again."""
    expected = _status_type(kind)
    if expected is None:
        return status is None or isinstance(status, dict)
    try:
        view(status, expected)
    except msgspec.ValidationError:
        return False
    return True


def _differs_in_metadata_only(old: Obj, new: Obj) -> bool:
    return new.keys() == old.keys() and all(new[key] is old[key] for key in new if key != "metadata")


def _metadata_faults(obj: Obj) -> list[Fault]:
    """The faults in the metadata alone."""
    try:
        view(obj["metadata"], ObjectMeta)
    except msgspec.ValidationError as why:
        return [Fault("metadata", str(why))]
    return _annotation_faults(obj)


def _annotation_faults(obj: Obj) -> list[Fault]:
    annotations = annotations_of(obj)
    if sum(map(len, annotations.values())) * 4 <= ANNOTATIONS_BYTES // 2:  # most objects: no need to encode
        return []
    size = sum(len(f"{key}{text}".encode(errors="replace")) for key, text in annotations.items())
    if size <= ANNOTATIONS_BYTES:
        return []
    return [Fault("metadata.annotations", f"Too long: may not be more than {ANNOTATIONS_BYTES} bytes")]


def _container_faults(spec: dict[str, Any]) -> list[Fault]:
    if not spec["containers"]:
        return [Fault("spec.containers", "a pod needs at least one container")]
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            for which, amounts in (container.get("resources") or {}).items():
                if which in ("requests", "limits"):
                    faults = _amount_faults(f"spec.{field}[{index}].resources.{which}", amounts)
                    if faults:
                        return faults
    return []


def _node_faults(status: dict[str, Any]) -> list[Fault]:
    """What a node has is not negative, and no fraction of a pod or a device."""
    return [
        fault
        for which in ("capacity", "allocatable")
        for fault in _amount_faults(f"status.{which}", status.get(which))
        + [
            Fault(f"status.{which}.{name}", "must be an integer")
            for name, value in (status.get(which) or {}).items()
            if (name == "pods" or "/" in name) and parse_quantity(value).nanos % 10**9
        ]
    ]


def _amount_faults(path: str, amounts: dict[str, Any] | None) -> list[Fault]:
    return [
        Fault(f"{path}.{name}", "must be greater than or equal to 0")
        for name, value in (amounts or {}).items()
        if parse_quantity(value).nanos < 0
    ]


class _Namespaces:
    """An object's namespace must exist and must not be terminating."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, operation: Operation, obj: Obj, old: Obj | None) -> Obj:
        name = obj["metadata"].get("namespace")
        if operation != "CREATE" or not name:
            return obj
        namespace = self._store.get("Namespace", "", name)
        if namespace is None:
            if not self._store.auto_namespaces:
                raise Refused(404, "NotFound", f'namespaces "{name}" not found')
            self._store.provide({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        elif is_terminating(namespace):
            what = f'{self._store.discovery.resource(kind_id(obj))} "{obj["metadata"]["name"]}" is forbidden'
            raise Refused(
                403,
                "Forbidden",
                f"{what}: unable to create new content in namespace {name} because it is being terminated",
            )
        return obj


class _RuntimeClasses:
    """A pod has the overhead, node selector and tolerations of its RuntimeClass. One that names a class which does not
    exist, or gives another overhead than its class, is refused. One that has an overhead and no class that is known is
    taken as it is: it comes from a cluster that applied its class already."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, operation: Operation, obj: Obj, old: Obj | None) -> Obj:
        if operation != "CREATE" or kind_id(obj) != pods.POD or not obj["spec"].get("runtimeClassName"):
            return obj
        spec, name = obj["spec"], obj["spec"]["runtimeClassName"]
        found = self._store.get("RuntimeClass.node.k8s.io", "", str(name))
        if found is None and spec.get("overhead"):
            return obj
        if found is None:
            raise _forbidden(obj, f'pod rejected: RuntimeClass "{name}" not found')
        fixed = _mapping(_mapping(found.get("overhead")).get("podFixed"))
        given = spec.get("overhead")
        if given and _nanos(given) != _nanos(fixed):
            raise _forbidden(obj, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        scheduling = _mapping(found.get("scheduling"))
        selector = dict(spec.get("nodeSelector") or {})
        for key, value in _mapping(scheduling.get("nodeSelector")).items():
            if selector.setdefault(key, value) != value:
                what = "runtimeClass.scheduling.nodeSelector differs from the pod's nodeSelector"
                raise _forbidden(obj, f"conflict: {what}")
        tolerations = list(spec.get("tolerations") or ())
        tolerations += [one for one in scheduling.get("tolerations") or () if one not in tolerations]
        changed = {"overhead": fixed, "nodeSelector": selector, "tolerations": tolerations}
        return {**obj, "spec": {**spec, **{key: value for key, value in changed.items() if value}}}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _nanos(amounts: Mapping[str, Any]) -> dict[str, int]:
    return {name: parse_quantity(amount).nanos for name, amount in amounts.items()}


def default_pod(operation: Operation, obj: Obj, old: Obj | None) -> Obj:
    """The API server's defaults for a pod, as far as this program reads them."""
    if operation != "CREATE" or obj["kind"] != "Pod" or obj["apiVersion"] != "v1":
        return obj
    spec = {
        "schedulerName": "default-scheduler",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": pods.DEFAULT_GRACE_S,
        **pods.with_requests(obj["spec"]),
    }
    status = {"phase": "Pending", "qosClass": qos_class(spec), **(obj.get("status") or {})}
    if spec.get("schedulingGates") and not condition_of({"status": status}, "PodScheduled"):
        status["conditions"] = [*(status.get("conditions") or ()), dict(pods.GATED)]
    return {**obj, "spec": spec, "status": status}


def _workloads(operation: Operation, obj: Obj, old: Obj | None) -> Obj:
    """The API server's defaults and validation for Deployments, Jobs and the like."""
    admitted, faults = admit_workload(obj, old)
    if faults:
        raise invalid(obj, faults)
    return admitted


def _autoscalers(operation: Operation, obj: Obj, old: Obj | None) -> Obj:
    """A HorizontalPodAutoscaler of v1, as `kubectl autoscale` writes it, is stored as v2."""
    if obj["apiVersion"] != "autoscaling/v1" or obj["kind"] != "HorizontalPodAutoscaler":
        return obj
    spec = obj.get("spec")
    if isinstance(spec, dict) and "targetCPUUtilizationPercentage" in spec:
        spec = dict(spec)
        target = {"type": "Utilization", "averageUtilization": spec.pop("targetCPUUtilizationPercentage")}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        obj = {**obj, "spec": spec}
    return {**obj, "apiVersion": "autoscaling/v2"}


class _Definitions:
    """A CustomResourceDefinition is established, and its kind served, as soon as it is created."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, operation: Operation, obj: Obj, old: Obj | None) -> Obj:
        if operation != "CREATE" or kind_id(obj) != CRD:
            return obj
        spec, at = obj["spec"], self._store.stamp()
        status = {
            "acceptedNames": spec["names"],
            "storedVersions": [version["name"] for version in spec["versions"] if version.get("storage")],
            "conditions": [
                pods.condition("NamesAccepted", "True", at, "NoConflicts", "no conflicts found"),
                pods.condition("Established", "True", at, "InitialNamesAccepted", "the initial names were accepted"),
            ],
        }
        return {**obj, "status": status}


class _Priorities:
    """A pod's priority is that of its PriorityClass; without one, that of the global default class."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, operation: Operation, obj: Obj, old: Obj | None) -> Obj:
        if operation != "CREATE" or obj["kind"] != "Pod" or obj["apiVersion"] != "v1":
            return obj
        spec = obj["spec"]
        name, priority, policy = self._resolve(obj, spec.get("priorityClassName") or "")
        given = spec.get("priority")
        if given is not None and given != priority:
            raise _forbidden(
                obj,
                f"the integer value of priority ({given}) must not be provided in pod spec; "
                f"priority admission controller computed {priority} from the given PriorityClass name",
            )
        given_policy = spec.get("preemptionPolicy")
        if given_policy is not None and given_policy != policy:
            raise _forbidden(
                obj,
                f"the string value of PreemptionPolicy ({given_policy}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name",
            )
        spec = {**spec, "priority": priority, "preemptionPolicy": policy}
        if name:
            spec["priorityClassName"] = name
        return {**obj, "spec": spec}

    def _resolve(self, pod: Obj, name: str) -> tuple[str, int, str]:
        if name:
            found = self._store.get(PRIORITY_CLASS, "", name)
            if found is None and name in SYSTEM_CLASSES:
                return name, SYSTEM_CLASSES[name], "PreemptLowerPriority"
            if found is None:
                raise _forbidden(pod, f"no PriorityClass with name {name} was found")
        else:
            defaults = [item for item in self._store.list(PRIORITY_CLASS)[0] if item.get("globalDefault")]
            if not defaults:
                return "", 0, "PreemptLowerPriority"
            found = min(
                defaults, key=lambda item: int(item.get("value") or 0)
            )  # of several, Kubernetes takes the lowest
        policy = found.get("preemptionPolicy") or "PreemptLowerPriority"
        return found["metadata"]["name"], found.get("value") or 0, policy


def _forbidden(obj: Obj, message: str) -> Refused:
    return Refused(403, "Forbidden", f'pods "{obj["metadata"]["name"]}" is forbidden: {message}')
