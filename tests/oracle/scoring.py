"""Which of the nodes that fit is chosen: the documented scores (decision 0014), ties to the first in rank.

The rules leave the choice free. The oracle makes the engine's choice, so that two runs can be compared step by step.
"""

from __future__ import annotations

from typing import Any

from oracle import predicates

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


def preferences(world: dict[str, Any], gang: dict[str, Any], task: dict[str, Any]) -> dict[str, int]:
    """G6: preferred node affinity, and taints that pods should avoid; each 0..100, of the most that any node has."""
    weights, spec = world["settings"]["scoring"], task["pod"]["spec"]
    nodes = [node for node in world["nodes"] if predicates.g6_standing_reason(gang, task, node) is None]
    liked = {node["name"]: predicates.g6_preference(spec, node) for node in nodes}
    avoided = {node["name"]: predicates.g6_avoidance(spec, node) for node in nodes}
    most, worst = max(liked.values(), default=0) or 1, max(avoided.values(), default=0) or 1
    return {
        name: liked[name] * 100 // most * weights.node_affinity
        + (100 - avoided[name] * 100 // worst) * weights.taint_toleration
        for name in liked
    }


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
