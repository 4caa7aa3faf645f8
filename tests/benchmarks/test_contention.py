"""The benchmark of contention: it decides what it says it does. Nothing is timed here."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from benchmarks import contention
from benchmarks.__main__ import command


@pytest.mark.parametrize("kind", contention.KINDS)
def test_every_decision_is_made_in_every_load(kind: str) -> None:
    figures = contention.run(nodes=60, pods=600, gang_size=8, kind=kind, seed=1, passes=2, rounds=2)
    for sort in ("preempt", "reclaim", "reserve"):
        assert figures[f"{sort}_ms"] > 0
        assert figures[f"{sort}_ratio"] > 0
    assert figures["allocate_ms"] > 0
    assert figures["victims"] > 0


def test_the_command_prints_json() -> None:
    done = CliRunner().invoke(
        command, ["contention", "--nodes", "40", "--pods", "400", "--gang-size", "4", "-o", "json"]
    )
    assert done.exit_code == 0, done.output
    assert {"allocate_ms", "reserve_ms", "preempt_ms", "reserve_ratio", "preempt_ratio"} <= json.loads(
        done.output
    ).keys()


def test_a_gang_that_is_too_large_is_reported_and_no_traceback() -> None:
    done = CliRunner().invoke(command, ["contention", "--nodes", "20", "--pods", "100", "--gang-size", "5000"])
    assert done.exit_code == 2
    assert "--gang-size: a gang of 5000 pods is not placed on the empty nodes" in done.output
