"""K12 as properties: NonStrict groups that each fit alone all run in the end, in whatever order they arrive."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support import manifests as m
from support.simulation import simulate

KEY = "gang.scheduling.koordinator.sh/"
PRIORITIES = [m.priority_class(f"p{value}", value) for value in range(1, 4)]


@st.composite
def groups(draw: st.DrawFn, room: int) -> list[list[int]]:
    """Sizes of the gangs of some groups, none larger in all than the cluster."""
    found = []
    for _ in range(draw(st.integers(2, 5))):
        gangs = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        while sum(gangs) > room:
            gangs.pop()
        found.append(gangs or [room])
    return found


def members(draw: st.DrawFn, number: int, gangs: list[int]) -> list[m.Obj]:
    """The pods of a group, arriving in any order; `run` bounded, so that all can have their turn."""
    names = [f"default/g{number}x{index}" for index in range(len(gangs))]
    priority = draw(st.sampled_from(["p1", "p2", "p3"]))
    found = []
    for index, count in enumerate(gangs):
        notes = {KEY + "name": f"g{number}x{index}", KEY + "min-available": str(count), KEY + "mode": "NonStrict"}
        notes[KEY + "waiting-time"] = "9000s"
        if len(gangs) > 1:
            notes[KEY + "groups"] = json.dumps(names)
        for member in range(count):
            at, run = draw(st.integers(0, 8)), draw(st.integers(1, 9))
            name = f"g{number}x{index}-{member}"
            found.append(m.pod(name, annotations=notes, at=f"{at}s", run_time=f"{run}s", priority=priority))
    return found


def group_of(line: m.Obj) -> str:
    return str(line["name"]).partition("x")[0]


@given(st.data())
@settings(max_examples=40)
def test_k12_groups_that_fit_alone_all_run_and_none_is_released_without_need(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    shapes = data.draw(groups(sum(sizes)))
    documents: list[Any] = [PRIORITIES]
    documents += [m.node(f"n{i}", cpu, at=f"{data.draw(st.integers(0, 5))}s") for i, cpu in enumerate(sizes)]
    for number, gangs in enumerate(shapes):
        documents += members(data.draw, number, gangs)
    documents.append(m.restart(f"{data.draw(st.integers(0, 12))}s"))
    answer = simulate(*documents)
    assert not answer.data["pending"]
    assert len(answer.lines("succeeded")) == len(answer.all("Pod"))
    releases = {(line["t"], group_of(line)) for line in answer.lines("released")}
    for at, victim in releases:
        started = {group_of(line) for line in answer.lines("bound") if line["t"] == at}
        assert started - {victim}, f"{victim} released at {at} and no gang started"
    assert len(releases) <= len(shapes) ** 2, "they take turns"
