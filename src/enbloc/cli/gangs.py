"""`enbloc gangs`."""

from __future__ import annotations

import json
import time

import click

from enbloc.cli.fetch import fetch_overview, kubeconfig_options
from enbloc.inspect.overview import gangs_json


@click.command("gangs")
@kubeconfig_options
def command(kubeconfig: str | None, context: str | None, output: str) -> None:
    """List gangs: which run, which wait, and why.

    Reads the cluster of KUBECONFIG, real or embedded.
    """
    overview = fetch_overview(kubeconfig, context)
    if output == "json":
        click.echo(json.dumps({"gangs": gangs_json(overview)}))
        return
    from rich.console import Console

    from enbloc.inspect.tables import gangs_table

    Console().print(gangs_table(overview, time.time_ns()))
