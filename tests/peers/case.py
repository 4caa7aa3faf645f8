"""One case of a peer's table: objects, and what the peer expects of them. Short texts stand for nodes and pods.

What is compared: which pods start and which wait, which domain of the required level is used, which domains of the
preferred level, and which pods are evicted. Which nodes are used within these domains is each scheduler's own matter,
unless a case is about that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from support import manifests as m
from support.answers import Answer
from support.simulation import Documents, simulate

Obj = dict[str, Any]
OTHER = "another-scheduler"


class Case(NamedTuple):
    name: str
    objects: list[Documents]
    on: Mapping[str, str] = {}
    """Pods → the nodes, one of which each of them is bound to. `p-*` stands for all pods whose name begins so."""
    all_of: Mapping[str, str] = {}
    """Pods → the nodes, each of which has one of them."""
    together: Mapping[str, str] = {}
    """Pods → a label: they are bound in one domain of it."""
    waits: str = ""
    """Pods that are not bound."""
    evicted: str = ""
    differs: str = ""
    """Why Enbloc decides otherwise; empty: it decides as expected."""


def cluster(text: str, *labels: str, cpu: int | str = 1, extra: Mapping[str, Any] | None = None) -> list[Obj]:
    """`b1/r1: x1=2 x2; b2/r1: x3`: nodes with their cpu, and the values of the labels of their domain."""
    found = []
    for line in text.split(";"):
        path, _, nodes = line.partition(":")
        values = dict(zip(labels, path.strip().split("/"), strict=True)) if path.strip() else {}
        for one in nodes.split():
            name, _, size = one.partition("=")
            found.append(
                m.node(name, size or cpu, labels={key: text for key, text in values.items() if text}, extra=extra)
            )
    return found


def running(text: str, **fields: Any) -> list[Obj]:
    """`n1=2 n2=1`: pods of another scheduler that run there, with their cpu. They are named `on-n1`, `on-n2`."""
    found = []
    for one in text.split():
        node, _, cpu = one.partition("=")
        fields = {"scheduler": OTHER, **fields}
        found.append(m.pod(f"on-{node}", cpu or 1, nodeName=node, **fields))
    return found


def problems(case: Case, config: Mapping[str, Any] | None = None) -> list[str]:
    """In what a simulation of the case differs from what the peer expects."""
    objects = list(case.objects)
    answer = simulate(*objects, config=config, until="1h")
    documents = [one for value in objects for one in ([value] if isinstance(value, dict) else value)]
    labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in documents if one["kind"] == "Node"}
    where = answer.nodes()
    names = [one["metadata"]["name"] for one in documents if one["kind"] == "Pod"]
    found: list[str] = []
    for pods, nodes in case.on.items():
        found += [
            f"{pod} is on {where.get(pod)}" for pod in _listed(pods, names) if where.get(pod) not in nodes.split()
        ]
    for pods, nodes in case.all_of.items():
        used = {where.get(pod) for pod in _listed(pods, names)}
        if used != set(nodes.split()):
            found.append(f"{pods} are on {sorted(map(str, used))}")
    for pods, label in case.together.items():
        domains = {labels[where[pod]].get(label) if pod in where else None for pod in _listed(pods, names)}
        if len(domains) != 1 or None in domains:
            found.append(f"{pods} are in {sorted(map(str, domains))}")
    found += [f"{pod} is on {where[pod]}" for pod in _listed(case.waits, names) if pod in where]
    evicted = {name for _, name in answer.evicted()}
    if evicted != set(case.evicted.split()):
        found.append(f"{sorted(evicted)} are evicted")
    return [f"{one}; {_reasons(answer)}" for one in found]


def _listed(text: str, names: Iterable[str]) -> list[str]:
    found = []
    for one in text.split():
        found += [name for name in names if name.startswith(one[:-1])] if one.endswith("*") else [one]
    return found


def _reasons(answer: Answer) -> str:
    return " ".join(one["message"] for one in answer.data["pending"])
