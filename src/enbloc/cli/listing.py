"""What `enbloc gangs`, `queues` and `nodes` have in common: which rows, in which order, and how they are printed.

On a terminal a table as wide as it; in a pipe one line a row, never cut, so that grep and awk work.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click
import msgspec

from enbloc.api.label_selectors import parse_labels
from enbloc.cli.errors import Refusal
from enbloc.units import Selector

TEXT, WIDE, NAME, JSON, YAML = "text", "wide", "name", "json", "yaml"
WATCH_EVERY_S: Final = 2.0


class Options(msgspec.Struct, frozen=True):
    """How rows are printed."""

    output: str = TEXT
    headers: bool = True
    watch: bool = False


class Listing(msgspec.Struct, frozen=True):
    """Rows to print: `cells` for people, `objects` for programs."""

    kind: str
    """The key of the rows in JSON."""
    columns: Sequence[str]
    cells: Sequence[Sequence[str]]
    objects: Sequence[Mapping[str, Any]]


def _selector(context: click.Context, option: click.Parameter, text: str) -> Selector:
    try:
        return parse_labels(text)
    except ValueError as why:
        raise Refusal([f"--selector: {why}"]) from None


selector_option: Final = click.option(
    "-l",
    "--selector",
    default="",
    metavar="LABELS",
    callback=_selector,
    help="Whose labels match, such as team=a,tier!=dev.",
)


def listing_options(command: Any) -> Any:
    for option in (
        click.option("--no-headers", is_flag=True, help="Rows only."),
        click.option("-w", "--watch", is_flag=True, help="Print again whenever it changed, until Ctrl-C."),
        click.option(
            "-o",
            "--output",
            type=click.Choice([TEXT, WIDE, NAME, JSON, YAML]),
            default=TEXT,
            help="For people (text, wide), names alone, or for programs.",
        ),
    ):
        command = option(command)
    return command


def show(options: Options, fetch: Callable[[], Listing]) -> None:
    """Prints the rows; with `watch` again and again, when they differ."""
    before: Any = None
    while True:
        listing = fetch()
        if before != listing.objects:
            _print(listing, options)
            before = listing.objects
        if not options.watch:
            return
        time.sleep(WATCH_EVERY_S)


def _print(listing: Listing, options: Options) -> None:
    match options.output:
        case "json":
            click.echo(json.dumps({listing.kind: listing.objects}))
        case "yaml":
            from enbloc.cli.yaml_output import print_yaml

            print_yaml([{listing.kind: [dict(one) for one in listing.objects]}])
        case "name":
            for row in listing.cells:
                click.echo(row[0])
        case _ if not listing.cells:
            click.echo(f"No {listing.kind} found.", err=True)  # as kubectl says it
        case _ if sys.stdout.isatty() and options.headers and options.output == TEXT:
            from rich.console import Console

            from enbloc.inspect.tables import table

            Console().print(table(listing.columns, listing.cells))
        case _:
            for line in aligned([listing.columns, *listing.cells] if options.headers else listing.cells):
                click.echo(line)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """One line a row: columns aligned, nothing cut, no blanks at the end, control characters escaped."""
    rows = [["".join(c if c.isprintable() else "?" for c in cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def sort_rows(rows: Sequence[Any], by: str | None, keys: Mapping[str, Callable[[Any], Any]]) -> list[Any]:
    """The rows in the order of a key; without one as they are."""
    if by is None:
        return list(rows)
    if by not in keys:
        raise Refusal([f"--sort-by: {by!r} is none of {', '.join(keys)}"])
    return sorted(rows, key=keys[by])
