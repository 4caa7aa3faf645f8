"""`enbloc queues`."""

from __future__ import annotations

import json

import click

from enbloc.cli.fetch import fetch_overview, kubeconfig_options
from enbloc.inspect.overview import queues_json


@click.command("queues")
@kubeconfig_options
def command(kubeconfig: str | None, context: str | None, output: str) -> None:
    """List queues: what runs in them, what waits, what they use.

    Reads the cluster of KUBECONFIG, real or embedded.
    """
    overview = fetch_overview(kubeconfig, context)
    if output == "json":
        click.echo(json.dumps({"queues": queues_json(overview)}))
        return
    from rich.console import Console

    from enbloc.inspect.tables import queues_table

    Console().print(queues_table(overview))
