"""Plans of conservative backfill (R8): in the order of the queue, each beside what was planned before it."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.claims.reservations import ENDLESS
from enbloc.engine.forecast import conservative_backfill as module
from enbloc.engine.forecast.conservative_backfill import ConservativeBackfill, PlannedQueue, heads
from enbloc.engine.placement.constraints import Constraints
from enbloc.gangs.hints import RUN_TIME
from engine.claims.scenes import SECOND_NS, Scene, group
from engine.forecast.running import running
from support import manifests as m


def waits(name: str, cpu: int, run_s: int | None = None) -> list[m.Obj]:
    """A gang of one pod."""
    annotations = {RUN_TIME: f"{run_s}s"} if run_s is not None else {}
    return [group(name, 1), m.pod(f"{name}-0", cpu, group=name, annotations=annotations)]


class Planned:
    """Node `n` of 4 cpu: 3 of them are free from 10 s on, and all from 20 s on. Now is 0."""

    def __init__(self, *gangs: list[m.Obj]) -> None:
        runs = [running("a", 3, "n", 10), running("b", 1, "n", 20)]
        self.scene = Scene(m.node("n"), runs, *gangs)
        parts = self.scene.direct.engine.parts
        self.order = parts.order
        backfill = ConservativeBackfill(self.scene.state, parts.placer, lambda transaction, gang: None)
        self.queue = PlannedQueue(backfill, 0)

    def plan(self, names: str, before: str | None = None) -> dict[str, float | None]:
        """The seconds at which gangs are planned to start; `None`: they are not planned."""
        gangs = [self.scene.gang(name) for name in names]
        self.queue.add([(self.order(gang), gang) for gang in gangs])
        order = self.order(self.scene.gang(before)) if before is not None else None
        self.queue.plan_before(order, lambda gang: Constraints())
        starts = {key.name: start.shadow_time_ns for key, start in self.queue.starts.items()}
        return {name: None if at_ns == ENDLESS else at_ns / SECOND_NS for name, at_ns in starts.items()}

    def free_for(self, run_s: float | None) -> int:
        """What a task of this run time may use now."""
        run_ns = None if run_s is None else int(run_s * SECOND_NS)
        before = self.scene.free_cpu("n")
        with self.queue.shadow(run_ns):
            found = self.scene.free_cpu("n")
        assert self.scene.free_cpu("n") == before
        return found


@pytest.mark.parametrize(
    ("gangs", "starts"),
    [
        ({"c": (3, 5)}, {"c": 10}),
        ({"c": (4, 5)}, {"c": 20}),
        ({"c": (5, 5)}, {"c": None}),
        ({"c": (3, 5), "d": (3, 5)}, {"c": 10, "d": 15}),  # after the one before it
        ({"c": (3, 10), "d": (1, 5)}, {"c": 10, "d": 20}),
        ({"c": (2, 10), "d": (1, 5)}, {"c": 10, "d": 10}),  # beside it
        ({"c": (4, 5), "d": (3, 5)}, {"c": 20, "d": 10}),  # before it, for it ends in time
        ({"c": (4, 5), "d": (3, 11)}, {"c": 20, "d": 25}),
        ({"c": (4, 5), "d": (3, None)}, {"c": 20, "d": 25}),
        ({"c": (3, None), "d": (2, 5)}, {"c": 10, "d": None}),  # its end is not known
    ],
)
def test_r8_each_gang_starts_at_the_earliest_time_that_delays_none_before_it(
    gangs: dict[str, tuple[int, int | None]], starts: dict[str, float | None]
) -> None:
    planned = Planned(*(waits(name, *given) for name, given in gangs.items()))
    assert planned.plan("".join(gangs)) == starts
    assert planned.queue.is_in_the_way is any(start is not None for start in starts.values())


def test_r8_gangs_are_planned_once_and_in_their_order() -> None:
    planned = Planned(waits("c", 3, 5), waits("d", 3, 5), waits("e", 3, 5))
    assert planned.plan("dc", before="c") == {}
    assert planned.plan("dce", before="e") == {"c": 10, "d": 15}
    assert planned.plan("cde") == {"c": 10, "d": 15, "e": 20}


@pytest.mark.parametrize(("most", "count"), [(1, 1), (2, 2), (3, 2)])
def test_r8_a_bounded_number_of_gangs_is_planned(most: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLANNED", most)
    planned = Planned(waits("c", 3, 5), waits("d", 3, 5))
    assert len(planned.plan("cd")) == count
    assert planned.queue.is_full is (count == most)


@pytest.mark.parametrize(("slots", "start"), [(1, None), (2, 20)])
def test_r8_a_bounded_number_of_times_is_tried(slots: int, start: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes have 4 cpus in all from 10 s on, and one of them alone has them from 20 s on."""
    monkeypatch.setattr(module, "SLOTS", slots)
    planned = Planned(waits("c", 4, 5), [m.node("small", 1)])
    assert planned.plan("c") == {"c": start}


@pytest.mark.parametrize(("run_s", "free"), [(5, 2), (10, 2), (10.5, 1), (None, 1)])
def test_r8_what_a_gang_behind_may_use_now_for_its_run_time(run_s: float | None, free: int) -> None:
    """2 cpus are free now on a node of 6, and 5 from 10 s on, of which a plan needs 4."""
    planned = Planned(waits("c", 4, 5))
    planned.scene.direct.put(m.node("n", 6))
    planned.scene.begin(0)
    backfill = planned.queue._backfill
    planned.queue = PlannedQueue(backfill, 0)
    assert planned.free_for(run_s) == 2, "before anything is planned"
    assert planned.plan("c") == {"c": 10}
    assert planned.free_for(run_s) == free


@pytest.mark.parametrize(("cpu", "start"), [(3, 10), (4, 20)])
def test_r8_what_was_bound_meanwhile_is_not_free_for_plans(cpu: int, start: int) -> None:
    """On a node of 5 cpus `d` uses the one that was free until 30 s."""
    planned = Planned(waits("c", cpu, 5), waits("d", 1, 30))
    planned.scene.direct.put(m.node("n", 5))
    planned.scene.begin(0)
    planned.queue = PlannedQueue(planned.queue._backfill, 0)
    nodes = planned.scene.state.nodes
    before = nodes.free[:, : nodes.count].copy()
    planned.scene.state.nominate(planned.scene.task("d-0"), "n")
    planned.queue.note_bound(planned.scene.gang("d"), before)
    assert planned.plan("c") == {"c": start}
    assert planned.free_for(None) == 0


def test_r8_plans_are_published_by_queue_and_number() -> None:
    planned = Planned(waits("c", 3, 5), waits("d", 3, 5))
    planned.plan("cd")
    found: dict[str, Any] = heads({"q": planned.queue})
    assert {name: key.name for name, (key, _) in found.items()} == {"q/0": "c", "q/1": "d"}
    rows = found["q/0"][1].left
    assert {row: amounts[0] for row, amounts in rows.items()} == {planned.scene.state.nodes.rows["n"]: 3000}
