"""`enbloc explain`."""

from __future__ import annotations

import json
import time

import click
import msgspec

from enbloc.cli.fetch import cluster_options, fetch_overview
from enbloc.inspect.overview import explain


@click.command("explain")
@click.argument("gang", metavar="NAMESPACE/NAME")
@cluster_options
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For people, or programs.")
def command(gang: str, kubeconfig: str | None, context: str | None, output: str) -> None:
    """Explain why a gang waits: the reason with numbers, the gangs ahead of it, its expected start, what would help.

    \b
    Example: enbloc explain default/bert
    """
    explanation = explain(fetch_overview(kubeconfig, context), gang)
    if explanation is None:
        click.echo(f"enbloc: there is no gang {gang} (`enbloc gangs` lists them)", err=True)
        raise click.exceptions.Exit(1)
    if output == "json":
        click.echo(json.dumps(msgspec.to_builtins(explanation)))
        return
    from enbloc.inspect.tables import explanation_lines

    for line in explanation_lines(explanation, time.time_ns()):
        click.echo(line)
