"""`python -m benchmarks growth`: exponents, and what is a regression. Small loads: nothing here depends on time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import growth
from benchmarks.__main__ import command
from benchmarks.growth_cases import CASES
from enbloc import config as configs
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.result import IDLE
from enbloc.sim.simulation import Simulation

EXPECTED = Path(__file__).parents[2] / "benchmarks" / "growth.json"


def test_exponent_of_a_power() -> None:
    sizes = (10, 20, 40)
    assert growth.slope(sizes, [0.1, 0.2, 0.4]) == pytest.approx(1)
    assert growth.slope(sizes, [0.1, 0.4, 1.6]) == pytest.approx(2)


def test_the_smallest_scale_leaves_sizes_of_which_an_exponent_can_be_computed() -> None:
    found = growth.measure("bare-pods", CASES["bare-pods"]._replace(sizes=(20, 40, 80)), 1, 0.05)
    assert list(found.sizes) == [4, 8, 16]
    assert found.exponent == found.exponent, "a number"


def test_only_a_clearly_larger_exponent_is_a_regression() -> None:
    linear, square = growth.Growth("fifo", (1, 2, 4), (1, 2, 4)), growth.Growth("queues", (1, 2, 4), (1, 4, 16))
    assert growth.regressions([linear, square], {"fifo": 0.8, "queues": 1.9}) == []
    worse = growth.regressions([linear, square], {"fifo": 0.5, "queues": 1.2})
    assert [one.partition(":")[0] for one in worse] == ["fifo", "queues"]


def test_committed_expectations_name_every_case() -> None:
    assert growth.read_expected(str(EXPECTED)).keys() == CASES.keys()


def test_every_case_can_be_read() -> None:
    for case in CASES.values():
        documents = (Document("growth", number, obj) for number, obj in enumerate(case.objects(4), 1))
        assert any(read_scenario(documents).arrivals)


@pytest.mark.parametrize("name", ["queues", "depends-chain", "nonstrict-groups", "queue-jobs"])
def test_cases_run_to_their_end(name: str) -> None:
    case, size = CASES[name], 4
    documents = (Document("growth", number, obj) for number, obj in enumerate(case.objects(size), 1))
    result = Simulation(read_scenario(documents), configs.parse(case.config)).run()
    assert result.ended == IDLE
    assert any(line.what == "bound" for line in result.timeline)


def test_command_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    expected = tmp_path / "expected.json"
    expected.write_text(json.dumps({"no-such-case": 1.0}))
    for arguments in (["--case", "no-such-case"], ["--expect", str(expected)], ["--expect", str(tmp_path)]):
        done = CliRunner().invoke(command, ["growth", *arguments])
        assert (done.exit_code != 0 and "no-such-case" in done.output) or str(tmp_path) in done.output
