"""N3: objects without effect are listed by `sim` and `lint`, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.simulation import lint, simulate


def foreign_kind(api_version: str, kind: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": m.metadata("idle"), "spec": {}}


def of_another_scheduler(obj: dict[str, Any]) -> dict[str, Any]:
    obj["spec"]["schedulerName"] = "another"
    return obj


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (foreign_kind("v1", "ReplicationController"), "no controller here acts on ReplicationController:"),
        (
            foreign_kind("autoscaling/v2", "HorizontalPodAutoscaler"),
            "no controller here acts on HorizontalPodAutoscaler of autoscaling",
        ),
        (foreign_kind("nodeinfo.volcano.sh/v1alpha1", "Numatopology"), "no controller here acts on Numatopology"),
        (foreign_kind("flow.volcano.sh/v1alpha1", "JobFlow"), "no controller here acts on JobFlow"),
        (of_another_scheduler(m.pod("idle")), "spec.schedulerName another is not ours: use enbloc"),
        (of_another_scheduler(m.job("idle", m.role("w", 1))), "spec.schedulerName another is not ours: use enbloc"),
    ],
)
def test_n3_an_object_without_effect_is_listed_with_the_reason(obj: dict[str, Any], words: str) -> None:
    [found] = simulate(m.node("n"), m.pod("p"), obj).data["without_effect"]
    assert (found["kind"], found["namespace"], found["name"]) == (obj["kind"], "default", "idle")
    assert found["reason"].startswith(words)
    [warning] = lint(m.node("n"), m.pod("p"), obj).warnings
    assert warning.name == "idle"
    assert words.partition(":")[0].rpartition(" ")[2] in warning.message


def test_n3_the_way_out_names_the_preset() -> None:
    answer = simulate(m.node("n"), m.pod("p", scheduler="volcano"), config={"compat": ["kai"]})
    assert "--compat volcano" in answer.data["without_effect"][0]["reason"]


def test_n3_what_has_an_effect_is_not_listed() -> None:
    owner = m.crdjob()
    pods = m.owned(m.pod("p"))
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": m.metadata("c"), "data": {}}
    foreign = m.pod("assigned", scheduler="another", nodeName="n")
    found = [m.node("n"), m.queue("q"), m.CRDJOB_DEFINITION, owner, *pods, m.scheduling_spec(), config_map, foreign]
    assert simulate(found).data["without_effect"] == []
    assert not [one for one in lint(found).warnings if "no effect" in one.message]
