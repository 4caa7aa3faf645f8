"""`enbloc explain`."""

from __future__ import annotations

import json

import click
import msgspec

from enbloc.cli.asking import ask, kubeconfig_options
from enbloc.facts.overview import explain


@click.command("explain")
@click.argument("gang", metavar="NAMESPACE/NAME")
@kubeconfig_options
def command(gang: str, kubeconfig: str | None, context: str | None, output: str) -> None:
    """Why a gang waits: one sentence, the numbers behind it, and who is ahead.

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
    from enbloc.facts.tables import explanation_lines

    for line in explanation_lines(told):
        click.echo(line)
