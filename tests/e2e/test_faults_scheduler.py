"""Schedulers that are two by mistake, or too late, or whose clock jumps; and a reservation that outlives its maker."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from e2e.api import Json
from e2e.control_plane import ControlPlane
from e2e.faults import Chances, Delay, FaultProxy
from e2e.history import History
from e2e.kubelet import Kubelets
from e2e.objects import PODS
from e2e.parts import Part
from e2e.running import GROUPS, JOBS, NAMESPACE, clear, define, job, make_gang, member, run, wait_completed

AGAIN = [{"event": "PodFailed", "action": "RestartTask"}]
DAY_S = 86_400


@pytest.fixture(scope="module", autouse=True)
def defined(plane: ControlPlane) -> None:
    define(plane)


@pytest.fixture(autouse=True)
def cleared(plane: ControlPlane, defined: None) -> Iterator[None]:
    yield
    clear(plane)


RESERVATION = "enbloc.dev/claim-reserve"


def _states(plane: ControlPlane) -> dict[str, Counter[bool]]:
    """By gang: how many of its pods that have not ended have a node."""
    found: dict[str, Counter[bool]] = {}
    for pod in plane.api.items(PODS):
        gang = pod["metadata"]["annotations"].get("scheduling.k8s.io/group-name", "")
        if pod["status"]["phase"] in ("Pending", "Running"):
            found.setdefault(gang, Counter())[bool(pod["spec"].get("nodeName"))] += 1
    return found


def test_two_schedulers_at_once_by_mistake(plane: ControlPlane) -> None:
    """Both decide about the same gangs and the same room. What one was too late for is refused, by the API server or by
    a kubelet, and tried again; in the end all is as if there had been one."""
    for number in range(3):
        plane.add_node(f"n{number}", cpu="4")
    names = [f"j{number}" for number in range(12)]
    slow = Chances(each=0)
    with (
        FaultProxy(plane, seed=1, chances=slow) as one,
        FaultProxy(plane, seed=2, chances=slow) as other,
        History(plane) as history,
        Kubelets(plane, history) as kubelets,
    ):
        for proxy in (one, other):  # so that they are in each other's way
            proxy.script("POST", "/binding$", Delay(0.15), times=10**9)
        parts = [run(plane, f"enbloc-twin-{number}", proxy.kubeconfig) for number, proxy in enumerate((one, other))]
        for name in names:
            plane.api.create(JOBS, job(name, 4, "500ms", start_delay="300ms", policies=AGAIN, maxRetry=50))
        wait_completed(plane, names, 120)
        plane.api.create(JOBS, job("stays", 4, None, start_delay="300ms", policies=AGAIN, maxRetry=50))
        plane.api.create(JOBS, job("waits", 12, None, policies=AGAIN, maxRetry=50))
        plane.api.wait(f"{JOBS}/stays", lambda one: (one.get("status") or {}).get("running") == 4, 30)
        time.sleep(1)
        states = _states(plane)
        overfull = history.overfull()
        sent = [
            sum(_metric(port_of(part), f'enbloc_binds_total{{result="{result}"}}') for part in parts)
            for result in ("taken", "refused")
        ]
    print(f"Bindings taken and refused: {sent}, of {len(history.bound)} pods; refused by kubelets: {kubelets.refused}")
    # A Binding that the other one has carried out just so counts as taken: the same facts make the same decision.
    assert sum(sent) > len(history.bound), "they were never in each other's way: this has shown nothing"
    assert [counts for gang, counts in states.items()] == [Counter({True: 4})], states
    assert all(seconds < 3 for seconds in overfull.values()), overfull
    for part in parts:
        assert part.pid is not None, part.tail()
        part.stop()
        assert "Traceback" not in part.tail(1_000_000), part.tail()


def test_a_pod_that_the_kubelet_refuses(plane: ControlPlane) -> None:
    """Another scheduler was faster: its pod is where ours are sent to. Ours are made anew, wait, and say why."""
    plane.add_node("n0", cpu="4")
    with FaultProxy(plane) as proxy, History(plane) as history, Kubelets(plane, history) as kubelets:
        proxy.script("POST", "/binding$", Delay(1.0, at_least_s=1.0), times=2)
        part = run(plane, "enbloc-late", proxy.kubeconfig)
        foreign = member("foreign", 0, "3", None, schedulerName="another")
        foreign["metadata"]["annotations"] = {}
        plane.api.create(PODS, foreign)
        plane.api.create(JOBS, job("late", 2, None, start_delay="300ms", policies=AGAIN, maxRetry=50))
        until = time.monotonic() + 20
        while not proxy.injected:
            assert time.monotonic() < until, "nothing is bound"
            time.sleep(0.01)
        plane.api.bind("default", "foreign-0", "n0")
        plane.api.wait(GROUPS, lambda listed: "Insufficient cpu" in str(listed), 30)
        assert len(kubelets.refused) == 1, "there was room for one of them"
        assert not any(pod["spec"].get("nodeName") for pod in plane.api.items(f"{PODS}?labelSelector=!gang"))
        plane.api.delete(f"{PODS}/foreign-0")
        plane.api.wait(f"{JOBS}/late", lambda one: (one.get("status") or {}).get("running") == 2, 30)
        assert part.pid is not None
        part.stop()


# `time` as Python gives it, and seconds from a file on top of it: what a wall clock does that somebody sets.
_JUMPS = """
import os, time
wall_s, wall_ns = time.time, time.time_ns
def more_s():
    with open(os.environ["ENBLOC_TEST_CLOCK"]) as file:
        return int(file.read() or 0)
time.time = lambda: wall_s() + more_s()
time.time_ns = lambda: wall_ns() + more_s() * 10**9
from enbloc.cli.main import main
main()
"""


def port_of(part: Part) -> int:
    return next(int(word.partition("=")[2]) for word in part.command if word.startswith("--port="))


def _metric(port: int, name: str) -> float:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    finally:
        connection.close()
    return next(float(line.split()[-1]) for line in lines if line.startswith(name))


def test_a_wall_clock_that_jumps(plane: ControlPlane, tmp_path: Path) -> None:
    """Neither the lead nor a timer goes by it: a job's time to live of an hour is an hour, whatever is set."""
    plane.add_node("n0", cpu="4")
    clock = tmp_path / "clock"
    clock.write_text("0")
    parts = [
        run(
            plane,
            f"enbloc-jumpy-{number}",
            None,
            "scheduler,controllers",
            "--leader-elect",
            "--lease-namespace=default",
            program=(sys.executable, "-c", _JUMPS),
            env={"ENBLOC_TEST_CLOCK": str(clock)},
        )
        for number in range(2)
    ]
    ports = [port_of(part) for part in parts]
    plane.api.create(JOBS, job("before", 4, "500ms", ttlSecondsAfterFinished=3600))
    wait_completed(plane, ["before"], 40)
    leaders = [_metric(port, "enbloc_leader") for port in ports]
    assert sorted(leaders) == [0, 1]
    for number, jump_s in enumerate((DAY_S, -DAY_S, 30 * DAY_S, 0)):
        clock.write_text(str(jump_s))
        assert abs(_metric(ports[0], "enbloc_clock_skew_seconds") - jump_s) < 5
        plane.api.create(JOBS, job(f"after-{number}", 4, "500ms", ttlSecondsAfterFinished=3600))
        wait_completed(plane, [f"after-{number}"], 40)
        time.sleep(2.5)  # the leader renews, and the other one looks
        assert [_metric(port, "enbloc_leader") for port in ports] == leaders
    assert {one["metadata"]["name"] for one in plane.api.items(JOBS)} == {"before", *(f"after-{n}" for n in range(4))}
    for part in parts:
        assert part.pid is not None, part.tail()
        part.stop()


def test_r7_a_reservation_survives_a_kill(plane: ControlPlane, tmp_path: Path) -> None:
    """Room that is kept for a starving gang is kept by the next process too, which knows it from the API alone."""
    config = tmp_path / "enbloc.yaml"
    config.write_text(
        "actions:\n- enqueue\n- allocate\n- backfill\n- name: reserve\n"
        "  arguments: {starvingJobTimeThreshold: 1, reservedNodePercent: 100}\n"
    )
    answer = plane.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})  # for the records' key
    assert answer.status in (201, 409)
    plane.add_node("n0", cpu="2")
    part = run(plane, "enbloc-reserve", None, "scheduler,controllers", f"--config={config}")
    make_gang(plane, "small", 1, run_time=None)
    plane.api.wait(f"{PODS}/small-0", lambda pod: pod["spec"].get("nodeName"))
    make_gang(plane, "large", 2, run_time=None)
    kept = plane.api.wait(f"{GROUPS}/large", lambda one: one["metadata"].get("annotations", {}).get(RESERVATION))
    assert "n0" in kept["metadata"]["annotations"][RESERVATION]
    plane.api.wait(f"{GROUPS}/large", lambda one: _condition(one, "Reserved") == "True")
    part.kill()
    make_gang(plane, "greedy", 1, run_time=None)  # there is room for it, but for the reservation
    part.start()
    part.wait_ready()
    plane.api.wait(f"{GROUPS}/greedy", lambda one: "reserved" in str(one.get("status")), 30)
    again = plane.api.get(f"{GROUPS}/large").must()
    assert again["metadata"]["annotations"][RESERVATION] == kept["metadata"]["annotations"][RESERVATION]
    plane.api.delete(f"{PODS}/small-0")
    for index in range(2):
        plane.api.wait(f"{PODS}/large-{index}", lambda pod: pod["spec"].get("nodeName") == "n0")
    assert plane.api.get(f"{PODS}/greedy-0").must()["spec"].get("nodeName") is None
    plane.api.wait(f"{GROUPS}/large", lambda one: not one["metadata"].get("annotations", {}).get(RESERVATION))
    part.stop()


def _condition(obj: Json, kind: str) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return next((str(one["status"]) for one in conditions if one["type"] == kind), "")
