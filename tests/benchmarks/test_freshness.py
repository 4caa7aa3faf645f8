"""The figures of `python -m benchmarks freshness` are there and make sense."""

from __future__ import annotations

from benchmarks import freshness


def test_the_figures_make_sense() -> None:
    figures = freshness.run(nodes=5, pods=200, writes_per_s=50, seconds=1.0)
    assert figures["answers"] > 0
    assert 0 <= figures["age_median_s"] <= figures["age_worst_s"]
    assert 0 <= figures["model_age_median_s"] <= figures["model_age_worst_s"]
    assert figures["read_changes_cpu_s"] > 0
