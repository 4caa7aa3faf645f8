"""Scheduling policies by name: each is a config of the ordinary engine, and nothing else.

`enbloc config --policy NAME` prints one whole; `enbloc replay` compares them on a trace.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from enbloc.config.model import Config
from enbloc.config.reading import parse


class Policy(NamedTuple):
    text: str
    """What it does, in one line."""
    data: dict[str, Any]
    """The config file, as a YAML loader gives it."""


def _easy(mode: str) -> list[dict[str, Any]]:
    return [{"name": "allocate"}, {"name": "backfill", "arguments": {"mode": mode}}]


def _by(order: str, scores: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"plugins": [{"name": "priority"}, {"name": order}]}, {"plugins": [scores]}]


_SPREAD: Final = {"name": "nodeorder"}
_PACK: Final = {"name": "binpack", "arguments": {"binpack.resources": "nvidia.com/gpu"}}
_IN_ORDER: Final = [{"name": "allocate"}, {"name": "preempt", "arguments": {"by": "order"}}]

POLICIES: Final = {
    "default": Policy("enbloc's default config", {}),
    "fifo": Policy(
        "strict order of submission: a gang that does not fit blocks those behind it",
        {"actions": "allocate", "queues": {"dequeueStrategy": "fifo"}},
    ),
    "fifo-skip": Policy(
        "order of submission; a gang that does not fit is passed by others, and may starve", {"actions": "allocate"}
    ),
    "easy": Policy(
        "EASY backfill: later gangs start early if they do not delay the first one that waits",
        {"actions": _easy("easy")},
    ),
    "conservative": Policy(
        "conservative backfill: later gangs start early if they delay none of those before them",
        {"actions": _easy("conservative")},
    ),
    "sjf": Policy(
        "shortest expected run time first; others pass a gang that does not fit",
        {"actions": "allocate", "tiers": _by("sjf", _SPREAD)},
    ),
    "fair": Policy(
        "by what users have used over time against their share; others pass a gang that does not fit",
        {"actions": "allocate", "tiers": _by("fair", _SPREAD)},
    ),
    "srtf": Policy(
        "shortest remaining run time first: gangs with more to do are evicted, and packed anew",
        {"actions": _IN_ORDER, "tiers": _by("srtf", _PACK)},
    ),
    "srsf": Policy(
        "least remaining service (run time x GPUs, or cpus) first: gangs with more to do are evicted, and packed anew",
        {"actions": _IN_ORDER, "tiers": _by("srsf", _PACK)},
    ),
}


def policy_config(name: str) -> Config:
    """The config of a policy. Raises `KeyError`."""
    return parse(POLICIES[name].data)
