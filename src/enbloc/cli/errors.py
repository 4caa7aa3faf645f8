"""Errors of commands: one line per problem on stderr, and exit code 2."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final

import click

from enbloc.cli.running_up import running_ups
from enbloc.config import Config, ConfigError, parse
from enbloc.scenario.documents import BadInput, one_line, read_mapping
from enbloc.units import parse_duration

_LINES: Final = 50


class Refusal(click.ClickException):
    """Wrong usage or invalid input."""

    exit_code = 2

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems

    def show(self, file: IO[Any] | None = None) -> None:
        for problem in self.problems[:_LINES]:
            click.echo(f"enbloc: {one_line(problem)}", file=file, err=file is None)
        if len(self.problems) > _LINES:
            click.echo(f"enbloc: … and {len(self.problems) - _LINES} more", file=file, err=file is None)


@contextmanager
def readable_input() -> Iterator[None]:
    """Turns unreadable input into a refusal."""
    try:
        yield
    except BadInput as why:
        raise Refusal([str(finding) for finding in why.findings]) from None


def read_config(path: str | None, compat: str | None = None) -> Config:
    """The config in a file, or the default one, with the presets of `--compat` besides the file's. An invalid file is
    refused with every problem in it."""
    with readable_input():
        data = read_mapping(path) if path is not None else {}
    try:
        presets = parse({"compat": compat}).compat if compat is not None else ()
    except ConfigError as why:
        raise Refusal([f"--compat: {message}" for _, message in why.problems]) from None
    try:
        config = parse(data)
        if presets:
            config = parse({**data, "compat": [*config.compat, *presets]})
    except ConfigError as why:
        raise Refusal([f"{path}: {field}: {message}" for field, message in why.problems]) from None
    for field, message in config.warnings:
        click.echo(f"enbloc: warning: {path}: {field}: {message}", err=True)
    return config


def cannot_listen(why: OSError, host: str, port: int, option: str = "--port") -> Refusal:
    """Of an address that cannot be listened on: what to do about it."""
    text = f"cannot listen on {host}:{port}: {why.strerror or why}"
    if why.errno == errno.EADDRINUSE:
        ours = next((one.address for one in running_ups() if one.address.endswith(f":{port}")), "")
        who = f" by the `enbloc up` at {ours}" if ours else ""
        text = f"{host}:{port} is in use{who}: {option} N takes another port, {option} 0 any free one"
    return Refusal([text])


def duration_of(option: str, text: str | None) -> int | None:
    """The nanoseconds of an option; `None` without one."""
    if text is None:
        return None
    try:
        nanos = parse_duration(text)
    except ValueError as why:
        raise Refusal([f"{option}: {why}"]) from None
    if nanos < 0:
        raise Refusal([f"{option}: {text!r} is negative"])
    return nanos
