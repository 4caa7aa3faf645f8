"""How the cost of a simulation grows with its load: each case at three sizes, as exponents.

A case of size n that costs CPU time c·n^e has exponent e. The exponent printed is the slope of the line through the
three points on logarithmic scales; 1 is linear. Measured is CPU time. The sizes are measured in turn and repeated, and
of each the least counts: other load on the machine can only add to it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.growth_cases import CASES, Case
from enbloc import config as configs
from enbloc import garbage_collector
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.result import CUT_OFF
from enbloc.sim.simulation import Simulation

MARGIN = 0.4
"""How far an exponent may be above the expected one: over a factor of four in size, 1.7 times the cost."""


class Growth(NamedTuple):
    """One case, measured."""

    name: str
    sizes: Sequence[int]
    seconds: Sequence[float]

    @property
    def exponent(self) -> float:
        return slope(self.sizes, self.seconds)

    @property
    def ratio(self) -> float:
        """What the largest size costs, in units of the smallest."""
        return self.seconds[-1] / self.seconds[0]


def run(
    names: Iterable[str], repeats: int, scale: float, progress: Callable[[Growth], None] = lambda _: None
) -> list[Growth]:
    found = []
    for name in names:
        found.append(measure(name, CASES[name], repeats, scale))
        progress(found[-1])
    return found


def measure(name: str, case: Case, repeats: int, scale: float = 1.0) -> Growth:
    sizes = [max(4 << position, round(size * scale)) for position, size in enumerate(case.sizes)]
    best = [math.inf] * len(sizes)
    for _ in range(repeats):
        for position, size in enumerate(sizes):
            best[position] = min(best[position], _seconds(case, size))
    return Growth(name, sizes, best)


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The exponent of the power that fits best."""
    xs = [math.log(size) for size in sizes]
    ys = [math.log(max(one, 1e-9)) for one in seconds]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    across = sum((x - middle_x) ** 2 for x in xs)
    return sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / across


def figures(found: Sequence[Growth]) -> dict[str, Any]:
    """As JSON."""
    return {
        one.name: {
            "sizes": list(one.sizes),
            "cpu_s": [round(each, 3) for each in one.seconds],
            "exponent": round(one.exponent, 2),
            "ratio": round(one.ratio, 2),
        }
        for one in found
    }


def read_expected(path: str) -> dict[str, float]:
    """Case → exponent. Raises `OSError`, `ValueError`."""
    found = msgspec.json.decode(Path(path).read_bytes(), type=dict[str, float])
    unknown = sorted(found.keys() - CASES.keys())
    if unknown:
        raise ValueError(f"unknown cases: {', '.join(unknown)}")
    return found


def regressions(found: Sequence[Growth], expected: Mapping[str, float]) -> list[str]:
    """Cases that grow clearly more than expected."""
    return [
        f"{one.name}: exponent {one.exponent:.2f}, expected were {expected[one.name]:.2f}, at most {MARGIN} more"
        for one in found
        if one.name in expected and one.exponent > expected[one.name] + MARGIN
    ]


def _seconds(case: Case, size: int) -> float:
    """The CPU time of one simulation, without reading its documents; Python's garbage collector is set as by
    `enbloc sim`."""
    documents = (Document("growth", number, obj) for number, obj in enumerate(case.objects(size), 1))
    simulation = Simulation(read_scenario(documents), configs.parse(case.config))
    with garbage_collector.relaxed(garbage_collector.BATCH):
        begin = time.process_time()
        result = simulation.run()
        taken = time.process_time() - begin
    if result.ended == CUT_OFF:
        raise RuntimeError(f"the simulation was cut off: {result.reason}")
    return taken
