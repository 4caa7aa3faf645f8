"""A tenant that undoes what we wrote on its own objects, as fast as it likes, does not make us write as fast; and what
was put off is written in the end."""

from __future__ import annotations

import asyncio

import pytest

from enbloc.api.meta import Obj, Ref, name_of
from enbloc.api.writes import Patch, Write
from enbloc.runtime.damping import BURST, EVERY_S, Damper
from support import manifests as m
from support.live_cluster import LiveWorld, in_virtual_time

TIMES, PAUSE_S = 300, 0.05
MOST = BURST + TIMES * PAUSE_S / EVERY_S + 5
"""Fifteen seconds of attack, and a few writes before and after."""


def test_a_burst_then_one_a_while() -> None:
    damper: Damper[str] = Damper()
    sent = [now for now in range(0, 100_000, 100) if damper.admit("a", now / 1000)]
    assert sent[:BURST] == [*range(0, BURST * 100, 100)]
    assert len(sent) == pytest.approx(BURST + 100, abs=2)
    assert damper.admit("b", 0.0)
    assert damper.next_s("a") == pytest.approx(100.0, abs=EVERY_S)
    damper.forget("a")
    assert damper.next_s("a") == 0.0


def attack(objects: list[Obj], ref: Ref, patches: list[Obj], watched: Ref) -> tuple[list[Write], Obj, Obj]:
    """Rewrites an object of `ref` in turn while the control plane runs: the writes that touched `watched` since, and
    `watched` before and long after."""
    found: list[Obj] = []
    writes: list[Write] = []

    async def main() -> None:
        world = LiveWorld(m.node("n1", 8), *objects)
        await world.begin()
        await world.settle()
        await asyncio.sleep(2 * BURST * EVERY_S)
        found.append(world.store.get(watched.kind, watched.namespace, watched.name))
        before = len(world.cluster.writes)
        for number in range(TIMES):
            one = patches[number % len(patches)]
            world.store.patch(ref, one, "status" if "status" in one else "")
            await asyncio.sleep(PAUSE_S)
        await asyncio.sleep(2 * BURST * EVERY_S)
        found.append(world.store.get(watched.kind, watched.namespace, watched.name))
        writes.extend(world.cluster.writes[before:])
        await world.end()

    in_virtual_time(main)
    return [one for one in writes if isinstance(one, Patch) and one.ref == watched], found[0], found[1]


def changed(obj: Obj) -> Obj:
    return {key: value for key, value in obj["metadata"].items() if key == "annotations"} | {"status": obj["status"]}


JOB = m.job("train", m.role("w", 2))
POD = Ref("Pod", "default", "train-w-0")
FORGED = [{"metadata": {"annotations": {"enbloc.dev/decision": f"mine-{n}"}}} for n in range(3)]


def test_s2_forged_marks_are_set_back_a_bounded_number_of_times() -> None:
    writes, before, after = attack([JOB], POD, FORGED, POD)
    assert 1 <= len(writes) <= MOST
    assert changed(after) == changed(before)


def test_v4_the_status_of_a_queue_follows_a_podgroup_whose_phase_is_rewritten() -> None:
    objects = [m.podgroup("g", 1), m.pod("g-0", 1, group="g")]
    group, queue = (
        Ref("PodGroup.scheduling.volcano.sh", "default", "g"),
        Ref("Queue.scheduling.volcano.sh", "", "default"),
    )
    phases = [{"status": {"phase": phase}} for phase in ("Unknown", "Completed", "Running")]
    writes, before, after = attack(objects, group, phases, queue)
    assert 1 <= len(writes) <= MOST
    assert after["status"] == before["status"]
    writes, before, after = attack(objects, group, phases, group)
    assert len(writes) <= 2 * MOST, "our controller's, and the scheduler's"
    assert after["status"]["phase"] == before["status"]["phase"]


GROUP = "PodGroup.scheduling.volcano.sh"
RUNS, WAITS = m.gang("g", 2), m.gang("g", 9)
REWRITTEN: list[tuple[str, list[Obj], str, list[Obj]]] = [
    ("Job.batch.volcano.sh", [JOB], "train", [{"running": 7}, {"running": 9}]),
    (GROUP, RUNS, "g", [{"running": 7}, {"phase": ""}]),
    (GROUP, WAITS, "g", [{"conditions": []}, {"phase": ""}]),
]


@pytest.mark.parametrize(("kind", "objects", "name", "patches"), REWRITTEN)
def test_s1_a_status_that_its_tenant_rewrites_is_written_again_in_the_end(
    kind: str, objects: list[Obj], name: str, patches: list[Obj]
) -> None:
    ref = Ref(kind, "default", name)
    writes, before, after = attack(objects, ref, [{"status": one} for one in patches], ref)
    assert len(writes) <= 2 * MOST
    for key in {key for one in patches for key in one} - {"conditions"}:
        assert after["status"].get(key) == before["status"].get(key)
    assert name_of(after) == name
