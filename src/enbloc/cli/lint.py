"""`enbloc lint`: what admission would say."""

from __future__ import annotations

import sys

import click
import msgspec

from enbloc.api.meta import Obj
from enbloc.cli.errors import read_config, readable_input
from enbloc.scenario.documents import read_documents
from enbloc.sim.linting import Linted, lint


@click.command("lint")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--config", "config_file", metavar="FILE", help="Scheduler config: says how strict minima are checked.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "yaml", "json"]),
    default="text",
    help="Faults only (default), or the objects as they would be stored.",
)
def command(files: tuple[str, ...], config_file: str | None, output: str) -> None:
    """Say what admission would say about manifests, offline.

    FILE is a manifest, a directory of them, or `-` for stdin. Every fault is one line: the file and the number of the
    document in it, the object, the field, and what is wrong. The exit code is 1 if there is any.

    \b
    Example:
      enbloc lint examples/quickstart.yaml
      enbloc lint jobs/ -o yaml          # the objects with all defaults filled in
    """
    config = read_config(config_file)
    with readable_input():
        linted = lint(read_documents(files), relaxed=config.admission.min_available == "relaxed")
    if output == "json":
        sys.stdout.buffer.write(msgspec.json.encode(linted) + b"\n")
    elif output == "yaml":
        _print_yaml(linted.objects)
    _print_faults(linted, output)
    if linted.faults:
        raise click.exceptions.Exit(1)


def _print_faults(linted: Linted, output: str) -> None:
    if output == "json":
        return
    for fault in linted.faults:
        click.echo(str(fault), err=output == "yaml")
    if output == "text" and not linted.faults:
        objects = len(linted.objects)
        click.echo(f"OK: {objects:,} object{'' if objects == 1 else 's'}, no faults.")


def _print_yaml(objects: list[Obj]) -> None:
    import yaml

    class Dumper(yaml.CSafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    yaml.dump_all(objects, sys.stdout, Dumper=Dumper, sort_keys=False, allow_unicode=True)
