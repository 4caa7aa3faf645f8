"""G9 as a property: sleeping changes nothing. A gang that is tried in every cycle fares as one that sleeps.

A scenario is made from a number, so that a number is all it takes to have it again.
"""

from __future__ import annotations

import random
from itertools import zip_longest
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.settle import Plane
from enbloc.config import Config, parse
from enbloc.engine.core.cycle import Cycle
from enbloc.runtime.control_plane import ControlPlane
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.result import Result
from enbloc.sim.simulation import PlaneFactory, Simulation, control_plane
from enbloc.units import SECOND
from properties.loads import CLASSES, Load, shortened
from properties.strategies import HOST, REQUIRED, ZONE
from support import manifests as m

APPS = ("web", "db", "x")
END = 20
ON_POD = {"labels": [{"app": app} for app in APPS], "annotations": [{"gang.scheduling.koordinator.sh/timeout": None}]}


def sleepless(store: Store, config: Config) -> Plane:
    """Every gang is active in every cycle, and shares its equivalence class with no other."""
    plane = control_plane(store, config)
    assert isinstance(plane, ControlPlane)
    engine = plane.scheduler.engine
    begin = engine.begin

    def wide_awake(now_ns: int) -> Cycle:
        engine.force()
        return begin(now_ns)

    engine.begin = wide_awake  # type: ignore[method-assign]
    for lane in (engine.parts.queues.placement, engine.parts.queues.best_effort, engine.parts.queues.admission):
        put = lane.put

        def alone(gang: Any, queue: str, order: Any, signature: Any, *rest: Any, put: Any = put, **more: Any) -> Any:
            own = signature._replace(facts=(gang.key, signature.facts))
            return put(gang, queue, order, own, *rest, **more)

        lane.put = alone  # type: ignore[method-assign]
    return plane


class _Maker:
    """What comes, and what happens to it."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._pods: list[m.Obj] = []
        self._groups: list[str] = []

    def load(self) -> Load:
        pick, draw = self._draw.choice, self._draw
        documents: list[m.Obj] = [*CLASSES, m.queue("p", **pick([{}, {"capability": {"cpu": "5"}}]))]
        for name in ("a", "b"):
            limits = pick([{}, {}, {"capability": {"cpu": "3"}}, {"guarantee": {"cpu": "1"}}])
            documents.append(m.queue(name, **limits, **pick([{}, {"parent": "p"}, {"dequeueStrategy": "fifo"}])))
        nodes = draw.randint(1, 3)
        for number in range(nodes):
            documents.append(m.node(f"n{number}", pick([2, 4, 6]), labels={ZONE: pick("ab")}))
        if draw.random() < 0.3:
            documents.append(self._budget())
        for number in range(draw.randint(2, 6)):
            documents += self._gang(f"g{number}")
        for _ in range(draw.randint(1, 6)):
            documents += self._event(f"n{draw.randrange(nodes)}")
        return Load(self._config(), documents)

    def _config(self) -> m.Obj:
        draw = self._draw
        arguments = {"starvingJobTimeThreshold": draw.choice([1, 3, 8]), "reservedNodePercent": draw.choice([50, 100])}
        backfill = {"name": "backfill", "arguments": {"mode": draw.choice(["easy", "best-effort"])}}
        more = [[backfill], [{"name": "preempt"}], [{"name": "reclaim"}], [{"name": "reserve", "arguments": arguments}]]
        drawn = [action for some in more if draw.random() < 0.6 for action in some]
        return {"actions": [{"name": "enqueue"}, {"name": "allocate"}, *drawn]}

    def _budget(self) -> m.Obj:
        spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": self._draw.randint(0, 2)}
        metadata = {"name": "pdb", "namespace": "default"}
        return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}

    def _at(self, first: int = 0) -> str:
        return f"{self._draw.randint(first, END)}s"

    def _looks(self) -> m.Obj:
        """What it asks about where others are. Nobody looks for others to be near: one who sleeps hears of those who
        are placed only in the next cycle of that instant, and others may have the room by then."""
        pick = self._draw.choice
        if self._draw.random() < 0.6:
            return {}
        term = {"topologyKey": pick([ZONE, HOST]), "labelSelector": {"matchLabels": {"app": pick(APPS)}}}
        spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term}
        away = {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
        return pick([away, away, {"topologySpreadConstraints": [spread]}, {"nodeSelector": {ZONE: pick("ab")}}])

    def _gang(self, name: str) -> list[m.Obj]:
        pick, draw = self._draw.choice, self._draw
        count = pick([1, 1, 2, 3])
        least, cpu = pick([count, draw.randint(1, count)]), pick([1, 1, 2, 3, 4])
        at = pick(["0s", self._at()])
        life = {
            "run_time": pick([None, "4s", "9s", "15s"]),
            "stop_delay": pick([None, None, "3s"]),
            "start_delay": pick([None, "2s"]),
        }
        more: dict[str, Any] = {
            **life,
            **self._looks(),
            "priority": pick([None, "low", "mid", "high", "nonpreempting"]),
        }
        form = pick(["pod", "group", "job", "annotated", "labelled"])
        if form == "job":
            workers = m.role("w", count, least, cpu=cpu, **more)
            workers["template"]["metadata"]["labels"] = {"app": pick(APPS)}
            return [m.job(name, workers, at=at, queue=pick(["a", "b"]))]
        more |= {"labels": {"app": pick(APPS)}, "at": at}
        words: dict[str, Any] = {"mode": m.NON_STRICT} if draw.random() < 0.5 else {}
        if draw.random() < 0.4:
            words["groups"] = [f"default/{name}", f"default/g{draw.randrange(6)}"]
        if form == "pod":
            found = [m.pod(name, cpu, **more)]
        elif form == "group":
            self._groups.append(name)
            found = m.gang(name, count, least, cpu, queue=pick(["a", "b"]), **more)
        elif form == "annotated":
            found = m.koordinator_gang(name, count, least, cpu, wait="9s", **words, **more)
        else:
            least_free = pick([{}, {"minResources": {"cpu": "3"}}])
            members = m.labelled_pods(
                name, count, cpu=cpu, **{key: value for key, value in more.items() if key != "labels"}
            )
            found = [m.sigs_podgroup(name, least, at=at, scheduleTimeoutSeconds=9, **words, **least_free), *members]
        self._pods += [one for one in found if one["kind"] == "Pod"]
        return found

    def _event(self, on: str) -> list[m.Obj]:
        pick, draw, at = self._draw.choice, self._draw, self._at(1)
        patches: list[m.Obj] = [
            {"spec": {"unschedulable": pick([True, None])}},
            {"metadata": {"labels": {ZONE: pick("ab")}}},
            {"spec": {"taints": pick([None, [{"key": "k", "effect": "NoSchedule"}]])}},
            {"status": {"allocatable": {"cpu": str(draw.randint(1, 7))}}},
        ]
        found = [m.step(at, "patch", "Node", on, patch=pick(patches))]
        what = draw.randrange(6)
        if what == 0 and self._pods:
            return [m.step(at, "patch", "Pod", self._named(), patch={"metadata": self._said()})]
        if what in (1, 2) and self._pods:
            return self._replaced(at)
        if what == 3 and self._groups:
            change = pick([{"minMember": draw.randint(1, 3)}, {"priorityClassName": pick(["low", "high"])}])
            return [m.step(at, "patch", "PodGroup", pick(self._groups), patch={"spec": change})]
        if what == 4:
            limit = pick([{"capability": None}, {"capability": {"cpu": "7"}}, {"guarantee": None}, {"weight": 3}])
            return [m.step(at, "patch", "Queue", pick("abp"), patch={"spec": limit})]
        return found if draw.random() < 0.8 else [m.restart(at)]

    def _named(self) -> str:
        name: str = self._draw.choice(self._pods)["metadata"]["name"]
        return name

    def _said(self) -> m.Obj:
        where = self._draw.choice(sorted(ON_POD))
        return {where: self._draw.choice(ON_POD[where])}

    def _replaced(self, at: str) -> list[m.Obj]:
        """A pod goes, and perhaps comes again under its name as another one."""
        draw = self._draw
        old = draw.choice(self._pods)
        gone = m.step(at, "delete", "Pod", old["metadata"]["name"])
        if draw.random() < 0.3:
            return [gone]
        again = m.pod(old["metadata"]["name"], draw.choice([1, 1, 2]), **self._looks())
        metadata = {**old["metadata"], "labels": {**old["metadata"].get("labels", {}), "app": draw.choice(APPS)}}
        notes = {**metadata.get("annotations", {}), "sim.enbloc.dev/at": draw.choice([at, f"{END}s"])}
        return [gone, {**again, "metadata": {**metadata, "annotations": notes}}]


def run(load: Load, plane: PlaneFactory) -> Result:
    documents = [Document("f", number, value) for number, value in enumerate(load.documents, 1)]
    result = Simulation(read_scenario(documents), parse(load.config), plane).run(60 * SECOND)
    assert result.ended != "cut-off", result.reason
    return result


def lines_of(result: Result) -> list[str]:
    """Who was bound or evicted, when and where, and who still waits. The order within an instant is left aside."""
    lines = sorted(str(line) for line in result.timeline if line.what in ("bound", "evicted"))
    return [*lines, *(f"{one['gang']} waits" for one in result.pending)]


def difference(load: Load) -> str:
    for one, other in zip_longest(lines_of(run(load, control_plane)), lines_of(run(load, sleepless))):
        if one != other:
            return f"{one}, and without sleep {other}"
    return ""


def _fails(load: Load) -> bool:
    try:
        return bool(difference(load))
    except AssertionError:
        return True


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
@example(2177)  # a starving gang, and one of higher priority whose pods are being created
def test_g9_sleeping_changes_nothing(seed: int) -> None:
    load = _Maker(seed).load()
    if _fails(load):
        load = shortened(load, _fails)
        raise AssertionError(f"G9: {difference(load)}\n{load}")
