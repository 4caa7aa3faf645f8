"""What queues used and how many gangs waited, over the time in which the pages were read.

A sample is taken when the model is made, so a server that no one looks at does no work; Prometheus keeps the history of
a cluster for good (docs/metrics.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from enbloc.inspect.gang_states import WAITS

EVERY_S: Final = 1.0
SAMPLES: Final = 1_000
"""When there are more, every second one is dropped, and samples are taken half as often."""
_QUEUES: Final = 20
"""The queues that use the most are kept."""


class History:
    def __init__(self) -> None:
        self._samples: list[dict[str, Any]] = []
        self._every_s = EVERY_S
        self._claimed_since: dict[str, float] = {}
        """By gang: when room was first seen to be reserved or held for it."""

    def add(self, model: Mapping[str, Any]) -> None:
        """`model`: of the dashboard. The last sample is replaced until it is old enough to stay."""
        self._add_claims(model)
        sample = _sample(model)
        if len(self._samples) > 1 and sample["t"] - self._samples[-2]["t"] < self._every_s:
            self._samples[-1] = sample
        else:
            self._samples.append(sample)
        if len(self._samples) > SAMPLES:
            self._samples = self._samples[::2]
            self._every_s *= 2

    def _add_claims(self, model: Mapping[str, Any]) -> None:
        """Says on each gang since when room is set aside for it, for the timeline."""
        now = {gang["gang"] for gang in model["gangs"] if gang["setAside"]}
        self._claimed_since = {name: self._claimed_since.get(name, model["asOf"]) for name in now}
        for gang in model["gangs"]:
            if gang["gang"] in now:
                gang["claimed"] = [[self._claimed_since[gang["gang"]], None]]

    def shown(self) -> list[dict[str, Any]]:
        return self._samples


def _sample(model: Mapping[str, Any]) -> dict[str, Any]:
    resource = model["resource"]
    total = model["total"].get(resource) or 1.0
    used = {queue["queue"]: queue["used"].get(resource, 0.0) for queue in model["queues"] if queue["queue"] != "root"}
    largest = sorted(used.items(), key=lambda item: (-item[1], item[0]))[:_QUEUES]
    return {
        "t": model["asOf"],
        "use": round(sum(_held(node, resource) for node in model["nodes"]) / total, 4),
        "waiting": sum(gang["state"] in WAITS for gang in model["gangs"]),
        "queues": {name: round(amount / total, 4) for name, amount in largest if amount},
    }


def _held(node: Mapping[str, Any], resource: str) -> float:
    return sum(float(held.get(resource, 0.0)) for _, held in node["pods"])
