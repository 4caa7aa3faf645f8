"""`enbloc config`: the effective config."""

from __future__ import annotations

import click

from enbloc.cli.compat import compat_option
from enbloc.cli.errors import Refusal, read_config
from enbloc.config import render
from enbloc.config.policies import POLICIES, policy_config


@click.command("config")
@compat_option
@click.option("--config", "config_file", metavar="FILE", help="The file to read; without it, the defaults.")
@click.option("--policy", metavar="NAME", help=f"The config of a policy: {', '.join(POLICIES)}.")
@click.argument("files", nargs=-1, metavar="")
def command(config_file: str | None, compat: str | None, policy: str | None, files: tuple[str, ...]) -> None:
    """Print the effective config, with a comment on every key.

    The output can be passed to --config; missing keys have their defaults.

    \b
    Example:
      enbloc config > enbloc.yaml
      enbloc sim --config enbloc.yaml examples/quickstart.yaml
    """
    if files:
        raise Refusal([f"a file to read is an option: enbloc config --config {files[0]}"])
    if policy is None:
        config = read_config(config_file, compat)
    elif config_file is not None or compat is not None:
        raise Refusal(["--policy: a policy is a config of its own; give it alone"])
    elif policy not in POLICIES:
        raise Refusal([f"--policy: {policy!r} is not one of {', '.join(POLICIES)}"])
    else:
        config = policy_config(policy)
    click.echo(render(config), nl=False)
