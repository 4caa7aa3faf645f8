"""T1, T2, T6 against brute force: every assignment of the pods of a small gang to the nodes of a small tree is tried.

The brute force knows the rules and nothing of the engine: which assignments satisfy what is required, and which of them
is the first in the order of T2.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import manifests as m
from support import racks as r
from support.simulation import NO_EVICTIONS, simulate

LEVELS = (r.BLOCK, r.RACK)


class Node(NamedTuple):
    name: str
    cpu: int
    block: str
    rack: str

    def domain(self, level: str) -> tuple[str, ...]:
        return (self.block,) if level == r.BLOCK else (self.block, self.rack)


class Case(NamedTuple):
    nodes: tuple[Node, ...]
    cpus: tuple[int, ...]
    """What each pod of the gang requests."""
    required: str
    preferred: str


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes = []
    for number in range(draw(st.integers(2, 6))):
        block, rack = draw(st.sampled_from(["x", "y"])), draw(st.sampled_from(["1", "2"]))
        nodes.append(Node(f"n{number}", draw(st.integers(1, 4)), block, rack))
    kinds = draw(st.sampled_from([(1,), (2,), (1, 2), (1, 3), (2, 3)]))
    cpus = tuple(draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=5)))
    required = draw(st.sampled_from(["", *LEVELS]))
    preferred = draw(st.sampled_from(["", *LEVELS])) if required else draw(st.sampled_from(LEVELS))
    return Case(tuple(nodes), cpus, required, preferred)


Key = tuple[Any, ...]


def key_of(case: Case, where: tuple[int, ...]) -> Key | None:
    """The place of an assignment in the order of T2; `None`: it is not allowed."""
    used = Counter[int]()
    for cpu, node in zip(case.cpus, where, strict=True):
        used[node] += cpu
    if any(amount > case.nodes[node].cpu for node, amount in used.items()):
        return None
    chosen = [case.nodes[node] for node in used]
    if case.required and len({node.domain(case.required) for node in chosen}) > 1:
        return None
    level = case.preferred or case.required
    if case.required == r.RACK:
        level = r.RACK  # a preferred level above the required one has no effect
    levels = LEVELS[LEVELS.index(level) :: -1]
    common = next((n for n, one in enumerate(levels) if len({node.domain(one) for node in chosen}) == 1), len(levels))
    domains = {node.domain(level) for node in chosen}
    sized = sorted(((room(case, level, one), -shares(case, level, one), one) for one in domains), reverse=True)
    sizes, free, names = zip(*sized, strict=True)
    return common, len(domains), sizes, tuple(-one for one in free), names


def shares(case: Case, level: str, domain: tuple[str, ...]) -> int:
    """The free shares of the nodes of a domain: of an empty node all."""
    return sum(node.domain(level) == domain for node in case.nodes)


def room(case: Case, level: str, domain: tuple[str, ...]) -> int:
    inside = [node for node in case.nodes if node.domain(level) == domain]
    return sum(node.cpu // cpu for cpu in set(case.cpus) for node in inside)


def best_of(case: Case) -> Key | None:
    keys = (key_of(case, where) for where in product(range(len(case.nodes)), repeat=len(case.cpus)))
    return min((key for key in keys if key is not None), default=None)


def documents(case: Case) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [r.topology("dc", *LEVELS, group=r.KAI)]
    found += [m.node(node.name, node.cpu, labels={r.BLOCK: node.block, r.RACK: node.rack}) for node in case.nodes]
    place = {"topology": "dc", "requiredTopologyLevel": case.required, "preferredTopologyLevel": case.preferred}
    found.append(
        m.kai_podgroup("g", len(case.cpus), topologyConstraint={key: text for key, text in place.items() if text})
    )
    for number, cpu in enumerate(case.cpus):
        [pod] = m.kai_pods("g", 1, cpu=cpu)
        pod["metadata"]["name"] = f"g-{number}"
        found.append(pod)
    return found


@settings(max_examples=120, deadline=None)
@given(cases())
def test_t2_t6_a_gang_is_placed_as_brute_force_says(case: Case) -> None:
    answer = simulate(documents(case), config=NO_EVICTIONS)
    where = answer.nodes("g-")
    best = best_of(case)
    if best is None:
        assert not where
        return
    assert len(where) == len(case.cpus), answer.why("default/g")
    rows = {node.name: number for number, node in enumerate(case.nodes)}
    found = key_of(case, tuple(rows[where[f"g-{n}"]] for n in range(len(case.cpus))))
    assert found == best


def random_load(dice: random.Random) -> list[dict[str, Any]]:
    """Gangs with and without a required level come and end, on two blocks of two racks."""
    found = [*r.nodes({"1": 1, "2": 2}, "x"), *r.nodes({"3": 1, "4": [2, 4]}, "y")]
    for number in range(dice.randrange(3, 9)):
        count, level = dice.randrange(1, 10), dice.choice(["", r.RACK, r.BLOCK])
        fields = {"at": f"{dice.randrange(20)}s", "run_time": f"{dice.randrange(5, 30)}s"}
        gang = r.native(f"g{number}", count, dice.randrange(1, count + 1), key=level or r.RACK, **fields)
        if not level:
            del gang[0]["spec"]["schedulingConstraints"]
        found += gang
    return found


@pytest.mark.parametrize("seed", range(30))
def test_t8_i5_a_restart_changes_no_later_decision(seed: int) -> None:
    dice = random.Random(seed)
    load = random_load(dice)
    restarted = simulate(load, m.restart(f"{dice.randrange(40)}s"))
    assert restarted.bound() == simulate(load).bound()


@pytest.mark.parametrize("seed", range(100, 120))
def test_t1_members_that_run_at_the_same_time_are_in_one_domain(seed: int) -> None:
    load = random_load(random.Random(seed))
    labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in load if one["kind"] == "Node"}
    ends = {one["metadata"]["name"]: one["metadata"]["annotations"] for one in load if one["kind"] == "Pod"}
    answer = simulate(load)
    for group in (one for one in load if one["kind"] == "PodGroup" and "schedulingConstraints" in one["spec"]):
        [wanted] = group["spec"]["schedulingConstraints"]["topology"]
        bound = answer.bound(f"{group['metadata']['name']}-")
        for name, (at, node) in bound.items():
            end = at + int(ends[name]["sim.enbloc.dev/run-time"].removesuffix("s"))
            beside = {other for since, other in bound.values() if at <= since < end}
            assert {labels[other][wanted["key"]] for other in beside} == {labels[node][wanted["key"]]}
