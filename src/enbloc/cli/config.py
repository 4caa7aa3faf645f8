"""`enbloc config`: the effective config."""

from __future__ import annotations

import click

from enbloc.cli.compat import compat_option
from enbloc.cli.errors import read_config
from enbloc.config import render


@click.command("config")
@compat_option
@click.option("--config", "config_file", metavar="FILE", help="The file to read; without it, the defaults.")
def command(config_file: str | None, compat: str | None) -> None:
    """Print the effective config, with a comment on every key.

    The output can be passed to --config; missing keys have their defaults.

    \b
    Example:
      enbloc config > enbloc.yaml
      enbloc sim --config enbloc.yaml examples/quickstart.yaml
    """
    click.echo(render(read_config(config_file, compat)), nl=False)
