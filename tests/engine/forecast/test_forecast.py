"""When room becomes free, and when gangs that wait could start (R8)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.claims.reservations import ENDLESS
from enbloc.engine.decisions import Decision, Expect
from enbloc.engine.events import EventKind
from enbloc.engine.forecast.easy_backfill import EasyBackfill, Start, releases_of
from enbloc.engine.forecast.expected_start import ExpectedStarts
from enbloc.engine.forecast.run_times import end_of, room_for, start_of
from enbloc.engine.placement.constraints import Constraints
from enbloc.engine.tables.resources import CPU, MEMORY, PODS
from enbloc.gangs.claim_records import ClaimKind
from engine.claims.scenes import SECOND_NS, Scene, group, pods_of
from engine.forecast.running import running
from support import manifests as m

RESERVE = ClaimKind.RESERVE


# ---- ends of tasks


@pytest.mark.parametrize(
    ("fields", "now_s", "end_s"),
    [
        ({"run_s": 10}, 5, 10),
        ({"run_s": 10, "since_s": 3}, 5, 13),
        ({"run_s": 10, "since_s": None}, 5, 15),  # it has not started yet
        ({"run_s": 10}, 10, 10),
        ({"run_s": 10}, 12, 12),  # it has overrun: any moment
        ({"run_s": None}, 5, None),
        ({"run_s": 10, "leaves": True}, 5, 5),
        ({"run_s": None, "leaves": True}, 5, 5),
    ],
)
def test_r8_when_a_task_is_expected_to_end(fields: dict[str, Any], now_s: int, end_s: int | None) -> None:
    scene = Scene(m.node("n"), running("r", 1, "n", **fields))
    expected = ENDLESS if end_s is None else end_s * SECOND_NS
    assert end_of(scene.task("r"), now_s * SECOND_NS) == expected


RUNS = [running("a", 1, "n", 20), running("b", 1, "n", 10), running("c", 1, "n"), running("d", 4, "m", 30)]
"""Of 4 cpu, 1 is free on `n`, 2 from 10 s on and 3 from 20 s on; on `m` all from 30 s on."""


@pytest.mark.parametrize(
    ("node", "cpu", "at_s"), [("n", 1, 5), ("n", 2, 10), ("n", 3, 20), ("n", 4, None), ("m", 1, 30), ("m", 4, 30)]
)
def test_r8_when_a_node_has_so_much_free(node: str, cpu: int, at_s: int | None) -> None:
    scene = Scene(m.node("n"), m.node("m"), RUNS)
    row = scene.state.nodes.rows[node]
    expected = ENDLESS if at_s is None else at_s * SECOND_NS
    assert room_for(scene.state, row, {CPU: 1000 * cpu}, 5 * SECOND_NS) == expected
    assert room_for(scene.state, row, {CPU: 1000 * cpu, MEMORY: 1}, 5 * SECOND_NS) == expected
    assert room_for(scene.state, row, {CPU: 1000 * cpu, MEMORY: 2**50}, 5 * SECOND_NS) == ENDLESS


def test_r8_a_gang_could_start_when_the_last_of_its_nodes_is_free() -> None:
    scene = Scene(m.node("n"), m.node("m"), RUNS, group(minimum=3), pods_of(count=3))
    reservations = scene.claims.reservations
    assert start_of(scene.state, reservations, scene.gang(), 5) == 5, "nothing is reserved"
    scene.make(RESERVE, g_0="n", g_1="n")
    assert start_of(scene.state, reservations, scene.gang(), 5) == 10 * SECOND_NS, "both on one node"
    other = Scene(m.node("n"), m.node("m"), RUNS, group(minimum=3), pods_of(count=3))
    other.make(RESERVE, g_0="n", g_1="m")
    assert start_of(other.state, other.claims.reservations, other.gang(), 5) == 30 * SECOND_NS


def test_r8_what_is_released_in_the_order_of_the_ends() -> None:
    """Tasks of one gang that end at one time are one step; a task without an end is in none."""
    pair = [running(f"p-{number}", 1, node, 20, group="p") for number, node in enumerate("nm")]
    scene = Scene(
        m.node("n"), m.node("m"), running("late", 2, "m", 30), running("endless", 1, "n"), m.podgroup("p", 2), pair,
        running("q", 1, "n", 20),
    )  # fmt: skip
    found = releases_of(scene.state, 5 * SECOND_NS)
    rows = scene.state.nodes.rows
    assert [end // SECOND_NS for end in found.ends_ns.tolist()] == [20, 20, 20, 30]
    assert found.steps == 3
    by_step: dict[int, list[tuple[int, int]]] = {}
    for step, row, cpu in zip(found.step.tolist(), found.rows.tolist(), found.amounts[CPU].tolist(), strict=True):
        by_step.setdefault(step, []).append((row, cpu))
    assert sorted(map(sorted, by_step.values())) == sorted(
        [[(rows["n"], 1000)], sorted([(rows["n"], 1000), (rows["m"], 1000)]), [(rows["m"], 2000)]]
    )
    assert found.amounts[PODS].tolist() == [1, 1, 1, 1]
    first = found.until(0)
    assert (len(first.ends_ns), first.steps) == (len(by_step[0]), 1)
    assert found.until(2).steps == 3
    assert releases_of(Scene(m.node("n")).state, 0).steps == 0


# ---- EASY


def easy(scene: Scene) -> EasyBackfill:
    parts = scene.direct.engine.parts
    return EasyBackfill(scene.state, parts.placer, lambda transaction, gang: None)


def free(scene: Scene) -> dict[str, int]:
    return {name: scene.free_cpu(name) for name in sorted(scene.state.nodes.rows)}


@pytest.mark.parametrize(
    ("cpu", "start_s", "kept"),
    [
        (2, 10, {"n": 1}),
        (3, 20, {"n": 1}),
        (4, 30, {"m": 0}),
        (5, None, {}),
    ],
)
def test_r8_easy_when_the_first_gang_could_start_and_what_is_kept_for_it(
    cpu: int, start_s: int | None, kept: dict[str, int]
) -> None:
    """A task that ends by then may use what is free now; another one may not use what the gang will need."""
    scene = Scene(m.node("n"), m.node("m"), RUNS, group(minimum=1), pods_of(count=1, cpu=cpu))
    before, now_ns = free(scene), 5 * SECOND_NS
    backfill = easy(scene)
    over = backfill.shadow(scene.gang(), Constraints(), now_ns, "here")
    (key, start) = backfill.heads["default"]
    assert key == scene.gang().key
    assert start.shadow_time_ns == (ENDLESS if start_s is None else start_s * SECOND_NS)
    assert free(scene) == before
    left = {name: before[name] - kept.get(name, 0) for name in before}
    with over(None):
        assert free(scene) == left
    assert free(scene) == before
    if start_s is None:
        return
    with over((start_s - 5) * SECOND_NS):
        assert free(scene) == before, "it ends just in time"
    with over((start_s - 5) * SECOND_NS + 1):
        assert free(scene) == left
    assert free(scene) == before


@pytest.mark.parametrize(("needed", "left"), [(2, 1), (3, 1), (4, 0)])
def test_r8_easy_room_that_the_first_gang_will_not_need_is_left_to_those_behind(needed: int, left: int) -> None:
    """Of 4 cpus 1 is free now, and the others from 10 s on."""
    scene = Scene(m.node("n"), running("a", 3, "n", 10), group(minimum=1), pods_of(count=1, cpu=needed))
    with easy(scene).shadow(scene.gang(), Constraints(), 0, 1)(None):
        assert scene.free_cpu("n") == left


def test_r8_easy_a_forecast_is_made_once_for_a_position_and_a_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(m.node("n"), RUNS[:3], group(minimum=1), pods_of(count=1, cpu=2))
    backfill, made = easy(scene), list[int]()
    forecast = backfill._forecast
    monkeypatch.setattr(backfill, "_forecast", lambda *given: made.append(1) or forecast(*given))
    for position in (1, 1, 2):
        backfill.shadow(scene.gang(), Constraints(), 0, position)
    assert len(made) == 2
    backfill.cycle_begins(1)
    backfill.shadow(scene.gang(), Constraints(), 0, 2)
    assert len(made) == 3


def test_r8_easy_what_tasks_of_an_attempt_took_meanwhile_stays_taken() -> None:
    scene = Scene(m.node("n"), RUNS[:3], group(minimum=1), pods_of(count=1, cpu=2), m.pod("late"))
    over = easy(scene).shadow(scene.gang(), Constraints(), 5 * SECOND_NS, 1)
    scene.state.nominate(scene.task("late"), "n")
    assert scene.free_cpu("n") == 0
    with over(None):
        assert scene.free_cpu("n") == 0
    assert scene.free_cpu("n") == 0


def test_r8_easy_nodes_that_are_free_now_are_left_to_gangs_behind_where_others_become_free() -> None:
    """`m` is free now, and too small for both pods; `n` becomes free."""
    scene = Scene(m.node("n", 2), m.node("m", 1), running("a", 2, "n", 20), group(minimum=2), pods_of(count=2))
    backfill = easy(scene)
    over = backfill.shadow(scene.gang(), Constraints(), 0, 1)
    start = backfill.heads["default"][1]
    assert start.shadow_time_ns == 20 * SECOND_NS
    assert list(start.left) == [scene.state.nodes.rows["n"]]
    with over(None):
        assert free(scene) == {"m": 1, "n": 0}


# ---- starts that are published


class Starts:
    def __init__(self, *objects: Any) -> None:
        self.scene = Scene(*objects)
        self.decided: list[Decision] = []
        self.starts = ExpectedStarts(self.scene.state, self.scene.claims.reservations, self.decided.append)

    def publish(self) -> list[tuple[str, int | None]]:
        """Gang and second."""
        self.starts.publish()
        found = [(one.gang.name, one.at_ns) for one in self.decided if isinstance(one, Expect)]
        self.decided.clear()
        return [(name, None if at_ns is None else at_ns // SECOND_NS) for name, at_ns in found]


def reserved() -> Starts:
    """A gang with a reservation on `n`, where a pod runs until 20 s."""
    starts = Starts(m.node("n"), running("a", 4, "n", 20), group(minimum=1), pods_of(count=1))
    starts.scene.make(RESERVE, g_0="n")
    starts.scene.state.events.clear()
    return starts


def test_r8_the_start_of_a_gang_with_a_reservation_is_published_once() -> None:
    starts = reserved()
    gang = starts.scene.gang()
    assert starts.starts.start_of(gang) is None
    starts.starts.forecast(5 * SECOND_NS)
    assert starts.publish() == [("g", 20)]
    assert starts.starts.start_of(gang) == 20 * SECOND_NS
    starts.starts.forecast(6 * SECOND_NS)
    assert starts.publish() == []
    starts.starts.gang_gone(gang)
    assert starts.starts.start_of(gang) is None


@pytest.mark.parametrize(("run_s", "start_s", "is_event"), [(30, 30, True), (10, 10, False)])
def test_r8_a_start_follows_the_forecast_and_a_later_one_opens_its_nodes_for_longer(
    run_s: int, start_s: int, is_event: bool
) -> None:
    starts = reserved()
    starts.starts.forecast(5 * SECOND_NS)
    starts.publish()
    starts.scene.direct.put(running("a", 4, "n", run_s))
    starts.scene.state.events.clear()
    starts.starts.forecast(6 * SECOND_NS)
    assert starts.publish() == [("g", start_s)]
    assert (EventKind.FORECAST_CHANGED in starts.scene.state.events.kinds) is is_event


def test_r8_a_start_that_is_not_known_any_more_is_withdrawn() -> None:
    starts = reserved()
    starts.starts.forecast(5 * SECOND_NS)
    starts.publish()
    starts.scene.direct.put(running("a", 4, "n"))
    starts.starts.forecast(6 * SECOND_NS)
    assert starts.publish() == [("g", None)]
    assert starts.starts.start_of(starts.scene.gang()) is None


def test_r8_an_overdue_start_is_not_published() -> None:
    starts = reserved()
    starts.starts.forecast(20 * SECOND_NS)
    assert starts.publish() == []
    assert starts.starts.start_of(starts.scene.gang()) is None


def test_r8_easy_the_starts_of_first_gangs_are_published_and_withdrawn() -> None:
    starts = Starts(m.node("n"), group("a"), group("b"))
    a, b = (starts.scene.gang(name).key for name in "ab")
    events = starts.scene.state.events
    starts.starts.set_heads({"q": (a, Start(20 * SECOND_NS, {}))}, 0)
    assert EventKind.FORECAST_CHANGED in events.kinds
    assert starts.publish() == [("a", 20)]
    events.clear()
    starts.starts.set_heads({"q": (a, Start(20 * SECOND_NS, {}))}, 0)
    assert (starts.publish(), bool(events)) == ([], False)
    starts.starts.set_heads({"q": (b, Start(30 * SECOND_NS, {}))}, 0)
    assert events
    assert starts.publish() == [("a", None), ("b", 30)]
    starts.starts.set_heads({}, 0)
    assert starts.publish() == [("b", None)]
    starts.starts.set_heads({"q": (a, Start(ENDLESS, {}))}, 0)
    assert starts.publish() == [("a", None)]
    assert starts.starts.start_of(starts.scene.gang("a")) is None


def test_r8_the_forecast_of_reserved_nodes_goes_before_that_of_the_first_in_a_queue() -> None:
    starts = reserved()
    starts.starts.forecast(5 * SECOND_NS)
    starts.starts.set_heads({"q": (starts.scene.gang().key, Start(99 * SECOND_NS, {}))}, 5 * SECOND_NS)
    assert starts.publish() == [("g", 20)]
