"""What goes wrong between us and an API server while jobs and gangs come and go: nothing is lost, nothing doubled."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from e2e.api import Json
from e2e.control_plane import ControlPlane
from e2e.faults import Chances, Cut, Expire, Fault, FaultProxy, Hang, Refuse, Reset
from e2e.history import History
from e2e.objects import PODS
from e2e.parts import Part
from e2e.running import GROUPS, JOBS, clear, define, group, job, make_gang, member, phase_of, run, wait_completed
from support.seeds import new_seed

NODES = 2
CPUS = 4


@pytest.fixture(scope="module", autouse=True)
def defined(plane: ControlPlane) -> None:
    define(plane)


@pytest.fixture(autouse=True)
def cleared(plane: ControlPlane, defined: None) -> Iterator[None]:
    for number in range(NODES):
        plane.add_node(f"n{number}", cpu=str(CPUS))
    yield
    clear(plane)


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[FaultProxy]:
    with FaultProxy(plane) as started:
        yield started


def _end(part: Part) -> None:
    """It ended as it should, and had no bug on the way."""
    assert part.pid is not None, f"it ended by itself: {part.tail()}"
    part.stop()
    assert "Traceback" not in part.tail(1_000_000), part.tail()


def _check(plane: ControlPlane, history: History, names: list[str], size: int) -> None:
    """Every job was done by as many pods as it has, each of which ran once."""
    made = Counter(event.uid for event in history.events if event.type == "ADDED")
    assert set(made.values()) == {1}
    bound = Counter(one.name for one in history.bound)
    assert bound == {f"{name}-worker-{index}": 1 for name in names for index in range(size)}
    assert history.overfull() == {}


def _settled(plane: ControlPlane, gang: str, size: int, within_s: float = 30) -> None:
    """All members were bound."""
    plane.api.wait(
        f"{PODS}?labelSelector=gang%3D{gang}",
        lambda listed: sum(bool(pod["spec"].get("nodeName")) for pod in listed["items"]) == size,
        within_s,
    )


def test_api_server_killed_and_started_again(plane: ControlPlane) -> None:
    part = run(plane, "enbloc-killed-api")
    names = [f"k{number}" for number in range(5)]
    with History(plane) as history:
        for name in names:
            plane.api.create(JOBS, job(name, 4, "1s"))
        assert history.wait_bound(3, 20)
        plane.apiserver.kill()
        time.sleep(3)
        plane.apiserver.start()
        plane.apiserver.wait_ready()
        wait_completed(plane, names, 90)
        _check(plane, history, names, 4)
    _end(part)


def test_etcd_paused_and_resumed(plane: ControlPlane) -> None:
    """The API server holds its connections and answers nobody."""
    part = run(plane, "enbloc-paused-etcd")
    names = [f"p{number}" for number in range(5)]
    with History(plane) as history:
        for name in names:
            plane.api.create(JOBS, job(name, 4, "1s"))
        assert history.wait_bound(3, 20)
        plane.etcd.pause()
        time.sleep(7)  # more than one attempt, less than all patience
        plane.etcd.resume()
        wait_completed(plane, names, 90)
        _check(plane, history, names, 4)
    _end(part)


def test_watches_cut_in_the_middle_of_a_line(plane: ControlPlane, proxy: FaultProxy) -> None:
    for lines in range(6):
        proxy.script("WATCH", "/pods$", Cut(lines % 4), nth=lines + 1)
        proxy.script("WATCH", "/jobs$", Cut(lines % 3), nth=lines + 1)
        proxy.script("WATCH", "/podgroups$", Cut(lines % 2), nth=lines + 1)
    part = run(plane, "enbloc-cut", proxy.kubeconfig)
    names = [f"c{number}" for number in range(4)]
    with History(plane) as history:
        for name in names:
            plane.api.create(JOBS, job(name, 4, "500ms"))
        wait_completed(plane, names, 60)
        _check(plane, history, names, 4)
    assert len(proxy.injected) >= 6, proxy.story()
    _end(part)


@pytest.mark.parametrize(
    "fault",
    [Refuse(409), Refuse(410), Refuse(429, 1), Refuse(500, when="after"), Hang(6, "after"), Reset("after")],
    ids=["409", "410", "429", "500-done", "time-out-done", "reset-done"],
)
def test_each_fault_on_each_verb(plane: ControlPlane, proxy: FaultProxy, fault: Fault) -> None:
    """The second request of each verb (of those on which it makes sense) meets with it, and the first that lists."""
    part = run(plane, "enbloc-each", proxy.kubeconfig)
    for path in ("/pods$", "/binding$", "/podgroups$", "/events$"):
        proxy.script("POST", path, fault, nth=2)
    for path in ("/jobs/[^/]+/status$", "/podgroups/[^/]+/status$", "/podgroups/[^/]+$", "/pods/[^/]+/status$"):
        proxy.script("PATCH", path, fault, nth=2)
    proxy.script("DELETE", "/pods/", fault)
    proxy.script("GET", "/pods/[^/]+$", fault)
    if isinstance(fault, Refuse):
        proxy.script("WATCH", ".", fault, times=3)
    with History(plane) as history:
        for name in ("one", "two"):
            plane.api.create(JOBS, job(name, 3, "500ms"))
        wait_completed(plane, ("one", "two"), 60)
        _check(plane, history, ["one", "two"], 3)
    assert len(proxy.injected) >= 3, proxy.story()
    _end(part)


@pytest.mark.parametrize("number", range(3))
def test_faults_by_chance_on_any_verb(plane: ControlPlane, number: int) -> None:
    seed = new_seed() + number
    names = [f"s{index}" for index in range(4)]
    with FaultProxy(plane, seed=seed, chances=Chances(each=0.12)) as proxy, History(plane) as history:
        part = run(plane, f"enbloc-chance-{number}", proxy.kubeconfig)
        for name in names:
            plane.api.create(JOBS, job(name, 4, "500ms"))
        try:
            wait_completed(plane, names, 90)
            proxy.calm()
            make_gang(plane, "after", 4)
            _settled(plane, "after", 4)
        except AssertionError:
            print(proxy.story())
            raise
        bound = [one for one in history.bound if not one.name.startswith("after")]
        # A job whose pods took too long may have made some anew. Nobody is bound twice, or where there is no room.
        assert set(Counter(one.uid for one in bound).values()) == {1}
        assert {one.name for one in bound} == {f"{name}-worker-{index}" for name in names for index in range(4)}
        assert history.overfull() == {}
        print(f"{len(proxy.injected)} faults")
        _end(part)


def test_objects_made_anew_under_the_same_name(plane: ControlPlane) -> None:
    """Pods, groups and jobs are deleted and made anew, with another UID, at any moment; the last ones run."""
    seed = new_seed()
    dice = random.Random(seed)
    part = run(plane, "enbloc-anew")
    names = ["a", "b", "c"]

    def again(path: str, name: str, obj: Json) -> None:
        plane.api.request("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        until = time.monotonic() + 20
        while (answer := plane.api.request("POST", path, obj)).status == 409:
            assert time.monotonic() < until, answer
            time.sleep(0.01)
        answer.must()

    with History(plane) as history:
        for name in names:
            make_gang(plane, name, 3, run_time=None)
        plane.api.create(JOBS, job("work", 2, None))
        for _ in range(60):
            name = dice.choice(names)
            what = dice.choice(("pod", "pod", "pod", "group", "job"))
            if what == "pod":
                index = dice.randrange(3)
                again(PODS, f"{name}-{index}", member(name, index, run_time=None))
            elif what == "group":
                again(GROUPS, name, group(name, 3))
            else:
                again(JOBS, "work", job("work", 2, None))
            time.sleep(dice.choice((0, 0, 0.01, 0.05, 0.2)))
        plane.add_node("n2", cpu=str(CPUS))  # now there is room for all, and nothing of the past is in its way
        time.sleep(1)
        for name in names:
            for index in range(3):  # kwok deletes a terminating pod by its name, and so may have deleted the next one
                plane.api.request("POST", PODS, member(name, index, run_time=None))
            _settled(plane, name, 3)
        plane.api.wait(f"{JOBS}/work", lambda one: phase_of(one) == "Running", 40)
        assert history.overfull() == {}
    _end(part)


def test_watch_expires_and_is_listed_anew(plane: ControlPlane, proxy: FaultProxy) -> None:
    for at in range(6):
        proxy.script("WATCH", "/pods$", Expire(at % 3), nth=at + 1)
    part = run(plane, "enbloc-expired", proxy.kubeconfig)
    with History(plane) as history:
        plane.api.create(JOBS, job("old", 4, "500ms"))
        wait_completed(plane, ["old"], 40)
        _check(plane, history, ["old"], 4)
    assert proxy.injected
    _end(part)
