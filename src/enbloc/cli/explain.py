"""`enbloc explain`."""

from __future__ import annotations

import json
import time
from typing import Final

import click
import msgspec

from enbloc.api.meta import Obj
from enbloc.cli.compat import compat_option
from enbloc.cli.errors import duration_of, read_config, readable_input
from enbloc.cli.fetch import cluster_options, fetch
from enbloc.config import Config
from enbloc.inspect.overview import UNKNOWN
from enbloc.sim.snapshot import KINDS, NEEDED
from enbloc.units import SECOND

CLUSTER: Final = "cluster"


@click.command("explain")
@click.argument("gang", metavar="NAMESPACE/NAME")
@cluster_options
@compat_option
@click.option(
    "--from",
    "source",
    default=CLUSTER,
    metavar="FILE|cluster",
    help="A snapshot, a scenario, or the cluster [cluster].",
)
@click.option("--until", metavar="DURATION", help="Of a scenario: ask at this time, not at its end.")
@click.option("--config", "config_file", metavar="FILE", help="The scheduler's config; `enbloc config` prints it.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For people, or programs.")
def command(
    gang: str,
    kubeconfig: str | None,
    context: str | None,
    compat: str | None,
    source: str,
    until: str | None,
    config_file: str | None,
    output: str,
) -> None:
    """Explain why a gang waits: the reason with numbers, what is in the way, what to do, when it is expected to start.

    NAME is that of a Job, PodGroup, pod, or of anything that makes pods. What is said to help was tried: on a copy of
    the cluster in virtual time the gang starts. A scenario is run first. Nothing is written to the cluster.

    \b
    Example:
      enbloc explain default/bert
      enbloc explain bert --from now.yaml -o json
    """
    from enbloc.advice.explanation import explain, nearest_gang

    until_ns = duration_of("--until", until)
    config, scheduler = read_config(config_file, compat), UNKNOWN
    if source == CLUSTER:
        fetched = fetch(kubeconfig, context, (*KINDS, "Event"), NEEDED)
        objects, now_ns = [obj for found in fetched.lists.values() for obj in found], time.time_ns() // SECOND * SECOND
        scheduler = fetched.scheduler
        config = config if config_file or compat else fetched.config
    else:
        objects, now_ns = _read(source, config, until_ns)
    explanation = explain(objects, now_ns, config, gang, scheduler)
    if explanation is None:
        near = nearest_gang(objects, config, gang)
        hint = f"; did you mean {near}?" if near else " (`enbloc gangs` lists them)"
        click.echo(f"enbloc: there is no gang {gang}{hint}", err=True)
        raise click.exceptions.Exit(1)
    if output == "json":
        click.echo(json.dumps(msgspec.to_builtins(explanation)))
        return
    from enbloc.inspect.tables import explanation_lines

    for line in explanation_lines(explanation, now_ns):
        click.echo(line)


def _read(source: str, config: Config, until_ns: int | None) -> tuple[list[Obj], int]:
    """A snapshot as it is; a scenario at its end, or at a time."""
    from enbloc.library.explanation import situation_of
    from enbloc.scenario.documents import read_documents
    from enbloc.scenario.scenario import read_scenario

    with readable_input():
        return situation_of(read_scenario(read_documents([source])), config, until_ns)
