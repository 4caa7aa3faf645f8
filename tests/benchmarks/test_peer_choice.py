"""Which schedulers `python -m benchmarks.peers` compares: bad names and paths are refused, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers import choice

NAMES = [("Enbloc", "native"), ("Enbloc", "volcano"), ("KAI", "kai")]


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("volcano", "it must be NAME=PATH"),
        ("=/bin/sh", "it must be NAME=PATH"),
        ("volcano=", "it must be NAME=PATH"),
        ("volcano=/no/such/file", "there is no /no/such/file"),
        ("volcano=/", "/ is not a program"),
        (f"volcano={Path(choice.__file__).with_name('notes.md')}", "notes.md is not a program"),
        ("KAI=/bin/sh", "KAI is built here"),
    ],
)
def test_a_bad_peer_is_refused(word: str, why: str) -> None:
    with pytest.raises(choice.BadArgument, match=why):
        choice.programs([word])


def test_a_given_peer_is_found() -> None:
    assert choice.programs(["volcano=/bin/sh"]) == [("volcano", Path("/bin/sh"))]


def test_only_and_without_choose_by_name_and_dialect() -> None:
    assert choice.chosen(NAMES, [], []) == NAMES
    assert choice.chosen(NAMES, ["enbloc"], ["Enbloc/volcano"]) == [("Enbloc", "native")]
    assert choice.chosen(NAMES, ["kai", "Enbloc/native"], []) == [("Enbloc", "native"), ("KAI", "kai")]
    with pytest.raises(choice.BadArgument, match="kay is none of Enbloc/native, Enbloc/volcano, KAI/kai"):
        choice.chosen(NAMES, ["kay"], [])
