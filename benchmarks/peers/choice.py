"""Which schedulers are compared: those that are built here, those whose program is given, and what is left of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

QPS: Final = 10_000
"""To which the limits of clients are raised."""
ENBLOC: Final = ("native", "volcano", "koordinator", "job", "scheduler-plugins", "kai", "yunikorn")
"""The dialects in which Enbloc is measured."""
BUILT: Final = (
    ("kube-scheduler", "native"),
    ("scheduler-plugins", "scheduler-plugins"),
    ("Koordinator", "koordinator"),
    ("KAI", "kai"),
    ("YuniKorn", "yunikorn"),
)
NOT_BUILT: Final = {"Volcano": "not served as a Go module; give its binary: `--peer volcano=PATH`"}


class BadArgument(Exception):
    """A scheduler was named that is not there; the message says what to do."""


def programs(words: Sequence[str]) -> list[tuple[str, Path]]:
    """The names and paths of `--peer NAME=PATH`. Raises `BadArgument`."""
    found = []
    for one in words:
        name, _, path = one.partition("=")
        if not name or not path:
            raise BadArgument(f"--peer {one}: it must be NAME=PATH, as in volcano=/usr/local/bin/vc-scheduler")
        if name.lower() in {"enbloc", *(built.lower() for built, _ in BUILT)}:
            raise BadArgument(f"--peer {one}: {name} is built here; choose it with --only")
        if not Path(path).exists():
            raise BadArgument(f"--peer {one}: there is no {path}")
        if not Path(path).is_file() or not os.access(path, os.X_OK):
            raise BadArgument(f"--peer {one}: {path} is not a program")
        found.append((name, Path(path).absolute()))
    return found


def chosen(names: Sequence[tuple[str, str]], only: Sequence[str], without: Sequence[str]) -> list[tuple[str, str]]:
    """Of all (name, dialect), those that `--only` and `--without` leave. Raises `BadArgument`."""
    known = {word.lower() for name, dialect in names for word in (name, f"{name}/{dialect}")}
    for word in (*only, *without):
        if word.lower() not in known:
            raise BadArgument(f"{word} is none of {', '.join('/'.join(one) for one in names)}")

    def is_among(one: tuple[str, str], words: Sequence[str]) -> bool:
        return bool({one[0].lower(), "/".join(one).lower()} & {word.lower() for word in words})

    return [one for one in names if (not only or is_among(one, only)) and not is_among(one, without)]
