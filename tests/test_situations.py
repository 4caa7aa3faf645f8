"""The situations under `situations/`: why does this gang wait, and what would let it start?

The comment that opens a file tells the situation and what `enbloc explain` is to say of it: state, reason, sentence,
what is in the way, the remedies in their order, and the expected start. Every remedy is followed, and the gang starts.
After a change that is meant, write the comments anew with `ENBLOC_ACCEPT=1 pytest tests/test_situations.py`, and read
the difference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from enbloc.advice.explanation import explain
from enbloc.config import Config, parse
from enbloc.inspect.overview import Explanation
from enbloc.inspect.tables import obstacle_text
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.result import UNTIL
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND, parse_duration, parse_timestamp
from support.simulation import simulate

SITUATIONS = sorted((Path(__file__).parent / "situations").glob("*.yaml"))
ASKED = ("gang", "config", "until")


def header_of(situation: Path) -> tuple[list[str], dict[str, str]]:
    """The lines that tell the situation, and what is asked."""
    comment = situation.read_text().partition("\n\n")[0].splitlines()
    values = [re.match(r"# ([a-z ]+): (.+)$", line) for line in comment]
    asked = {match[1]: match[2] for match in values if match and match[1] in ASKED}
    story = [line for line, match in zip(comment, values, strict=True) if match is None]
    return story, asked


def asked_at_the_end(situation: Path, asked: dict[str, str]) -> tuple[Explanation, float]:
    """The explanation, and the second at which it was asked for."""
    config = config_of(asked)
    simulation = Simulation(read_scenario(read_documents([str(situation)])), config)
    result = simulation.run(parse_duration(asked["until"]) if "until" in asked else None)
    now_ns = simulation.elapsed_ns if result.ended == UNTIL else round(result.end * SECOND)
    explanation = explain(result.objects, simulation.begin_ns + now_ns, config, asked["gang"])
    assert explanation is not None
    return explanation, now_ns / SECOND


def config_of(asked: dict[str, str]) -> Config:
    return parse(yaml.safe_load(asked["config"]) if "config" in asked else None)


def described(story: list[str], asked: dict[str, str], explanation: Explanation) -> str:
    lines = [*story, *(f"# {key}: {asked[key]}" for key in ASKED if key in asked), f"# state: {explanation.state}"]
    if explanation.reason:
        lines.append(f"# reason: {explanation.reason}")
    lines.append(f"# sentence: {explanation.sentence}")
    for one in explanation.in_the_way:
        head = "in the way" if one["kind"] == "gang" else "cause"
        lines.append(f"# {head}: {obstacle_text(one)}")
    lines += [f"# remedy: {one['change']}" for one in explanation.remedies or ()]
    if explanation.expected_start or explanation.assumption:
        lines.append(f"# start: {' '.join(filter(None, (explanation.expected_start, explanation.assumption)))}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.stem)
def test_situation(situation: Path) -> None:
    story, asked = header_of(situation)
    explanation, now_s = asked_at_the_end(situation, asked)
    said = described(story, asked, explanation)
    comment, _, body = situation.read_text().partition("\n\n")
    if os.environ.get("ENBLOC_ACCEPT"):
        situation.write_text(f"{said}\n{body}")
    else:
        assert comment + "\n" == said
    documents = [value for value in yaml.safe_load_all(body) if value]
    for remedy in explanation.remedies or ():
        assert not waits_after(documents, asked, explanation, remedy, now_s), remedy["change"]


def waits_after(
    documents: list[Any], asked: dict[str, str], explanation: Explanation, remedy: dict[str, Any], now_s: float
) -> bool:
    """Whether the gang still waits when the remedy is said to have let it start. It is followed a millisecond after the
    end: events of a scenario come before what timers do at the same instant."""
    steps = [{**step, "at": f"{round(now_s * 1000) + 1}ms"} for step in remedy["steps"]]
    begin_ns = parse_timestamp("2026-01-01T00:00:00Z")
    until_ns = parse_timestamp(remedy["starts_at"]) - begin_ns
    config = yaml.safe_load(asked["config"]) if "config" in asked else None
    answer = simulate(documents, steps, config=config, until=f"{until_ns // 1_000_000 + 1}ms")
    started = [one["gang"] for one in answer.data["gangs"] if one["started"] is not None]
    return answer.waits(explanation.gang) or not started
