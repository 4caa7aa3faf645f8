"""Shadow mode: what would have been decided, when, and what half-started gangs cost; and that nothing is written."""

from __future__ import annotations

import asyncio
from typing import Any

from click.testing import CliRunner
from tests.support import manifests as m

import enbloc
from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent
from enbloc.cli import shadow as shadow_cli
from enbloc.config import parse
from enbloc.runtime.shadow import Shadow
from enbloc.sim.clock import EPOCH
from enbloc.units import SECOND

KINDS = {"Node": "Node", "Pod": "Pod", "PodGroup": "PodGroup.scheduling.sigs.k8s.io"}


class World:
    """A cluster that another scheduler runs, as a shadow sees it."""

    def __init__(self, *objects: Obj) -> None:
        self.shadow = Shadow(parse(None), frozenset({"enbloc"}))
        self.pods: dict[str, Obj] = {}
        self.shadow.observe(WatchEvent("ADDED", "Queue.scheduling.volcano.sh", _queue()))
        for number, obj in enumerate(objects):
            obj["metadata"].setdefault("uid", f"u-{number}")
            obj["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
            obj["metadata"].setdefault("namespace", "default")
            if obj["kind"] == "Pod":
                self.pods[obj["metadata"]["name"]] = obj
            self.shadow.observe(WatchEvent("ADDED", KINDS[obj["kind"]], obj))

    def cycle(self, at_s: float) -> None:
        self.shadow.cycle(EPOCH + round(at_s * SECOND))

    def bind(self, pod: str, node: str) -> None:
        old = self.pods[pod]
        status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        new = {**old, "spec": {**old["spec"], "nodeName": node}, "status": status}
        self.pods[pod] = new
        self.shadow.observe(WatchEvent("MODIFIED", "Pod", new))

    def report(self, at_s: float) -> dict[str, Any]:
        return self.shadow.report(EPOCH + round(at_s * SECOND))


def _queue() -> Obj:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default", "uid": "q"},
        "spec": {"weight": 1},
        "status": {"state": "Open"},
    }


def _gang(name: str, pods: int, cpu: int = 1) -> list[Obj]:
    return [m.sigs_podgroup(name, pods), *m.labelled_pods(name, pods, cpu=cpu)]


def test_a_gang_that_starts_late_would_have_started_earlier() -> None:
    world = World(m.node("n1", 4), *_gang("g", 2))
    names = list(world.pods)
    world.cycle(0)
    world.cycle(10)
    for name in names:
        world.bind(name, "n1")
    world.cycle(30)
    report = world.report(40)
    [gang] = report["gangs"]
    assert (gang["gang"], gang["would_start"], gang["started"], gang["difference"]) == ("default/g", 0.0, 30.0, -30.0)
    assert (report["earlier"], report["later"], report["half_started"]) == (1, 0, 0)


def test_room_is_lost_to_half_started_gangs() -> None:
    """Two gangs of 3 on 4 CPUs, each of which got 2: the seed's deadlock. Here one would have run."""
    world = World(m.node("n1", 4), *_gang("a", 3), *_gang("b", 3))
    world.cycle(0)
    for name in ("a-0", "a-1", "b-0", "b-1"):
        world.bind(name, "n1")
    world.cycle(10)
    world.cycle(60)
    report = world.report(110)
    assert report["half_started"] == 2
    assert report["lost_to_half_started"] == {"cpu": 4 * 100.0}
    assert report["only_here"] == 1
    assert [gang["half_started_s"] for gang in report["gangs"]] == [100.0, 100.0]
    [waits] = [gang for gang in report["gangs"] if gang["would_start"] is None]
    assert "cpu" in waits["why"]


def test_gangs_that_ran_before_are_left_out() -> None:
    world = World(m.node("n1", 2), *_gang("old", 2))
    for name in list(world.pods):
        world.bind(name, "n1")
    world.cycle(0)
    assert world.report(1)["gangs"] == []


def test_the_command_writes_nothing() -> None:
    """On a running cluster whose pods no scheduler of it takes. The time of `--for` begins when the cluster was read,
    so even with none left the gangs that wait there are in the report."""
    pods = [m.pod(f"p{i}", cpu=1, scheduler="foreign") for i in range(2)]
    with enbloc.Cluster(pods, nodes=1) as cluster:
        before = cluster.situation(["Pod", "Node", "Event"])[0]
        shown = _shadow(cluster)
        assert cluster.situation(["Pod", "Node", "Event"])[0] == before
    assert "2 gangs waited or came" in shown
    assert "2 would have started and still wait" in shown


def _shadow(cluster: enbloc.Cluster) -> str:
    report = asyncio.run(shadow_cli.watch(str(cluster.kubeconfig), None, parse({"schedulerNames": ["foreign"]}), 0.0))
    return "\n".join(shadow_cli.lines(report))


def test_bad_usage_is_refused_in_one_line() -> None:
    result = CliRunner().invoke(shadow_cli.command, ["--for", "soon"])
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
