"""The figures of `python -m benchmarks webhook` are there and make sense."""

from __future__ import annotations

from benchmarks import webhook


def test_a_small_run_gives_all_figures() -> None:
    figures = webhook.run(clients=10, reviews=20)
    assert figures["slow_clients"] == 10
    assert 0 < figures["review_ms"] <= figures["longest_ms"]
    assert figures["reference_ms"] > 0
    assert figures["ratio"] > 0
