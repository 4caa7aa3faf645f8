"""The commands that read a cluster read gangs as its scheduler does, and know whether one runs: from `enbloc up`
itself, or from the Lease of `enbloc run` and the ConfigMap of `enbloc install`."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import enbloc
from cluster.embedded.http.serving import served_in_background
from enbloc.cli.main import cli
from enbloc.cluster.embedded.api.store import Store
from enbloc.library.cluster import Cluster
from support import manifests as m

pytest.importorskip("enbloc.cluster.kube.cluster", reason="the adapter for real clusters is not part of this tree")


def ask(kubeconfig: Path, *arguments: str) -> Any:
    done = CliRunner().invoke(cli, [*arguments, "--kubeconfig", str(kubeconfig), "-o", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def indexed_job(count: int, **fields: Any) -> m.Obj:
    spec = {"completions": count, "parallelism": count, "completionMode": "Indexed"}
    template = {"metadata": {}, "spec": {**m.pod_spec(1), "restartPolicy": "Never", **fields}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "idx", "namespace": "default"},
        "spec": {**spec, "template": template},
    }


def test_n5_a_gang_by_its_owner_is_one_gang_for_the_commands_too() -> None:
    with Cluster([m.node("n", cpu=4), indexed_job(8)]) as cluster:
        assert _when(lambda: [one for one in cluster.objects("Pod") if (one["status"].get("conditions"))])
        (row,) = ask(cluster.kubeconfig, "gangs")["gangs"]
        assert (row["gang"], row["minimum"], row["pods"]) == ("default/idx", 8, {"waiting": 8})
        explained = ask(cluster.kubeconfig, "explain", "idx")
        assert explained["numbers"]["minimum"] == 8
        assert "8 of 8 pods" in explained["sentence"] or "4 of 8 pods" in explained["sentence"]


def _when(condition: Any) -> bool:
    for _ in range(200):
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def unscheduled(tmp_path: Path) -> Iterator[tuple[Path, Store]]:
    """A cluster with a gang that could start, and nobody who starts it."""
    with served_in_background(tmp_path) as (kubeconfig, store):
        for obj in (m.node("n"), *m.gang("g", 2)):
            store.create(obj)
        yield kubeconfig, store


def lease(name: str, renewed_s_ago: float, holder: str = "pod-1") -> m.Obj:
    at = time.gmtime(time.time() - renewed_s_ago)
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 3600, "renewTime": time.strftime("%FT%T.000000Z", at)}
    metadata = {"name": name, "namespace": "enbloc-system"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    "leases, said",
    [
        ([], "It can start now, and whether a scheduler runs is not known: there is no Lease enbloc-system/"),
        ([lease("enbloc", 1)], "It can start now. A scheduler runs (pod-1 holds Lease enbloc-system/enbloc)"),
        ([lease("enbloc-scheduler", 3), lease("enbloc", 9999)], "now. A scheduler runs (pod-1 holds Lease"),
        ([lease("enbloc", 9999)], "no scheduler runs: Lease enbloc-system/enbloc was last renewed at 20"),
        ([lease("enbloc", 1, holder="")], "no scheduler runs: Lease enbloc-system/enbloc was last renewed at 20"),
    ],
)
def test_explain_knows_from_the_lease_whether_a_scheduler_runs(
    unscheduled: tuple[Path, Store], leases: list[m.Obj], said: str
) -> None:
    kubeconfig, store = unscheduled
    store.auto_namespaces = True
    for one in leases:
        store.create(one)
    assert said in ask(kubeconfig, "explain", "g")["sentence"]


def test_a_gang_that_waits_for_room_says_too_that_no_scheduler_runs(unscheduled: tuple[Path, Store]) -> None:
    kubeconfig, store = unscheduled
    store.auto_namespaces = True
    for obj in (lease("enbloc", 9999), *m.gang("large", 2, cpu=3)):
        store.create(obj)
    sentence = ask(kubeconfig, "explain", "large")["sentence"]
    assert "Insufficient cpu" in sentence
    assert sentence.count("No scheduler runs: Lease enbloc-system/enbloc was last renewed at ") == 1


def test_an_up_knows_of_itself() -> None:
    """Also for pages and Python: none of them asks whether a scheduler runs."""
    with Cluster([m.node("n"), *m.gang("g", 9, cpu=3), indexed_job(2, nodeSelector={"no": "such"})]) as cluster:
        assert _when(lambda: [one for one in cluster.objects("Pod") if (one["status"].get("conditions"))])
        by_command = ask(cluster.kubeconfig, "explain", "g")["sentence"]
        with urllib.request.urlopen(f"{cluster.address}api/explain/default/g") as answer:
            by_page = json.load(answer)["sentence"]
        by_python = enbloc.explain("g", cluster)["sentence"]
        assert enbloc.explain("idx", cluster)["numbers"]["minimum"] == 2
        with urllib.request.urlopen(f"{cluster.address}api/scheduler") as answer:
            assert json.load(answer)["runs"] is True
    assert by_command == by_page == by_python
    assert "scheduler runs" not in by_command
    assert "Insufficient cpu" in by_command


def test_n5_a_config_that_was_installed_says_what_is_a_gang(tmp_path: Path) -> None:
    with served_in_background(tmp_path) as (kubeconfig, store):
        store.auto_namespaces = True
        owner = store.create(indexed_job(2))
        for number in range(2):
            pod = m.pod(f"idx-{number}", annotations={"batch.kubernetes.io/job-completion-index": str(number)})
            pod["metadata"]["ownerReferences"] = [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "idx", "uid": owner["metadata"]["uid"]}
                | {"controller": True}
            ]
            store.create(pod)
        assert len(ask(kubeconfig, "gangs")["gangs"]) == 2
        metadata = {"name": "enbloc-config", "namespace": "enbloc-system"}
        data = {"enbloc.yaml": "groupByOwner: {enabled: true}"}
        store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        assert [row["minimum"] for row in ask(kubeconfig, "gangs")["gangs"]] == [2]
