"""The stories under `scenarios/`: YAML in, a readable timeline out, compared line by line.

A story is `NAME.yaml`; what is to happen is `NAME.timeline`, reviewed like prose. After a change that is meant, write
the timelines anew with `ENBLOC_ACCEPT=1 pytest tests/test_scenarios.py` and read the difference.

The comment that opens a story tells it. It may hold `# config: {...}` (the config file, on one line) and
`# until: 60s`. Nodes, queues and other furniture that is only put there makes no line; what waits at the end does.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from enbloc.config import parse
from enbloc.scenario.documents import Document, read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.result import Result
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND, format_duration, parse_duration

STORIES = sorted((Path(__file__).parent / "scenarios").glob("*.yaml"))
FURNITURE = ("Node", "Queue", "Namespace", "PriorityClass", "CustomResourceDefinition", "ResourceQuota")


RESTARTS = 6
"""At how many instants of each story the scheduler is restarted, in a run of its own each."""
DECIDED = ("bound", "evicted", "held", "released", "reserved", "timeout", "phase", "succeeded", "failed")


def run(story: Path, restart_at: float | None = None) -> Result:
    header = story.read_text().partition("\n\n")[0]
    config = re.search(r"^# config: (.+)$", header, re.MULTILINE)
    until = re.search(r"^# until: (.+)$", header, re.MULTILINE)
    documents = read_documents([str(story)])
    if restart_at is not None:
        step = {"apiVersion": "sim.enbloc.dev/v1", "kind": "Step", "at": f"{restart_at:g}s", "do": "restart-scheduler"}
        documents.append(Document("restart.yaml", 1, step))
    scenario = read_scenario(documents)
    simulation = Simulation(scenario, parse(yaml.safe_load(config[1]) if config else None))
    return simulation.run(parse_duration(until[1]) if until else None)


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


def decided(result: Result) -> list[tuple[float, str, str, str]]:
    """What happened, as far as the scheduler decides it; two things of one instant may happen in either order."""
    return sorted((line.t, line.what, line.name, line.node or "") for line in result.timeline if line.what in DECIDED)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_i5_a_restart_of_the_scheduler_changes_no_story(story: Path) -> None:
    plain = run(story)
    instants = sorted({line.t for line in plain.timeline})
    for at in instants[:: -(-len(instants) // RESTARTS)]:
        assert decided(run(story, at)) == decided(plain), f"restarted at {at:g} s"
