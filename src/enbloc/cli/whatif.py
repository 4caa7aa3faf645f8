"""`enbloc whatif`: what a change would do to a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click
import msgspec

from enbloc import garbage_collector
from enbloc.cli.compat import compat_option
from enbloc.cli.errors import Refusal, read_config, readable_input
from enbloc.cli.fetch import cluster_options
from enbloc.cli.listing import aligned
from enbloc.config import Config
from enbloc.scenario.documents import Document, read_documents
from enbloc.scenario.live_objects import resumed
from enbloc.scenario.scenario import Scenario, read_scenario, with_run_time
from enbloc.sim import whatif
from enbloc.sim.clock import EPOCH
from enbloc.sim.whatif_text import COLUMNS, as_json, cells, notes
from enbloc.units import format_timestamp, parse_duration
from enbloc.up.options import MOST_NODES

CLUSTER: Final = "cluster"
UNTIL: Final = "24h"
_SHARED: Final = ("source", "until", "default_run_time", "output")


class _Asked(msgspec.Struct, frozen=True):
    """The options that every change shares."""

    source: str
    kubeconfig: str | None
    context: str | None
    config: Config
    until: str
    default_run_time: str | None
    output: str


@click.group("whatif", invoke_without_command=False)
@cluster_options
@compat_option
@click.option("--from", "source", default=CLUSTER, metavar="FILE|cluster", help="A snapshot, or the cluster [cluster].")
@click.option("--config", "config_file", metavar="FILE", help="The scheduler's config; `enbloc config` prints it.")
@click.option("--until", default=UNTIL, metavar="DURATION", help=f"How far to look ahead [{UNTIL}].")
@click.option("--default-run-time", metavar="DURATION", help="How long pods run whose manifests do not say [for ever].")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For people or for programs.")
@click.pass_context
def command(
    ctx: click.Context,
    kubeconfig: str | None,
    context: str | None,
    compat: str | None,
    source: str,
    config_file: str | None,
    until: str,
    default_run_time: str | None,
    output: str,
) -> None:
    """Say what a change would do to a cluster: which gangs start when, which pods are evicted.

    Takes a snapshot and simulates it twice with the scheduler that runs live, without the change and with it. Nothing
    is written to the cluster.

    \b
    Example:
      enbloc whatif submit job.yaml
      enbloc whatif --from now.yaml drain node-7
      enbloc whatif add-nodes 4 --like node-7
      enbloc whatif set queue/research capability.cpu=32
      enbloc whatif config new-config.yaml
    """
    _check_durations(until, default_run_time)
    config = read_config(config_file, compat)
    ctx.obj = _Asked(source, kubeconfig, context, config, until, default_run_time, output)


def _change(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """A command for one change. What all of them share may also stand after it: `whatif drain node-7 -o json`."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @command.command(name)
        @click.option("--from", "source", metavar="FILE|cluster", help="A snapshot, or the cluster.")
        @click.option("--until", metavar="DURATION", help="How far to look ahead.")
        @click.option("--default-run-time", metavar="DURATION", help="How long pods run that do not say.")
        @click.option("-o", "--output", type=click.Choice(["text", "json"]), help="For people or for programs.")
        @click.pass_obj
        @wraps(function)
        def run(asked: _Asked, /, **given: Any) -> None:
            shared = {key: value for key in _SHARED if (value := given.pop(key)) is not None}
            _check_durations(shared.get("until"), shared.get("default_run_time"))
            function(msgspec.structs.replace(asked, **shared), **given)

        return run

    return decorate


def _check_durations(until: str | None, default_run_time: str | None) -> None:
    for option, text in (("--until", until), ("--default-run-time", default_run_time)):
        if text is not None:
            _check_duration(option, text)


def _check_duration(option: str, text: str) -> None:
    try:
        good = parse_duration(text) > 0
    except ValueError as why:
        raise Refusal([f"{option}: {why}"]) from None
    if not good:
        raise Refusal([f"{option}: {text!r} is not above 0"])


@_change("submit")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def submit(asked: _Asked, files: tuple[str, ...]) -> None:
    """These manifests are applied."""
    with readable_input():
        submitted = read_scenario(read_documents(files))
    _answer(asked, f"{', '.join(files)} submitted", lambda now: whatif.with_submitted(now, submitted))


@_change("drain")
@click.argument("node", metavar="NODE")
def drain(asked: _Asked, node: str) -> None:
    """A node is cordoned and its pods are evicted. Disruption budgets are not asked."""
    _answer(asked, f"node {node} drained", lambda now: whatif.with_drained(now, node))


@_change("add-nodes")
@click.argument("count", type=click.IntRange(1, MOST_NODES), metavar="N")
@click.option("--like", required=True, metavar="NODE", help="The node that they are like.")
def add_nodes(asked: _Asked, count: int, like: str) -> None:
    """Nodes like an existing one are added."""
    what = f"{count} node{'' if count == 1 else 's'} like {like} added"
    _answer(asked, what, lambda now: whatif.with_added_nodes(now, count, like))


@_change("set")
@click.argument("target", metavar="queue/NAME")
@click.argument("assignments", nargs=-1, required=True, metavar="FIELD=VALUE...")
def set_fields(asked: _Asked, target: str, assignments: tuple[str, ...]) -> None:
    """Fields of a queue are set: weight, priority, reclaimable, capability.RESOURCE, deserved.RESOURCE."""
    kind, slash, name = target.partition("/")
    if kind not in ("queue", "queues", "q") or not slash or not name:
        raise Refusal([f"{target!r}: queue/NAME is expected"])
    what = f"queue {name} with {', '.join(assignments)}"
    _answer(asked, what, lambda now: whatif.with_queue_set(now, name, assignments))


@_change("config")
@click.argument("file", metavar="FILE")
def other_config(asked: _Asked, file: str) -> None:
    """The scheduler gets another config."""
    _answer(asked, f"config {file}", lambda now: now, read_config(file))


def _answer(asked: _Asked, what: str, change: Callable[[Scenario], Scenario], config: Config | None = None) -> None:
    with readable_input():
        now = resumed(read_scenario(_documents(asked)))
    try:
        changed = change(now)
    except (whatif.Unknown, ValueError) as why:
        raise Refusal([str(why)]) from None
    if asked.default_run_time is not None:
        now, changed = (with_run_time(one, asked.default_run_time) for one in (now, changed))
    garbage_collector.relax(garbage_collector.BATCH)
    comparison = whatif.compare(now, changed, (asked.config, config or asked.config), parse_duration(asked.until))
    at = format_timestamp(now.begin_ns if now.begin_ns is not None else EPOCH)
    if asked.output == "json":
        click.echo(json.dumps(as_json(comparison, what, at)))
        return
    _print(comparison, what, at, asked)


def _documents(asked: _Asked) -> list[Document]:
    if asked.source != CLUSTER:
        return read_documents([asked.source])
    from enbloc.cli.snapshot import take

    taken = take(asked.kubeconfig, asked.context)
    return [Document(CLUSTER, number, value) for number, value in enumerate(taken, start=1)]


def _print(comparison: whatif.Comparison, what: str, at: str, asked: _Asked) -> None:
    source = "the cluster" if asked.source == CLUSTER else asked.source
    click.echo(f"{source} as of {at}, with {what}:\n")
    rows: list[Any] = [cells(one) for one in comparison.differences]
    if rows:
        for line in aligned([COLUMNS, *rows]):
            click.echo(line)
        click.echo()
    for note in notes(comparison, asked.until):
        click.echo(note)
