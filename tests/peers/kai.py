"""KAI: PodGroups with topology constraints and subgroups (its tables of the allocate action). A cpu stands for a GPU.
Pods of one gang are `j-0`, `j-1`, …; those of a subgroup `j-SUBGROUP-0`."""

from __future__ import annotations

from typing import Any

from peers.case import Case, cluster, running
from support import manifests as m
from support import racks as r

Obj = dict[str, Any]
TREE = "cluster-topology"


def place(required: str = "", preferred: str = "", tree: str = TREE) -> Obj:
    found = {"topology": tree, "requiredTopologyLevel": required, "preferredTopologyLevel": preferred}
    return {"topologyConstraint": {key: text for key, text in found.items() if text}} if required or preferred else {}


def tree(*levels: str, name: str = TREE) -> Obj:
    return r.topology(name, *levels, group=r.KAI)


def gang(count: int, cpu: int = 1, *, required: str = "", preferred: str = "", **fields: Any) -> list[Obj]:
    return [m.kai_podgroup("j", count, **place(required, preferred)), *m.kai_pods("j", count, cpu=cpu, **fields)]


def sub(name: str, minimum: int | None = None, *, parent: str = "", least: int | None = None, **where: str) -> Obj:
    """A subgroup; `least`: its `minSubGroup`."""
    found = {"name": name, "minMember": minimum, "parent": parent or None, "minSubGroup": least}
    return {key: value for key, value in found.items() if value is not None} | place(**where)


def job(*subs: Obj, members: dict[str, int], cpu: int = 1, name: str = "j", **fields: Any) -> list[Obj]:
    """`members`: how many pods of each subgroup."""
    spec = {"subGroups": list(subs), **fields}
    pods = [pod for one, count in members.items() for pod in m.kai_pods(name, count, subgroup=one, cpu=cpu)]
    return [m.kai_podgroup(name, None, **spec), *pods]


def bound(name: str, subgroup: str, node: str, cpu: int = 1) -> Obj:
    """A pod of a subgroup that runs."""
    [pod] = m.kai_pods(name, 1, subgroup=subgroup, cpu=cpu, nodeName=node)
    pod["metadata"]["name"] += f"-on-{node}"
    return pod


RACKS = cluster("rack1: n0 n1; rack2: n2 n3", "rack")
SPINES = cluster("rack1/spine1: n0; rack1/spine2: n1; rack2/spine1: n2; rack2/spine2: n3", "rack", "spine", cpu=2)
ZONES = cluster("zone1/rack1: n0; zone1/rack2: n1; zone2/rack3: n2; zone2/rack4: n3", "zone", "rack", cpu=2)
LARGE_ZONES = cluster("zone1/rack1: n0; zone1/rack2: n1; zone2/rack3: n2; zone2/rack4: n3", "zone", "rack", cpu=4)
EIGHT = cluster(
    "z1/s1/r1: n0; z1/s1/r2: n1; z1/s2/r3: n2; z1/s2/r4: n3; z2/s3/r5: n4; z2/s3/r6: n5; z2/s4/r7: n6; z2/s4/r8: n7",
    "zone",
    "spine",
    "rack",
    cpu=2,
)
EVEN = cluster("z1/s1/r1: n0 n1; z1/s1/r2: n2 n3; z1/s2/r3: n4 n5; z1/s2/r4: n6 n7", "zone", "spine", "rack")
TWO_ZONES = cluster("zone1/rack1: n0; zone1/rack2: n1; zone2/rack3: n2; zone2/rack4: n3", "zone", "rack", cpu=4)
_LEVELS = ("zone", "spine", "rack")

_PLACES = [
    Case(
        "the rack that is free",
        [tree("rack"), RACKS, running("n0=1"), gang(2, required="rack")],
        all_of={"j-*": "n2 n3"},
    ),
    Case(
        "the rack that one pod selects",
        [
            tree("rack"),
            cluster("rack1: n0 n1", "rack"),
            [m.node(name, 1, labels={"rack": "rack2", "kind": "a"}) for name in ("n2", "n3")],
            gang(2, required="rack")[:2],
            m.kai_pods("j", 2, nodeSelector={"kind": "a"})[1:],
        ],
        all_of={"j-*": "n2 n3"},
    ),
    Case(
        "a spine of a rack",
        [tree("rack", "spine"), SPINES[:2], running("n0=1"), gang(2, required="spine")],
        on={"j-*": "n1"},
    ),
    Case(
        "a rack over its spines",
        [tree("rack", "spine"), SPINES, running("n0=1"), gang(4, required="rack")],
        on={"j-*": "n2 n3"},
    ),
    Case(
        "a rack that is occupied in part",
        [tree("rack", "spine"), SPINES[:2], running("n0=1"), gang(2, required="rack")],
        on={"j-*": "n0 n1"},
    ),
    Case(
        "no rack has room for all",
        [tree("rack", "spine"), SPINES, running("n0=1 n2=1"), gang(4, required="rack")],
        waits="j-*",
    ),
    Case(
        "preferred: one rack",
        [tree("rack"), cluster("rack1: n0; rack2: n1", "rack", cpu=2), running("n0=1"), gang(2, preferred="rack")],
        on={"j-*": "n1"},
    ),
    Case(
        "preferred: two racks if no one has room",
        [tree("rack"), cluster("rack1: n0; rack2: n1", "rack", cpu=2), running("n0=1 n1=1"), gang(2, preferred="rack")],
        all_of={"j-*": "n0 n1"},
    ),
    Case(
        "required and preferred: the rack, though over two spines",
        [tree("rack", "spine"), SPINES, running("n0=2 n1=1 n2=1 n3=1"), gang(2, required="rack", preferred="spine")],
        all_of={"j-*": "n2 n3"},
    ),
    Case(
        "required and preferred: the fewest spines",
        [
            tree("rack", "spine"),
            cluster("r/s1: n0 n1; r/s2: n2 n3; r/s3: n4 n5; r/s4: n6 n7", "rack", "spine"),
            gang(3, required="rack", preferred="spine"),
        ],
        on={"j-*": "n0 n1 n2 n3"},
    ),
    Case(
        "the fuller of two racks",
        [
            tree("rack"),
            cluster("rack1: n0; rack2: n1", "rack", cpu=10),
            running("n1=1"),
            job(sub("a", 1, required="rack"), members={"a": 1}),
        ],
        on={"j-*": "n1"},
    ),
    Case(
        "preferred: the spine with the least room",
        [tree(*_LEVELS), EVEN, running("n0 n1 n2"), gang(1, preferred="spine")],
        on={"j-*": "n3"},
    ),
    Case(
        "preferred: the spine with the least room comes before the rack with the least",
        [
            tree(*_LEVELS),
            cluster("z/s1/r1: n0; z/s1/r2: n1; z/s1/r3: n2; z/s2/r4: n3 n4", *_LEVELS),
            gang(1, preferred="rack"),
        ],
        on={"j-*": "n3 n4"},
        differs="T2 compares domains of the preferred level: the rack with the least room",
    ),
]

_SUB_GROUPS = [
    Case(
        "two subgroups fill a node",
        [m.node("n0", 2), job(sub("a", 1), sub("b", 1), members={"a": 1, "b": 1})],
        on={"j-*": "n0"},
    ),
    Case(
        "each subgroup gets its minimum before surplus",
        [m.node("n0", 2), job(sub("a", 1), sub("b", 1), members={"a": 2, "b": 2})],
        on={"j-a-0 j-b-0": "n0"},
        waits="j-a-1 j-b-1",
    ),
    Case(
        "the subgroup below its minimum before surplus of another",
        [
            m.node("n0", 4),
            job(sub("a", 2), sub("b", 2), members={"a": 1, "b": 2}),
            bound("j", "a", "n0"),
            {**bound("j", "a", "n0"), "metadata": {**bound("j", "a", "n0")["metadata"], "name": "j-a-other"}},
        ],
        on={"j-b-0 j-b-1": "n0"},
        waits="j-a-0",
    ),
    Case(
        "both minima, and no surplus beyond the room",
        [m.node("n0", 4), job(sub("a", 2), sub("b", 1), members={"a": 4, "b": 2}), bound("j", "a", "n0", 2)],
        on={"j-a-0 j-b-0": "n0"},
        waits="j-a-1 j-a-2 j-a-3 j-b-1",
    ),
    Case(
        "surplus where there is room",
        [m.node("n0", 4), job(sub("a", 2), sub("b", 1), members={"a": 4, "b": 2}), bound("j", "a", "n0")],
        on={"j-a-0 j-a-1 j-b-0": "n0"},
        waits="j-a-2 j-a-3 j-b-1",
    ),
    Case(
        "a tree that is not balanced",
        [
            m.node("n0", 8),
            job(sub("ab"), sub("a", 2, parent="ab"), sub("b", 2, parent="ab"), sub("c", 1), members={"a": 2, "b": 2}),
            m.kai_pods("j", 1, subgroup="c", cpu=4),
        ],
        on={"j-*": "n0"},
    ),
    Case(
        "one subgroup lacks room: none starts",
        [
            m.node("n0", 4),
            job(sub("a", 1), sub("b", 2), members={"b": 2}),
            m.kai_pods("j", 2, subgroup="a", cpu=3),
        ],
        waits="j-*",
    ),
    Case(
        "two gangs with subgroups, each its minima",
        [
            m.node("n0", 4),
            job(sub("a", 1), sub("b", 1), members={"a": 2, "b": 2}),
            job(sub("a", 1), sub("b", 1), members={"a": 2, "b": 2}, name="k"),
        ],
        on={"j-a-0 j-b-0 k-a-0 k-b-0": "n0"},
        waits="j-a-1 j-b-1 k-a-1 k-b-1",
    ),
]

_IN_ZONE, _IN_RACK = place("zone"), {"required": "rack"}
_REPLICAS = {f"{side}{n}": 1 for n in (1, 2) for side in ("a", "b")}


def replicas(*, outer: dict[str, str], inner: dict[str, str]) -> list[Obj]:
    """Two subgroups `one` and `two`, each with two subgroups of a pod."""
    found = []
    for n, name in ((1, "one"), (2, "two")):
        found += [sub(name, **outer), sub(f"a{n}", 1, parent=name, **inner), sub(f"b{n}", 1, parent=name, **inner)]
    return found


_THREES = [
    one
    for name in ("a", "b")
    for one in (sub(name, preferred="rack"), *(sub(f"{name}{n}", 1, parent=name) for n in (1, 2, 3)))
]
_PLAIN_THREES = [
    one for name in ("a", "b") for one in (sub(name), *(sub(f"{name}{n}", 1, parent=name) for n in (1, 2, 3)))
]
_SIX = {f"{name}{n}": 1 for name in ("a", "b") for n in (1, 2, 3)}
_MULTI = [tree("rack", name="racks"), tree("zone", name="zones")]
_MULTI_NODES = cluster("a/x: n0; a/y: n1; b/x: n2; b/y: n3; c/x: n4; c/y: n5", "rack", "zone", cpu=8)
_MANY = cluster("x/a: n0 n1; x/b: n2 n3; x/c: n4 n5; y/a: n6 n7; y/b: n8 n9; y/c: n10 n11", "zone", "rack", cpu=8)

_TREES = [
    Case(
        "subgroups in a rack each, all in one zone",
        [
            tree("zone", "rack"),
            ZONES,
            running("n0=2"),
            job(sub("a", 1, **_IN_RACK), sub("b", 1, **_IN_RACK), members={"a": 1, "b": 1}, cpu=2, **_IN_ZONE),
        ],
        all_of={"j-*": "n2 n3"},
    ),
    Case(
        "three levels: rack, spine and zone",
        [
            tree(*_LEVELS),
            EIGHT,
            running("n0=2"),
            job(*replicas(outer={"required": "spine"}, inner=_IN_RACK), members=_REPLICAS, cpu=2, **_IN_ZONE),
        ],
        all_of={"j-a1-* j-b1-*": "n4 n5", "j-a2-* j-b2-*": "n6 n7"},
    ),
    Case(
        "preferred at two levels: a rack for each half, all in one zone",
        [
            tree("zone", "rack"),
            LARGE_ZONES,
            running("n0=1"),
            job(*replicas(outer={"preferred": "rack"}, inner={}), members=_REPLICAS, cpu=2, **place("", "zone")),
        ],
        all_of={"j-a1-* j-b1-*": "n2", "j-a2-* j-b2-*": "n3"},
    ),
    Case(
        "a rack required for each half, one zone preferred",
        [
            tree("zone", "rack"),
            LARGE_ZONES,
            running("n0=1"),
            job(*replicas(outer=_IN_RACK, inner={}), members=_REPLICAS, cpu=2, **place("", "zone")),
        ],
        all_of={"j-a1-* j-b1-*": "n2", "j-a2-* j-b2-*": "n3"},
    ),
    Case(
        "a spine for each half, one zone preferred, no level for the leaves",
        [
            tree(*_LEVELS),
            EIGHT,
            running("n0=2"),
            job(*replicas(outer={"required": "spine"}, inner={}), members=_REPLICAS, cpu=2, **place("", "zone")),
        ],
        all_of={"j-a1-* j-b1-*": "n4 n5", "j-a2-* j-b2-*": "n6 n7"},
    ),
    Case(
        "elastic subgroups with a preferred rack: all start",
        [
            tree("rack"),
            cluster("rack1: n0; rack2: n1", "rack", cpu=2),
            job(sub("a", 1, preferred="rack"), sub("b", 1, preferred="rack"), members={"a": 2, "b": 2}),
        ],
        on={"j-*": "n0 n1"},
    ),
    Case(
        "a spine preferred for six pods that need more than one",
        [tree(*_LEVELS), EVEN, job(*_PLAIN_THREES, members=_SIX, **place("", "spine"))],
        on={"j-*": "n0 n1 n2 n3 n4 n5 n6 n7"},
    ),
    Case(
        "a rack preferred for each half: each half in one spine",
        [tree(*_LEVELS), EVEN, job(*_THREES, members=_SIX, **place("", "spine"))],
        together={"j-a1-0 j-a2-0 j-a3-0": "spine", "j-b1-0 j-b2-0 j-b3-0": "spine"},
    ),
    Case(
        "subgroups in different trees",
        [
            _MULTI,
            _MULTI_NODES,
            running("n0=4 n2=4"),
            job(
                sub("r", 3, required="rack", tree="racks"),
                sub("z", 3, required="zone", tree="zones"),
                members={"r": 3, "z": 3},
                cpu=4,
                minSubGroup=2,
            ),
        ],
        all_of={"j-r-*": "n0 n1", "j-z-*": "n2 n4"},
    ),
    Case(
        "a parent in one tree, its children in another",
        [
            _MULTI,
            _MANY,
            running("n0=4 n2=4"),
            job(
                sub("p", required="zone", tree="zones", least=2),
                sub("a", 3, parent="p", required="rack", tree="racks"),
                sub("b", 3, parent="p", required="rack", tree="racks"),
                members={"a": 3, "b": 3},
                cpu=4,
            ),
        ],
        on={"j-a-* j-b-*": "n0 n1 n2 n3"},
        together={"j-a-*": "rack", "j-b-*": "rack"},
    ),
    Case(
        "a lost subgroup waits for the domain of the others",
        [
            tree("rdma", name="rdma"),
            cluster("0: n0 n1; 1: n2 n3", "rdma", cpu=8),
            running("n1=8"),
            job(sub("a", 1), sub("b", 1), members={"b": 1}, cpu=8, minSubGroup=2, **place("rdma", tree="rdma")),
            bound("j", "a", "n0", 8),
        ],
        waits="j-b-0",
    ),
]

CASES = [*_PLACES, *_SUB_GROUPS, *_TREES]
