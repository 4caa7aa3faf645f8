"""`enbloc nodes`."""

from __future__ import annotations

import json

import click

from enbloc.cli.fetch import fetch_overview, kubeconfig_options
from enbloc.inspect.overview import nodes_json


@click.command("nodes")
@kubeconfig_options
def command(kubeconfig: str | None, context: str | None, output: str) -> None:
    """List nodes and their usage.

    Reads the cluster of KUBECONFIG, real or embedded.
    """
    overview = fetch_overview(kubeconfig, context)
    if output == "json":
        click.echo(json.dumps({"nodes": nodes_json(overview)}))
        return
    from rich.console import Console

    from enbloc.inspect.tables import nodes_table

    Console().print(nodes_table(overview))
