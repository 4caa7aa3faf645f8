"""The pytest fixture `enbloc_cluster`: a Kubernetes API with nodes, controllers and scheduler for one test.

    def test_my_operator(enbloc_cluster):
        kubernetes.config.load_kube_config(str(enbloc_cluster.kubeconfig))

A test says what it wants of the cluster by a marker, with the arguments of `enbloc.Cluster`:

    @pytest.mark.enbloc_cluster(nodes=4, node_resources={"cpu": 8, "nvidia.com/gpu": 8})
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from enbloc.library.cluster import Cluster


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "enbloc_cluster(**arguments): arguments of the fixture's `enbloc.Cluster`")


@pytest.fixture
def enbloc_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster that ends with the test."""
    from enbloc.library.cluster import Cluster

    marker = request.node.get_closest_marker("enbloc_cluster")
    with Cluster(*(marker.args if marker else ()), **(marker.kwargs if marker else {})) as cluster:
        yield cluster
