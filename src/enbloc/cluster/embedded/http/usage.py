"""`metrics.k8s.io`: what pods and nodes use, for `kubectl top`. Simulated pods use what they request.

A pod is listed while it runs; a node uses what the pods on it use that have not ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from enbloc.api.core import PodSpec
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, labels_of, name_of, namespace_of
from enbloc.api.requests import container_requests, pod_requests
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.http.resources import no_such_path
from enbloc.cluster.embedded.http.selectors import label_test
from enbloc.cluster.embedded.http.status import refusal
from enbloc.units import NANO, format_timestamp

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"
RESOURCES: Final[list[dict[str, Any]]] = [
    {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["get", "list"]},
    {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]},
]
_WINDOW: Final = "30s"
"""Of what is requested: it holds at any time."""
_ENDED: Final = ("Succeeded", "Failed")


def usage(store: Store, steps: Sequence[str], query: Mapping[str, str]) -> dict[str, Any]:
    """The answer to a path below the group and version. Raises `Refused` for one that does not exist."""
    match steps:
        case ["nodes", *names] if len(names) <= 1:
            kind, found = "NodeMetrics", _nodes(store)
        case ["namespaces", namespace, "pods", *names] if len(names) <= 1:
            kind, found = "PodMetrics", [one for one in _pods(store) if one["metadata"]["namespace"] == namespace]
        case ["pods"]:
            kind, found, names = "PodMetrics", _pods(store), []
        case _:
            raise no_such_path()
    api_version = f"{GROUP}/{VERSION}"
    if names:
        one = next((one for one in found if one["metadata"]["name"] == names[0]), None)
        if one is None:
            raise refusal(404, f"no usage of {names[0]!r} is known: it does not exist, or does not run")
        return {"kind": kind, "apiVersion": api_version, **one}
    test = label_test(query.get("labelSelector", ""))
    items = [one for one in found if test is None or test(one)]
    return {"kind": f"{kind}List", "apiVersion": api_version, "metadata": {}, "items": items}


def _pods(store: Store) -> list[dict[str, Any]]:
    at = format_timestamp(store.now())
    found = []
    for pod in store.list("Pod")[0]:
        if (pod.get("status") or {}).get("phase") != "Running":
            continue
        containers = [{"name": one.name, "usage": _amounts(container_requests(one))} for one in _spec(pod).containers]
        found.append({"metadata": _metadata(pod), "timestamp": at, "window": _WINDOW, "containers": containers})
    return found


def _nodes(store: Store) -> list[dict[str, Any]]:
    totals: dict[str, Counter[str]] = {}
    for pod in store.list("Pod")[0]:
        node = pod["spec"].get("nodeName")
        if not node or (pod.get("status") or {}).get("phase") in _ENDED:
            continue
        totals.setdefault(node, Counter()).update(pod_requests(_spec(pod)))
    at = format_timestamp(store.now())
    return [
        {
            "metadata": _metadata(node),
            "timestamp": at,
            "window": _WINDOW,
            "usage": _amounts(totals.get(name_of(node), {})),
        }
        for node in store.list("Node")[0]
    ]


def _spec(pod: Obj) -> PodSpec:
    return view(pod["spec"], PodSpec)


def _metadata(obj: Obj) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name_of(obj)}
    if namespace_of(obj):
        found["namespace"] = namespace_of(obj)
    if labels_of(obj):
        found["labels"] = dict(labels_of(obj))
    return found


def _amounts(nanos: Mapping[str, int]) -> dict[str, str]:
    """As a metrics server writes them: nanocores and kibibytes."""
    return {"cpu": f"{nanos.get('cpu', 0)}n", "memory": f"{nanos.get('memory', 0) // NANO // 1024}Ki"}
