"""Objects that end-to-end tests create, with no more in them than the API server asks for."""

from __future__ import annotations

from e2e.api import Json
from support import manifests as m

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, *, restart: str = "Never", finalizers: tuple[str, ...] = (), **script: str) -> Json:
    """A pod for our scheduler; `run_time="2s"` becomes the annotation `sim.enbloc.dev/run-time`."""
    annotations = {f"sim.enbloc.dev/{key.replace('_', '-')}": value for key, value in script.items()}
    found = m.pod(name, namespace=None, annotations=annotations, restartPolicy=restart)
    found["metadata"]["finalizers"] = list(finalizers)
    return found
