"""Attacks T1, T2 and T4 as they were shown live: `enbloc run` against `enbloc up --no-scheduler`. None works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from enbloc.gangs.own_annotations import DECISION, DIGEST
from support import manifests as m
from up.test_up import Up, run_elsewhere, up

CLAIM = "enbloc.dev/claim-reserve"
NO_POD = {"labelSelector": {"matchLabels": {"no": "pod"}}, "topologyKey": "kubernetes.io/hostname"}
NEVER = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NO_POD]}}
SLOTS = {f"evil-{n}": {f"node-{n + 1}": 1} for n in range(4)}
FORGED = {CLAIM: json.dumps({"kind": "reserve", "version": 1, "until": 2**62, "slots": SLOTS})}
PATHS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    m.SCHEDULING: "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups",
    m.SIGS: "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/{}/podgroups",
}


def create(cluster: Up, *objects: dict[str, Any]) -> None:
    for obj in objects:
        path = PATHS["Pod"] if obj["kind"] == "Pod" else PATHS[obj["apiVersion"]]
        cluster.ask(path.format(obj["metadata"]["namespace"]), obj)


def attacks() -> list[dict[str, Any]]:
    named = m.sigs_podgroup("naming", 1, groups=["a/naming", "b/victim"])  # T1
    named["metadata"]["namespace"] = "a"
    reserving = m.gang("evil", 4, cpu=8, namespace="a", affinity=NEVER)  # T2
    reserving[0]["metadata"]["annotations"] = dict(FORGED)
    group, bound, missing = m.gang("half", 2, cpu="8", namespace="a", affinity=NEVER)  # T4
    bound["spec"] |= {"nodeName": "node-1", "containers": [{"name": "x", "image": "x"}]}
    bound["spec"].pop("affinity")
    bound["metadata"]["annotations"] |= {DECISION: "x", DIGEST: f"key-1:{'0' * 32}"}
    return [named, *reserving, group, bound, missing]


def test_s1_s2_attacks_t1_t2_and_t4_do_not_work_live(tmp_path: Path) -> None:
    arguments = ("--no-scheduler", "--nodes", "4", "--node-resources", "cpu=8")
    with up(tmp_path, *arguments) as (cluster, lines):
        for name in ("a", "b"):
            cluster.ask("/api/v1/namespaces", {"metadata": {"name": name}})
        create(cluster, *attacks())
        with run_elsewhere(tmp_path, lines[-1].partition("=")[2]):
            create(cluster, m.pod("first", "1m", namespace="b", run_time="1s"))
            running = PATHS["Pod"].format("b") + "?fieldSelector=status.phase%3DSucceeded"
            assert cluster.wait_for(running, 1), "the scheduler leads"
            evil = PATHS[m.SCHEDULING].format("a") + "/evil"
            cluster.ask(evil, {"metadata": {"annotations": FORGED}}, method="PATCH")
            create(cluster, *m.koordinator_gang("victim", 4, cpu=8, namespace="b"))
            bound = cluster.wait_for(PATHS["Pod"].format("b") + "?fieldSelector=status.phase%3DRunning", 4)
            assert len(bound) == 4
            assert CLAIM not in (cluster.ask(evil)["metadata"].get("annotations") or {})
            events = cluster.ask("/api/v1/namespaces/a/events")["items"]
            assert any(one["reason"] == "RecordRemoved" and one["type"] == "Warning" for one in events)


def test_s2_up_with_data_has_a_key_of_its_own(tmp_path: Path) -> None:
    data = tmp_path / "data"
    keys = []
    for _ in range(2):
        with up(tmp_path, "--data", str(data), "--nodes", "1") as (cluster, _):
            cluster.stop()
        file = data / "record-keys.json"
        assert file.stat().st_mode & 0o777 == 0o600
        keys.append(file.read_text())
    assert keys[0] == keys[1]
    assert json.loads(keys[0]).keys() == {"key-1"}
