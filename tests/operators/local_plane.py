"""`enbloc up` in place of a control plane: the same methods, one process, simulated pods."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path

from e2e.api import Api
from e2e.control_plane import ControlPlane, free_port
from e2e.parts import Warden
from e2e.running import ENBLOC, answers


class LocalPlane(ControlPlane):
    """Has no etcd, no controller manager and no kwok: `up` is all of them, and the scheduler."""

    def __init__(self, programs: Mapping[str, Path], folder: Path) -> None:
        super().__init__(programs, folder, controllers=())

    def start(self) -> None:
        self._warden = Warden()
        port = free_port()
        state = {"XDG_STATE_HOME": str(self.folder / "state"), "HOME": str(self.folder), "PATH": os.environ["PATH"]}
        try:
            command = [*ENBLOC, "up", "--nodes", "0", "--port", str(port)]
            self.launch("up", command, ready=lambda: answers(port, "/readyz"), env=state, within_s=120)
            (self.kubeconfig,) = (self.folder / "state").rglob("kubeconfig")
        except BaseException:
            self.stop()
            raise
        config = json.loads(self.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = self.folder / "up-ca.crt"
        authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        self.url, self.token = cluster["server"], config["users"][0]["user"]["token"]
        self.api = Api(self.url, authority, self.token, 60)

    def add_node(self, name: str, labels: Mapping[str, str] | None = None, **capacity: str) -> None:
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", **capacity}
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
        self.api.create("/api/v1/nodes", {"metadata": metadata, "status": {"capacity": amounts}})
