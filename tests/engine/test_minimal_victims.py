"""No victim in vain: which units are spared, and what the arrays alone prove (P1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from enbloc.engine.eviction.minimal_victims import Capacity, MinimalVictims
from enbloc.engine.eviction.victims import Victims
from enbloc.engine.placement.request import PlacementRequest
from enbloc.engine.tables.resources import CPU
from enbloc.engine.tables.tasks import Task, TaskStatus
from engine.claims.scenes import Scene
from engine.evictions import runs, wants
from support import manifests as m

# ---- capacity


def capacity(room: Sequence[int], pods: Sequence[int], needed: int, short: int = 0, placed: str = "") -> Capacity:
    """Rows with this many cores, and a gang of pods with this many cores each: the first `needed` of them, and `short`
    of the others. Those in `placed` are placed already."""
    scene = Scene(m.node("n", 99), wants(*((cpu, "") for cpu in pods)))
    tasks = [scene.task(f"q-{number}") for number in range(len(pods))]
    for number in placed:
        tasks[int(number)].status = TaskStatus.ASSUMED
    free = np.full((len(scene.state.nodes.free), len(room)), 10**6, np.int64)
    free[CPU] = [cores * 1000 for cores in room]
    request = PlacementRequest(scene.gang("q"), tasks[:needed], tasks[needed:], short)
    return Capacity(free, [request], lambda task: np.ones(len(room), np.bool_))


@pytest.mark.parametrize(
    ("room", "pods", "needed", "short", "placed", "expected"),
    [
        pytest.param([2, 2], [2, 2], 2, 0, "", True, id="one on each row"),
        pytest.param([4, 0], [2, 2], 2, 0, "", True, id="both on one row"),
        pytest.param([3, 1], [2, 2], 2, 0, "", False, id="enough in all, and on no row"),
        pytest.param([2, -2], [2], 1, 0, "", True, id="a row that is overdrawn holds none"),
        pytest.param([2, 2], [2, 2, 2], 3, 0, "", False, id="one too many"),
        pytest.param([2, 2], [2, 2, 2], 3, 0, "0", True, id="one is placed already"),
        pytest.param([2], [2, 1], 2, 0, "", True, id="each class as if it were the only one"),
        pytest.param([2], [2, 2, 2], 1, 0, "", True, id="the rest is not needed"),
        pytest.param([2], [1, 2, 2], 1, 2, "", False, id="two of the rest are"),
        pytest.param([2], [1, 2, 2], 1, 1, "", True, id="one of the rest is"),
        pytest.param([2], [1, 2, 2, 2], 1, 2, "1", True, id="of two, one is placed already"),
        pytest.param([2], [1, 2, 2, 2], 1, 3, "1", False, id="of three, one is placed already"),
        pytest.param([1], [1, 2, 1], 1, 1, "", True, id="the rest differs: either may be placed"),
        pytest.param([0], [1, 2, 1], 0, 1, "", True, id="so nothing is proved"),
        pytest.param([2], [2, 2], 0, 1, "01", True, id="all are placed already"),
    ],
)
def test_p1_what_arrays_prove_not_to_fit(
    room: list[int], pods: list[int], needed: int, short: int, placed: str, expected: bool
) -> None:
    assert capacity(room, pods, needed, short, placed).suffices() is expected


def test_p1_capacity_follows_what_is_taken_and_given_back() -> None:
    found = capacity([2, 2], [2, 2], 2)
    place = (1, ((CPU, 1000),))
    found.take([place])
    assert not found.suffices()
    found.take([place], -1)
    assert found.suffices()


def test_p1_rows_that_are_closed_to_a_task_hold_none() -> None:
    scene = Scene(m.node("n", 99), wants((2, "")))
    free = np.full((len(scene.state.nodes.free), 2), 10**6, np.int64)
    request = PlacementRequest(scene.gang("q"), [scene.task("q-0")])
    assert Capacity(free, [request], lambda task: np.array([False, True])).suffices()
    assert not Capacity(free, [request], lambda task: np.array([False, False])).suffices()


# ---- which units are kept


class Units:
    """Pods `a`, `b` … on one row, each a unit, and a gang that lacks cores there."""

    def __init__(self, lacking: int, **cpus: int) -> None:
        running = [runs(name, cpu, "n") for name, cpu in cpus.items()]
        self.scene = Scene(m.node("n", 99), running, wants((lacking, "")))
        self.lacking = lacking
        self.tries: list[str] = []

    def unit(self, names: str, **fields: int) -> Victims:
        return Victims([self.scene.task(name) for name in names], whole_gang=True, rank=fields.get("rank", 0))

    def kept(self, *units: Victims, by_arrays: bool = True) -> str:
        evicted = {task.uid: task for unit in units for task in unit.tasks}
        free = np.full((len(self.scene.state.nodes.free), 1), 10**6, np.int64)
        free[CPU] = sum(map(_cpu, evicted.values())) if by_arrays else 10**6
        request = PlacementRequest(self.scene.gang("q"), [self.scene.task("q-0")])

        def fits(left: Sequence[Victims]) -> bool:
            self.tries.append("".join(sorted({task.name for unit in left for task in unit.tasks})))
            gone = {task.uid: task for unit in left for task in unit.tasks}
            return sum(map(_cpu, gone.values())) >= self.lacking * 1000

        found = Capacity(free, [request], lambda task: np.ones(1, np.bool_))
        left = MinimalVictims(found, lambda task: (0, task.cls.request), fits).of(units)
        return " ".join("".join(sorted(task.name for task in unit.tasks)) for unit in left)


def _cpu(task: Task) -> int:
    return dict(task.cls.request)[CPU]


@pytest.mark.parametrize("by_arrays", [True, False])
@pytest.mark.parametrize(
    ("lacking", "cpus", "kept"),
    [
        pytest.param(1, {"a": 1, "b": 1, "c": 1, "d": 1}, "d", id="among equals the last in order"),
        pytest.param(2, {"a": 1, "b": 1, "c": 1, "d": 1}, "c d", id="the last two"),
        pytest.param(4, {"a": 1, "b": 1, "c": 1, "d": 1}, "a b c d", id="all"),
        pytest.param(3, {"a": 3, "b": 1, "c": 1}, "a", id="the one that suffices"),
        pytest.param(4, {"a": 3, "b": 1, "c": 1}, "a c", id="it and the last"),
        pytest.param(2, {"a": 1, "b": 2, "c": 1, "d": 1, "e": 1}, "d e", id="of two ways the one that was met first"),
    ],
)
def test_p1_no_proper_subset_would_do(lacking: int, cpus: dict[str, int], kept: str, by_arrays: bool) -> None:
    case = Units(lacking, **cpus)
    assert case.kept(*map(case.unit, cpus), by_arrays=by_arrays) == kept


def test_p1_the_most_disruptive_are_spared_first() -> None:
    case = Units(1, a=1, b=1, c=1)
    assert case.kept(case.unit("a"), case.unit("b"), case.unit("c", rank=1)) == "b"


@pytest.mark.parametrize(("lacking", "kept"), [(1, "c"), (2, "abc"), (3, "abc")])
def test_p1_a_pod_of_two_units_is_evicted_as_long_as_one_of_them_is(lacking: int, kept: str) -> None:
    """`c` left as surplus, and then with its gang."""
    case = Units(lacking, a=1, b=1, c=1)
    assert case.kept(case.unit("c"), case.unit("abc")) == kept
    assert case.kept(case.unit("c"), case.unit("abc"), by_arrays=False) == kept


def test_p1_what_arrays_prove_is_not_tried() -> None:
    case = Units(4, a=1, b=1, c=1, d=1)
    case.kept(*map(case.unit, "abcd"))
    assert case.tries == []
    case.kept(*map(case.unit, "abcd"), by_arrays=False)
    assert case.tries == ["", "cd", "bcd", "acd", "ab", "abd", "abc"], "by halves"
