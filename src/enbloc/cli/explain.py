"""`enbloc explain`."""

from __future__ import annotations

import json
import time

import click
import msgspec

from enbloc.cli.fetch import ask, kubeconfig_options
from enbloc.inspect.overview import explain


@click.command("explain")
@click.argument("gang", metavar="NAMESPACE/NAME")
@kubeconfig_options
def command(gang: str, kubeconfig: str | None, context: str | None, output: str) -> None:
    """Why a gang waits: one sentence, the numbers behind it, who is ahead, when it is expected to start, and what
    would let it.

    \b
    Example: enbloc explain default/bert
    """
    told = explain(ask(kubeconfig, context), gang)
    if told is None:
        click.echo(f"enbloc: there is no gang {gang} (`enbloc gangs` lists them)", err=True)
        raise click.exceptions.Exit(1)
    if output == "json":
        click.echo(json.dumps(msgspec.to_builtins(told)))
        return
    from enbloc.inspect.tables import explanation_lines

    for line in explanation_lines(told, time.time_ns()):
        click.echo(line)
