"""The figures of `python -m benchmarks facade` are there and make sense."""

from __future__ import annotations

import pytest

from benchmarks import facade


@pytest.mark.parametrize("data", [False, True])
def test_a_small_run_gives_all_figures(data: bool) -> None:
    figures = facade.run(nodes=5, pods=200, watches=5, data=data)
    assert figures["creates_per_s"] > 0
    assert 0 < figures["ratio"] < 2
    assert figures["list_ms"] > 0
    assert figures["fan_out_events_per_s"] > 0
    assert figures["rss_mb"] < 1_000
