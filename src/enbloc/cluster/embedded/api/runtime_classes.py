"""RuntimeClasses, as the API server's admission plugin applies them to pods: overhead, node selector, tolerations.

A pod that names a class which does not exist, or gives another overhead than its class, is refused. A pod that has an
overhead and no class that is known is taken as it is: it comes from a cluster that applied its class already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from enbloc.api.meta import Obj
from enbloc.units import parse_quantity

RUNTIME_CLASS: Final = "RuntimeClass.node.k8s.io"


class UnfitForClass(Exception):
    """The pod does not agree with its class; the message says why."""


def with_runtime_class(pod: Obj, class_of: Callable[[str], Obj | None]) -> Obj:
    """The pod with what its RuntimeClass sets. Raises `UnfitForClass`."""
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    if not name:
        return pod
    found = class_of(str(name))
    if found is None and spec.get("overhead"):
        return pod
    if found is None:
        raise UnfitForClass(f'pod rejected: RuntimeClass "{name}" not found')
    fixed = _mapping(_mapping(found.get("overhead")).get("podFixed"))
    given = spec.get("overhead")
    if given and _nanos(given) != _nanos(fixed):
        raise UnfitForClass("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    scheduling = _mapping(found.get("scheduling"))
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in _mapping(scheduling.get("nodeSelector")).items():
        if selector.setdefault(key, value) != value:
            raise UnfitForClass("conflict: runtimeClass.scheduling.nodeSelector differs from the pod's nodeSelector")
    tolerations = list(spec.get("tolerations") or ())
    tolerations += [one for one in scheduling.get("tolerations") or () if one not in tolerations]
    changed = {"overhead": fixed, "nodeSelector": selector, "tolerations": tolerations}
    return {**pod, "spec": {**spec, **{key: value for key, value in changed.items() if value}}}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _nanos(amounts: Mapping[str, Any]) -> dict[str, int]:
    return {name: parse_quantity(amount).nanos for name, amount in amounts.items()}
