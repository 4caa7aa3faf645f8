"""kube-scheduler: gangs and pods of one PodGroup with a topology key (its integration tests of topology-aware
scheduling). Nodes have 2 cpus, pods request 1 unless the case says otherwise."""

from __future__ import annotations

from typing import Any

from peers.case import Case, cluster, running
from support import manifests as m

Obj = dict[str, Any]
NEAREST_FULL = (
    "T2 takes the domain with the smaller sum of free shares; kube-scheduler prefers the rack that is fuller in "
    "proportion to its size"
)


def racks(text: str) -> list[Obj]:
    """`1/1: n1 n2; 2/1: n3`: rack and zone of each node."""
    return cluster(text, "rack", "zone", cpu=2)


def group(name: str, key: str, minimum: int | None = None) -> Obj:
    """Without a minimum its pods are scheduled one by one."""
    policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
    return m.native_podgroup(name, policy, schedulingConstraints={"topology": [{"key": key}]})


def pods(of: str, names: str, cpu: int = 1, at: str | None = None) -> list[Obj]:
    return [m.pod(name, cpu, schedulingGroup={"podGroupName": of}, at=at) for name in names.split()]


_GANG = [
    Case(
        "one rack has room, another has not beside a running pod",
        [racks("1/1: n1 n2 n3; 2/1: n4 n5; 3/2: n6"), running("n4=2"), group("g", "rack", 3), pods("g", "p1 p2 p3")],
        on={"p1 p2 p3": "n1 n2 n3"},
    ),
    Case(
        "no rack has room for pods of a whole node each",
        [racks("1/1: n1 n2; 2/1: n3; 3/2: n4"), group("g", "rack", 3), pods("g", "p1 p2 p3", 2)],
        waits="p1 p2 p3",
    ),
    Case(
        "the rack is full until a running pod is deleted",
        [
            racks("1/1: n1 n2 n3"),
            running("n1=2", delete_at="9s"),
            running("n3=2"),
            group("g", "rack", 3),
            pods("g", "p1 p2 p3"),
        ],
        on={"p1 p2 p3": "n1 n2 n3"},
    ),
    Case(
        "of two racks with room the smaller one",
        [racks("1/1: n1 n2; 2/2: n3 n4 n5; 3/2: n6"), group("g", "rack", 3), pods("g", "p1 p2 p3")],
        on={"p1 p2 p3": "n1 n2"},
    ),
    Case(
        "of two racks with equal room the larger one, which is fuller",
        [
            racks("1/1: n1 n2; 2/2: n3 n4 n5; 3/2: n6 n7 n8; 4/2: n9"),
            running("n3=2 n8=1"),
            group("g", "rack", 3),
            pods("g", "p1 p2 p3"),
        ],
        on={"p1 p2 p3": "n3 n4 n5"},
        differs=NEAREST_FULL,
    ),
    Case(
        "two gangs, each in the rack that is left",
        [
            racks("1/1: n1 n2 n3; 2/1: n4 n5"),
            group("g", "rack", 3),
            pods("g", "p1 p2 p3", 2),
            group("h", "rack", 2),
            pods("h", "p4 p5", at="5s"),
        ],
        on={"p1 p2 p3": "n1 n2 n3", "p4 p5": "n4 n5"},
    ),
    Case(
        "two gangs in the one rack that is large enough",
        [
            racks("1/1: n1 n2 n3; 2/1: n4"),
            group("g", "rack", 2),
            pods("g", "p1", 2),
            pods("g", "p2"),
            group("h", "rack", 3),
            pods("h", "p3 p4 p5"),
        ],
        on={"p1 p2 p3 p4 p5": "n1 n2 n3"},
    ),
    Case(
        "two gangs with different keys",
        [
            racks("1/1: n1 n2; 2/1: n3; 3/2: n4 n5 n6"),
            group("g", "rack", 3),
            pods("g", "p1 p2 p3", 2),
            group("h", "zone", 3),
            pods("h", "p4 p5 p6", 2, at="5s"),
        ],
        on={"p1 p2 p3": "n4 n5 n6", "p4 p5 p6": "n1 n2 n3"},
    ),
    Case(
        "of two gangs only the first fits",
        [
            racks("1/1: n1 n2"),
            group("g", "rack", 3),
            pods("g", "p1 p2 p3"),
            group("h", "rack", 2),
            pods("h", "p4 p5", at="5s"),
        ],
        on={"p1 p2 p3": "n1 n2"},
        waits="p4 p5",
    ),
    Case(
        "surplus is in the rack of the minimum",
        [racks("1/1: n1 n2; 2/1: n3 n4"), group("g", "rack", 2), pods("g", "p1 p2 p3")],
        together={"p1 p2 p3": "rack"},
    ),
    Case(
        "later surplus stays in the smaller rack, and waits when that is full",
        [
            racks("1/1: n1 n2 n3; 2/1: n4 n5; 3/2: n6"),
            group("g", "rack", 3),
            pods("g", "p1 p2 p3"),
            pods("g", "p4", at="5s"),
            pods("g", "p5", at="9s"),
        ],
        on={"p1 p2 p3 p4": "n4 n5"},
        waits="p5",
    ),
    Case(
        "no pod of equal priority is evicted for a gang",
        [racks("1/1: n1 n2"), running("n2=2"), group("g", "rack", 3), pods("g", "p1 p2 p3")],
        waits="p1 p2 p3",
    ),
]

_ONE_BY_ONE = [
    Case("the only rack", [racks("1/1: n1 n2"), group("g", "rack"), pods("g", "p1 p2 p3")], on={"p1 p2 p3": "n1 n2"}),
    Case(
        "one of three racks",
        [racks("1/1: n1 n2; 2/1: n3 n4; 3/2: n5 n6"), group("g", "rack"), pods("g", "p1 p2 p3")],
        together={"p1 p2 p3": "rack"},
    ),
    Case(
        "what does not fit beside the others waits though another rack is free",
        [racks("1/1: n1; 2/1: n2"), group("g", "rack"), pods("g", "p1 p2 p3")],
        together={"p1 p2": "rack"},
        waits="p3",
    ),
    Case("none fits", [racks("1/1: n1; 2/1: n2"), group("g", "rack"), pods("g", "p1 p2", 3)], waits="p1 p2"),
    Case(
        "one of two fits on no node",
        [racks("1/1: n1; 2/1: n2"), group("g", "rack"), pods("g", "p1", 3), pods("g", "p2")],
        on={"p2": "n1 n2"},
        waits="p1",
    ),
    Case(
        "the smaller of two racks",
        [racks("1/1: n1 n2; 2/2: n3 n4 n5"), group("g", "rack"), pods("g", "p1 p2 p3")],
        on={"p1 p2 p3": "n1 n2"},
    ),
    Case(
        "the fullest of three racks that has room",
        [
            racks("1/1: n1 n2 n3; 2/2: n4 n5 n6; 3/2: n7 n8 n9 n10"),
            running("n1=1 n5=1 n6=1"),
            group("g", "rack"),
            pods("g", "p1 p2 p3"),
        ],
        on={"p1 p2 p3": "n4 n5 n6"},
    ),
    Case(
        "the rack of the first pod, though it is too small for those that come later",
        [
            racks("1/1: n1 n2 n3 n4; 2/1: n5"),
            running("n1=2"),
            group("g", "rack"),
            pods("g", "p1"),
            pods("g", "p2 p3", at="5s"),
        ],
        on={"p1 p2": "n5"},
        waits="p3",
    ),
    Case(
        "two groups, each in a rack",
        [
            racks("1/1: n1 n2 n3; 2/1: n4"),
            group("g", "rack"),
            pods("g", "p1 p2"),
            group("h", "rack"),
            pods("h", "p3 p4", at="5s"),
        ],
        on={"p1 p2": "n4", "p3 p4": "n1 n2 n3"},
    ),
    Case(
        "two groups in the only rack",
        [
            racks("1/1: n1 n2 n3"),
            group("g", "rack"),
            pods("g", "p1 p2"),
            group("h", "rack"),
            pods("h", "p3 p4 p5"),
        ],
        on={"p1 p2 p3 p4 p5": "n1 n2 n3"},
    ),
    Case(
        "two groups with different keys",
        [
            racks("1/1: n1; 2/2: n2 n3; 3/2: n4 n5"),
            group("g", "rack"),
            pods("g", "p1 p2"),
            group("h", "zone"),
            pods("h", "p3 p4 p5", 2, at="5s"),
        ],
        on={"p1 p2": "n1", "p3 p4 p5": "n2 n3 n4 n5"},
    ),
    Case(
        "a group whose rack is full, and another beside it",
        [
            racks("1/1: n1 n2; 2/1: n3"),
            group("g", "rack"),
            pods("g", "p1"),
            pods("g", "p2 p3", at="3s"),
            group("h", "rack"),
            pods("h", "p4 p5 p6", at="6s"),
        ],
        on={"p1 p2": "n3", "p4 p5 p6": "n1 n2"},
        waits="p3",
    ),
    Case(
        "a pod that waits for its rack starts when a pod there is deleted",
        [
            racks("1/1: n1; 2/1: n2"),
            running("n1=1", delete_at="9s"),
            group("g", "rack"),
            pods("g", "p1"),
            pods("g", "p2", at="5s"),
        ],
        on={"p1 p2": "n1"},
    ),
]

CASES = [*_GANG, *_ONE_BY_ONE]
