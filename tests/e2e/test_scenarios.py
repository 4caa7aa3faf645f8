"""The scenario files and the examples, unchanged, on a real API server: the same pods are bound, in the same order, and
the same pods are not.

Where many jobs compete from the first instant, whose pods are made first is chance here: then only who is bound is
compared, and not in which order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from e2e.control_plane import ControlPlane, free_port
from e2e.history import History
from e2e.parts import Part
from e2e.playing import Player, expected
from e2e.running import ENBLOC, answers, arguments, define_trees, install
from enbloc.install.rights import CONTROLLERS, SCHEDULER
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from test_scenarios import run as simulate

ROOT = Path(__file__).parent.parent
IN_ANY_ORDER = ("queues",)
LEFT_OUT = {
    "surplus-of-an-elastic-job": "an urgent job and the node it wants come at one instant; here its pods are made a "
    "moment after the node has come, when surplus is on it already, and is evicted",
    "fair-share": "it needs a config of its own, and run times to the second",
    "easy-backfill": "it needs a config of its own, and run times to the second",
    "starving": "how long it can wait counts in seconds that are not scaled",
    "job-with-scheduling": "this API server does not know the field spec.scheduling of a Job, and drops it",
    "jobset-by-owner": "pods are grouped by owner only where the config says so, and no JobSet controller runs here",
    "topology-kubernetes": "this API server does not serve CompositePodGroups (v1alpha3)",
    "starving-gang": "it needs a config of its own, and how long a gang can wait counts in seconds",
}
FILES = sorted([*(ROOT / "scenarios").glob("*.yaml"), *(ROOT.parent / "examples").glob("*.yaml")])


@pytest.fixture(scope="module")
def scheduler(plane: ControlPlane) -> Part:
    """Scheduler and controllers in one process, which each story starts anew; the webhook runs all the time."""
    components = install(plane)
    define_trees(plane)
    for name in (SCHEDULER, CONTROLLERS):
        components[name].stop()
    port = free_port()
    words = [*ENBLOC, *arguments(plane.kubeconfig, port)]
    part = plane.launch("enbloc", words, ready=lambda: answers(port, "/readyz"))
    part.stop()
    return part


@pytest.fixture(scope="module")
def history(plane: ControlPlane) -> Iterator[History]:
    with History(plane) as started:
        yield started


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_on_a_real_api_server_as_in_the_simulation(
    plane: ControlPlane, scheduler: Part, history: History, file: Path
) -> None:
    if file.stem in LEFT_OUT:
        pytest.skip(LEFT_OUT[file.stem])
    result = simulate(file)
    scenario = read_scenario(read_documents([str(file)]))
    wanted = expected(scenario, result)
    player = Player(plane, history, scheduler, scenario, result)
    try:
        found = player.play()
    finally:
        player.clear()
    if file.stem in IN_ANY_ORDER:
        assert sorted(chain(*found.bound)) == sorted(chain(*wanted.bound))
    else:
        assert found.bound == wanted.bound
    assert found.waiting == wanted.waiting
    assert "Traceback" not in scheduler.tail(1_000_000)
