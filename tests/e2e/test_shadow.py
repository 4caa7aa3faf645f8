"""`enbloc shadow` on a real API server, with an account that may only read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from e2e.control_plane import ControlPlane
from e2e.objects import PODS, pod

READER = "reader"


def _may_only_read(plane: ControlPlane) -> Path:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": READER},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": READER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": READER}],
    }
    plane.apply(role, binding)
    return plane.kubeconfig_for(READER)


def test_a_reader_is_told_what_would_have_started_and_writes_nothing(plane: ControlPlane, tmp_path: Path) -> None:
    plane.add_node("n1")
    for name in ("shadowed-0", "shadowed-1"):
        obj = pod(name)
        obj["spec"]["schedulerName"] = "foreign"
        plane.api.create(PODS, obj)
    kubeconfig = _may_only_read(plane)
    config = tmp_path / "config.yaml"
    config.write_text("schedulerNames: [foreign]\n")
    before = [one["metadata"]["resourceVersion"] for one in plane.api.items(PODS)]
    command = [sys.executable, "-m", "enbloc", "shadow", "--kubeconfig", str(kubeconfig), "--config", str(config)]
    done = subprocess.run([*command, "--for", "2s", "-o", "json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert {"default/shadowed-0", "default/shadowed-1"} <= {gang["gang"] for gang in report["gangs"]}
    assert report["only_here"] >= 2
    assert [one["metadata"]["resourceVersion"] for one in plane.api.items(PODS)] == before
    refused = plane.kubectl("auth", "can-i", "create", "pods", "--as", READER, check=False)
    assert "no" in refused
