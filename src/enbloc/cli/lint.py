"""`enbloc lint`: admission's checks, offline."""

from __future__ import annotations

import sys

import click
import msgspec

from enbloc.admission.settings import settings_of
from enbloc.cli.compat import compat_option, note_grouped_only_here, note_names_only_here
from enbloc.cli.errors import read_config, readable_input
from enbloc.cli.yaml_output import print_yaml
from enbloc.scenario.documents import read_documents
from enbloc.sim.linting import Linted, lint


@click.command("lint")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@compat_option
@click.option("--config", "config_file", metavar="FILE", help="Scheduler config: sets how strictly minima are checked.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "yaml", "json"]),
    default="text",
    help="Faults only (default), or the objects as they would be stored.",
)
@click.option("--strict", is_flag=True, help="Warnings are faults.")
def command(files: tuple[str, ...], config_file: str | None, compat: str | None, output: str, strict: bool) -> None:
    """Check manifests as admission would, offline.

    FILE is a manifest, a directory of manifests, or `-` for stdin. Every fault is one line: file and line, the object,
    the field, and what is wrong. Warnings go to stderr. The exit code is 1 if there are faults.

    \b
    Example:
      enbloc lint examples/quickstart.yaml
      enbloc lint jobs/ -o yaml          # the objects with all defaults filled in
    """
    config = read_config(config_file, compat)
    with readable_input():
        documents = read_documents(files)
        linted = lint(documents, settings_of(config, alone=True), strict=strict)
    note_names_only_here(config, (document.value for document in documents))
    note_grouped_only_here(config, (document.value for document in documents))
    if linted.assumed:
        click.echo(f"enbloc: note: not in these files, taken to exist: {', '.join(linted.assumed)}", err=True)
    if output == "json":
        sys.stdout.buffer.write(msgspec.json.encode(linted) + b"\n")
    elif output == "yaml":
        print_yaml(linted.objects)
    _print_faults(linted, output)
    if linted.faults:
        raise click.exceptions.Exit(1)


def _print_faults(linted: Linted, output: str) -> None:
    if output == "json":
        return
    for fault in linted.faults:
        click.echo(str(fault), err=output == "yaml")
    for warning in linted.warnings:
        click.echo(f"warning: {warning}", err=True)
    if output == "text" and not linted.faults:
        objects = len(linted.objects)
        click.echo(f"OK: {objects:,} object{'' if objects == 1 else 's'}, no faults.")
