"""Synthetic traces: the same from the same seed, as loaded as asked; and what a long replay keeps in memory."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from tests.support.memory_sizes import sizes

from enbloc.cli.replay import command
from enbloc.config.policies import policy_config
from enbloc.traces.cluster import shape_of
from enbloc.traces.fast import FastReplay
from enbloc.traces.synthetic import parse_name, synthetic_trace
from enbloc.units import SECOND


def test_a_seed_gives_one_trace() -> None:
    assert synthetic_trace(300, 7) == synthetic_trace(300, 7)
    assert synthetic_trace(300, 7).jobs != synthetic_trace(300, 8).jobs


def test_the_load_is_as_asked_for_and_jobs_are_plausible() -> None:
    trace = synthetic_trace(5_000, 1, gpus=256, load=0.7)
    span_ns = trace.jobs[-1].submit_ns
    work = sum(job.units * job.run_ns for job in trace.jobs)
    assert 0.55 < work / (256 * span_ns) < 0.9
    assert all(job.estimate_ns is not None and job.run_ns >= 5 * SECOND for job in trace.jobs)
    assert {job.units for job in trace.jobs} == {1, 2, 4, 8, 16, 32, 64}
    assert [job.submit_ns for job in trace.jobs] == sorted(job.submit_ns for job in trace.jobs)


def test_names_of_synthetic_traces() -> None:
    assert parse_name("synthetic:100") == (100, 0)
    assert parse_name("synthetic:100:3") == (100, 3)
    for bad in ("synthetic:", "synthetic:x", "synthetic:0", "synthetic:1:2:3", "synthetic:99999999999"):
        with pytest.raises(ValueError, match="is not synthetic:JOBS"):
            parse_name(bad)
    assert CliRunner().invoke(command, ["synthetic:none"]).exit_code == 2


def test_the_command_replays_a_synthetic_trace() -> None:
    shown = CliRunner().invoke(command, ["synthetic:60:1", "--fast", "--policy", "easy", "-o", "json"])
    answer = json.loads(shown.output)
    assert (answer["trace"]["jobs"], answer["cluster"]["nodes"]) == (60, 64)


def _left_after(jobs: int) -> dict[str, int]:
    """What the engine still holds after a replay."""
    trace = synthetic_trace(jobs, 1, gpus=128)
    replay = FastReplay(shape_of(trace, None, None), policy_config("fifo-skip"))
    outcomes = replay.run(trace.jobs)
    assert all(outcome.end_ns is not None for outcome in outcomes)
    return dict(sizes(replay._engine))


def test_the_engine_keeps_nothing_of_jobs_that_have_ended() -> None:
    few, many = _left_after(100), _left_after(400)
    grown = {name: (few.get(name, 0), count) for name, count in many.items() if count > few.get(name, 0) + 150}
    assert not grown


@pytest.mark.soak
def test_80_000_jobs_in_one_go() -> None:
    """Results grow with the trace, 80,000 outcomes of some hundred bytes; the engine does not."""
    few, many = _left_after(2_000), _left_after(80_000)
    grown = {name: (few.get(name, 0), count) for name, count in many.items() if count > 2 * few.get(name, 0) + 1_000}
    assert not grown
