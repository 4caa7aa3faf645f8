"""`make e2e-node`: what the programs of a node write under fixed names goes with the namespace of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
WRITTEN = (
    "/run/enbloc-test/flannel/subnet.env",
    "/var/lib/enbloc-test/cni/networks/pods/lock",
    "/var/lib/enbloc-test/kubelet/device-plugins/kubelet.sock",
    "/var/log/enbloc-test/containers/pod.log",
)
PROGRAM = """
import sys
from pathlib import Path
from node.machine import _hide_what_is_shared
_hide_what_is_shared()
for name in sys.argv[1:]:
    Path(name).parent.mkdir(parents=True)
    Path(name).touch()
"""
APART = ["unshare", "--mount", "--propagation", "private"]


def may_mount() -> bool:
    """As root, on a machine that lets its root mount."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    mount = [*APART, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(mount, capture_output=True, timeout=60).returncode == 0


def test_what_a_node_writes_under_fixed_names_is_gone_with_the_namespace() -> None:
    if not may_mount():
        pytest.skip("needs root, and a machine where root may mount")
    command = [*APART, sys.executable, "-c", PROGRAM, *WRITTEN]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True, timeout=60)
    left = [name for name in WRITTEN if Path(name).exists()]
    for name in left:
        shutil.rmtree(name.partition("/enbloc-test/")[0] + "/enbloc-test")
    assert done.returncode == 0, done.stderr.decode()
    assert not left
