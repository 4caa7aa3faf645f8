"""The Grafana board, the alerts and the page of metrics speak of metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from enbloc.api.reasons import PendingReason
from scripts import metrics_reference

ROOT = Path(__file__).parents[1]
BOARD = ROOT / "deploy" / "grafana" / "enbloc.json"
RULES = ROOT / "deploy" / "prometheus" / "enbloc.rules.yaml"
METRIC = re.compile(r"\b(?:enbloc|volcano)_\w+")
SELECTOR = re.compile(r"\b((?:enbloc|volcano)_\w+)\{([^}]*)\}")
BY = re.compile(r"\bby \(([^)]*)\)")


def _queries() -> Iterator[str]:
    board: dict[str, Any] = json.loads(BOARD.read_text())
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


def _labels() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    m = metrics_reference
    for one in (*m.of_engine(), *m.of_cycles(), *m.of_run(), *m.of_up(), *m.of_volcano()):
        for suffix in ("", "_bucket", "_count", "_sum"):
            found[one.name + suffix] = {*one.labels, "le"}
    return found


def test_every_query_names_metrics_and_labels_that_exist() -> None:
    names, labels = metrics_reference.names(), _labels()
    queries = list(_queries())
    assert len(queries) > 30
    for query in queries:
        used = METRIC.findall(query)
        assert used, query
        assert [name for name in used if name not in names] == [], query
        for name, selector in SELECTOR.findall(query):
            keys = {part.split("=")[0].strip("!~ ") for part in re.split(r",(?=\s*\w+[=!])", selector) if part}
            assert keys <= labels[name], query
        known = set().union(*(labels[name] for name in used))
        for group in BY.findall(query):
            assert {label.strip() for label in group.split(",")} <= known, query


def test_every_metric_of_our_own_is_on_the_board() -> None:
    """But for what only the embedded cluster has, and what others say better."""
    text = BOARD.read_text() + RULES.read_text()
    m = metrics_reference
    left_out = {"enbloc_pending_gangs", "enbloc_clock_skew_seconds"}
    rows = (*m.of_engine(), *m.of_cycles(), *m.of_run())
    assert {one.name for one in rows if one.name not in text} == left_out


def test_alerts_name_reasons_that_exist() -> None:
    named = re.findall(r'reason=~"([^"]*)"', RULES.read_text())
    assert named
    assert {reason for one in named for reason in one.split("|")} <= {str(reason) for reason in PendingReason}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_promtool_accepts_the_alerts_and_they_fire() -> None:
    for arguments in (["check", "rules", str(RULES)], ["test", "rules", str(RULES.with_suffix(".test.yaml"))]):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
