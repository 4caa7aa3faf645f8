"""A live run with faults, under fair share over time, on a real API server: its recordings replay to the same
decisions, and a scheduler that is started again knows what was used (G12, S2)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.control_plane import ControlPlane
from e2e.faults import Chances, FaultProxy
from e2e.history import History
from e2e.objects import PODS
from e2e.running import ENBLOC, GROUPS, NAMESPACE, SCHEDULING, clear, define, group, member, run
from enbloc.gangs import usage_records
from enbloc.gangs.hints import USER
from support.seeds import new_seed

FAIR = {"actions": "enqueue, allocate, backfill", "tiers": [{"plugins": [{"name": "fair"}]}]}
QUEUE = f"{SCHEDULING}/queues/default"


@pytest.fixture(scope="module", autouse=True)
def defined(plane: ControlPlane) -> Iterator[None]:
    define(plane)
    plane.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})  # for the records' key
    plane.add_node("n0", cpu="4")
    yield
    clear(plane)


def _submit(plane: ControlPlane, user: str, name: str, run_time: str) -> None:
    """A gang that needs the whole node."""
    made = group(name, 4)
    made["metadata"]["annotations"] = {USER: user}
    plane.api.create(GROUPS, made)
    for index in range(4):
        plane.api.create(PODS, member(name, index, "1", run_time))


def _replayed(directory: Path) -> dict[str, int]:
    done = subprocess.run([*ENBLOC, "replay-recording", str(directory), "-o", "json"], capture_output=True, text=True)
    found: dict[str, int] = json.loads(done.stdout)
    assert done.returncode == 0, json.dumps(found, indent=1)[:4000]
    return found


def _all_ended(plane: ControlPlane) -> None:
    plane.api.wait(PODS, lambda listed: all(pod["status"]["phase"] == "Succeeded" for pod in listed["items"]), 60)


def test_a_live_run_with_faults_replays_to_the_same_decisions(plane: ControlPlane, tmp_path: Path) -> None:
    seed = new_seed()
    config = tmp_path / "fair.json"
    config.write_text(json.dumps(FAIR))
    first, second = tmp_path / "first", tmp_path / "second"
    with FaultProxy(plane, seed=seed, chances=Chances(each=0.05)) as proxy, History(plane) as history:
        options = (proxy.kubeconfig, "scheduler,controllers", f"--config={config}")
        part = run(plane, "enbloc-recorded", *options, f"--record={first}")
        _submit(plane, "ann", "ann-1", "2s")
        assert history.wait_bound(4, 30), part.tail()
        part.stop()
        _submit(plane, "ann", "ann-2", "300ms")  # the older one: without usage it would be next
        _submit(plane, "ben", "ben-1", "300ms")
        part = run(plane, "enbloc-again", *options, f"--record={second}")
        _all_ended(plane)
        injected = proxy.story()
        part.stop()
    order = list(dict.fromkeys(bound.name.rpartition("-")[0] for bound in history.bound))
    assert order == ["ann-1", "ben-1", "ann-2"], f"seed {seed}\n{injected}"
    assert injected, "nothing went wrong: this has shown nothing"
    annotations = plane.api.get(QUEUE).must()["metadata"]["annotations"]
    record = usage_records.read(annotations[usage_records.ANNOTATION])
    assert record is not None
    assert {"default", "default/ann", "default/ben"} <= set(record.accounts)
    for directory in (first, second):
        found = _replayed(directory)
        assert found["decisions"] > 0
        assert found["differing_cycles"] == 0
