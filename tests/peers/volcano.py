"""Volcano: PodGroups with a networkTopology on HyperNodes (its table of the allocate action). Nodes have 2 cpus, and
so does each pod request, of the roles master and worker."""

from __future__ import annotations

from typing import Any

from peers.case import Case, cluster, running
from support import manifests as m
from support import racks as r

Obj = dict[str, Any]

TWO = [r.hyper_node("s0", 1, "n1", "n2"), r.hyper_node("s1", 1, "n3", "n4")]
TWO_TIERS = [*TWO, r.hyper_node("s2", 2, "s0", "s1", of="HyperNode")]
FOUR_NODES = cluster(": n1 n2 n3 n4", cpu=2)
THREE_TIERS = [
    *(r.hyper_node(f"s{n}", 1, f"s{n}-n1", f"s{n}-n2") for n in (3, 4, 5, 6)),
    r.hyper_node("s1", 2, "s3", "s4", of="HyperNode"),
    r.hyper_node("s2", 2, "s5", "s6", of="HyperNode"),
    r.hyper_node("s0", 3, "s1", "s2", of="HyperNode"),
]
EIGHT_NODES = cluster(":" + "".join(f" s{n}-n1 s{n}-n2" for n in (3, 4, 5, 6)), cpu=2)


def gang(minimum: int, count: int, tier: int | None = None, bound: str = "", **fields: Any) -> list[Obj]:
    """Pods p1, p2, …; the first of them run on the nodes `bound`. `tier`: hard, at most this tier; none: soft."""
    wanted = {"mode": "soft"} if tier is None else {"mode": "hard", "highestTierAllowed": tier}
    nodes = dict(enumerate(bound.split()))
    found = [m.podgroup("g", minimum, networkTopology=wanted)]
    for n in range(count):
        at_node = {"nodeName": nodes[n]} if n in nodes else {}
        found.append(m.pod(f"p{n + 1}", 2, group="g", role="worker" if n else "master", **at_node, **fields))
    return found


def anywhere(nodes: list[Obj]) -> str:
    return " ".join(one["metadata"]["name"] for one in nodes)


_FOUR, _EIGHT = anywhere(FOUR_NODES), anywhere(EIGHT_NODES)
_MASTER = [m.node("n1", 2), m.node("n2", 2, labels={"nodeRole": "master"})]
_ONE_EACH = [r.hyper_node("s0", 1, "n1"), r.hyper_node("s1", 1, "n2")]

NAMED = [
    r.hyper_node("s0", 1, "n1", "n2", tier_name="task"),
    r.hyper_node("s1", 1, "n3", "n4", tier_name="task"),
    r.hyper_node("s2", 2, "s0", "s1", of="HyperNode", tier_name="job"),
]
THREE_NAMED = [
    {**one, "spec": {**one["spec"], "tierName": ("task", "job", "cluster")[one["spec"]["tier"] - 1]}}
    for one in THREE_TIERS
]


def by_name(minimum: int, count: int, name: str, bound: str = "") -> list[Obj]:
    """The same with the name of a tier."""
    found = gang(minimum, count, 1, bound)
    found[0]["spec"]["networkTopology"] = {"mode": "hard", "highestTierName": name}
    return found


_BY_NAME = [
    Case("tier task: three pods fit in no HyperNode", [NAMED, FOUR_NODES, by_name(3, 3, "task")], waits="p1 p2 p3"),
    Case("tier job: three pods fit", [NAMED, FOUR_NODES, by_name(3, 3, "job")], on={"p1 p2 p3": _FOUR}),
    Case("tier task: two pods in one HyperNode", [NAMED, FOUR_NODES, by_name(2, 2, "task")], on={"p1 p2": "n1 n2"}),
    Case("tier job: a lost member starts", [NAMED, FOUR_NODES, by_name(2, 3, "job", "n1 n2")], on={"p3": "n3 n4"}),
    Case(
        "tier job: a member of the minimum starts",
        [NAMED, FOUR_NODES, by_name(3, 3, "job", "n1 n2")],
        on={"p3": "n3 n4"},
    ),
    Case(
        "tier job of three: a lost member starts beside the others",
        [THREE_NAMED, EIGHT_NODES, by_name(2, 3, "job", "s3-n1 s3-n2")],
        on={"p3": "s4-n1 s4-n2"},
    ),
    Case("tier task: a lost member waits", [NAMED, FOUR_NODES, by_name(2, 3, "task", "n1 n2")], waits="p3"),
    Case(
        "a tier name that no HyperNode has is the whole cluster",
        [NAMED[:2], FOUR_NODES, by_name(2, 3, "absent", "n1 n2")],
        on={"p3": "n3 n4"},
        differs="N1: a constraint that names what does not exist holds the gang",
    ),
]

CASES = [
    *_BY_NAME,
    Case("soft: three pods over two HyperNodes", [TWO_TIERS, FOUR_NODES, gang(3, 3)], on={"p1 p2 p3": _FOUR}),
    Case("soft: surplus starts too", [TWO_TIERS, FOUR_NODES, gang(1, 2)], on={"p1 p2": _FOUR}),
    Case(
        "soft: the HyperNode whose node the pod selects",
        [_ONE_EACH, _MASTER, gang(1, 1, nodeSelector={"nodeRole": "master"})],
        on={"p1": "n2"},
    ),
    Case(
        "soft: a lost member starts in the other HyperNode",
        [TWO_TIERS, FOUR_NODES, gang(2, 3, bound="n1 n2")],
        on={"p3": "n3 n4"},
    ),
    Case(
        "soft: a member of the minimum starts in the other HyperNode",
        [TWO_TIERS, FOUR_NODES, gang(3, 3, bound="n1 n2")],
        on={"p3": "n3 n4"},
    ),
    Case(
        "soft: three tiers, a member starts beyond the lowest",
        [THREE_TIERS, EIGHT_NODES, gang(2, 3, bound="s3-n1 s3-n2")],
        on={"p3": _EIGHT},
    ),
    Case("hard 1: three pods fit in no HyperNode of two", [TWO_TIERS, FOUR_NODES, gang(3, 3, 1)], waits="p1 p2 p3"),
    Case("hard 2: three pods fit one tier up", [TWO_TIERS, FOUR_NODES, gang(3, 3, 2)], on={"p1 p2 p3": _FOUR}),
    Case("hard 1: two pods in one of two HyperNodes", [TWO_TIERS, FOUR_NODES, gang(2, 2, 1)], on={"p1 p2": "n1 n2"}),
    Case("hard 1: surplus beside the minimum", [TWO_TIERS, FOUR_NODES, gang(1, 2, 1)], on={"p1 p2": "n1 n2"}),
    Case(
        "hard 1: the HyperNode whose node the pod selects",
        [_ONE_EACH, _MASTER, gang(1, 1, 1, nodeSelector={"nodeRole": "master"})],
        on={"p1": "n2"},
    ),
    Case(
        "hard 2: a lost member starts within tier 2",
        [TWO_TIERS, FOUR_NODES, gang(2, 3, 2, bound="n1 n2")],
        on={"p3": "n3 n4"},
    ),
    Case(
        "hard 2: a member of the minimum starts within tier 2",
        [TWO_TIERS, FOUR_NODES, gang(3, 3, 2, bound="n1 n2")],
        on={"p3": "n3 n4"},
    ),
    Case(
        "hard 2 of three tiers: a member starts within the tier 2 of the others",
        [THREE_TIERS, EIGHT_NODES, gang(2, 3, 2, bound="s3-n1 s3-n2")],
        on={"p3": "s4-n1 s4-n2"},
    ),
    Case(
        "hard 1: a lost member waits beside its full HyperNode",
        [TWO_TIERS, FOUR_NODES, gang(2, 3, 1, bound="n1 n2")],
        waits="p3",
    ),
    Case(
        "hard 1 of three tiers: a lost member waits beside its full HyperNode",
        [THREE_TIERS, EIGHT_NODES, gang(2, 3, 1, bound="s3-n1 s3-n2")],
        waits="p3",
    ),
    Case(
        "hard 2 above the highest tier is the whole cluster",
        [TWO, FOUR_NODES, gang(2, 3, 2, bound="n1 n2")],
        on={"p3": "n3 n4"},
    ),
    Case(
        "hard 1: the fuller of two equal HyperNodes",
        [
            TWO,
            cluster(": n1=4 n2=8 n3=4 n4=8"),
            running("n1=2 n2=4"),
            m.podgroup("g", 2, networkTopology={"mode": "hard", "highestTierAllowed": 1}),
            m.pod("p1", 2, group="g", role="master"),
            m.pod("p2", 4, group="g", role="worker"),
        ],
        on={"p1 p2": "n1 n2"},
    ),
]
