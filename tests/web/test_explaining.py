"""What would let a gang start, for its page: made by a process of its own, bounded, and without secrets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from enbloc import config
from enbloc.api.meta import Obj
from enbloc.cluster.embedded.api.store import Store
from enbloc.config import where_alone
from enbloc.web import explaining
from enbloc.web.explaining import Busy, Explainer
from support import manifests as m
from web.played import played, run


def _explainer(store: Store, version: Callable[[], int] | None = None) -> Explainer:
    return Explainer(store.objects, version or (lambda: store.version), where_alone(config.parse(None)))


def _job(secret: str) -> Obj:
    container = {
        "name": "main",
        "image": "train",
        "env": [{"name": "PASSWORD", "value": secret}],
        "resources": {"requests": {"cpu": "9"}},
    }
    task = {"name": "worker", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "secretive", "namespace": "default", "annotations": {"sim.enbloc.dev/at": "25s"}},
        "spec": {"schedulerName": "enbloc", "tasks": [task]},
    }


def test_remedies_are_tried_and_no_environment_is_shown(tmp_path: Path) -> None:
    """A remedy that recreates a Job carries its whole template, which stays in the process that tried it."""
    secret = "hunter2"
    (tmp_path / "job.json").write_text(json.dumps(_job(secret)))
    store = played(30, tmp_path / "job.json")

    async def ask() -> Any:
        return await _explainer(store).explain("default/secretive", store.now())

    answer = asyncio.run(ask())
    changes = [remedy["change"] for remedy in answer["remedies"]]
    assert any("request at most 8 cpu" in change for change in changes), changes
    assert secret not in json.dumps(answer)


def test_an_explanation_is_made_once_for_one_state_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "KEPT_S", 0.0)
    store, versions = played(), [1]
    explainer = _explainer(store, lambda: versions[0])
    made: list[str] = []

    async def count(name: str, now_ns: int) -> Any:
        made.append(name)
        await asyncio.sleep(0)
        return {"gang": name}

    monkeypatch.setattr(explainer, "_made", count)

    async def ask() -> None:
        await asyncio.gather(*(explainer.explain("default/bert") for _ in range(5)))
        assert made == ["default/bert"]
        versions[0] += 1
        await explainer.explain("default/bert")
        assert made == ["default/bert"] * 2
        with pytest.raises(Busy, match="8 explanations are being made"):
            await asyncio.gather(*(explainer.explain(f"default/{number}") for number in range(12)))

    asyncio.run(ask())


def test_an_explanation_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "WITHIN_S", 0.01)

    async def ask() -> None:
        with pytest.raises(Busy, match="took longer"):
            await _explainer(played()).explain("default/bert")

    asyncio.run(ask())


def test_the_best_partial_fit_names_nodes_and_pods(tmp_path: Path) -> None:
    """Three pods of 5 cpu on two nodes of 8: one fits on each, and the third on none."""
    from enbloc.advice.explanation import explain

    documents = [m.node("n1", cpu=8), m.node("n2", cpu=8), *m.gang("g", 3, cpu=5)]
    (tmp_path / "g.yaml").write_text("\n---\n".join(json.dumps(one) for one in documents))
    store = run([tmp_path / "g.yaml"], 1)
    explanation = explain(list(store.objects()), store.now(), where_alone(config.parse(None)), "default/g")
    assert explanation is not None
    (fits,) = explanation.numbers["partialFit"].values()
    assert fits == {"n1": 1, "n2": 1}
