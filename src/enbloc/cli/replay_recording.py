"""`enbloc replay-recording`: the engine over a recording of a live run, and whether it decides the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from enbloc.cli.errors import Refusal, read_config
from enbloc.config import ConfigError
from enbloc.listing import plural
from enbloc.sim.recording import BadRecording, Replayed, replay_recording
from enbloc.units import SECOND, format_duration, format_timestamp, parse_duration
from enbloc.version import __version__

_SHOWN_CYCLES: Final = 10
_SHOWN_DECISIONS: Final = 8


@click.command("replay-recording")
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--config", "config_file", metavar="FILE", help="In place of the config of the recording.")
@click.option("--until", metavar="DURATION", help="Stop so long after the first cycle.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For people or for programs.")
def command(directory: Path, config_file: str | None, until: str | None, output: str) -> None:
    """Run the engine over a recording of `enbloc run --record DIR`, and compare its decisions.

    On the same version and config they are the same. With --config, or on another version, it shows what would be
    decided otherwise in the situations that were recorded. Exit code 1: decisions differ.

    \b
    Example:
      enbloc run --record /var/lib/enbloc/recording
      enbloc replay-recording /var/lib/enbloc/recording --config other.yaml
    """
    config = read_config(config_file) if config_file is not None else None
    try:
        until_ns = parse_duration(until) if until is not None else None
    except ValueError as why:
        raise Refusal([f"--until: {why}"]) from None
    try:
        found = replay_recording(directory, config, until_ns)
    except BadRecording as why:
        raise Refusal([str(why)]) from None
    except ConfigError as why:
        raise Refusal([f"{directory}: its config: {path}: {message}" for path, message in why.problems]) from None
    if output == "json":
        sys.stdout.buffer.write(msgspec.json.encode({**msgspec.to_builtins(found), "replayed_by": __version__}) + b"\n")
        sys.stdout.buffer.flush()
    else:
        click.echo("\n".join(_text(found)))
    raise click.exceptions.Exit(1 if found.differing_cycles else 0)


def _text(found: Replayed) -> Iterator[str]:
    span_ns = (found.ended_ns or 0) - (found.began_ns or 0)
    cycles, decided = plural(found.cycles, "cycle"), plural(found.decisions, "decision")
    yield (
        f"{plural(found.events, 'event')}, {cycles} and {decided} in "
        f"{format_duration(span_ns // SECOND * SECOND)}, recorded by {found.version}, replayed by {__version__}"
    )
    if found.from_base:
        yield "the beginning was dropped: the recording had reached its limit"
    if found.has_gap:
        yield "the recording ends early: the recorder could not keep up"
    if not found.differing_cycles:
        yield "the same decisions"
        return
    yield f"other decisions in {plural(found.differing_cycles, 'cycle')}"
    for one in found.differences[:_SHOWN_CYCLES]:
        yield f"cycle {one.cycle}, {format_timestamp(one.at_ns)}"
        for sign, decisions in (("-", one.recorded), ("+", one.replayed)):
            yield from (f"  {sign} {_line(decision)}" for decision in decisions[:_SHOWN_DECISIONS])
            if len(decisions) > _SHOWN_DECISIONS:
                yield f"  {sign} … {len(decisions) - _SHOWN_DECISIONS} more"
    if found.differing_cycles > _SHOWN_CYCLES:
        yield f"… {plural(found.differing_cycles - _SHOWN_CYCLES, 'more cycle')}"


def _line(decision: list[Any]) -> str:
    name, fields = decision
    gang = "/".join(fields["gang"][1:])
    nodes = sorted({one["node"] for one in fields.get("placements", ())})
    what = fields.get("message") or fields.get("reason") or ", ".join(nodes)
    return f"{name} {gang} {fields.get('name', '')} {what}".replace("  ", " ").rstrip()
