"""The stories under `scenarios/`: YAML in, a readable timeline out, compared line by line.

A story is `NAME.yaml`; what is to happen is `NAME.timeline`, reviewed like prose. After a change that is meant, write
the timelines anew with `ENBLOC_ACCEPT=1 pytest tests/test_scenarios.py` and read the difference.

The comment that opens a story tells it. It may hold `# config: {...}` (the config file, on one line) and
`# until: 60s`. Nodes, queues and other furniture that is only put there makes no line; what waits at the end does.
`test_restarts` restarts the scheduler in them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from enbloc.config import parse
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.result import Result
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND, format_duration, parse_duration
from support.stories import settings_of

STORIES = sorted((Path(__file__).parent / "scenarios").glob("*.yaml"))
FURNITURE = ("Node", "Queue", "Namespace", "PriorityClass", "CustomResourceDefinition", "ResourceQuota")


def run(story: Path) -> Result:
    settings, until = settings_of(story)
    simulation = Simulation(read_scenario(read_documents([str(story)])), parse(settings))
    return simulation.run(parse_duration(until) if until else None)


def timeline_text(result: Result) -> str:
    lines = [str(line) for line in result.timeline if line.what != "created" or line.kind not in FURNITURE]
    lines += [f"waits {entry['gang']}: {entry['message']}" for entry in result.pending]
    lines.append(f"end {result.ended} at {format_duration(round(result.end * SECOND))}")
    # A PodGroup carries the uid of its job in its name, which says nothing to a reader.
    text = re.sub(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "-UID", "\n".join(lines))
    return text + "\n"


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_scenario(story: Path) -> None:
    expected = story.with_suffix(".timeline")
    happened = timeline_text(run(story))
    if os.environ.get("ENBLOC_ACCEPT"):
        expected.write_text(happened)
    assert happened.splitlines() == expected.read_text().splitlines()
