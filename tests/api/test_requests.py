"""What a pod asks of a node, by Kubernetes' own definition (G6): cases worked out by hand, and the plain sum."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.api.core import PodSpec
from enbloc.api.kinds import view
from enbloc.api.requests import pod_requests
from enbloc.units import parse_quantity


def c(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def sidecar(**requests: str) -> dict[str, Any]:
    return c(requests, restartPolicy="Always")


def cpu(amount: str) -> dict[str, Any]:
    return c({"cpu": amount})


CASES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "nothing is asked for": ({"containers": [{}, {"resources": {}}]}, {}),
    "containers add up": (
        {"containers": [cpu("1"), cpu("500m"), c({"memory": "1Gi"})]},
        {"cpu": "1500m", "memory": "1Gi"},
    ),
    "a request of zero is none": ({"containers": [c({"cpu": "0", "memory": "1"})]}, {"memory": "1"}),
    "a limit stands for a request": ({"containers": [c(None, {"cpu": "2"})]}, {"cpu": "2"}),
    "a request beats its limit": ({"containers": [c({"cpu": "1"}, {"cpu": "2"})]}, {"cpu": "1"}),
    "a request of zero beats its limit": ({"containers": [c({"cpu": "0"}, {"cpu": "2"})]}, {}),
    "a limit for one, a request for the other": (
        {"containers": [c({"cpu": "1"}, {"cpu": "2", "memory": "3"})]},
        {"cpu": "1", "memory": "3"},
    ),
    "init containers run one by one": (
        {"initContainers": [cpu("2"), cpu("3")], "containers": [cpu("1")]},
        {"cpu": "3"},
    ),
    "a small init container hides": ({"initContainers": [cpu("1")], "containers": [cpu("1"), cpu("1")]}, {"cpu": "2"}),
    "each dimension on its own": (
        {"initContainers": [c({"cpu": "3", "memory": "1"})], "containers": [c({"cpu": "1", "memory": "5"})]},
        {"cpu": "3", "memory": "5"},
    ),
    "a sidecar stays": ({"initContainers": [sidecar(cpu="1")], "containers": [cpu("2")]}, {"cpu": "3"}),
    "a sidecar before an init container runs beside it": (
        {"initContainers": [sidecar(cpu="1"), cpu("4")], "containers": [cpu("2")]},
        {"cpu": "5"},
    ),
    "a sidecar after an init container does not": (
        {"initContainers": [cpu("4"), sidecar(cpu="1")], "containers": [cpu("2")]},
        {"cpu": "4"},
    ),
    "sidecars add up": (
        {"initContainers": [sidecar(cpu="1"), cpu("1"), sidecar(cpu="2"), cpu("3")], "containers": [cpu("1")]},
        {"cpu": "6"},  # 1 + 2 beside the last init container's 3; later only 1 + 2 + 1
    ),
    "another restart policy makes no sidecar": (
        {"initContainers": [c({"cpu": "1"}, restartPolicy="OnFailure")], "containers": [cpu("2")]},
        {"cpu": "2"},
    ),
    "overhead comes on top": (
        {"initContainers": [cpu("3")], "containers": [cpu("1")], "overhead": {"cpu": "250m", "memory": "1Mi"}},
        {"cpu": "3250m", "memory": "1Mi"},
    ),
    "extended resources too": (
        {"containers": [c(None, {"nvidia.com/gpu": "2"}), c(None, {"nvidia.com/gpu": "1"})]},
        {"nvidia.com/gpu": "3"},
    ),
    "the pod's own request stands instead of its containers'": (
        {"containers": [cpu("1"), c({"memory": "5"})], "resources": {"requests": {"cpu": "4"}}},
        {"cpu": "4", "memory": "5"},
    ),
    "the pod's own request, even the smaller one": (
        {"initContainers": [cpu("9")], "containers": [cpu("1")], "resources": {"requests": {"cpu": "4"}}},
        {"cpu": "4"},
    ),
    "the pod's limit stands for a request where no container asks": (
        {"containers": [{}], "resources": {"limits": {"cpu": "4", "hugepages-2Mi": "4Mi"}}},
        {"cpu": "4", "hugepages-2Mi": "4Mi"},
    ),
    "the pod's limit yields to what containers ask for": (
        {"containers": [cpu("1"), cpu("2")], "resources": {"limits": {"cpu": "8", "memory": "7"}}},
        {"cpu": "3", "memory": "7"},
    ),
    "the pod's request beats its limit": (
        {"containers": [{}], "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}},
        {"cpu": "1"},
    ),
    "extended resources are not asked for as a whole": (
        {"containers": [c({"example.com/x": "1"})], "resources": {"requests": {"example.com/x": "9"}}},
        {"example.com/x": "1"},
    ),
    "overhead on top of the pod's own request": (
        {"containers": [{}], "resources": {"requests": {"cpu": "1"}}, "overhead": {"cpu": "1"}},
        {"cpu": "2"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_g6_requests(case: str) -> None:
    spec, asked = CASES[case]
    assert pod_requests(view(spec, PodSpec)) == {name: parse_quantity(text).nanos for name, text in asked.items()}


amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "x"]), st.integers(0, 9))


@given(st.lists(st.tuples(st.booleans(), amounts), max_size=5), st.lists(amounts, min_size=1, max_size=4))
def test_g6_requests_are_the_most_that_ever_runs_at_once(
    inits: list[tuple[bool, dict[str, int]]], containers: list[dict[str, int]]
) -> None:
    """The pod's life played through: one init container after the other beside the sidecars so far, then all."""
    spec = {
        "initContainers": [c(_text(asked), restartPolicy="Always" if stays else None) for stays, asked in inits],
        "containers": [c(_text(asked)) for asked in containers],
    }
    for name in ("cpu", "memory", "x"):
        moments, staying = [], 0
        for stays, asked in inits:
            moments.append(staying + asked.get(name, 0))
            staying += asked.get(name, 0) if stays else 0
        moments.append(staying + sum(asked.get(name, 0) for asked in containers))
        assert pod_requests(view(spec, PodSpec)).get(name, 0) == max(moments) * 10**9


def _text(asked: dict[str, int]) -> dict[str, str]:
    return {name: str(amount) for name, amount in asked.items()}
