"""Engine and oracle run the same random scenarios and must agree: on every pod and every instant (`compare`).

`make test` runs the first seeds of each layer, `make soak` fresh ones for its share of the time. What was decided and
said in the golden scenarios is looked at here, too (`golden/digests.py`): the engine plays each once. A seed that fails
is looked at with `cd tests && ../.venv/bin/python -m oracle --layer LAYER --seed SEED --verbose`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from golden import digests, scenarios
from golden.playing import Played, play_watched
from oracle import __main__ as command
from oracle import compare, families, rules

CHUNK = 10
SEEDS = {
    "jobs": 50,
    "queues": 50,
    "koordinator": 60,
    "waves": 40,
    "edits": 50,
    "evict": 50,
    "reserve": 50,
    "all": 50,
    "policies": 20,
    "relaxed": 20,
    "affinities": 20,
    "spreads": 20,
    "domains": 20,
    "whole-jobs": 20,
    "greedy-whole-jobs": 10,
    "later-room": 20,
    "picky": 10,
    "pinned": 20,
    "run-times": 20,
    "easy": 10,
    "conservative": 4,
    "tenants": 20,
    "unsupported": 10,
    "trees": 30,
    "freed-trees": 10,
    "sub-groups": 20,
    "usage": 20,
    "restarts": 20,
    "mixed-groups": 10,
    "marks": 10,
}
"""How many seeds of each layer `make test` runs."""
FOUND = sorted((Path(__file__).parent / "found").glob("*.yaml"))


class Run(NamedTuple):
    """A scenario that the engine has played."""

    name: str
    text: str
    result: Any
    played: Played


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> list[Run]:
    """Scenarios of these names, played once for all tests that ask for them."""
    texts = {name: scenarios.text_named(name) for name in request.param}
    return [Run(name, text, *play_watched(text)) for name, text in texts.items()]


def chunks(counts: dict[str, int]) -> list[Any]:
    """The names of so many seeds of each layer, in tens."""
    return [
        pytest.param(
            tuple(f"{layer}/{seed}" for seed in range(first, min(first + CHUNK, count))), id=f"{layer}-{first}"
        )
        for layer, count in counts.items()
        for first in range(0, count, CHUNK)
    ]


def disagreement(name: str, why: list[str]) -> list[str]:
    if not why or name in rules.OPEN_SEEDS:
        return []
    said = f"{name}: {'; '.join(why)}"
    print(said, flush=True)
    return [said]


@pytest.mark.parametrize("runs", chunks(SEEDS), indirect=True)
def test_engine_and_oracle_agree(runs: list[Run]) -> None:
    found = []
    for run in runs:
        asked = json.loads(run.text)
        found += disagreement(run.name, compare.disagreements(asked["documents"], asked["settings"], run.result))
    assert found == []


@pytest.mark.parametrize("runs", chunks(dict.fromkeys(SEEDS, scenarios.SEEDS)), indirect=True)
def test_the_engine_decides_and_says_what_it_did(runs: list[Run]) -> None:
    group = runs[0].name.partition("/")[0]
    assert digests.differing(group, ((run.name, run.text, run.played) for run in runs)) == []


@pytest.mark.soak
@pytest.mark.parametrize("layer", [layer for layer in families.LAYERS if SEEDS[layer]])
def test_engine_and_oracle_agree_for_long(layer: str, rounds: Iterator[int]) -> None:
    found = []
    for seed in rounds:
        found += disagreement(f"{layer}/{seed}", compare.disagreements(*families.scenario(seed, layer)))
    assert found == []


def _found(path: Path, *marks: pytest.MarkDecorator) -> Any:
    return pytest.param((f"found/{path.stem}",), id=path.stem, marks=marks)


def _agreeing(path: Path) -> Any:
    open_bug = pytest.mark.xfail(reason="the engine is not fixed yet, see FOUND.md", strict=True)
    return _found(path, open_bug) if path.stem in rules.OPEN else _found(path)


@pytest.mark.parametrize("runs", [_agreeing(path) for path in FOUND], indirect=True)
def test_what_was_found(runs: list[Run]) -> None:
    (run,) = runs
    documents, settings, texts = command.load(str(scenarios.TESTS / "oracle" / f"{run.name}.yaml"))
    with rules.reading(texts):
        assert compare.disagreements(documents, settings, run.result) == []


@pytest.mark.parametrize("runs", [_found(path) for path in FOUND], indirect=True)
def test_what_was_found_is_decided_and_said_as_it_was(runs: list[Run]) -> None:
    (run,) = runs
    assert digests.differing("found", [(run.name, run.text, run.played)]) == []
