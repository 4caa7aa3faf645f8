"""G11, G7: the pod with the commit mark goes while no scheduler runs. What was committed once is never evicted, and
keeps no later wave waiting."""

from __future__ import annotations

import pytest

from rules.test_g11_cut_off import Wire, once_at
from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

COMMITTED = "enbloc.dev/committed"


def scaled(*replicas: int, run_time: str = "500s") -> m.Obj:
    """A job of a chain of roles, each of which depends on the one before it."""
    names = "abc"[: len(replicas)]
    roles = [
        m.role(name, count, cpu=2 if name == names[-1] else 1, run_time=run_time if name == "a" else "500s")
        | ({"dependsOn": {"name": [names[number - 1]]}} if number else {})
        for number, (name, count) in enumerate(zip(names, replicas, strict=True))
    ]
    return m.job("j", *roles)


def to(at: str, made: m.Obj) -> m.Obj:
    return m.patch(at, "Job", "j", spec={"tasks": made["spec"]["tasks"], "minAvailable": None})


@pytest.mark.parametrize("run_time", ["5s", "500s"])
def test_g11_a_wave_that_is_bound_needs_no_mark(run_time: str) -> None:
    """The first wave is scaled down in the instant of a restart: the pod with its mark goes, and the wave is complete
    without it. The second one waits for its room."""
    before, after = scaled(2, 1, run_time=run_time), scaled(1, 1, run_time=run_time)
    answer = simulate(m.node("n", 3), before, to("5s", after), m.restart("5s"), until="200s")
    assert answer.evicted() == []
    assert answer.at("j-b-0") == 5.0


def test_g11_a_wave_in_the_middle_that_is_bound_needs_no_mark() -> None:
    answer = simulate(
        m.node("n", 4), scaled(1, 3, 1), to("5s", scaled(1, 2, 1)), m.restart("5s"), m.node("late", 2, at="90s"),
        until="200s",
    )  # fmt: skip
    assert answer.evicted() == []
    assert answer.at("j-c-0") == 90.0


def carrier(answer: Answer, prefix: str) -> str:
    notes = {one["metadata"]["name"]: one["metadata"].get("annotations") or {} for one in answer.all("Pod")}
    return next(name for name in sorted(notes, reverse=True) if COMMITTED in notes[name] and name.startswith(prefix))


GANGS = {
    "volcano": [m.podgroup("g", 2), *m.pods(3, "g-", 2, group="g")],
    "koordinator": m.koordinator_gang("g", 3, 2, 2),
    "kubernetes": [m.native_podgroup("g", {"gang": {"minCount": 2}}), *m.native_pods("g", 3, cpu=2)],
    "scheduling-spec": [m.CRDJOB_DEFINITION, m.crdjob(), m.scheduling_spec("c", 2), *m.owned(*m.pods(3, "g-", 2))],
    "group": [
        *m.koordinator_gang("g", 3, 2, 2, groups=["default/h"]), *m.koordinator_gang("h", 1, 1, 0, groups=["default/g"])
    ],
}  # fmt: skip


@pytest.mark.parametrize("gang", GANGS)
def test_g11_surplus_that_waits_takes_no_lost_members_place(gang: str) -> None:
    """Two of three run and the third waits as surplus. The one with the mark is deleted while no scheduler runs: the
    third existed when they started, and was no part of that decision."""
    nodes = [m.node("n", 4), m.node("late", 1, at="2s")]
    first = simulate(nodes, GANGS[gang], until="1s")
    pods = sorted(first.bound("g-"))
    marked = carrier(first, "")
    lost = marked if marked in pods else pods[-1]
    fill = m.pod("fill", 2, at="5s", nodeName="n")
    answer = simulate(nodes, GANGS[gang], m.step("5s", "delete", "Pod", lost), fill, m.restart("5s"), until="200s")
    assert answer.evicted() == []


def test_g11_a_gang_that_was_cut_off_beside_surplus_is_evicted_all_the_same() -> None:
    wire = Wire(kill=once_at(1), aftermath=(m.pod("fill", 2, nodeName="n"),))
    gang = m.koordinator_gang("g", 4, 2, 2)
    answer = simulate(m.node("n", 4), gang, plane=wire.connect, until="200s")
    assert [at for at, _ in answer.evicted("g-")] == [60.0]
