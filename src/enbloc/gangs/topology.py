"""Where a gang, or its pods of one role, must or should be together (T1, T2), read from the dialects' fields.

A `TopologyConstraint` names a tree of nodes and levels of it. Trees are the engine's (`engine/tables/node_trees`).

A required tier that no HyperNode can stand for holds the gang (N1). Volcano takes the whole cluster for it, so that
`hard` means nothing until HyperNodes are discovered. A tier above the highest that exists is the whole cluster, as in
Volcano.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import msgspec

from enbloc.api import topology
from enbloc.api.meta import Obj, annotations_of, labels_of, number_in

BY_LABEL: Final = "label/"
"""Trees of one level, which is the label after the slash: they need no object."""
HYPER_NODES: Final = "hypernodes"
"""The tree of Volcano's HyperNodes; its levels are tiers: "1" is the lowest."""
KUEUE: Final = "kueue/"
KAI: Final = "kai/"
KOORDINATOR: Final = "koordinator"
CONFIG: Final = "config/"
INVALID: Final = "invalid/"
"""No tree: a constraint that cannot be read, and why."""

HARD, SOFT = "hard", "soft"
MUST_GATHER, PREFER_GATHER = "MustGather", "PreferGather"


class TopologyConstraint(msgspec.Struct, frozen=True, order=True):
    """`required`: all in one domain of this level; `preferred`: in as few domains of this level as possible."""

    tree: str
    required: str = ""
    preferred: str = ""


class PodTopology(msgspec.Struct, frozen=True):
    """What a pod says for the pods of its role, or for its whole gang."""

    constraint: TopologyConstraint
    of_role: bool = True
    """Whether it is for the pods of its role; else for all of its gang."""
    group: str = ""
    """The roles that name the same group are together with each other, too."""
    slices: tuple[int, ...] = ()
    """The pods of its role are split by index into slices of these sizes, the widest first; each of the narrowest has
    the constraint (T3). Empty: they are not."""


def of_network_topology(value: Any) -> TopologyConstraint | None:
    """Volcano's `networkTopology`. Without a highest tier it asks for as low a tier as possible only."""
    if not isinstance(value, dict) or not value:
        return None
    tier, name = value.get("highestTierAllowed"), value.get("highestTierName")
    bound = str(tier) if isinstance(tier, int) and not isinstance(tier, bool) else f"name={name}" if name else ""
    if (value.get("mode") or HARD) == SOFT:
        return TopologyConstraint(HYPER_NODES, preferred=LOWEST)
    return TopologyConstraint(HYPER_NODES, required=bound, preferred=LOWEST)


def of_owner(owner: Obj) -> TopologyConstraint | None:
    """Volcano's `networkTopology` as annotations or labels of the owner of ordinary pods. A tier that is not a number
    names none that exists."""
    texts = {**labels_of(owner), **annotations_of(owner)}
    mode = texts.get(topology.VOLCANO_MODE)
    tier = texts.get(topology.VOLCANO_HIGHEST_TIER) or texts.get(f"{topology.VOLCANO_HIGHEST_TIER}-allowed")
    if not mode and not tier:
        return None
    asked: dict[str, Any] = {"mode": mode or HARD}
    if tier:
        is_number = tier.isascii() and tier.isdecimal() and len(tier) < 10
        asked |= {"highestTierAllowed": int(tier)} if is_number else {"highestTierName": tier}
    return of_network_topology(asked)


LOWEST: Final = "lowest"
"""The lowest level of a tree."""


def of_native(value: Any) -> TopologyConstraint | None:
    """`schedulingConstraints` of a Kubernetes PodGroup: the key of a node label."""
    items = value.get("topology") if isinstance(value, dict) else None
    keys = [str(item["key"]) for item in items or () if isinstance(item, dict) and item.get("key")]
    return TopologyConstraint(f"{BY_LABEL}{keys[0]}", required=keys[0]) if len(keys) == 1 else None


def of_gather_strategy(text: str | None) -> TopologyConstraint | None:
    """Koordinator's `network-topology-spec`: of several layers with MustGather the lowest counts, since a domain lies
    within those above. Which is the lowest is known to the tree: the layers are joined by `|`."""
    layers: dict[str, list[str]] = {MUST_GATHER: [], PREFER_GATHER: []}
    for one in _gather_rules(text):
        if one.get("strategy") in layers:
            layers[one["strategy"]].append(one["layer"])
    required, preferred = layers[MUST_GATHER], layers[PREFER_GATHER]
    if not required and not preferred:
        return None
    return TopologyConstraint(KOORDINATOR, "|".join(required), "|".join(preferred))


def multiples_of(text: str | None) -> tuple[PodTopology, ...]:
    """Koordinator's `podCountMultiple`: the number of pods in each domain of a layer is a multiple of it, as slices of
    that size make it."""
    sizes = {one["layer"]: one.get("podCountMultiple") for one in _gather_rules(text)}
    return _nested(
        KOORDINATOR,
        {layer: size for layer, size in sizes.items() if isinstance(size, int) and size > 1},
        "podCountMultiple",
    )


def _gather_rules(text: str | None) -> list[dict[str, Any]]:
    try:
        rules = json.loads(text).get("gatherStrategy") if text else None
    except (ValueError, AttributeError, RecursionError):
        return []
    listed = rules if isinstance(rules, list) else []
    return [one for one in listed if isinstance(one, dict) and isinstance(one.get("layer"), str)]


def _nested(tree: str, sizes: Mapping[str, int], field: str) -> tuple[PodTopology, ...]:
    """Slices within slices: each size divides the one above it."""
    ordered = sorted(sizes.items(), key=lambda item: -item[1])
    chain = tuple(size for _, size in ordered)
    if any(above % below for above, below in pairwise(chain)):
        return (PodTopology(invalid(f"the sizes of {field} do not divide each other")),)
    found = (TopologyConstraint(tree, required=level) for level, _ in ordered)
    return tuple(PodTopology(one, slices=chain[: number + 1]) for number, one in enumerate(found))


def invalid(why: str) -> TopologyConstraint:
    """A constraint that cannot be read: no node satisfies it."""
    return TopologyConstraint(f"{INVALID}{why}", required=why)


_OF_PODS = frozenset(
    {
        topology.KUEUE_REQUIRED,
        topology.KUEUE_PREFERRED,
        topology.KUEUE_SLICE_REQUIRED,
        topology.KUEUE_SLICE_LAYERS,
        topology.KAI_REQUIRED,
        topology.KAI_PREFERRED,
        topology.KAI_SEGMENT_SIZE,
        topology.NETWORK_TOPOLOGY_SPEC,
    }
)
"""A pod without one of these annotations has no constraint."""


def of_pod(pod: Obj) -> tuple[PodTopology, ...]:
    """The annotations of Kueue, which are for the pods of one template, and of KAI and Koordinator, which are for the
    gang."""
    annotations = annotations_of(pod)
    if not annotations or _OF_PODS.isdisjoint(annotations):
        return ()
    gathered = of_gather_strategy(annotations.get(topology.NETWORK_TOPOLOGY_SPEC))
    return (
        *_of_kueue(annotations),
        *_of_kai(annotations),
        *(() if gathered is None else (PodTopology(gathered, of_role=False),)),
        *multiples_of(annotations.get(topology.NETWORK_TOPOLOGY_SPEC)),
    )


def _of_kueue(annotations: Mapping[str, str]) -> Iterator[PodTopology]:
    group = annotations.get(topology.KUEUE_GROUP, "")
    required, preferred = annotations.get(topology.KUEUE_REQUIRED), annotations.get(topology.KUEUE_PREFERRED)
    if required or preferred:
        yield PodTopology(TopologyConstraint(KUEUE, required or "", preferred or ""), group=group)
    sliced = annotations.get(topology.KUEUE_SLICE_REQUIRED)
    if sliced:
        size = number_in(annotations.get(topology.KUEUE_SLICE_SIZE)) or 0
        if size > 0:
            yield PodTopology(TopologyConstraint(KUEUE, sliced), group=group, slices=(size,))
        else:
            yield PodTopology(invalid(f"{topology.KUEUE_SLICE_REQUIRED} needs {topology.KUEUE_SLICE_SIZE}"))
    layers = annotations.get(topology.KUEUE_SLICE_LAYERS)
    if layers:
        sizes = _layers(layers)
        if sizes is None:
            yield PodTopology(invalid(f"{topology.KUEUE_SLICE_LAYERS} is not a list of topology and size"))
        else:
            for one in _nested(KUEUE, sizes, topology.KUEUE_SLICE_LAYERS):
                yield msgspec.structs.replace(one, group=group)


def _layers(text: str) -> dict[str, int] | None:
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found: dict[str, int] = {}
    for one in listed if isinstance(listed, list) else ():
        level, size = (one.get("topology"), one.get("size")) if isinstance(one, dict) else (None, None)
        if not isinstance(level, str) or not isinstance(size, int) or isinstance(size, bool) or size < 1:
            return None
        found[level] = size
    return found or None


def _of_kai(annotations: Mapping[str, str]) -> Iterator[PodTopology]:
    tree = f"{KAI}{annotations.get(topology.KAI_TREE, '')}"
    required, preferred = annotations.get(topology.KAI_REQUIRED), annotations.get(topology.KAI_PREFERRED)
    if required or preferred:
        yield PodTopology(TopologyConstraint(tree, required or "", preferred or ""), of_role=False)
    segment = annotations.get(topology.KAI_SEGMENT_SIZE)
    if segment:
        size = number_in(segment) or 0
        place = TopologyConstraint(
            tree,
            annotations.get(topology.KAI_SEGMENT_REQUIRED, ""),
            annotations.get(topology.KAI_SEGMENT_PREFERRED, ""),
        )
        if size < 1:
            yield PodTopology(invalid(f"{topology.KAI_SEGMENT_SIZE} is not a number above 0"))
        elif place.required or place.preferred:
            yield PodTopology(place, slices=(size,))
