"""The adapter and a real API server: the stories that the façade of `enbloc up` is told too, see `conformance`."""

from __future__ import annotations

import json

import pytest

from cluster.kube.conformance import STORIES, Diagnosis, tell
from e2e.control_plane import ControlPlane
from enbloc.install.definitions import definitions


@pytest.fixture(scope="module")
def defined(plane: ControlPlane) -> ControlPlane:
    """With our definitions, and without our webhooks: it is the API server that answers."""
    items = {"apiVersion": "v1", "kind": "List", "items": definitions({})}
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(items))
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    plane.apiserver.kill()  # one that is new does not remember what happened long ago
    plane.apiserver.restart()
    return plane


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_adapter(story: Diagnosis, defined: ControlPlane) -> None:
    tell(story, defined.kubeconfig)
