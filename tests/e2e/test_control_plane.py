"""The control plane itself: it comes up, plays pods as a simulation would, and survives what tests do to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from e2e.api import Api, Json, phase
from e2e.control_plane import ControlPlane
from e2e.objects import PODS, pod
from e2e.parts import NotReady


@pytest.fixture(scope="module", autouse=True)
def node(plane: ControlPlane) -> str:
    plane.add_node("n1")
    return "n1"


def _start(plane: ControlPlane, obj: Json) -> str:
    """Creates the pod and binds it by hand; returns its path."""
    name = obj["metadata"]["name"]
    plane.api.create(PODS, obj)
    plane.api.bind("default", name, "n1")
    return f"{PODS}/{name}"


def test_kubectl_is_answered(plane: ControlPlane) -> None:
    versions = json.loads(plane.kubectl("version", "-o", "json"))
    assert versions["serverVersion"]["gitVersion"] == versions["clientVersion"]["gitVersion"]
    assert int(versions["serverVersion"]["minor"]) >= 36
    assert "n1" in plane.kubectl("get", "nodes")


def test_kubernetes_own_gangs_are_served(plane: ControlPlane) -> None:
    names = {each["name"] for each in plane.api.get("/apis/scheduling.k8s.io/v1alpha2").must()["resources"]}
    assert "podgroups" in names


def test_rbac_refuses_a_stranger(plane: ControlPlane) -> None:
    stranger = plane.kubeconfig_for("stranger", ["guests"])
    known = json.loads(plane.kubectl("auth", "whoami", "-o", "json", f"--kubeconfig={stranger}"))["status"]["userInfo"]
    assert known["username"] == "stranger"
    assert "guests" in known["groups"]
    assert plane.kubectl("auth", "can-i", "list", "pods", f"--kubeconfig={stranger}", check=False).strip() == "no"


def test_service_account_has_a_token(plane: ControlPlane) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    plane.api.create(accounts, {"metadata": {"name": "robot"}})
    plane.api.wait(f"{accounts}/default", lambda _: True)  # made by the controllers
    api = Api(plane.url, plane.authority.certificate, plane.account_token("default", "robot"))
    refused = api.get(PODS)
    assert refused.status == 403
    assert "system:serviceaccount:default:robot" in refused.body["message"]


def test_launched_program_is_a_part(plane: ControlPlane) -> None:
    log = plane.folder / "sleeper.log"

    def log_has_hello() -> bool:
        return "hello" in log.read_text()

    part = plane.launch("sleeper", ["sh", "-c", "echo hello; exec sleep 60"], ready=log_has_hello)
    pids = [part.pid]
    part.kill()
    pids.append(part.pid)
    part.restart()
    pids.append(part.pid)
    assert pids[1] is None
    assert len(set(pids)) == 3
    assert "hello" in part.tail()
    assert "--- sleeper" in plane.story()
    part.stop()
    with pytest.raises(NotReady, match="ended with 3"):
        plane.launch("failure", ["sh", "-c", "echo why >&2; exit 3"], ready=lambda: False)


def test_pod_waits_until_it_is_bound_then_runs_and_succeeds(plane: ControlPlane) -> None:
    plane.api.create(PODS, pod("runs", run_time="1s"))
    assert phase("Pending")(plane.api.get(f"{PODS}/runs").must())
    plane.api.bind("default", "runs", "n1", {"enbloc.dev/decision": "7"})
    running = plane.api.wait(f"{PODS}/runs", phase("Running"))
    assert running["metadata"]["annotations"]["enbloc.dev/decision"] == "7"
    began = time.monotonic()
    ended = plane.api.wait(f"{PODS}/runs", phase("Succeeded"))
    assert 0.5 < time.monotonic() - began < 5
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


def test_pod_without_run_time_runs_on(plane: ControlPlane) -> None:
    path = _start(plane, pod("runs-on"))
    plane.api.wait(path, phase("Running"))
    time.sleep(1)
    assert phase("Running")(plane.api.get(path).must())
    plane.api.patch(
        path, {"metadata": {"annotations": {"sim.enbloc.dev/run-time": "0s", "sim.enbloc.dev/exit-code": "9"}}}
    )
    ended = plane.api.wait(path, phase("Failed"))
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 9


def test_pod_that_is_changed_while_it_runs_runs_no_shorter_and_little_longer(plane: ControlPlane) -> None:
    path = _start(plane, pod("changed", run_time="3s"))
    plane.api.wait(path, phase("Running"))
    began = time.monotonic()
    for turn in range(4):
        time.sleep(0.5)
        plane.api.patch(path, {"metadata": {"labels": {"turn": str(turn)}}})
    plane.api.wait(path, phase("Succeeded"))
    assert 2.8 < time.monotonic() - began < 4.9  # 5 and more if every change began the run anew


def test_pod_is_restarted_with_the_next_exit_code(plane: ControlPlane) -> None:
    path = _start(plane, pod("restarts", restart="OnFailure", run_time="200ms", exit_code="1,0"))
    ended = plane.api.wait(path, phase("Succeeded"))
    assert ended["status"]["containerStatuses"][0]["restartCount"] == 1


def test_pod_starts_and_stops_with_delay(plane: ControlPlane) -> None:
    began = time.monotonic()
    path = _start(plane, pod("slow", start_delay="1s", stop_delay="1s"))
    plane.api.wait(path, phase("Running"))
    assert time.monotonic() - began > 0.9
    began = time.monotonic()
    plane.api.delete(path)
    assert plane.api.get(path).must()["metadata"]["deletionTimestamp"]
    plane.api.wait_gone(path)
    assert time.monotonic() - began > 0.9


def test_pod_with_a_finalizer_ends_and_stays(plane: ControlPlane) -> None:
    path = _start(plane, pod("kept", finalizers=("enbloc.dev/test",)))
    plane.api.wait(path, phase("Running"))
    plane.api.delete(path)
    plane.api.wait(path, phase("Failed"))
    plane.api.patch(path, {"metadata": {"finalizers": None}})
    plane.api.wait_gone(path)


def test_garbage_is_collected(plane: ControlPlane) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    owner = plane.api.create(maps, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    plane.api.create(maps, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    plane.api.delete(f"{maps}/owner")
    plane.api.wait_gone(f"{maps}/owned", within_s=60)


def test_node_that_is_not_ready_is_tainted(plane: ControlPlane) -> None:
    plane.add_node("n2")
    path = "/api/v1/nodes/n2"
    _set_ready(plane, path, "False")
    plane.api.wait(path, lambda node: len(node["spec"].get("taints", [])) == 2)
    _set_ready(plane, path, "True")
    plane.api.wait(path, lambda node: not node["spec"].get("taints"))


def _set_ready(plane: ControlPlane, path: str, status: str) -> None:
    patch = {"status": {"conditions": [{"type": "Ready", "status": status, "reason": "Test"}]}}
    plane.api.request("PATCH", f"{path}/status", patch, "application/strategic-merge-patch+json").must()


def test_killed_apiserver_keeps_objects(plane: ControlPlane) -> None:
    before = plane.api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})
    plane.apiserver.kill()
    assert not plane.api.is_up()
    plane.apiserver.restart()
    after = plane.api.get("/api/v1/namespaces/default/configmaps/kept").must()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    path = _start(plane, pod("after-restart", run_time="0s"))  # kwok and the controllers found it again
    plane.api.wait(path, phase("Succeeded"), within_s=60)


def test_paused_apiserver_answers_no_request_and_goes_on(plane: ControlPlane) -> None:
    plane.apiserver.pause()
    try:
        with pytest.raises(TimeoutError):
            plane.impatient_api(1).get("/readyz")
    finally:
        plane.apiserver.resume()
    plane.apiserver.wait_ready()


def test_killed_etcd_keeps_objects(programs: Mapping[str, Path], tmp_path: Path) -> None:
    with ControlPlane(programs, tmp_path, durable=True, controllers=()) as plane:
        plane.api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})
        plane.etcd.kill()
        plane.etcd.restart()
        plane.apiserver.wait_ready()
        plane.api.wait("/api/v1/namespaces/default/configmaps/kept", lambda _: True)


def test_nothing_is_left_when_a_test_is_killed(programs: Mapping[str, Path], tmp_path: Path) -> None:
    """By `kill -9`, which nobody can prepare for."""
    places = {name: str(path) for name, path in programs.items()}
    code = (
        "import json, pathlib, sys, time\n"
        "from e2e.control_plane import ControlPlane\n"
        "places = {name: pathlib.Path(path) for name, path in json.loads(sys.argv[1]).items()}\n"
        "plane = ControlPlane(places, pathlib.Path(sys.argv[2]))\n"
        "plane.start()\n"
        "print(*[part.pid for part in plane.parts], flush=True)\n"
        "time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    test = subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(places), str(tmp_path)], stdout=subprocess.PIPE, env=environment
    )
    assert test.stdout is not None
    with test.stdout:
        pids = [int(word) for word in test.stdout.readline().split()]
    test.send_signal(signal.SIGKILL)
    test.wait(10)
    assert len(pids) == 4
    end = time.monotonic() + 10
    while any(_lives(pid) for pid in pids):
        assert time.monotonic() < end, f"of {pids} some still live"
        time.sleep(0.1)


def _lives(pid: int) -> bool:
    """A zombie that nobody has waited for yet is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
