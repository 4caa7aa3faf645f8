"""Kueue: pod sets with a required, preferred or slice topology (its table of topology assignments). A pod set is a role
here. Left out: cases behind the gate TASBalancedPlacement, of elastic workload slices and of replaced nodes, and which
hosts are used below the level that is asked for, except for two cases that are about it."""

from __future__ import annotations

import json
from typing import Any

from peers.case import Case, cluster, running
from support import manifests as m
from support import racks as r

Obj = dict[str, Any]
HOST = "kubernetes.io/hostname"
KEY = "kueue.x-k8s.io/podset-"
GPU = "example.com/gpu"
BELOW = "T2 counts levels from the preferred one up; Kueue also packs onto few domains of the levels below it"


def pod_set(
    name: str,
    count: int,
    cpu: int | str | None = 1,
    *,
    required: str = "",
    preferred: str = "",
    slices: tuple[str, int] | None = None,
    layers: dict[str, int] | None = None,
    group: str = "",
    gpu: int = 0,
    **fields: Any,
) -> list[Obj]:
    texts = {
        f"{KEY}required-topology": required,
        f"{KEY}preferred-topology": preferred,
        f"{KEY}slice-required-topology": slices[0] if slices else "",
        f"{KEY}slice-size": str(slices[1]) if slices and slices[1] else "",
        f"{KEY}slice-required-topology-constraints": json.dumps(
            [{"topology": level, "size": size} for level, size in (layers or {}).items()]
        )
        if layers
        else "",
        f"{KEY}group-name": group,
    }
    given = {key: text for key, text in texts.items() if text}
    extra = {GPU: gpu} if gpu else None
    return [
        m.pod(f"{name}-{n}", cpu, group="g", role=name, annotations=given, extra=extra, **fields) for n in range(count)
    ]


def asked(nodes: list[Obj], *pod_sets: list[Obj], levels: tuple[str, ...] = ("block", "rack", HOST)) -> list[Any]:
    """The objects of a case."""
    members = [pod for one in pod_sets for pod in one]
    return [r.topology("default", *levels), nodes, m.podgroup("g", len(members)), members]


def blocks(text: str, **fields: Any) -> list[Obj]:
    return cluster(text, "block", "rack", **fields)


def hosts(text: str) -> list[Obj]:
    return cluster(f": {text}")


DEFAULT = blocks("b1/r1: x3; b1/r2: x5 x1 x6; b2/r1: x2; b2/r2: x4=2")
SCATTERED = blocks("b1/r1: x3=4 x5 x1; b2/r1: x6=2 x2")
LARGE = blocks("b1/r1: x3=10; b1/r2: x5=10 x1=10 x6=10; b2/r1: x2=10; b2/r2: x4=20")
BINARY = blocks("b1/r1: x3 x5; b1/r2: x1 x6; b2/r1: x2 x4; b2/r2: x7 x8")
TEN_PODS = [m.node(f"{b}{n}", 9, pods=10 * n, labels={"block": b, "rack": f"r{n}"}) for b in ("a", "b") for n in (1, 3)]
TAINT = [{"key": "example.com/gpu", "value": "present", "effect": "NoSchedule"}]
NOT_READY = {**m.node("x1"), "status": {**m.node("x1")["status"], "conditions": [{"type": "Ready", "status": "False"}]}}


def simple(name: str, nodes: list[Obj], count: int, where: str, **fields: Any) -> Case:
    """One pod set `w`; `where`: the nodes of the domain that is used; empty: it does not fit."""
    objects = asked(nodes, pod_set("w", count, **fields))
    return Case(name, objects, on={"w-*": where}) if where else Case(name, objects, waits="w-*")


def in_slices(name: str, objects: list[Any], label: str, size: int, count: int, where: str, **fields: Any) -> Case:
    """Each slice of the pod set `w` is in one domain of a label."""
    slices = [" ".join(f"w-{n}" for n in range(first, first + size)) for first in range(0, count, size)]
    return Case(name, objects, on={"w-*": where}, together=dict.fromkeys(slices, label), **fields)


_ANY = "x1 x2 x3 x4 x5 x6"
_LEVELS = [
    simple("no annotation: anywhere", SCATTERED, 6, _ANY),
    simple("one pod anywhere", DEFAULT, 1, _ANY),
    simple("block required: 4 pods on a host each", BINARY, 4, "x3 x5 x1 x6", required="block"),
    simple("host required: 1 pod", DEFAULT, 1, "x3", required=HOST),
    simple("host required: 2 pods", DEFAULT, 2, "x4", required=HOST),
    simple("rack required: 1 pod in the first of the smallest racks", DEFAULT, 1, "x3", required="rack"),
    simple("rack required: 3 pods", DEFAULT, 3, "x5 x1 x6", required="rack"),
    simple("rack required: 2 pods in the smallest rack that holds them", DEFAULT, 2, "x4", required="rack"),
    simple("rack required: 4 pods fit in no rack", DEFAULT, 4, "", required="rack"),
    simple("block required: 1 pod in the smaller block", DEFAULT, 1, "x2 x4", required="block"),
    simple("block required: 4 pods over the racks of one block", DEFAULT, 4, "x3 x5 x1 x6", required="block"),
    simple("block required: a pod larger than any node", DEFAULT, 1, "", required="block", cpu=4),
    simple("block required: 5 pods fit in no block", DEFAULT, 5, "", required="block"),
    simple("rack required: pods per node bound the room", TEN_PODS, 4, "a1", required="rack", cpu=None, memory="1Ki"),
    simple("rack preferred: 4 pods over the racks of one block", DEFAULT, 4, "x3 x5 x1 x6", preferred="rack"),
    Case(
        "rack preferred: 6 pods over the fewest racks of both blocks",
        asked(DEFAULT, pod_set("w", 6, preferred="rack")),
        all_of={"w-*": "x3 x5 x1 x6 x4"},
    ),
    simple("block preferred: 6 pods over both blocks", DEFAULT, 6, _ANY, preferred="block"),
    simple("block preferred: 10 pods fit nowhere", DEFAULT, 10, "", preferred="block"),
    Case(
        "block preferred: the largest block and the smallest that makes up the rest",
        asked(cluster("b1: n1=2; b2: n2=1; b3: n3=4", "block"), pod_set("w", 5, preferred="block"), levels=("block",)),
        all_of={"w-*": "n2 n3"},
    ),
    Case(
        "block required: one rack of one pod a host rather than two racks of two",
        asked(blocks("b1/r1: x3=2; b1/r2: x5=2; b1/r3: x1 x6 x2 x4"), pod_set("w", 4, required="block")),
        all_of={"w-*": "x1 x2 x4 x6"},
        differs=BELOW,
    ),
]
_NODES = [
    simple(
        "a node of another zone", [m.node("x3", labels={"zone": "a"})], 1, "", required=HOST, nodeSelector={"zone": "b"}
    ),
    simple(
        "a node of the zone", [m.node("x3", labels={"zone": "a"})], 1, "x3", required=HOST, nodeSelector={"zone": "a"}
    ),
    Case(
        "a node without the label of a lower level is outside of the tree",
        asked(
            [{**m.node("x3"), "metadata": {"name": "x3", "labels": {"block": "b1", "rack": "r1"}}}],
            pod_set("w", 1, required="rack"),
        ),
        waits="w-*",
        differs="T5: such a node is outside of the domains of that level only",
    ),
    Case(
        "a pod that waits for another scheduler takes no room",
        [
            *asked(hosts("x3"), pod_set("w", 1, "600m", required=HOST)),
            m.pod("o", "600m", scheduler="another-scheduler"),
        ],
        on={"w-*": "x3"},
    ),
    Case(
        "a running pod takes room",
        [*asked(hosts("x3"), pod_set("w", 1, "600m", required=HOST)), running("x3=600m")],
        waits="w-*",
    ),
    Case(
        "a running pod takes all room",
        [*asked(hosts("x3"), pod_set("w", 1, "100m", required=HOST)), running("x3=1")],
        waits="w-*",
    ),
    Case(
        "running pods count against the pods of a node",
        [
            *asked([m.node("x3", pods=10)], pod_set("w", 9, None, required=HOST)),
            running("x3=100m"),
            m.pod("o", "100m", scheduler="another-scheduler", nodeName="x3"),
        ],
        waits="w-*",
    ),
    Case(
        "a running pod leaves the other host",
        [*asked(hosts("x3 x5"), pod_set("w", 1, "600m", required=HOST)), running("x3=600m")],
        on={"w-*": "x5"},
    ),
    simple("a node that is not ready", [NOT_READY], 1, "", required=HOST),
    simple("a ready node beside one that is not", [NOT_READY, m.node("x2", 1)], 1, "x2", required=HOST),
    simple("two pods where one of two hosts is not ready", [NOT_READY, m.node("x2", 1)], 2, "", required=HOST),
    simple("a cordoned node", [m.node("x3", unschedulable=True)], 1, "", required=HOST),
    simple("a taint", [m.node("x3", taints=TAINT)], 1, "", required=HOST),
    simple(
        "a taint that is tolerated",
        [m.node("x3", taints=TAINT)],
        1,
        "x3",
        required=HOST,
        tolerations=[{"key": "example.com/gpu", "value": "present", "operator": "Equal"}],
    ),
    simple(
        "a taint, two other zones and too little cpu",
        [
            m.node("x1", 1, taints=TAINT),
            m.node("x2", 1, labels={"zone": "b"}),
            m.node("x3", 2, labels={"zone": "b"}),
            m.node("x4", "100m", labels={"zone": "a"}),
        ],
        1,
        "",
        required=HOST,
        nodeSelector={"zone": "a"},
    ),
    simple("two resources are short", [m.node("x1", "500m", extra={GPU: 0})], 1, "", required=HOST, gpu=1),
    Case(
        "too few pods allowed",
        [*asked([m.node("x3", 1, pods=1)], pod_set("w", 1, "300m", required=HOST)), running("x3=300m")],
        waits="w-*",
    ),
    Case(
        "two pod sets on a node that allows one pod",
        asked([m.node("x1", 2, pods=1)], pod_set("v", 1, required=HOST), pod_set("w", 1, required=HOST)),
        waits="v-* w-*",
    ),
    simple("a selector that no node has", hosts("x3"), 1, "", required=HOST, nodeSelector={"custom": "1"}),
    simple(
        "a selector with another value",
        [m.node("x3", labels={"custom": "1"})],
        1,
        "",
        required=HOST,
        nodeSelector={"custom": "2"},
    ),
    simple(
        "a selector that one of two nodes has",
        [m.node("x3", 1, labels={"custom": "1"}), m.node("x5", 1, labels={"custom": "2"})],
        1,
        "x5",
        required=HOST,
        nodeSelector={"custom": "2"},
    ),
]

_THREE = blocks("b1/r1: x3=3 x5=3 x1=3")
_SLICES = [
    in_slices(
        "block required, slices of 2 on a host: three hosts of 3",
        asked(_THREE, pod_set("w", 6, required="block", slices=(HOST, 2))),
        HOST,
        2,
        6,
        "x1 x3 x5",
    ),
    in_slices(
        "slices of 2 on the fewest hosts",
        asked(blocks("b1/r1: x3=6 x5=5 x1=4 x6=2"), pod_set("w", 12, required="block", slices=(HOST, 2))),
        HOST,
        2,
        12,
        "x1 x3 x6",
        differs=BELOW,
    ),
    in_slices(
        "slices of 2 on the hosts that they fill",
        asked(blocks("b1/r1: x3=3 x5=2 x1=2"), pod_set("w", 4, required="block", slices=(HOST, 2))),
        HOST,
        2,
        4,
        "x1 x5",
    ),
    in_slices(
        "slices of 2 in a rack, all in the block that has two such racks",
        asked(
            blocks("b1/r1: x3 x5; b1/r2: x1 x6 x2; b2/r1: x4 x7"), pod_set("w", 4, required="block", slices=("rack", 2))
        ),
        "rack",
        2,
        4,
        "x3 x5 x1 x6 x2",
    ),
    in_slices(
        "block preferred, slices of 2 in a rack: over both blocks",
        asked(DEFAULT, pod_set("w", 4, preferred="block", slices=("rack", 2))),
        "rack",
        2,
        4,
        "x5 x1 x6 x4",
    ),
    in_slices(
        "block preferred, slices of 3 on a host: over both blocks",
        asked(blocks("b1/r1: x3=3 x5=3 x1=3; b2/r1: x6=6"), pod_set("w", 12, preferred="block", slices=(HOST, 3))),
        HOST,
        3,
        12,
        "x1 x3 x5 x6",
    ),
    Case(
        "a block has room for all pods, and no rack for a slice",
        asked(blocks("b1/r1: x3=2; b1/r2: x5=2; b1/r3: x1=2"), pod_set("w", 6, required="block", slices=("rack", 3))),
        waits="w-*",
    ),
    Case(
        "one of two slices fits",
        asked(
            blocks("b1/r1: x3=3; b1/r2: x5; b1/r3: x1; b1/r4: x6"),
            pod_set("w", 6, required="block", slices=("rack", 3)),
        ),
        waits="w-*",
    ),
    in_slices(
        "all pods fit in both blocks, the slices in one",
        asked(
            blocks("b1/r1: x3=2; b1/r2: x5=2; b1/r3: x1=2; b2/r4: x6=3; b2/r5: x2=3"),
            pod_set("w", 6, required="block", slices=("rack", 3)),
        ),
        "rack",
        3,
        6,
        "x6 x2",
    ),
    Case(
        "slices of a level above that of the whole are refused",
        asked(DEFAULT, pod_set("w", 1, required=HOST, slices=("block", 1))),
        waits="w-*",
    ),
    Case("slices without a size", asked(DEFAULT, pod_set("w", 1, required="block", slices=(HOST, 0))), waits="w-*"),
    Case(
        "slices of a level that does not exist",
        asked(DEFAULT, pod_set("w", 1, required="block", slices=("no-such-level", 1))),
        waits="w-*",
    ),
    in_slices(
        "slices of 2 on a host, the whole anywhere",
        asked(_THREE, pod_set("w", 6, slices=(HOST, 2))),
        HOST,
        2,
        6,
        "x1 x3 x5",
    ),
    in_slices(
        "slices of 2 on the hosts of two blocks",
        asked(SCATTERED, pod_set("w", 6, slices=(HOST, 2))),
        HOST,
        2,
        6,
        "x3 x6",
    ),
    in_slices(
        "slices of 2 in the racks of two blocks",
        asked(DEFAULT, pod_set("w", 4, slices=("rack", 2))),
        "rack",
        2,
        4,
        "x5 x1 x6 x4",
    ),
]


def led(
    name: str,
    nodes: list[Obj],
    leader: dict[str, Any],
    workers: dict[str, Any],
    where: str,
    *,
    leads: str = "",
    levels: tuple[str, ...] = ("block",),
    more: tuple[Any, ...] = (),
    differs: str = "",
) -> Case:
    """A leader and workers of one group; `leads`: the nodes of the leader, if the case is about it."""
    count = workers.pop("count")
    sets = pod_set("l", 1, group="one", **leader), pod_set("w", count, group="one", **workers)
    objects = [*asked(nodes, *sets, levels=levels), *more]
    if not where:
        return Case(name, objects, waits="l-* w-*", differs=differs)
    return Case(name, objects, on={"l-*": leads or where, "w-*": where}, differs=differs)


def gpus(text: str) -> list[Obj]:
    """`b1: n1=cpu/gpu`."""
    found = []
    for node in cluster(text, "block"):
        cpu, _, gpu = node["status"]["allocatable"]["cpu"].partition("/")
        node["status"]["allocatable"] |= {"cpu": cpu, GPU: gpu}
        found.append(node)
    return found


_BLOCK, _RACK = {"required": "block"}, {"required": "rack"}
_R1, _RACKS = cluster("r1: h1=2 h2=4 h3=3", "rack"), ("rack", HOST)
_TIGHT = cluster("small: used=2800m free=2800m; large: big=6", "rack")
_FILLER = (running("used=2500m"),)
_FIVE = blocks("b1/r1: x1=5 x2=5; b1/r2: x3=5 x4=5")
_GROUPS = [
    led(
        "a leader with its workers in one block",
        gpus("b1: n1=2/2; b2: n2=5/4; b3: n3=2/2"),
        _BLOCK,
        {**_BLOCK, "count": 4, "gpu": 1},
        "n2",
    ),
    led(
        "a leader where it leaves room for the workers",
        _R1,
        _RACK,
        {**_RACK, "count": 4, "cpu": 2},
        "h1 h2 h3",
        leads="h3",
        levels=_RACKS,
    ),
    led(
        "a leader beside slices of 2",
        _R1,
        _RACK,
        {**_RACK, "count": 8, "slices": (HOST, 2)},
        "h1 h2 h3",
        leads="h3",
        levels=_RACKS,
    ),
    led(
        "host preferred: a leader and workers fill two hosts",
        hosts("h1=8 h2=3"),
        {"preferred": HOST},
        {"preferred": HOST, "count": 5, "cpu": 2},
        "h1 h2",
        leads="h2",
        levels=(HOST,),
    ),
    led(
        "a leader and a worker with different resources",
        [m.node("h1", 1), m.node("h2", 0, extra={GPU: 1})],
        {},
        {"count": 1, "cpu": None, "gpu": 1},
        "h2",
        leads="h1",
        levels=(HOST,),
    ),
    led(
        "a leader and a worker on different hosts of a rack",
        [m.node("h1", 1, labels={"rack": "r1"}), m.node("h2", 0, labels={"rack": "r1"}, extra={GPU: 1})],
        {**_RACK, "slices": ("rack", 1)},
        {**_RACK, "slices": ("rack", 1), "count": 1, "cpu": None, "gpu": 1},
        "h2",
        leads="h1",
        levels=_RACKS,
    ),
    led(
        "a block that a leader and workers fill",
        gpus("b1: n1=2/2; b2: n2=8/8; b3: n3=2/2"),
        _BLOCK,
        {**_BLOCK, "count": 4, "gpu": 2},
        "n2",
    ),
    led(
        "a rack with room for the workers alone is passed by",
        _TIGHT,
        {**_RACK, "cpu": "2500m"},
        {**_RACK, "count": 1, "cpu": "2500m"},
        "big",
        levels=_RACKS,
        more=_FILLER,
    ),
    led(
        "the same with small workers",
        _TIGHT,
        {**_RACK, "cpu": "2500m"},
        {**_RACK, "count": 2, "cpu": "500m"},
        "big",
        levels=_RACKS,
        more=_FILLER,
    ),
    led("the tight rack if both fit", _TIGHT, _RACK, {**_RACK, "count": 1}, "free", levels=_RACKS, more=_FILLER),
    led("no block has room for both", gpus("b1: n1=1/0; b2: n2=4/4"), _BLOCK, {**_BLOCK, "count": 4, "gpu": 1}, ""),
    led(
        "the block that has room for both",
        gpus("b1: n1=11/8; b2: n2=4/4"),
        _BLOCK,
        {**_BLOCK, "count": 4, "gpu": 1},
        "n1",
    ),
    led(
        "the leader fits nowhere",
        gpus("b1: n1=4/4; b2: n2=4/4"),
        {**_BLOCK, "cpu": 10},
        {**_BLOCK, "count": 4, "gpu": 1},
        "",
    ),
    led(
        "of two blocks with room the one with more",
        [
            *cluster("b1/r1: x3=2 x5=2 x1=2", "block", "rack", extra={GPU: 1}),
            *cluster("b2/r4: x6=1; b2/r5: x2=2; b2/r6: x4=2", "block", "rack", extra={GPU: 1}),
        ],
        {**_BLOCK, "cpu": 2},
        {**_BLOCK, "count": 2, "gpu": 1},
        "x1 x3 x5",
        levels=("block", "rack", HOST),
        differs="T2 leaves the largest free domain whole: the smaller block has room for all",
    ),
    led(
        "a leader and workers of equal size in the first of two equal blocks",
        BINARY,
        _BLOCK,
        {**_BLOCK, "count": 2},
        "x3 x5 x1 x6",
        levels=("block", "rack", HOST),
    ),
    led(
        "a leader with slices of 2 on a host of its block",
        blocks("b1/r1: x1=5 x2=5"),
        _BLOCK,
        {**_BLOCK, "count": 4, "cpu": 2, "slices": (HOST, 2)},
        "x1 x2",
        levels=("block", "rack", HOST),
    ),
    Case(
        "slices of 4 in a rack, and of 2 within them on a host",
        asked(
            _FIVE,
            pod_set("l", 1, required="block", group="one"),
            pod_set("w", 8, 2, required="block", group="one", layers={"rack": 4, HOST: 2}),
        ),
        together={
            "w-0 w-1 w-2 w-3": "rack",
            "w-4 w-5 w-6 w-7": "rack",
            "w-0 w-1": HOST,
            "w-2 w-3": HOST,
            "w-4 w-5": HOST,
            "w-6 w-7": HOST,
        },
    ),
    Case(
        "two pod sets in a rack each, of different resources",
        asked(
            LARGE,
            pod_set("v", 2, required="rack"),
            pod_set("w", 1, None, memory="1Ki", required="rack"),
            levels=("block", "rack"),
        ),
        on={"v-* w-*": "x3"},
    ),
    Case(
        "a pod set in one block, and one anywhere",
        asked(LARGE, pod_set("v", 8, required="block"), pod_set("w", 2)),
        on={"v-*": "x2 x4", "w-*": _ANY},
    ),
    Case(
        "one of two pod sets fits nowhere",
        asked(hosts("x1=4 x2=4"), pod_set("v", 1), pod_set("w", 1, nodeSelector={"no": "node"})),
        waits="v-* w-*",
    ),
]

CASES = [*_LEVELS, *_NODES, *_SLICES, *_GROUPS]
