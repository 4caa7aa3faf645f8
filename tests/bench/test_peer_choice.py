"""Which schedulers `python benchmarks/peers` compares: bad names and paths are refused, with what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"
NAMES = [("Enbloc", "native"), ("Enbloc", "volcano"), ("KAI", "kai")]


@pytest.fixture
def choice(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(PEERS))
    import choice  # type: ignore[import-not-found]

    yield choice
    sys.modules.pop("choice", None)


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("volcano", "it must be NAME=PATH"),
        ("=/bin/sh", "it must be NAME=PATH"),
        ("volcano=", "it must be NAME=PATH"),
        ("volcano=/no/such/file", "there is no /no/such/file"),
        ("volcano=/", "/ is not a program"),
        (f"volcano={PEERS / 'notes.md'}", "notes.md is not a program"),
        ("KAI=/bin/sh", "KAI is built here"),
    ],
)
def test_a_bad_peer_is_refused(choice: ModuleType, word: str, why: str) -> None:
    with pytest.raises(choice.BadArgument, match=why):
        choice.programs([word])


def test_a_given_peer_is_found(choice: ModuleType) -> None:
    assert choice.programs(["volcano=/bin/sh"]) == [("volcano", Path("/bin/sh"))]


def test_only_and_without_choose_by_name_and_dialect(choice: ModuleType) -> None:
    assert choice.chosen(NAMES, [], []) == NAMES
    assert choice.chosen(NAMES, ["enbloc"], ["Enbloc/volcano"]) == [("Enbloc", "native")]
    assert choice.chosen(NAMES, ["kai", "Enbloc/native"], []) == [("Enbloc", "native"), ("KAI", "kai")]
    with pytest.raises(choice.BadArgument, match="kay is none of Enbloc/native, Enbloc/volcano, KAI/kai"):
        choice.chosen(NAMES, ["kay"], [])
