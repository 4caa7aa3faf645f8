"""An older version, installed and used as its own manifest says, is upgraded to the present one on a real node.

`scripts/upgrade_from.sh COMMIT` takes the older version out of the history, builds its image and runs this story. It
needs the history, so that no other run tells it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from e2e.api import Json
from e2e.running import JOBS, NAMESPACE, SCHEDULING
from node.machine import Machine
from node.test_installed import (
    IMAGE,
    OWN_PODS,
    PODS,
    WITHIN_S,
    component_pods,
    install,
    job,
    run_gang,
    wait_rolled_out,
    wait_until,
)

OLDER = os.environ.get("ENBLOC_OLDER", "")
"""A folder with `src` and `image.tar` of the older version; its image is localhost/enbloc:older."""
OLDER_IMAGE = "localhost/enbloc:older"
GROUPS = f"{SCHEDULING}/namespaces/default/podgroups"
CLAIMS = "enbloc.dev/claim"
"""What annotations with records of claims begin with: one for all (`…claims`), or one a kind (`…claim-KIND`)."""
SIGNED = "hmac:"
CONFIG = """\
actions:
  - name: enqueue
  - name: allocate
  - name: backfill
  - name: reserve
    arguments: {starvingJobTimeThreshold: 5, reservedNodePercent: 100}
"""

pytestmark = pytest.mark.skipif(not OLDER, reason="scripts/upgrade_from.sh COMMIT makes an older version")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("config") / "enbloc.yaml"
    written.write_text(CONFIG)
    return written


@pytest.fixture(scope="module")
def seen() -> dict[str, Json]:
    """What the older version left, for the tests after the upgrade."""
    return {}


def _pods_of(machine: Machine, name: str) -> list[Json]:
    return [one for one in machine.plane.api.items(PODS) if one["metadata"]["name"].startswith(f"{name}-")]


def _group_of(machine: Machine, name: str) -> Json:
    (found,) = [one for one in machine.plane.api.items(GROUPS) if one["metadata"]["name"].startswith(f"{name}-")]
    return found


def _claims_of(group: Json) -> str:
    annotations = group["metadata"].get("annotations") or {}
    return "\n".join(str(value) for name, value in sorted(annotations.items()) if name.startswith(CLAIMS))


def _free_cpu_milli(machine: Machine) -> int:
    """What the node has, less the requests of all pods on it."""
    (node,) = machine.plane.api.items("/api/v1/nodes")
    free = int(node["status"]["allocatable"]["cpu"]) * 1000
    for pod in machine.plane.api.items("/api/v1/pods"):
        if pod["status"].get("phase") not in ("Succeeded", "Failed"):
            for container in pod["spec"]["containers"]:
                text = container.get("resources", {}).get("requests", {}).get("cpu", "0")
                free -= int(text[:-1]) if text.endswith("m") else int(text) * 1000
    return free


def test_the_older_version_runs_gangs_and_reserves(machine: Machine, config: Path, seen: dict[str, Json]) -> None:
    plane = machine.plane
    machine.import_image(Path(OLDER) / "image.tar")
    environment = {**os.environ, "PYTHONPATH": str(Path(OLDER) / "src")}
    command = [sys.executable, "-m", "enbloc", "install", "--image", OLDER_IMAGE, "--config", str(config)]
    made = subprocess.run([*command, "--replicas", "1"], capture_output=True, text=True, env=environment, cwd=OLDER)
    assert made.returncode == 0, made.stderr
    plane.kubectl("apply", "-f", "-", stdin=made.stdout)
    wait_rolled_out(machine)
    wait_until(machine, f"{SCHEDULING}/queues/default", lambda one: (one.get("status") or {}).get("state") == "Open")
    assert len(run_gang(machine, "done")) == 3
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(job("steady", 2, "sleep 3600", cpu="100m")))
    wait_until(machine, f"{JOBS}/steady", lambda one: (one.get("status") or {}).get("running") == 2)
    # It fits once `steady` is gone, and not before: the node is reserved for it.
    large = job("large", 2, "sleep 3600", cpu=f"{_free_cpu_milli(machine) // 2 + 50}m")
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(large))
    wait_until(machine, GROUPS, lambda listed: any(_claims_of(one) for one in listed["items"]))
    seen["steady"] = {"uids": sorted(one["metadata"]["uid"] for one in _pods_of(machine, "steady"))}
    seen["large"] = _group_of(machine, "large")
    print("record of the older version:", _claims_of(seen["large"]))


def test_the_upgrade_rolls_out_and_running_gangs_go_on(machine: Machine, config: Path, seen: dict[str, Json]) -> None:
    plane = machine.plane
    install(machine, "--image", IMAGE, "--config", str(config), "--replicas", "1")
    wait_rolled_out(machine)
    wait_until(
        machine,
        OWN_PODS,
        lambda listed: {one["spec"]["containers"][0]["image"] for one in listed["items"]} == {IMAGE},
    )
    steady = _pods_of(machine, "steady")
    assert sorted(one["metadata"]["uid"] for one in steady) == seen["steady"]["uids"]
    assert {one["status"]["containerStatuses"][0]["restartCount"] for one in steady} == {0}
    assert plane.api.get(f"{JOBS}/done").must()["status"]["state"]["phase"] == "Completed"
    for pods in component_pods(machine).values():
        for pod in pods:
            said = plane.kubectl("logs", "-n", NAMESPACE, pod["metadata"]["name"])
            assert "Traceback" not in said
            assert "forbidden" not in said.lower()


def test_s2_the_older_record_holds_if_it_verifies_and_is_replaced_if_not(
    machine: Machine, seen: dict[str, Json]
) -> None:
    """A record that the older version signed is one of the present version's: the key is in a Secret, which an upgrade
    leaves. One that is not signed is replaced by one that is."""
    before = seen["large"]
    signed = _claims_of(before).startswith(SIGNED)
    wait_until(
        machine,
        f"{GROUPS}/{before['metadata']['name']}",
        lambda group: _claims_of(group).startswith(SIGNED) and (signed or _claims_of(group) != _claims_of(before)),
    )
    after = _group_of(machine, "large")
    print("record of the present version:", _claims_of(after))
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    conditions = {one["type"]: one["status"] for one in after["status"]["conditions"]}
    assert conditions["Reserved"] == "True"
    events = json.loads(machine.plane.kubectl("get", "events", "-o", "json"))["items"]
    about = [(one["reason"], one["message"]) for one in events if one["involvedObject"]["name"].startswith("large-")]
    print(about)
    if signed:
        assert [one for one in about if one[0].endswith("Released")] == []


def test_the_gang_that_waited_under_the_older_version_starts(machine: Machine) -> None:
    machine.plane.kubectl("delete", "vcjob", "steady", timeout_s=WITHIN_S)
    wait_until(machine, f"{JOBS}/large", lambda one: (one.get("status") or {}).get("running") == 2)
    assert _claims_of(_group_of(machine, "large")) == ""
    machine.plane.kubectl("delete", "vcjob", "large", timeout_s=WITHIN_S)
    assert len(run_gang(machine, "after-upgrade")) == 3


def test_removal_leaves_nothing_of_both_versions(machine: Machine) -> None:
    plane = machine.plane
    plane.kubectl("delete", "vcjob", "--all", timeout_s=WITHIN_S)
    text = subprocess.run(
        [sys.executable, "-m", "enbloc", "install", "--no-merge"], capture_output=True, text=True, check=True
    ).stdout
    plane.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text, timeout_s=WITHIN_S)
    plane.api.wait_gone(f"/api/v1/namespaces/{NAMESPACE}", WITHIN_S)
    wait_until(machine, "/api/v1/pods", lambda listed: listed["items"] == [])
    kinds = "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,crds"
    left = plane.kubectl("get", kinds, "-o", "name").split()
    assert [one for one in left if "enbloc" in one or "volcano" in one] == []
