"""The downward API: fields and resources of its own pod that a container may read."""

from __future__ import annotations

import re
from typing import Any, Final

from enbloc.api.meta import Obj, annotations_of, labels_of, name_of, namespace_of, uid_of
from enbloc.api.pod_amounts import Amounts
from enbloc.units import parse_quantity

_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")


class ContainerConfigError(Exception):
    """The pod refers to something that does not exist: the container cannot be started at present."""


def field(pod: Obj, path: str, address: str) -> str:
    """The value of a `fieldRef`; `address` is the pod's, the host's is this machine's."""
    keyed = _KEYED.fullmatch(path)
    if keyed:
        values = labels_of(pod) if keyed[1] == "labels" else annotations_of(pod)
        return values.get(keyed[2], "")
    match path:
        case "metadata.name":
            return name_of(pod)
        case "metadata.namespace":
            return namespace_of(pod)
        case "metadata.uid":
            return uid_of(pod)
        case "metadata.labels":
            return _listed(dict(labels_of(pod)))
        case "metadata.annotations":
            return _listed(dict(annotations_of(pod)))
        case "spec.nodeName":
            return str(pod["spec"].get("nodeName") or "")
        case "spec.serviceAccountName":
            return str(pod["spec"].get("serviceAccountName") or "default")
        case "status.podIP" | "status.podIPs":
            return address
        case "status.hostIP" | "status.hostIPs":
            return "127.0.0.1"
    raise ContainerConfigError(f"there is no field {path!r}")


def _listed(values: dict[str, str]) -> str:
    """Labels or annotations as the kubelet writes them into a file."""
    return "\n".join(f'{key}="{_escaped(value)}"' for key, value in sorted(values.items()))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource(pod: Obj, container: dict[str, Any], asked: dict[str, Any], allocatable: Amounts) -> str:
    """The value of a `resourceFieldRef`: the container's limit or request in units of the divisor, rounded up. An unset
    limit is the node's allocatable."""
    which, _, name = str(asked.get("resource") or "").partition(".")
    wanted = asked.get("containerName") or container.get("name")
    every = [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]
    found = next((other for other in every if other.get("name") == wanted), None)
    if which not in ("limits", "requests") or found is None:
        raise ContainerConfigError(f"there is no {asked.get('resource')!r} of container {wanted!r}")
    given = ((found.get("resources") or {}).get(which) or {}).get(name)
    nanos = parse_quantity(given).nanos if given is not None else allocatable.get(name, 0) if which == "limits" else 0
    try:
        divisor = parse_quantity(asked.get("divisor") or "1").nanos
    except ValueError:
        divisor = 0
    if divisor <= 0:
        raise ContainerConfigError(f"{asked.get('divisor')!r} is no divisor")
    return str(-(-nanos // divisor)) if nanos else "0"
