"""The starvation benchmark: the same for the same seed, and its picture can be drawn."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import command
from benchmarks.starvation import Load, figures, run
from benchmarks.starvation_plot import draw

LOAD = Load(nodes=6, load=0.95, hours=1, seed=3)


def test_a_large_gang_waits_less_with_help_and_the_same_each_time() -> None:
    outcomes = run(LOAD)
    none, reserve, easy = outcomes
    assert (none.policy, reserve.policy, easy.policy) == ("none", "reserve", "easy")
    assert easy.large_waited_s <= none.large_waited_s
    assert reserve.large_waited_s <= none.large_waited_s
    for one in outcomes:
        assert 0 < one.utilisation <= 1
        assert all(0 <= small + large <= LOAD.cpus for _, small, large in one.used)
        assert one.used[-1][1:] == (0, 0)
    again = run(LOAD)
    assert figures(LOAD, again) == figures(LOAD, outcomes)
    assert draw(LOAD, again) == draw(LOAD, outcomes)
    ElementTree.fromstring(draw(LOAD, outcomes))


def test_the_command_prints_json_and_draws(tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    arguments = ["starvation", "--nodes", "4", "--hours", "0.5", "-o", "json", "--plot", str(plot)]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    assert [one["policy"] for one in json.loads(done.output)["runs"]] == ["none", "reserve", "easy"]
    assert plot.read_text().startswith("<svg")


@pytest.mark.parametrize("plot", ["no/such/folder/plot.svg", "."])
def test_a_plot_that_cannot_be_written_is_reported_before_anything_runs(plot: str) -> None:
    done = CliRunner().invoke(command, ["starvation", "--plot", plot])
    assert done.exit_code == 2
    assert "--plot: " in done.output
