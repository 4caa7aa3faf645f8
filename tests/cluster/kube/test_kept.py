"""What a watch keeps of a pod: all that is read, and no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.kube.server import a_cluster, play
from cluster.kube.server import pod as served_pod
from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent
from enbloc.cluster.kube.kept import MOST_PARTS, Kept
from enbloc.engine.core.tables.classes import ClassTable
from enbloc.engine.core.tables.resources import Resources
from enbloc.engine.facts import pod_facts
from enbloc.gangs.compatibility import pod_constraints
from enbloc.inspect.gang_states import exit_codes


def a_pod(number: int) -> Obj:
    """As a kubelet's cluster has them: much of it is for kubelets."""
    token = f"kube-api-access-{number:05d}"
    container = {
        "name": "main",
        "image": "registry.example/train:1",
        "command": ["train", f"--rank={number}"],
        "env": [{"name": "RANK", "value": str(number)}],
        "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
        "ports": [{"containerPort": 80, "hostPort": 8080}],
        "volumeMounts": [{"name": token, "mountPath": "/var/run/secrets"}],
        "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
    }
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"p{number}",
            "namespace": "default",
            "uid": f"u{number}",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "train"},
            "annotations": {
                "scheduling.k8s.io/group-name": f"g{number}",
                "volcano.sh/numa-topology-policy": "restricted",
            },
        },
        "spec": {
            "schedulerName": "volcano",
            "nodeSelector": {"pool": "a"},
            "affinity": {"podAntiAffinity": {}},
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
            "initContainers": [{**container, "name": "init", "restartPolicy": "Always"}],
            "volumes": [
                {"name": token, "projected": {"sources": []}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            ],
            "serviceAccountName": "default",
            "priority": 7,
        },
        "status": {
            "phase": "Running",
            "podIP": f"10.0.0.{number % 250}",
            "startTime": "2026-01-01T00:00:09Z",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {"name": "main", "restartCount": 3, "lastState": ended, "imageID": f"sha256:{number}"}
            ],
        },
    }


def test_what_the_scheduler_reads_of_a_pod_is_all_kept() -> None:
    whole, reduced = a_pod(1), Kept().reduced(a_pod(1))
    names = frozenset({"volcano"})
    facts = [pod_facts(one, names, "", "", "") for one in (whole, reduced)]
    assert facts[0].spec != facts[1].spec
    classes = ClassTable(Resources())
    assert classes.of("default", whole["spec"]) is classes.of("default", reduced["spec"])
    for name in ("labels", "created_ns", "priority", "node", "status", "ours", "since_ns", "hints", "topology"):
        assert getattr(facts[0], name) == getattr(facts[1], name), name
    assert [one.message for one in pod_constraints(whole)] == [one.message for one in pod_constraints(reduced)] != []
    assert exit_codes([whole]) == exit_codes([reduced]) == {"exit code 137 (OOMKilled)": 1}


def test_what_only_kubelets_read_is_not_kept_and_equal_parts_are_kept_once() -> None:
    kept = Kept()
    first, second = kept.reduced(a_pod(1)), kept.reduced(a_pod(2))
    text = json.dumps(first)
    for word in ("--rank", "kube-api-access", "livenessProbe", "serviceAccountName", "10.0.0.", "sha256"):
        assert word not in text, word
    for place, key in (("spec", "containers"), ("spec", "volumes"), ("metadata", "labels"), ("status", "conditions")):
        assert first[place][key] is second[place][key], key
    assert first["metadata"]["annotations"] != second["metadata"]["annotations"]


def test_the_number_of_parts_that_are_known_for_sharing_is_bounded() -> None:
    kept = Kept()
    for number in range(MOST_PARTS + 50):
        pod = a_pod(1)
        pod["metadata"]["labels"] = {"number": str(number)}
        assert kept.reduced(pod)["metadata"]["labels"] == {"number": str(number)}
    assert len(kept._parts) <= MOST_PARTS


@pytest.mark.parametrize("bad", [None, "text", 7, [], {}, [None, "text", 7, []], {"a": None}])
@pytest.mark.parametrize(
    "place", ["metadata", "spec", "status", "containers", "volumes", "labels", "containerStatuses"]
)
def test_a_malformed_pod_is_kept_as_it_is(place: str, bad: Any) -> None:
    pod = a_pod(1)
    inside = {"containers": "spec", "volumes": "spec", "labels": "metadata", "containerStatuses": "status"}
    (pod[inside[place]] if place in inside else pod)[place] = bad
    Kept().reduced(pod)


def test_a_watch_keeps_what_is_read_and_a_list_has_all() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            listed = served_pod("p0")
            listed["spec"] = a_pod(0)["spec"]
            server.put(listed)
            seen: list[WatchEvent] = []
            await cluster.start({"Pod"}, seen.append)
            assert "--rank=0" not in json.dumps(seen[0].obj)
            assert "--rank=0" in json.dumps(await cluster.list("Pod"))

    play(story)
