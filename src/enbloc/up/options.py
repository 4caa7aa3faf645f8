"""The options of a cluster on this machine, and its initial nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from enbloc.api.meta import Obj
from enbloc.units import parse_quantity

DEFAULT_NODES: Final = 2
DEFAULT_RESOURCES: Final = {"cpu": "8", "memory": "32Gi"}
ALWAYS: Final = {"pods": "110", "ephemeral-storage": "100Gi"}
"""What every kubelet reports: nodes have it whether `--node-resources` names it or not."""
MOST_NODES: Final = 20_000


class Options(msgspec.Struct, frozen=True):
    """`nodes` of `None`: none if the loaded files define nodes, else two."""

    nodes: int | None = None
    resources: dict[str, str] | None = None
    speed: float = 1.0
    host: str = "127.0.0.1"
    port: int = 8001
    data: Path | None = None
    scheduled: bool = True
    """Whether controllers and scheduler run here; else they are expected from `enbloc run`."""
    kubeconfig: Path | None = None
    """Where to write the kubeconfig instead of the state directory."""
    accept_loss: bool = False
    """Whether to go on with what is whole of damaged data."""


def parse_resources(text: str) -> dict[str, str]:
    """`cpu=8,memory=32Gi,nvidia.com/gpu=4`. Raises `ValueError`."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, amount = part.strip().partition("=")
        if not equals or not name or not amount:
            raise ValueError(f"{part.strip()[:60]!r} is not NAME=AMOUNT")
        if parse_quantity(amount).nanos < 0:
            raise ValueError(f"{name}: {amount!r} is negative")
        if name in found:
            raise ValueError(f"{name} is given twice")
        found[name] = amount
    return found


def make_nodes(options: Options, *, load_brings_nodes: bool) -> list[Obj]:
    """The nodes that the cluster starts with."""
    count = options.nodes
    if count is None:
        count = 0 if load_brings_nodes else DEFAULT_NODES
    names = [f"node-{number}" for number in range(1, count + 1)]
    resources = options.resources or DEFAULT_RESOURCES
    capacity = resources | {name: amount for name, amount in ALWAYS.items() if name not in resources}
    return [_node(name, capacity) for name in names]


def _node(name: str, capacity: dict[str, str]) -> Obj:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
