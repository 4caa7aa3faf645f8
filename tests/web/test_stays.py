"""Where pods of a simulation were, and when, as the dashboard of a saved one gets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from enbloc.cli.main import cli
from enbloc.web import stays
from enbloc.web.report import report_model

EXAMPLES = Path(__file__).parents[2] / "examples"


def played(name: str) -> dict[str, Any]:
    done = CliRunner().invoke(cli, ["sim", str(EXAMPLES / name), "-o", "json"])
    assert done.exit_code == 0, done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def used_at(model: dict[str, Any], t: float, claimed: bool = False) -> dict[str, float]:
    """CPUs by gang."""
    moments, found = model["moments"], {}
    for gang, _, begin, end, amounts, is_claim in moments["stays"]:
        if is_claim is claimed and begin <= t and (end is None or t < end):
            name = model["gangs"][gang]["gang"]
            found[name] = found.get(name, 0.0) + moments["amounts"][amounts].get("cpu", 0.0)
    return found


def test_use_at_an_instant_is_that_of_the_series() -> None:
    answer = played("preempt.yaml")
    model = report_model(answer)
    total = sum(node["capacity"]["cpu"] for node in model["nodes"])
    for sample in answer["series"]:
        assert sum(used_at(model, sample["t"]).values()) / total == pytest.approx(sample["use"]["cpu"]), sample["t"]


def test_claims_are_kept_apart_and_end_with_the_binding() -> None:
    model = report_model(played("preempt.yaml"))
    claims = [stay for stay in model["moments"]["stays"] if stay[5]]
    assert {model["gangs"][stay[0]]["gang"] for stay in claims} == {"default/urgent"}
    assert all(stay[3] is not None for stay in claims)


def test_a_pod_that_is_gone_requests_what_others_of_its_role_request() -> None:
    answer = played("preempt.yaml")
    answer["objects"] = [obj for obj in answer["objects"] if obj["metadata"]["name"] != "elastic-worker-5"]
    assert used_at(report_model(answer), 10.0) == used_at(report_model(played("preempt.yaml")), 10.0)


def test_a_simulation_with_too_many_pods_is_shown_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stays, "MOST", 3)
    assert report_model(played("preempt.yaml"))["moments"] is None
