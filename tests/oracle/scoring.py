"""Which of the nodes that fit is chosen: the documented scores (decisions 0008, 0014), ties to the first in rank.

The rules leave the choice free. The oracle makes the engine's choice, so that two runs can be compared step by step.
"""

from __future__ import annotations

from typing import Any

PARTS = 128


def score(weights: Any, node: dict[str, Any], free: dict[str, int], request: dict[str, int]) -> int:
    """Least-allocated, most-allocated and balanced, from what would be left of the node; then `binpack`."""
    cpu, memory, pods = (part_left(node, free, request, name) for name in ("cpu", "memory", "pods"))
    total = (cpu + memory) * 50 * (weights.least - weights.most) - abs(cpu - memory) * 50 * weights.balanced
    if weights.least or weights.most or weights.balanced:
        total += (pods if weights.least >= weights.most else PARTS - pods) // 2
    total += 100 * PARTS * (weights.most + weights.balanced)
    if weights.binpack.weight:
        total += binpack(weights.binpack, node, free, request)
    return int(total)


def part_left(node: dict[str, Any], free: dict[str, int], request: dict[str, int], name: str) -> int:
    has = node["allocatable"].get(name, 0)
    return (free.get(name, 0) - request.get(name, 0)) * PARTS // has if has else 0


def binpack(weights: Any, node: dict[str, Any], free: dict[str, int], request: dict[str, int]) -> int:
    total = count = 0
    for name, weight in weights.resources.items():
        if weight > 0 and name in request:
            total += (PARTS - part_left(node, free, request, name)) * weight
            count += weight
    return total * 100 * weights.weight // count if count else 0
