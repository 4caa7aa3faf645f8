"""The kubeconfig of the embedded cluster."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from enbloc.cluster.embedded.http.encoding import encode

CONTEXT = "enbloc"


def write_kubeconfig(path: Path, server: str, token: str, certificate: bytes) -> None:
    """Writes the file, readable by its owner only."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(certificate).decode()}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": "default"}}],
        "current-context": CONTEXT,
    }
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(encode(config) + b"\n")  # JSON is YAML
    partial.replace(path)
