"""The live clock does not jump."""

from __future__ import annotations

from enbloc.runtime.clock import SteadyClock
from enbloc.units import SECOND


def test_a_wall_clock_that_jumps_moves_no_timer() -> None:
    wall, passed = [1000 * SECOND], [5 * SECOND]
    clock = SteadyClock(lambda: wall[0], lambda: passed[0])
    assert clock() == 1000 * SECOND
    passed[0] += 2 * SECOND
    wall[0] -= 3600 * SECOND
    assert clock() == 1002 * SECOND
    assert clock.skew_s() == -3602.0
