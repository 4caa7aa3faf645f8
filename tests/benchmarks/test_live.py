"""`python -m benchmarks live`: what it reads of the scheduler's log."""

from __future__ import annotations

from benchmarks.live import recorder_figures
from enbloc.runtime.recorder import Cost


def test_the_share_of_the_recorder_is_read_from_its_last_line() -> None:
    cost = Cost()
    for _ in range(32):
        cost.end(cost.begin())
    cost.on_hot_path_ns, cost.of_thread_ns = 50_000_000, 150_000_000
    found = recorder_figures(f"starts\n2026-11-17 INFO {cost.text()}\n", 10.0)
    assert found == {"recorder_cpu_s": 0.2, "recorder_hot_path_share": 0.005, "recorder_share": 0.02}
    assert recorder_figures("starts\n", 10.0) == {}
