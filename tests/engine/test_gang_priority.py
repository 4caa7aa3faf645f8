"""The priority of a gang: its own class's, as far as its pods grant it, else the highest of its pods' (G8, S3)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.core.state.gang_table import follows_pods, granted_priority, may_change_priority
from engine.gang_states import gang, task

CAPPED: dict[str, Any] = {"priority": 50, "at_most_pods": True}
LIMITED: dict[str, Any] = {"priority": 50, "limited_class": "gold"}
GOLD = (50, "gold")


@pytest.mark.parametrize(
    ("spec", "pods", "granted"),
    [
        ({"priority": 50}, [], 50),
        ({"priority": 50}, [(99, "")], 50),
        ({"priority": 0}, [(99, "")], 0),
        ({}, [], 0),
        ({"pods_priority": 7}, [], 7),
        ({"pods_priority": 7}, [(3, ""), (5, "")], 5),
        # S3: the lower of its own and its pods'
        (CAPPED, [(99, "")], 50),
        (CAPPED, [(20, ""), (30, "")], 30),
        ({**CAPPED, "pods_priority": 40}, [], 40),
        ({**CAPPED, "pods_priority": 60}, [], 50),
        # S3: its own class counts only if all its pods carry it
        (LIMITED, [GOLD, GOLD], 50),
        (LIMITED, [GOLD, (10, "")], 50),
        (LIMITED, [(60, "silver")], 60),
        (LIMITED, [(10, "")], 10),
        (LIMITED, [(30, "gold")], 50),  # the class was worth less when the pod was created
        ({**LIMITED, "pods_priority": 50}, [], 50),
        ({**LIMITED, "pods_priority": 40}, [], 40),
        ({**LIMITED, "at_most_pods": True}, [(20, "gold")], 20),
    ],
)
def test_s3_the_priority_that_pods_grant(spec: dict[str, Any], pods: list[tuple[int, str]], granted: int) -> None:
    made = gang(**spec)
    for index, (priority, name) in enumerate(pods):
        task(made, f"p{index}", priority=priority, spec={"priorityClassName": name})
    assert granted_priority(made) == granted


@pytest.mark.parametrize(
    ("spec", "follows"),
    [({}, True), ({"priority": 0}, False), ({"priority": 5}, False), (CAPPED, True), (LIMITED, True)],
)
def test_s3_which_gangs_follow_their_pods(spec: dict[str, Any], follows: bool) -> None:
    assert follows_pods(gang(**spec).spec) is follows


@pytest.mark.parametrize(
    ("spec", "now", "pod", "may_change"),
    [
        ({"priority": 50}, 50, (99, ""), False),
        ({}, 5, (6, ""), True),
        ({}, 5, (5, ""), False),
        ({}, 5, (4, ""), False),
        (CAPPED, 30, (40, ""), True),
        (CAPPED, 50, (99, "silver"), False),  # it has all that its class gives
        (CAPPED, 30, (20, ""), False),
        (LIMITED, 50, (50, ""), True),  # a pod without the class takes it away
        (LIMITED, 50, GOLD, False),
        (LIMITED, 20, (10, ""), False),
        (LIMITED, 20, (30, ""), True),
        ({"limited_class": "gold"}, 20, (10, ""), False),
        ({"limited_class": "gold"}, 20, (30, ""), True),
    ],
)
def test_s3_a_pod_that_comes_may_change_the_priority(
    spec: dict[str, Any], now: int, pod: tuple[int, str], may_change: bool
) -> None:
    made = gang(**spec)
    made.priority = now
    priority, name = pod
    assert may_change_priority(made, task(made, "p", priority=priority, spec={"priorityClassName": name})) is may_change
