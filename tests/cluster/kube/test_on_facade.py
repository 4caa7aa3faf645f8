"""The adapter talks to the façade of `enbloc up` as to a real API server: the same stories, see `conformance`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.embedded.http.serving import fresh_store, served_in_background
from cluster.kube.conformance import STORIES, Diagnosis, tell
from enbloc.cluster.embedded.api.watch_log import DEFAULT_BOUNDS, Bounds


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    store = fresh_store()
    store._log._bounds, store._log._trim_at = (
        Bounds(history=1),
        1,
    )  # what happened before it was served is too long ago to ask for
    for number in range(3):
        store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"n{number}"}})
    store._log._bounds, store._log._trim_at = DEFAULT_BOUNDS, 20_000
    with served_in_background(tmp_path_factory.mktemp("served"), store) as (path, _):
        yield path


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_adapter(story: Diagnosis, kubeconfig: Path) -> None:
    tell(story, kubeconfig)
