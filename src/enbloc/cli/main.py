"""The command `enbloc`: its subcommands, and its exit codes.

Subcommands are imported only when they are used, so that help is fast. Exit codes: 0 success, 1 the result is negative
(faults, no such gang), 2 wrong usage or invalid input. No error that a user can cause shows a traceback.
"""

from __future__ import annotations

import difflib
import os
import sys
from importlib import import_module
from typing import Any, Final

import click

from enbloc.version import __version__

_COMMANDS: Final = {  # name -> its line of help; the module of that name has the command
    "up": "Run a cluster on this machine that kubectl can use.",
    "sim": "Simulate a cluster in virtual time: what happens, and why.",
    "run": "Run scheduler and controllers on a real Kubernetes.",
    "install": "Print all objects that a cluster needs, for kubectl to apply.",
    "config": "Print the effective config, with a comment on every key.",
    "gangs": "List a cluster's gangs: which run, which wait, and why.",
    "queues": "List its queues and their usage.",
    "nodes": "List its nodes and their usage.",
    "explain": "Explain why a gang waits: numbers, gangs ahead of it, remedies.",
    "whatif": "Say what a change would do to a cluster: which gangs start when, which pods are evicted.",
    "lint": "Check manifests as admission would, offline.",
    "replay": "Replay a workload trace under several policies.",
}
_MORE: Final = {
    "snapshot": "Save a cluster's objects, without secrets, for sim and whatif.",
    "dashboard": "Show a saved simulation in a browser: map, gangs, timeline, queues.",
    "capture": "Write a cluster's job history as a trace, for replay.",
    "replay-recording": "Run the engine over a recording of `enbloc run --record`, and compare decisions.",
    "shadow": "Say what Enbloc would have decided on a cluster that another scheduler runs.",
    "completion": "Print the completion script of a shell.",
}
_ALL: Final = _COMMANDS | _MORE
_BENCH: Final = "benchmarks are not installed: `python -m benchmarks --help`, in a clone of the repository, lists them"


class _ReaderLeft(Exception):
    """The reader of our output has closed it."""


class _LazyGroup(click.Group):
    """Lists its commands without importing them."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise _ReaderLeft from None  # click would exit with 1, which has another meaning here
        return done

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_ALL)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ALL:
            return None
        command: click.Command = import_module(f"enbloc.cli.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """An unknown command is refused with the nearest name."""
        if args and args[0] == "bench":
            from enbloc.cli.errors import Refusal

            raise Refusal([_BENCH])
        if args and not args[0].startswith("-") and args[0] not in _ALL:
            close = difflib.get_close_matches(args[0], _ALL, n=1, cutoff=0.6)
            meant = [arg for arg in args[1:] if arg in _ALL] if args[0] in ("get", "list", "show") else close
            near = meant[0] if meant else None
            hint = f" Did you mean {near!r}?" if near else " `enbloc --help` lists the commands."
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in (("Commands", _COMMANDS), ("More commands", _MORE)):
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="enbloc")
def cli() -> None:
    """Gang scheduling for Kubernetes: together, or not at all.

    Write nodes and jobs into a YAML file and see which gangs start, when, and why the others wait:

    \b
      enbloc lint examples/quickstart.yaml
      enbloc sim examples/quickstart.yaml
    """


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and ends the process."""
    try:
        code: Any = cli.main(arguments, prog_name="enbloc", standalone_mode=False)
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as why:
        why.show()
        code = why.exit_code
    except click.exceptions.Exit as why:
        code = why.exit_code
    except KeyboardInterrupt:
        code = 130
    except _ReaderLeft:
        # Python would report it once more when it closes stdout: replace the descriptor.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code if isinstance(code, int) else 0)
