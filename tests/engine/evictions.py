"""Pods that run, and a gang `q` of higher priority for which some of them could be evicted."""

from __future__ import annotations

from typing import Any

from engine.claims.scenes import group
from support import manifests as m


def runs(name: str, cpu: int | None, node: str, **fields: Any) -> m.Obj:
    return m.pod(name, cpu, nodeName=node, **fields)


def member(name: str, cpu: int, node: str, **fields: Any) -> m.Obj:
    """`d-0` is a member of the gang `d`."""
    return runs(name, cpu, node, group=name.partition("-")[0], **fields)


def wants(*pods: tuple[int, str], minimum: int | None = None, by_role: bool = False) -> list[m.Obj]:
    """The gang `q`: cpu and node of each pod; without a node, any. `by_role`: they are all needed by the minimum of
    their role, else by the total, which any of them make up."""
    least = len(pods) if minimum is None else minimum
    found = [group("q", least, roles={"w": least} if by_role else None)]
    for number, (cpu, node) in enumerate(pods):
        selector: Any = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
        found.append(m.pod(f"q-{number}", cpu, group="q", role="w", priority=9, **selector))
    return found


def leaves(pod: m.Obj) -> m.Obj:
    return pod | {"metadata": pod["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
