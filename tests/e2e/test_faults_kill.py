"""The scheduler is killed with SIGKILL a hundred times, in the midst of binding a stream of gangs (G11)."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from e2e.control_plane import ControlPlane
from e2e.faults import Chances, Delay, FaultProxy
from e2e.forks import Forks
from e2e.history import History
from e2e.objects import PODS
from e2e.running import arguments, clear, define, make_gang
from support.seeds import new_seed

KILLS = int(os.environ.get("ENBLOC_E2E_KILLS", "100"))
SIZE = 4
AHEAD = 5
"""So many gangs wait at any time; there is room for three."""


@pytest.fixture(scope="module", autouse=True)
def defined(plane: ControlPlane) -> Iterator[None]:
    define(plane)
    for number in range(3):
        plane.add_node(f"n{number}", cpu="4")
    yield
    clear(plane)


def _partly(history: History) -> list[str]:
    """Gangs of which some members were bound and some were not."""
    states: dict[str, set[bool]] = {}
    for pod in history.pods.values():
        states.setdefault(pod["metadata"]["labels"]["gang"], set()).add(bool(pod["spec"].get("nodeName")))
    return [gang for gang, found in states.items() if len(found) > 1]


def test_g11_killed_at_a_hundred_instants_between_bindings(plane: ControlPlane) -> None:
    seed = new_seed()
    dice = random.Random(seed)
    began = time.monotonic()
    made = cut = 0
    with (
        FaultProxy(plane, seed=seed, chances=Chances(each=0)) as proxy,
        History(plane) as history,
        Forks(plane.folder / "forks.log") as forks,
    ):
        proxy.script("POST", r"/binding$", Delay(0.03), times=10**9)
        words = arguments(proxy.kubeconfig, 0, "scheduler")
        for kill in range(KILLS):
            bound = len(history.bound)
            while made * SIZE < bound + AHEAD * SIZE:
                make_gang(plane, f"g{made}", SIZE, run_time="300ms")
                made += 1
            forks.start(words)
            moved = history.wait_bound(len(history.bound) + dice.randint(1, SIZE + 2), 30)
            assert moved, f"seed {seed}, kill {kill}: nothing is bound any more; {_partly(history)}\n{forks.tail()}"
            time.sleep(dice.uniform(0, 0.03))
            code = forks.kill()
            assert code == -9, f"seed {seed}, kill {kill}: ended by itself with {code}\n{forks.tail()}"
            time.sleep(0.02)
            cut += bool(_partly(history))
        killed_s = time.monotonic() - began
        forks.start(words)
        plane.api.wait(PODS, lambda listed: all(pod["status"]["phase"] == "Succeeded" for pod in listed["items"]), 60)
        pods = plane.api.items(PODS)
        names = Counter(one.name for one in history.bound)
        lost = [event.name for event in history.events if event.type == "DELETED"]
        overfull = history.overfull()
    print(f"{KILLS} kills in {killed_s:.0f} s, {cut} of them left a gang partly bound; {made} gangs of {SIZE}")
    assert cut >= KILLS // 10, "hardly any kill hit a gang half-way: this has shown nothing"
    assert len(pods) == made * SIZE, "none is lost"
    assert lost == []
    assert set(names.values()) == {1}, "none was bound twice"
    assert len(names) == made * SIZE
    assert overfull == {}
