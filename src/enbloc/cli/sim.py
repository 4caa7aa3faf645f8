"""`enbloc sim`: a whole cluster in virtual time."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
import msgspec

from enbloc import garbage_collector
from enbloc.admission.settings import settings_of
from enbloc.advice.advise import advise
from enbloc.api.meta import Obj
from enbloc.cli.compat import compat_option, note_grouped_only_here, note_names_only_here
from enbloc.cli.errors import Refusal, duration_of, read_config, readable_input
from enbloc.config import Config
from enbloc.scenario.documents import Document, Finding, read_documents
from enbloc.scenario.live_objects import resumed
from enbloc.scenario.scenario import Scenario, read_scenario, with_nodes, with_run_time
from enbloc.sim.linting import lint, written_warnings
from enbloc.sim.result import CUT_OFF, Result
from enbloc.sim.simulation import Progress, Records, Simulation
from enbloc.up.options import MOST_NODES, Options, make_nodes, parse_resources

WAITING: Final = "waiting"
REJECTED: Final = "rejected"


@click.command("sim")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@compat_option
@click.option("--config", "config_file", metavar="FILE", help="Scheduler config; `enbloc config` prints the default.")
@click.option(
    "--until", metavar="DURATION", help="Stop at this virtual time (90s, 1h30m) instead of when nothing more happens."
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For people (default) or for programs."
)
@click.option("--nodes", type=click.IntRange(1, MOST_NODES), help="Add this many nodes to those of the files.")
@click.option("--node-resources", metavar="NAME=AMOUNT,...", help="Capacity of each of them [cpu=8,memory=32Gi].")
@click.option("--default-run-time", metavar="DURATION", help="How long pods run whose manifests do not say [for ever].")
@click.option(
    "--fail-on", metavar="LIST", help="Exit with 1 if a gang is `waiting` at the end, or an object was `rejected`."
)
@click.option("--strict", is_flag=True, help="Run nothing if `enbloc lint --strict` finds a fault.")
@click.option(
    "--trust-records",
    is_flag=True,
    help="The scheduler's own annotations in the files count: claims, commit marks [they are removed].",
)
@click.option("--report", metavar="FILE.html", help="Also write a page with plots, timeline and reasons.")
def command(
    files: tuple[str, ...],
    config_file: str | None,
    compat: str | None,
    until: str | None,
    output: str,
    nodes: int | None,
    node_resources: str | None,
    default_run_time: str | None,
    fail_on: str | None,
    strict: bool,
    trust_records: bool,
    report: str | None,
) -> None:
    """Simulate a cluster in virtual time: what happens, and why.

    FILE is a manifest with nodes, jobs, pods, queues, as for kubectl. A directory means its *.yaml, *.yml and *.json,
    `-` means stdin. Annotations script what happens over time:

    \b
      sim.enbloc.dev/at: 10s           on any object: when it is created
      sim.enbloc.dev/delete-at: 60s    on any object: when it is deleted
      sim.enbloc.dev/run-time: 30s     on a pod or template: how long it runs
      sim.enbloc.dev/exit-code: "1,0"  on a pod or template: how each attempt ends

    \b
    Example:
      enbloc sim examples/quickstart.yaml
      enbloc sim nodes.yaml jobs/ --until 2h -o json
      enbloc sim job.yaml --nodes 4 --node-resources cpu=64,memory=512Gi,nvidia.com/gpu=8 --fail-on waiting
      kubectl get nodes,queues,podgroups,vcjob,pods -A -o yaml | enbloc sim -
      enbloc snapshot | enbloc sim - job.yaml
    """
    until_ns = duration_of("--until", until)
    failing = _fail_on(fail_on)
    if default_run_time is not None:
        duration_of("--default-run-time", default_run_time)
    config = read_config(config_file, compat)
    documents, scenario = _read(files, config, strict=strict)
    if nodes is not None or node_resources is not None:
        scenario = with_nodes(scenario, _nodes(nodes or 1, node_resources))
    if default_run_time is not None:
        scenario = with_run_time(scenario, default_run_time)
    garbage_collector.relax(garbage_collector.BATCH)
    simulation = Simulation(scenario, config, records=Records.TRUSTED if trust_records else Records.STRIPPED)
    with _progress(scenario) as progress:
        result = simulation.run(until_ns, progress)
    advise(simulation, result)
    warned = written_warnings(documents, settings_of(config, alone=True))
    result = msgspec.structs.replace(result, warnings=warned)
    if report is not None:
        _write_report(result, report, files)
    _print(result, output)
    if _has_failed(result, failing):
        raise click.exceptions.Exit(1)


def _read(files: tuple[str, ...], config: Config, *, strict: bool) -> tuple[list[Document], Scenario]:
    """The files, and the scenario that they describe, with records of a cluster that ran before."""
    with readable_input():
        documents = read_documents(files)
        scenario = read_scenario(documents)
    note_names_only_here(config, (document.value for document in documents))
    note_grouped_only_here(config, (document.value for document in documents))
    scenario = resumed(scenario)
    if strict:
        _refuse_faults(lint(documents, settings_of(config, alone=True), strict=True).faults)
    return documents, scenario


def _has_failed(result: Result, failing: frozenset[str]) -> bool:
    if result.ended == CUT_OFF:
        click.echo(f"enbloc: cut off: {result.reason}", err=True)
        return True
    return (WAITING in failing and bool(result.pending)) or (REJECTED in failing and bool(result.summary["rejected"]))


def _fail_on(text: str | None) -> frozenset[str]:
    wanted = frozenset(part.strip() for part in (text or "").split(",") if part.strip())
    unknown = sorted(wanted - {WAITING, REJECTED})
    if unknown:
        raise Refusal([f"--fail-on: {unknown[0]!r} is none of {WAITING}, {REJECTED}"])
    return wanted


def _nodes(count: int, resources: str | None) -> list[Obj]:
    try:
        given = parse_resources(resources) if resources is not None else None
    except ValueError as why:
        raise Refusal([f"--node-resources: {why}"]) from None
    return make_nodes(Options(nodes=count, resources=given), load_brings_nodes=False)


def _refuse_faults(faults: Sequence[Finding]) -> None:
    if faults:
        for fault in faults:
            click.echo(str(fault), err=True)
        raise click.exceptions.Exit(1)


def _print(result: Result, output: str) -> None:
    if output == "json":
        sys.stdout.flush()
        result.write_json(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    from enbloc.sim.text import print_result

    print_result(result)


def _write_report(result: Result, path: str, files: Sequence[str]) -> None:
    from io import BytesIO

    from enbloc.web.report import report_page

    answer = BytesIO()
    result.write_json(answer)
    page = report_page(msgspec.json.decode(answer.getvalue()), f"enbloc sim {' '.join(files)}")
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as why:
        raise Refusal([f"--report: {path}: {why.strerror}"]) from None


@contextmanager
def _progress(scenario: Scenario) -> Iterator[Progress | None]:
    """A progress bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("virtual time 0s", total=len(scenario.events))

        def update(virtual_s: float, done: int, total: int) -> None:
            bar.update(task, description=f"virtual time {virtual_s:,.0f}s", completed=done, total=total)

        yield update
