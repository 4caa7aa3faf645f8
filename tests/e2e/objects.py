"""Objects that end-to-end tests create, with no more in them than the API server asks for."""

from __future__ import annotations

from e2e.api import Json

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, *, restart: str = "Never", finalizers: tuple[str, ...] = (), **script: str) -> Json:
    """A pod for our scheduler; `run_time="2s"` becomes the annotation `sim.enbloc.dev/run-time`."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "annotations": {f"sim.enbloc.dev/{key.replace('_', '-')}": value for key, value in script.items()},
            "finalizers": list(finalizers),
        },
        "spec": {
            "schedulerName": "enbloc",
            "restartPolicy": restart,
            "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
