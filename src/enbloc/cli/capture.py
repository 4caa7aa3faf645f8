"""`enbloc capture`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from enbloc.cli.errors import Refusal, read_config
from enbloc.cli.fetch import cluster_options, fetch_lists
from enbloc.listing import plural
from enbloc.traces.capture import KINDS, NEEDED, capture, write


@click.command("capture")
@cluster_options
@click.option("-o", "--output", metavar="FILE", help="Write to this file [stdout].")
def command(kubeconfig: str | None, context: str | None, output: str | None) -> None:
    """Write a cluster's nodes, queues and job history as a trace for `enbloc replay`.

    Only reads. The history is what the API still has: jobs that have ended and were not removed. Names, sizes and
    times only: no manifest, no secret. Jobs that run or wait are counted on stderr.

    \b
    Example: what would EASY have done to our last month?
      enbloc capture -o month.csv
      enbloc replay month.csv --policy default --policy easy
    """
    lists = fetch_lists(kubeconfig, context, KINDS, NEEDED)
    captured = capture(lists, read_config(None))
    if output is None:
        written = write(captured, sys.stdout)
    else:
        try:
            with Path(output).open("w", encoding="utf-8") as file:
                written = write(captured, file)
        except OSError as why:
            raise Refusal([f"{output}: cannot be written: {why.strerror or why}"]) from None
    click.echo(f"{plural(written, 'job')} written{f' to {output}' if output else ''}", err=True)
    for reason, count in captured.skipped.most_common():
        click.echo(f"  left out: {count} ({reason})", err=True)
