"""The feature that docs/architecture.md writes as an example is whole: it does what it says, beside all others."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from enbloc.engine.core.cycle import Parts
from enbloc.engine.core.feature import Feature
from enbloc.engine.features import catalogue
from support import manifests as m
from support.simulation import simulate

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"


@pytest.fixture
def with_night_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if its line stood in the catalogue."""
    code = re.search(r"```python\n# engine/features/night_only.py\n(.+?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code[1], names)
    real = catalogue.of

    def of(parts: Parts, decide: Callable[[Any], None]) -> list[Feature]:
        *others, reporter = real(parts, decide)
        return [*others, names["NightOnly"](parts.state), reporter]

    monkeypatch.setattr(catalogue, "of", of)


def gang(name: str, at: str, **labels: str) -> list[m.Obj]:
    pods = [m.pod(f"{name}-{n}", group=name, cpu=1, at=at, labels=labels) for n in range(2)]
    return [m.podgroup(name, 2, at=at), *pods]


@pytest.mark.usefixtures("with_night_only")
def test_a_gang_of_the_night_waits_for_it_and_others_do_not() -> None:
    answer = simulate([m.node("n", 8), *gang("day", "7h"), *gang("night", "7h", when="night")], until="23h")
    hours = {name: at / 3600 for name, (at, _) in answer.bound().items()}
    assert hours == {"day-0": 7, "day-1": 7, "night-0": 22, "night-1": 22}


@pytest.mark.usefixtures("with_night_only")
def test_it_says_why_it_waits_until_then() -> None:
    answer = simulate([m.node("n", 8), *gang("night", "7h", when="night")], until="8h")
    assert answer.pending("default/night")["message"] == "starts at night: it waits until 22:00 UTC"
