"""`enbloc completion`: the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_ENBLOC_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Example:
      source <(enbloc completion bash)
      enbloc completion zsh > "${fpath[1]}/_enbloc"
      enbloc completion fish > ~/.config/fish/completions/enbloc.fish
    """
    found = get_completion_class(shell)
    assert found is not None, f"click completes {shell}"
    completion = found(ctx.find_root().command, {}, "enbloc", VARIABLE)
    click.echo(completion.source_template % completion.source_vars())
