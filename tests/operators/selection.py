"""Which programs the chosen tests need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from e2e import binaries
from e2e.binaries import Program
from operators.known import OPERATORS
from operators.programs import BY_NAME

ON_UP = tuple(program for program in binaries.PROGRAMS if program.name == "kubectl")
"""What is needed where `enbloc up` is the control plane."""


def programs_of(items: Iterable[pytest.Item]) -> list[Program]:
    found: dict[Program, None] = {}
    for item in items:
        found |= dict.fromkeys(_needed(getattr(item, "fixturenames", ()), _parameters(item)))
    return list(found)


def _parameters(item: pytest.Item) -> dict[str, Any]:
    call = getattr(item, "callspec", None)
    return call.params if call is not None else {}


def _needed(fixtures: Iterable[str], parameters: dict[str, Any]) -> Iterable[Program]:
    """Of one test: a cluster, and the operators of its story."""
    if "release" in parameters:
        yield from (*binaries.PROGRAMS, parameters["release"].api_server)
    elif "local" in fixtures:
        yield from ON_UP
    names = [parameters["operator"]] if "operator" in parameters else []
    if "story" in parameters:
        names += parameters["story"].needs
    yield from (BY_NAME[OPERATORS[name].program] for name in names)
