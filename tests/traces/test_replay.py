"""Replays: known schedules worked out by hand, the whole stack against `--fast`, and figures from the literature."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from tests.support.real_traces import TRACES, needs_traces

from enbloc.cli.replay import command
from enbloc.config import parse, render
from enbloc.config.policies import POLICIES, policy_config
from enbloc.traces.batsim_output import jobs_csv
from enbloc.traces.cluster import Part, shape_of, with_queues
from enbloc.traces.comparison import compare, size_class
from enbloc.traces.formats.columns import parse_map
from enbloc.traces.measures import measure
from enbloc.traces.outcome import Outcome
from enbloc.traces.reading import read_trace
from enbloc.traces.replay import Replayed, Settings, prepare, replay
from enbloc.traces.trace import GPU, Trace, TraceJob
from enbloc.units import SECOND


def _job(name: str, submit: int, run: int, units: int, estimate: int | None = None) -> TraceJob:
    return TraceJob(name, submit * SECOND, run * SECOND, units, (estimate or run) * SECOND)


FOUR = [
    _job("runs", 0, 100, 3),
    _job("head", 1, 50, 4),  # needs all four processors: at 100
    _job("short", 2, 90, 1),  # ends at 92, before the head starts
    _job("long", 3, 200, 1),  # would delay the head
]


def _outcomes(
    policy: str, jobs: Sequence[TraceJob], processors: int, *, fast: bool = True, keeps_progress: bool = True
) -> list[Outcome]:
    trace = Trace(list(jobs), processors=processors)
    settings = Settings(shape_of(trace, None, None), fast, keeps_progress=keeps_progress)
    return replay(policy, policy_config(policy), settings, prepare(trace, settings)[0]).outcomes


def _starts(policy: str, jobs: Sequence[TraceJob], processors: int, *, fast: bool = True) -> list[float | None]:
    return [_seconds(outcome.start_ns) for outcome in _outcomes(policy, jobs, processors, fast=fast)]


def _seconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / SECOND


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        ("fifo", [0, 100, 150, 150]),
        ("fifo-skip", [0, 203 + 89, 2, 92]),
        ("easy", [0, 100, 2, 150]),
        ("conservative", [0, 100, 2, 150]),
        ("sjf", [0, 292, 2, 92]),
        ("srtf", [0, 1, 51, 141]),
        ("srsf", [0, 1, 2, 3]),
    ],
)
def test_four_jobs_by_hand(policy: str, starts: list[float], fast: bool) -> None:
    assert _starts(policy, FOUR, 4, fast=fast) == starts


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        ("srtf", [150, 51, 141, 341]),  # "head" evicts "runs", which goes on at 51 with 99 s left
        ("srsf", [190, 252, 92, 203]),  # "runs" is evicted twice, at 1 and 3; "head" at 2, with 49 s left
    ],
)
def test_evicted_jobs_go_on_where_they_were(policy: str, ends: list[float], fast: bool) -> None:
    outcomes = _outcomes(policy, FOUR, 4, fast=fast)
    assert [_seconds(outcome.end_ns) for outcome in outcomes] == ends
    assert [outcome.evicted for outcome in outcomes] == ([1, 0, 0, 0] if policy == "srtf" else [2, 1, 0, 0])
    assert outcomes[0].wait_ns == (ends[0] - 100) * SECOND  # all the time that it did not get on


@pytest.mark.parametrize("fast", [True, False])
def test_without_checkpoints_an_evicted_job_starts_over(fast: bool) -> None:
    outcomes = _outcomes("srtf", FOUR[:2], 4, fast=fast, keeps_progress=False)
    assert [_seconds(outcome.end_ns) for outcome in outcomes] == [51 + 100, 51]


def test_easy_lets_a_long_job_use_what_the_head_does_not_need() -> None:
    jobs = [_job("a", 0, 100, 2), _job("b", 0, 200, 1), _job("head", 1, 50, 4), _job("long", 2, 1000, 1)]
    assert _starts("easy", jobs, 6) == [0, 0, 100, 2]


def test_conservative_backfill_delays_no_gang_that_waits() -> None:
    """EASY protects the first gang that waits alone: there "late" starts at 3, and delays "second" from 110 to 203."""
    jobs = [
        _job("runs", 0, 100, 3),
        _job("head", 1, 10, 4),  # at 100
        _job("second", 2, 50, 4),  # at 110
        _job("late", 3, 97, 1),  # ends at 100: fits before the head
        _job("later", 4, 90, 1),  # has to wait: one processor is left until 100
    ]
    assert _starts("conservative", jobs, 4) == [0, 100, 110, 3, 160]
    jobs = [
        _job("runs", 0, 100, 2),
        _job("head", 1, 50, 3),  # at 100, beside one free processor
        _job("second", 2, 50, 4),  # at 150
        _job("long", 3, 500, 1),  # delays not the head, but the second
    ]
    assert _starts("easy", jobs, 4) == [0, 100, 503, 3]
    assert _starts("conservative", jobs, 4) == [0, 100, 150, 200]


def test_conservative_backfill_counts_what_a_gang_itself_has_taken() -> None:
    """A gang of two roles beside a plan: its second role does not get the room of its first one once more."""
    jobs = [
        TraceJob("runs", 0, 100 * SECOND, 8, 100 * SECOND),
        TraceJob("head", SECOND, 50 * SECOND, 24, 50 * SECOND),  # all three nodes, at 100
        TraceJob("two", 2 * SECOND, 60 * SECOND, 12, 60 * SECOND),  # a whole node and half of another
        TraceJob("long", 3 * SECOND, 900 * SECOND, 4, 900 * SECOND),
    ]
    trace = Trace(jobs, GPU)
    for fast in (True, False):
        settings = Settings(shape_of(trace, 3, None), fast)
        found = replay("conservative", policy_config("conservative"), settings, prepare(trace, settings)[0]).outcomes
        assert [_seconds(one.start_ns) for one in found] == [0, 100, 2, 150]


def test_sjf_orders_by_estimates() -> None:
    jobs = [_job("a", 0, 10, 1), _job("slow", 1, 10, 1, 50), _job("quick", 2, 10, 1, 20)]
    assert _starts("sjf", jobs, 1) == [0, 20, 10]


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 20))])
@pytest.mark.parametrize("policy", [*POLICIES])
def test_the_whole_stack_starts_jobs_as_the_engine_alone_does(policy: str, seed: int) -> None:
    dice, users = random.Random(f"{policy}{seed}"), random.Random(seed)
    jobs, at = [], 0
    for number in range(25):
        at += dice.choice((0, 0, 5, 30))
        run = dice.randint(1, 120)
        job = _job(str(number), at, run, dice.randint(1, 6), run + dice.choice((0, 0, 40)))
        jobs.append(msgspec.structs.replace(job, user=users.choice(("", "ann", "bob"))))
    assert _starts(policy, jobs, 6, fast=True) == _starts(policy, jobs, 6, fast=False)


def test_large_jobs_take_whole_nodes() -> None:
    shape = shape_of(Trace([_job("a", 0, 1, 20)], GPU), 3, None)
    assert shape.per_node == 8
    assert shape.parts(_job("a", 0, 1, 20)) == (Part("worker", 2, 8), Part("rest", 1, 4))
    assert shape.parts(_job("a", 0, 1, 3)) == (Part("worker", 1, 3),)
    assert shape.fits(_job("a", 0, 1, 24))
    assert not shape.fits(_job("a", 0, 1, 25))


def test_measures_by_hand() -> None:
    outcomes = [
        Outcome(_job("a", 0, 100, 1), 0, 100 * SECOND),
        Outcome(_job("b", 0, 1, 1), 99 * SECOND, 100 * SECOND),
        Outcome(_job("c", 0, 1, 1), None, None),
    ]
    found = measure(outcomes, 2)
    assert (found["jobs"], found["unfinished"]) == (3, 1)
    assert (found["mean_wait_s"], found["p50_wait_s"], found["p99_wait_s"]) == (49.5, 0.0, 99.0)
    assert found["mean_bounded_slowdown"] == (1 + 10) / 2  # 100 s for a job that counts as 10 s
    assert (found["mean_jct_s"], found["makespan_s"]) == (100.0, 100.0)
    assert found["utilisation"] == 101 / 200


def test_a_comparison_says_which_jobs_changed() -> None:
    one, other = _job("one", 0, 10, 1), _job("other", 0, 10, 4)
    before = Replayed("fifo", [Outcome(one, 0, 1), Outcome(other, 50 * SECOND, 1)], {})
    after = Replayed("easy", [Outcome(one, 30 * SECOND, 1), Outcome(other, 0, 1)], {})
    found = compare(before, after)
    assert (found["sooner"], found["later"]) == (1, 1)
    assert found["by_size"] == [
        {"name": "1", "jobs": 1, "sooner": 0, "later": 1, "mean_wait_before_s": 0.0, "mean_wait_after_s": 30.0},
        {"name": "3-4", "jobs": 1, "sooner": 1, "later": 0, "mean_wait_before_s": 50.0, "mean_wait_after_s": 0.0},
    ]
    assert [change["job"] for change in found["most_changed"]] == ["other", "one"]


def test_sizes_are_powers_of_two() -> None:
    assert [size_class(units) for units in (1, 2, 3, 4, 5, 8, 9)] == ["1", "2", "3-4", "3-4", "5-8", "5-8", "9-16"]


def test_batsims_columns() -> None:
    job = TraceJob("7", SECOND, 10 * SECOND, 3, 20 * SECOND)
    header, row = jobs_csv([Outcome(job, 5 * SECOND, 15 * SECOND, (0, 1, 2, 5)), Outcome(job, None, None)]).split()[:2]
    assert dict(zip(header.split(","), row.split(","), strict=False))["waiting_time"] == "4.0"
    assert jobs_csv([Outcome(job, 5 * SECOND, 15 * SECOND, (0, 1, 2, 5))]).endswith("1.4,0-2 5,-1,\n")


@pytest.mark.parametrize("fast", [True, False])
def test_jobs_are_in_the_queues_that_the_trace_names(fast: bool) -> None:
    """By usage of queues: `b` used nothing yet when the processor is free at 100. Queue names need not be valid."""
    config = parse({"actions": "allocate", "tiers": [{"plugins": [{"name": "fair", "arguments": {"by": "queue"}}]}]})
    jobs = [
        TraceJob("a1", 0, 100 * SECOND, 1, queue="Big_GPU"),
        TraceJob("a2", SECOND, 10 * SECOND, 1, queue="Big_GPU"),
        TraceJob("b1", 2 * SECOND, 10 * SECOND, 1, queue=""),
    ]
    trace = Trace(jobs, processors=1, queues={"Big_GPU": 2})
    shape = with_queues(shape_of(trace, None, None), trace)
    assert shape.queues == {"big-gpu": 2, "default": 1}
    for cluster, starts in ((shape, [0, 110, 100]), (shape._replace(queues=None), [0, 100, 110])):
        found = replay("fair", config, Settings(cluster, fast), jobs).outcomes
        assert [_seconds(one.start_ns) for one in found] == starts


@pytest.mark.parametrize("name", [*POLICIES])
def test_a_policy_is_a_config_that_can_be_printed_and_read(name: str) -> None:
    import yaml

    config = policy_config(name)
    assert parse(yaml.safe_load(render(config))) == config


# ---- the command


def _run(tmp_path: Path, *arguments: str, trace: str = "submit,duration,gpus\n0,10,8\n0,10,16\n5,10,4\nx,1,1\n") -> str:
    path = tmp_path / "trace.csv"
    path.write_text(trace)
    result = CliRunner().invoke(command, [str(path), *arguments])
    return f"{result.exit_code} {result.output}"


def test_the_command_answers_in_json(tmp_path: Path) -> None:
    columns = "submit=submit,duration=duration,gpus=gpus"  # nothing is guessed, so nothing is noted
    options = ["--map", columns, "--nodes", "2", "--policy", "fifo", "--fast", "-o", "json"]
    answer = json.loads(_run(tmp_path, *options)[2:])
    assert answer["trace"]["bad_lines"] == 1
    assert answer["cluster"] == {"nodes": 2, "resource": GPU, "per_node": 8}
    (fifo,) = answer["policies"]
    assert [start["start"] for start in fifo["starts"]] == [0.0, 10.0, 20.0]
    assert round(fifo["mean_wait_s"], 3) == 8.333


def test_the_command_compares_policies_in_processes(tmp_path: Path) -> None:
    shown = _run(tmp_path, "--nodes", "2", "--policy", "fifo", "--policy", "fifo-skip", "--batsim", str(tmp_path / "b"))
    assert "fifo-skip against fifo: 1 job starts sooner, 1 later" in shown
    assert "line 5: submit: 'x' is not a number" in shown
    assert (tmp_path / "b_fifo_jobs.csv").exists()
    assert json.loads((tmp_path / "b_fifo-skip_schedule.json").read_text())["nb_jobs_finished"] == 3


def test_the_report_is_one_page_with_every_policy_and_who_won_and_lost(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    shown = _run(tmp_path, "--nodes", "2", "--policy", "fifo", "--policy", "fifo-skip", "--report", str(page), "--fast")
    assert shown.startswith("0 "), shown
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "<script" not in text
    assert "://" not in text
    for words in ("fifo-skip against fifo", "1 wins, 1 loses", "3 jobs on 2 nodes", "Waits, as shares of all jobs"):
        assert words in text, words
    assert re.findall(r"</div>([+-]\d+%)", text) == ["-100%", "+50%"]  # the change, not the ratio
    assert "5-8" in text  # a size class


def test_a_report_shows_hostile_names_as_text(tmp_path: Path) -> None:
    trace = "id,submit,duration,gpus,user\n<b>1</b>,0,10,8,<script>x</script>\n2,0,10,8,b\n3,1,10,16,c\n"
    page = tmp_path / "report.html"
    _run(tmp_path, "--nodes", "1", "--policy", "fifo", "--policy", "sjf", "--report", str(page), "--fast", trace=trace)
    assert "<script" not in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--report", "/no/such/place.html"), "--report: /no/such/place.html"),
        (("--strict",), "trace.csv:5: submit: 'x' is not a number"),
        (("--policy", "none"), "--policy: 'none' is neither a file nor one of default"),
        (("--map", "x"), "--map: 'x' is not FIELD=COLUMN"),
        (("--node-resources", "cpu=4"), "--node-resources: the trace's jobs ask for nvidia.com/gpu"),
        (("--nodes", "1", "--node-resources", "nvidia.com/gpu=1"), "has no job that ran and fits on 1 node"),
    ],
)
def test_bad_usage_is_refused_in_one_line(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    shown = _run(tmp_path, *arguments)
    assert shown.startswith("2 ")
    assert says in shown


# ---- figures from the literature


@needs_traces
@pytest.mark.soak
@pytest.mark.parametrize(
    ("trace_name", "policy", "mean_jct_s"),
    [
        ("muri1", "srtf", 1_370_603),
        ("muri1", "srsf", 980_141),
        ("muri1_pr", "srtf", 2_303_544),
        ("muri1_pr", "srsf", 1_801_860),
    ],
)
def test_the_muri_traces_agree_within_3_percent(trace_name: str, policy: str, mean_jct_s: int) -> None:
    columns = parse_map("submit=submit_time:ms,duration=duration:ms,gpus=num_gpu")
    trace = read_trace(TRACES / f"{trace_name}.csv", None, columns)
    settings = Settings(shape_of(trace, 8, None), True, "exact", 1.015)
    jobs, _ = prepare(trace, settings)
    found = replay(policy, policy_config(policy), settings, jobs).measures
    assert found["unfinished"] == 0
    assert abs(found["mean_jct_s"] / mean_jct_s - 1) < 0.03


@needs_traces
@pytest.mark.soak
@pytest.mark.parametrize(
    ("policy", "estimates", "mean_wait_s", "slowdown"),
    [("fifo", "users", 15_675, 140.2), ("easy", "users", 3_689, 18.3), ("easy", "exact", 3_300, 14.6)],
)
def test_the_sdsc_trace_agrees_to_the_second(policy: str, estimates: str, mean_wait_s: int, slowdown: float) -> None:
    trace = read_trace(TRACES / "sdsc5k.swf")
    settings = Settings(shape_of(trace, None, None), True, estimates)  # type: ignore[arg-type]
    jobs, _ = prepare(trace, settings)
    assert len(jobs) == 4_606
    found = replay(policy, policy_config(policy), settings, jobs).measures
    assert round(found["mean_wait_s"]) == mean_wait_s
    assert round(found["mean_bounded_slowdown"], 1) == slowdown
