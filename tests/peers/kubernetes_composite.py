"""kube-scheduler: PodGroups below CompositePodGroups (its integration tests of topology-aware composite groups), with
and without preemption. Nodes have 2 cpus; pods request 1 and have the priority 100; `low` ones have 10."""

from __future__ import annotations

from typing import Any

from peers.case import Case, cluster, running
from peers.kubernetes import racks
from support import manifests as m

Obj = dict[str, Any]


CLASSES = [m.priority_class("usual", 100), m.priority_class("low", 10)]


def _topology(key: str) -> Obj:
    return {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}


def composite(name: str, minimum: int = 0, key: str = "", parent: str = "", at: str | None = None) -> Obj:
    """Without a minimum: basic."""
    policy = {"gang": {"minGroupCount": minimum}} if minimum else {"basic": {}}
    above = {"parentCompositePodGroupName": parent} if parent else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": m.metadata(name, annotations={f"{m.SIM}at": at}),
        "spec": {"schedulingPolicy": policy, **above, **_topology(key)},
    }


def group(
    name: str, parent: str, names: str, minimum: int = 2, key: str = "", at: str | None = None, **fields: Any
) -> list[Obj]:
    """A PodGroup and its pods; a minimum of 0: basic."""
    policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
    found = m.native_podgroup(name, policy, parentCompositePodGroupName=parent, **_topology(key))
    if at:
        found["metadata"]["annotations"] = {f"{m.SIM}at": at}
    return [found, *(member(name, one, at=at, **fields) for one in names.split())]


def member(of: str, name: str, **fields: Any) -> Obj:
    return m.pod(name, schedulingGroup={"podGroupName": of}, priority="usual", **fields)


def low(text: str) -> list[Obj]:
    return running(text, priority="low", scheduler="enbloc")


def high(text: str) -> list[Obj]:
    return running(text, priority="usual")


def halves(key: str, inner: str, *, basic: bool = False) -> list[Any]:
    """Two CompositePodGroups below `root`, each with two PodGroups of two pods."""
    found: list[Any] = [composite("s1", 2, key, "root"), composite("s2", 2, key, "root")]
    for n, above in ((1, "s1"), (2, "s1"), (3, "s2"), (4, "s2")):
        found.append(group(f"g{n}", above, f"p{2 * n - 1} p{2 * n}", key=inner))
    return found


FOUR = "1/1: n1 n2; 2/1: n3 n4"
ZONES = "1/1: n1; 2/1: n2; 1/2: n3 n4"
SIX = cluster("z1/k1/r1: n1; z1/k1/r2: n2; z1/k2/r1: n3; z1/k2/r2: n4; z2/k1/r1: n5 n6", "zone", "block", "rack", cpu=2)
EIGHT = "1/1: n1 n2; 2/1: n3 n4; 1/2: n5 n6; 2/2: n7 n8"
BOTH = [group("g1", "root", "p1 p2"), group("g2", "root", "p3 p4")]
IN_RACKS = [group("g1", "root", "p1 p2", key="rack"), group("g2", "root", "p3 p4", key="rack")]
PAIRS = {"p1 p2": "rack", "p3 p4": "rack"}
QUARTERS = {**PAIRS, "p5 p6": "rack", "p7 p8": "rack"}
TAINTED = [
    m.node("n1", 2, labels={"rack": "1", "zone": "1"}, taints=[{"key": "taint", "effect": "NoSchedule"}]),
    *racks("2/1: n2; 3/1: n3; 1/2: n4; 2/2: n5"),
]
TOLERANT = [
    group("g1", "root", "p1 p2", key="rack", tolerations=[{"key": "taint", "operator": "Exists"}]),
    group("g2", "root", "p3 p4"),
]
PINNED = [
    racks("1/1: n1; 2/1: n2 n3; 1/2: n4 n5"),
    composite("root", 2, "zone"),
    group("g1", "root", "p1", key="rack"),
    group("g2", "root", "p2 p3", key="rack"),
    member("g1", "old", nodeName="n1"),
]

_PLACES = [
    Case(
        "the rack that has room for both groups",
        [racks(FOUR), running("n4=2"), composite("root", 2, "rack"), *BOTH],
        on={"p1 p2 p3 p4": "n1 n2"},
    ),
    Case(
        "the rack of a pod that runs",
        [
            racks(FOUR),
            composite("root", 2, "rack"),
            group("g1", "root", "p1"),
            group("g2", "root", "p2 p3"),
            member("g1", "old", nodeName="n4"),
        ],
        on={"p1 p2 p3": "n3 n4"},
    ),
    Case(
        "no rack has room for one pod of each group",
        [
            racks("1/1: n1; 2/1: n2"),
            running("n1=1 n2=1"),
            composite("root", 2, "rack"),
            group("g1", "root", "p1", 0),
            group("g2", "root", "p2", 0),
        ],
        waits="p1 p2",
    ),
    Case(
        "a zone for all, a rack for each group",
        [racks(ZONES), running("n3=1"), composite("root", 2, "zone"), *IN_RACKS],
        on={"p1 p2 p3 p4": "n1 n2"},
        together=PAIRS,
    ),
    Case(
        "a rack for one group, the zone for the other",
        [TAINTED, running("n5=1 n2=1 n3=1"), composite("root", 2, "zone"), *TOLERANT],
        together={"p1 p2 p3 p4": "zone", "p1 p2": "rack"},
    ),
    Case("pods that run fix zone and rack", PINNED, on={"p1": "n1", "p2 p3": "n2 n3"}),
    Case(
        "pods that run in two zones",
        [
            racks("1/1: n1 n2; 1/2: n3 n4"),
            composite("root", 2, "zone"),
            group("g1", "root", "p1", key="rack"),
            group("g2", "root", "p2", key="rack"),
            member("g1", "old1", nodeName="n1"),
            member("g2", "old2", nodeName="n3"),
        ],
        waits="p1 p2",
    ),
    Case(
        "three levels: zone, block and rack",
        [SIX, composite("root", 2, "zone"), *halves("block", "rack")],
        together={"p1 p2 p3 p4": "block", "p5 p6 p7 p8": "block", **QUARTERS, "p1 p8": "zone"},
    ),
    Case(
        "three levels, none for the middle one",
        [
            racks("1/1: n1; 2/1: n2; 1/2: n3"),
            composite("root", 2, "zone"),
            composite("s1", parent="root"),
            composite("s2", parent="root"),
            group("g1", "s1", "p1 p2", key="rack"),
            group("g2", "s2", "p3 p4", key="rack"),
        ],
        together={"p1 p2 p3 p4": "zone", **PAIRS},
    ),
    Case(
        "three levels, none for the highest one",
        [racks("1/1: n1; 2/1: n2; 3/2: n3; 4/2: n4; 5/2: n5"), composite("root"), *halves("zone", "rack")],
        together={"p1 p2 p3 p4": "zone", "p5 p6 p7 p8": "zone", **QUARTERS},
    ),
    Case(
        "three levels, none for the lowest one",
        [racks("1/1: n1 n2; 2/1: n3 n4; 3/2: n5 n6"), composite("root", 2, "zone"), *halves("rack", "")],
        together={"p1 p2 p3 p4": "rack", "p5 p6 p7 p8": "rack", "p1 p8": "zone"},
    ),
    Case(
        "a pod that runs fixes the places of all levels",
        [
            racks(EIGHT),
            composite("root", 2, "zone"),
            composite("s1", 2, "rack", "root"),
            composite("s2", 2, "rack", "root"),
            group("g1", "s1", "p1"),
            group("g2", "s1", "p2 p3"),
            group("g3", "s2", "p4 p5"),
            group("g4", "s2", "p6 p7"),
            member("g1", "old", nodeName="n5"),
        ],
        on={"p1 p2 p3": "n5 n6", "p4 p5 p6 p7": "n7 n8"},
    ),
    Case(
        "the fuller of two racks",
        [
            racks(FOUR),
            running("n1=1"),
            composite("root", 2, "rack"),
            group("g1", "root", "p1", 1),
            group("g2", "root", "p2 p3"),
        ],
        on={"p1 p2 p3": "n1 n2"},
    ),
    Case(
        "of one group needed and two there are: the rack that has room for both",
        [racks(FOUR), running("n1=1"), *BOTH, composite("root", 1, "rack")],
        on={"p1 p2 p3 p4": "n3 n4"},
        differs="T2 leaves the largest free domain whole; surplus does not count",
    ),
    Case(
        "two of three groups in the one rack that is free",
        [racks(FOUR), running("n3=2 n4=2"), composite("root", 2, "rack"), *BOTH, group("g3", "root", "p5 p6")],
        on={"p1 p2 p3 p4": "n1 n2"},
        waits="p5 p6",
    ),
    Case(
        "basic: groups start as there is room, in one rack",
        [
            racks("1/1: n1 n2"),
            running("n1=2", delete_at="9s"),
            composite("root", 0, "rack"),
            group("g1", "root", "p1 p2", 0),
            group("g2", "root", "p3 p4", 0),
        ],
        on={"p1 p2 p3 p4": "n1 n2"},
    ),
    Case(
        "two trees, each in a rack",
        [
            racks(FOUR),
            composite("root", 2, "rack"),
            *BOTH,
            composite("other", 2, "rack"),
            group("h1", "other", "q1 q2", at="5s"),
            group("h2", "other", "q3 q4", at="5s"),
        ],
        together={"p1 p2 p3 p4": "rack", "q1 q2 q3 q4": "rack"},
    ),
    Case(
        "two trees, and one rack",
        [
            racks("1/1: n1 n2"),
            composite("root", 2, "rack"),
            *BOTH,
            composite("other", 2, "rack"),
            group("h1", "other", "q1 q2", at="5s"),
            group("h2", "other", "q3 q4", at="5s"),
        ],
        on={"p1 p2 p3 p4": "n1 n2"},
        waits="q1 q2 q3 q4",
    ),
    Case(
        "a composite and two groups below one root",
        [
            racks("1/1: n1 n2; 2/1: n3 n4; 1/2: n5; 2/2: n6"),
            composite("root", 3, "zone"),
            composite("s1", 2, "rack", "root"),
            group("g1", "s1", "p1 p2"),
            group("g2", "s1", "p3 p4"),
            group("g3", "root", "p5 p6", key="rack"),
            group("g4", "root", "p7 p8"),
        ],
        together={"p1 p2 p3 p4 p5 p6 p7 p8": "zone", "p1 p2 p3 p4": "rack", "p5 p6": "rack"},
    ),
]

_PREEMPTING = [
    Case(
        "the rack whose pods are of lower priority is freed",
        [racks(FOUR), low("n1=2 n2=2"), high("n4=2"), composite("root", 2, "rack"), *BOTH],
        on={"p1 p2 p3 p4": "n1 n2"},
        evicted="on-n1 on-n2",
    ),
    Case(
        "later surplus waits beside the rack that was freed",
        [
            racks(FOUR),
            low("n1=2 n2=2"),
            high("n4=2"),
            composite("root", 2, "rack"),
            *BOTH,
            member("g1", "p5", at="60s"),
        ],
        on={"p1 p2 p3 p4": "n1 n2"},
        waits="p5",
        evicted="on-n1 on-n2",
    ),
    Case(
        "the rack of a pod that runs is freed",
        [
            racks(FOUR),
            low("n3=2 n4=1"),
            composite("root", 2, "rack"),
            group("g1", "root", "p1"),
            group("g2", "root", "p2 p3"),
            member("g1", "old", nodeName="n4"),
        ],
        on={"p1 p2 p3": "n3 n4"},
        evicted="on-n3 on-n4",
    ),
    Case(
        "a rack is freed for one pod of each group",
        [
            racks("1/1: n1; 2/1: n2"),
            low("n1=2"),
            high("n2=2"),
            composite("root", 2, "rack"),
            group("g1", "root", "p1", 0),
            group("g2", "root", "p2", 0),
        ],
        on={"p1 p2": "n1"},
        evicted="on-n1",
    ),
    Case(
        "a zone is freed for groups in a rack each",
        [racks(ZONES), low("n1=2 n2=2"), high("n3=1"), composite("root", 2, "zone"), *IN_RACKS],
        on={"p1 p2 p3 p4": "n1 n2"},
        together=PAIRS,
        evicted="on-n1 on-n2",
    ),
    Case(
        "a rack is freed for a group beyond the minimum",
        [
            racks("1/1: n1; 2/1: n2; 3/1: n3; 1/2: n4 n5"),
            low("n3=2 n4=2"),
            composite("root", 2, "zone"),
            *IN_RACKS,
            group("g3", "root", "p5 p6", key="rack", at="60s"),
        ],
        on={"p1 p2 p3 p4": "n1 n2", "p5 p6": "n3"},
        evicted="on-n3",
        differs="P1: surplus evicts no pod",
    ),
    Case(
        "a rack is freed for one group, the zone has room for the other",
        [TAINTED, low("n1=2"), high("n5=1 n2=1 n3=1"), composite("root", 2, "zone"), *TOLERANT],
        together={"p1 p2 p3 p4": "zone", "p1 p2": "rack"},
        evicted="on-n1",
    ),
    Case(
        "pods that run fix the racks that are freed",
        [*PINNED, low("n1=1 n2=2")],
        on={"p1": "n1", "p2 p3": "n2 n3"},
        evicted="on-n1 on-n2",
        differs="P1: no victim in vain: the other node of that rack is free",
    ),
    Case(
        "three levels: a zone is freed",
        [SIX, low("n1=2 n2=2 n3=2 n4=2"), composite("root", 2, "zone"), *halves("block", "rack")],
        together={"p1 p2 p3 p4": "block", "p5 p6 p7 p8": "block", **QUARTERS, "p1 p8": "zone"},
        evicted="on-n1 on-n2 on-n3 on-n4",
    ),
    Case(
        "three levels, none for the middle one: a zone is freed",
        [
            racks("1/1: n1; 2/1: n2; 1/2: n3"),
            low("n1=2 n2=2"),
            composite("root", 2, "zone"),
            composite("s1", parent="root"),
            composite("s2", parent="root"),
            group("g1", "s1", "p1 p2", key="rack"),
            group("g2", "s2", "p3 p4", key="rack"),
        ],
        together={"p1 p2 p3 p4": "zone", **PAIRS},
        evicted="on-n1 on-n2",
    ),
    Case(
        "three levels, none for the highest one: two zones are freed",
        [
            racks("1/1: n1; 2/1: n2; 3/2: n3; 4/2: n4"),
            low("n1=2 n2=2 n3=2 n4=2"),
            composite("root"),
            *halves("zone", "rack"),
        ],
        together={"p1 p2 p3 p4": "zone", "p5 p6 p7 p8": "zone", **QUARTERS},
        evicted="on-n1 on-n2 on-n3 on-n4",
    ),
    Case(
        "three levels, none for the lowest one: a zone is freed",
        [
            racks("1/1: n1 n2; 2/1: n3 n4; 3/2: n5 n6"),
            low("n1=2 n2=2 n3=2 n4=2"),
            composite("root", 2, "zone"),
            *halves("rack", ""),
        ],
        together={"p1 p2 p3 p4": "rack", "p5 p6 p7 p8": "rack", "p1 p8": "zone"},
        evicted="on-n1 on-n2 on-n3 on-n4",
    ),
    Case(
        "a pod that runs fixes the racks of all levels that are freed",
        [
            racks(EIGHT),
            low("n6=2 n7=2"),
            composite("root", 2, "zone"),
            composite("s1", 2, "rack", "root"),
            composite("s2", 2, "rack", "root"),
            group("g1", "s1", "p1"),
            group("g2", "s1", "p2 p3"),
            group("g3", "s2", "p4 p5"),
            group("g4", "s2", "p6 p7"),
            member("g1", "old", nodeName="n5"),
        ],
        on={"p1 p2 p3": "n5 n6", "p4 p5 p6 p7": "n7 n8"},
        evicted="on-n6 on-n7",
    ),
]

CASES = [one._replace(objects=[CLASSES, *one.objects]) for one in (*_PLACES, *_PREEMPTING)]
