"""S8: trees have a bound on depth and on vertices. What is beyond it is refused at admission, and held without it."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.kinds import kind_id
from enbloc.gangs.gang_tree import DEEPEST, MOST_VERTICES
from peers.kai import job, sub
from peers.kubernetes_composite import composite, group
from support import manifests as m
from support.direct_scheduler import knowing
from support.simulation import lint

Obj = dict[str, Any]


def kai_chain(depth: int) -> list[Obj]:
    listed = [sub(f"s{n}", parent=f"s{n - 1}" if n else "") for n in range(depth)]
    return job(*listed, members={f"s{depth - 1}": 1}, minSubGroup=1)


def composite_chain(depth: int) -> list[Obj]:
    """`depth` levels below `c0`."""
    chain = [composite(f"c{n}", 1, parent=f"c{n - 1}" if n else "") for n in range(depth)]
    return [*chain, *group("g", f"c{depth - 1}", "p", 1)]


def composite_fan(count: int) -> list[Obj]:
    return [
        composite("c0", 1),
        *(one for n in range(count) for one in group(f"g{n}", "c0", "", 1)),
        *group("g", "c0", "p", 1),
    ]


def policies(count: int, needed: int = 0) -> list[Obj]:
    found = m.gang("v", 1)
    policy = {"subGroupSize": 1, "minSubGroups": needed}
    listed = [{**policy, "name": f"s{n}", "labelSelector": {"matchLabels": {"s": f"{n}"}}} for n in range(count)]
    found[0]["spec"]["subGroupPolicy"] = listed
    return found


def queues(depth: int) -> list[Obj]:
    chain = [m.queue(f"q{n}", parent=f"q{n - 1}" if n else "root") for n in range(depth)]
    return [*chain, m.podgroup("g", 1, queue=f"q{depth - 1}"), m.pod("p", group="g")]


BEYOND = {
    "kai depth": (kai_chain(500), f"nested in more than {DEEPEST} levels"),
    "kai depth by one": (kai_chain(DEEPEST + 1), f"nested in more than {DEEPEST} levels"),
    "kai width": (job(*(sub(f"s{n}") for n in range(5_000)), members={"s0": 1}), "5,000 subGroups: a gang has at most"),
    "composite depth": (composite_chain(500), f"below more than {DEEPEST} "),
    "composite depth by one": (composite_chain(DEEPEST + 1), f"nested in more than {DEEPEST} levels"),
    "composite width": (composite_fan(MOST_VERTICES), "4,097 groups below CompositePodGroup c0: a gang has at most"),
    "policies": (policies(5_000), "5,000 policies and sub-groups"),
    "sub-groups needed": (policies(1, 2**31 - 1), "2,147,483,648 policies and sub-groups"),
    "queue depth": (queues(100), f"queue q99 is more than {DEEPEST} levels below the root"),
    "queue depth by one": (queues(DEEPEST + 1), f"is more than {DEEPEST} levels below the root"),
}  # fmt: skip
WITHIN = {
    "kai depth": kai_chain(DEEPEST),
    "kai width": job(*(sub(f"s{n}", 0) for n in range(1, 200)), sub("s0", 1), members={"s0": 1}),
    "composite depth": composite_chain(DEEPEST),
    "composite width": composite_fan(200),
    "policies": policies(200, 0),
    "queue depth": queues(DEEPEST),
}


@pytest.mark.parametrize("name", BEYOND)
def test_s8_a_tree_beyond_the_bounds_holds_its_gang_alone(name: str) -> None:
    objects, why = BEYOND[name]
    direct = knowing(m.node("n", 8), *m.gang("other", 2), *objects)
    list(direct.scheduler.cycle(0))
    tasks = direct.engine.state.tasks.values()
    assert {task.name for task in tasks if task.node} == {"other-0", "other-1"}
    [gang] = {task.gang.key: task.gang for task in tasks if not task.node}.values()
    found = direct.engine.parts.obstacles.of(gang)
    assert found is not None
    assert why in found.message


@pytest.mark.parametrize("name", WITHIN)
def test_s8_a_tree_within_the_bounds_starts(name: str) -> None:
    direct = knowing(m.node("n", 8), *WITHIN[name])
    list(direct.scheduler.cycle(0))
    assert [task.node for task in direct.engine.state.tasks.values()] == ["n"]


@pytest.mark.parametrize("name", [name for name in BEYOND if name != "composite width"])
def test_s8_admission_refuses_a_tree_beyond_the_bounds(name: str) -> None:
    """That of many PodGroups is none of one object."""
    objects, _ = BEYOND[name]
    linted = lint([one for one in objects if kind_id(one) != "Pod"])
    assert any("at most" in text or "more than" in text for text in map(str, linted.faults))


@pytest.mark.parametrize("name", WITHIN)
def test_s8_admission_lets_a_tree_within_the_bounds_in(name: str) -> None:
    assert lint([one for one in WITHIN[name] if kind_id(one) != "Pod"]).faults == []
