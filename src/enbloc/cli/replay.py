"""`enbloc replay`: a workload trace under one or several policies, in virtual time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from enbloc import garbage_collector
from enbloc.cli.errors import Refusal, read_config
from enbloc.config import Config
from enbloc.config.policies import POLICIES, policy_config
from enbloc.listing import plural
from enbloc.traces import batsim_output
from enbloc.traces.answer import answer_of
from enbloc.traces.cluster import Shape, shape_of, with_queues
from enbloc.traces.formats.columns import Column, parse_map
from enbloc.traces.outcome import Progress
from enbloc.traces.reading import FORMATS, BadTrace, read_trace
from enbloc.traces.replay import Estimates, Replayed, Settings, prepare, replay_all
from enbloc.traces.synthetic import PREFIX, parse_name, synthetic_trace
from enbloc.traces.text import lines
from enbloc.traces.trace import Trace, doubt
from enbloc.up.options import parse_resources


@click.command("replay")
@click.argument("trace_file", metavar="TRACE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--format", "format_name", type=click.Choice(FORMATS), help="Default: by the file's name.")
@click.option("--map", "map_text", metavar="FIELD=COLUMN[:UNIT],…", help="Columns of a CSV trace; fields: see above.")
@click.option("--nodes", type=click.IntRange(1, 20_000), help="Default: the trace's machine.")
@click.option("--node-resources", metavar="cpu=8,nvidia.com/gpu=8", help="Of each node. Default: 1 cpu, or 8 GPUs.")
@click.option("--policy", "names", multiple=True, metavar="NAME|FILE", help="May be given several times.")
@click.option(
    "--estimates",
    type=click.Choice(["users", "exact", "none"]),
    default="users",
    help="Run times that the scheduler knows: the users' limits (default), the real ones, or none.",
)
@click.option("--duration-factor", type=click.FloatRange(0, min_open=True), default=1.0, help="Multiplies run times.")
@click.option(
    "--progress",
    type=click.Choice(["kept", "lost"]),
    default="kept",
    help="A job that is evicted goes on where it was (default), or starts over.",
)
@click.option("--fast", is_flag=True, help="Engine and nodes only, without API and controllers: the same starts.")
@click.option(
    "--queues",
    type=click.Choice(["one", "trace"]),
    default="one",
    help="All jobs in one queue (default), or each in the queue that the trace names.",
)
@click.option("--strict", is_flag=True, help="Stop if a line of the trace cannot be read.")
@click.option("--batsim", metavar="PREFIX", help="Also write PREFIX_POLICY_jobs.csv and …_schedule.json.")
@click.option("--report", metavar="FILE.html", help="Also write a page: policies, waits, which gangs won and lost.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For people or for programs.")
def command(
    trace_file: Path,
    format_name: str | None,
    map_text: str | None,
    nodes: int | None,
    node_resources: str | None,
    names: tuple[str, ...],
    estimates: str,
    duration_factor: float,
    progress: str,
    fast: bool,
    queues: str,
    strict: bool,
    batsim: str | None,
    report: str | None,
    output: str,
) -> None:
    """Replay a workload trace in virtual time: what would another policy have done?

    TRACE is SWF (Parallel Workloads Archive), CSV with a header, Batsim's JSON, or `sacct --parsable`, gzip or not.
    Each job becomes a gang: up to a node's size one pod, beyond that whole nodes. TRACE may be `synthetic:JOBS[:SEED]`.

    \b
    Fields of --map: submit, duration, estimate (units ns us ms s m h), gpus | cpus | pods, id, user, queue.
    Policies by name: default, fifo, fifo-skip, easy, conservative, sjf, fair, srtf,
    srsf.
    `enbloc config --policy NAME` prints one.

    \b
    Example:
      enbloc replay last-month.swf --policy fifo --policy easy
      enbloc replay jobs.csv --map submit=submit_time:ms,duration=duration:ms,gpus=num_gpu --nodes 8
    """
    trace = _read(trace_file, format_name, map_text)
    if strict and trace.faults:
        raise Refusal([f"{trace_file}:{fault.line}: {fault.message}" for fault in trace.faults])
    if trace.guessed:
        click.echo(f"enbloc: note: columns and units are guessed, --map names others: {trace.guessed}", err=True)
    if why := doubt(trace):
        text = "are its times in another unit? For milliseconds: --map submit=COLUMN:ms,duration=COLUMN:ms"
        click.echo(f"enbloc: warning: {trace_file}: {why}: {text}", err=True)
    try:
        shape = shape_of(trace, nodes, parse_resources(node_resources) if node_resources else None)
    except ValueError as why:
        raise Refusal([str(why)]) from None
    shape = with_queues(shape, trace) if queues == "trace" else shape
    settings = Settings(shape, fast, cast(Estimates, estimates), duration_factor, progress == "kept")
    jobs, too_large = prepare(trace, settings)
    if not jobs:
        raise Refusal([f"{trace_file}: has no job that ran and fits on {plural(shape.nodes, 'node')}"])
    policies = [(name, _policy(name)) for name in names or ("default",)]
    garbage_collector.relax(garbage_collector.BATCH)
    with _progress() as bar:
        replayed = replay_all(policies, settings, jobs, bar)
    if batsim is not None:
        _write_batsim(batsim, replayed, shape)
    answer = answer_of(trace, shape, too_large, replayed)
    if report is not None:
        _write_report(report, answer, trace_file.name)
    if output == "json":
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()
    else:
        click.echo("\n".join(lines(answer)))


def _read(path: Path, format_name: str | None, map_text: str | None) -> Trace:
    if str(path).startswith(PREFIX):
        try:
            return synthetic_trace(*parse_name(str(path)))
        except ValueError as why:
            raise Refusal([str(why)]) from None
    columns: dict[str, Column] | None = None
    if map_text is not None:
        try:
            columns = parse_map(map_text)
        except ValueError as why:
            raise Refusal([f"--map: {why}"]) from None
    try:
        return read_trace(path, format_name, columns)
    except BadTrace as why:
        raise Refusal([str(why)]) from None


def _policy(name: str) -> Config:
    if name in POLICIES:
        return policy_config(name)
    if Path(name).exists():
        return read_config(name)
    raise Refusal([f"--policy: {name!r} is neither a file nor one of {', '.join(POLICIES)}"])


def _write_report(path: str, answer: dict[str, Any], title: str) -> None:
    from enbloc.web.replay_report import replay_page

    try:
        Path(path).write_text(replay_page(answer, title), encoding="utf-8")
    except OSError as why:
        raise Refusal([f"--report: {path}: {why.strerror or why}"]) from None


def _write_batsim(prefix: str, replayed: list[Replayed], shape: Shape) -> None:
    for one in replayed:
        path = f"{prefix}_{Path(one.policy).stem}"
        try:
            Path(f"{path}_jobs.csv").write_text(batsim_output.jobs_csv(one.outcomes))
            Path(f"{path}_schedule.json").write_text(batsim_output.schedule_json(one, shape))
        except OSError as why:
            raise Refusal([f"--batsim: {why.filename}: {why.strerror}"]) from None


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A progress bar on stderr with the time that is left, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        yield lambda done, total: bar.update(task, completed=done, total=total)
