"""T1 x K6: gangs of one group, each of which must be in one rack, against a search through all assignments."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from support import manifests as m
from support import racks as r
from support.simulation import NO_EVICTIONS, simulate

KOORDINATOR = "gang.scheduling.koordinator.sh/"
Racks = Mapping[str, list[int]]


class Gang(NamedTuple):
    name: str
    size: int
    cpu: int
    in_one_rack: bool


def possible(racks: Racks, gangs: Sequence[Gang]) -> bool:
    """Whether all gangs fit together, those that must be in one rack each in a rack."""
    nodes = [(rack, size) for rack, sizes in racks.items() for size in sizes]
    bound = [gang.name for gang in gangs if gang.in_one_rack]
    for choice in itertools.product(racks, repeat=len(bound)):
        where = dict(zip(bound, choice, strict=True))
        tasks = [(gang.cpu, where.get(gang.name)) for gang in gangs for _ in range(gang.size)]
        if _fits(sorted(tasks, key=lambda task: (task[1] is None, -task[0])), nodes):
            return True
    return False


def _fits(tasks: Sequence[tuple[int, str | None]], nodes: Sequence[tuple[str, int]]) -> bool:
    if not tasks:
        return True
    (cpu, rack), *rest = tasks
    for n, (of, free) in enumerate(nodes):
        if free < cpu or rack not in (None, of) or (of, free) in nodes[:n]:
            continue
        if _fits(rest, [*nodes[:n], (of, free - cpu), *nodes[n + 1 :]]):
            return True
    return False


def pods(gangs: Sequence[Gang], mode: str) -> list[dict[str, Any]]:
    group = json.dumps([f"default/{gang.name}" for gang in gangs])
    found = []
    for gang in gangs:
        annotations = {"name": gang.name, "min-available": str(gang.size), "mode": mode, "groups": group}
        of_gang = {f"{KOORDINATOR}{key}": value for key, value in annotations.items()}
        if gang.in_one_rack:
            of_gang |= r.gather(RackLayer="MustGather")
        for n in range(gang.size):
            pod = m.pod(f"{gang.name}-{n}", gang.cpu)
            pod["metadata"].setdefault("annotations", {}).update(of_gang)
            found.append(pod)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_t1_k6_a_group_over_racks_starts_exactly_if_all_fit(seed: int) -> None:
    rng = random.Random(seed)
    racks = {f"r{n}": [rng.choice([2, 3, 4, 6]) for _ in range(rng.randint(1, 3))] for n in range(rng.randint(2, 3))}
    gangs = [Gang(f"g{n}", rng.randint(1, 4), rng.randint(1, 3), rng.random() < 0.7) for n in range(rng.randint(2, 3))]
    mode = rng.choice(["Strict", "Strict", "NonStrict"])
    layers = r.network_topology(("RackLayer", r.RACK))
    answer = simulate(r.nodes(racks), [layers], pods(gangs, mode), config=NO_EVICTIONS)
    bound = answer.bound()
    assert (len(bound) == sum(gang.size for gang in gangs)) is possible(racks, gangs)
    if mode == "Strict" and not possible(racks, gangs):
        assert not bound
    for gang in gangs:
        nodes = answer.nodes(gang.name)
        assert len(nodes) in (0, gang.size)
        if gang.in_one_rack and nodes:
            assert len(r.racks_of(nodes)) == 1
