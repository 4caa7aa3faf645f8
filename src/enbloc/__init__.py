"""Enbloc: gang scheduling for Kubernetes. Together, or not at all.

One pure engine, used three ways: live on a cluster, in an embedded cluster on a laptop, and in virtual time.
The packages are layered; imports point down only:

    cli > library > install > traces > up > web > advice > sim > scenario > inspect > runtime > webhook > cluster
    > admission > controllers > engine > gangs > config > api > units

From Python (see docs/python.md):

    import enbloc

    result = enbloc.simulate(["nodes.yaml", "job.yaml"], config="easy")
    enbloc.replay("last-month.swf", ["default", "easy"]).to_pandas()

Until one of its names is used this module imports its version only: importing one package does not import the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from enbloc.version import __version__ as __version__

if TYPE_CHECKING:
    from enbloc.config import Config, ConfigError
    from enbloc.library.cluster import Cluster
    from enbloc.library.explanation import explain
    from enbloc.library.plot import Picture
    from enbloc.library.simulation import CutOff, Result, simulate
    from enbloc.library.trace_replay import Replays, replay
    from enbloc.scenario.documents import BadInput
    from enbloc.traces.reading import BadTrace

_HOMES = {
    "BadInput": "enbloc.scenario.documents",
    "BadTrace": "enbloc.traces.reading",
    "Cluster": "enbloc.library.cluster",
    "Config": "enbloc.config",
    "ConfigError": "enbloc.config",
    "CutOff": "enbloc.library.simulation",
    "Picture": "enbloc.library.plot",
    "Replays": "enbloc.library.trace_replay",
    "Result": "enbloc.library.simulation",
    "explain": "enbloc.library.explanation",
    "replay": "enbloc.library.trace_replay",
    "simulate": "enbloc.library.simulation",
}

__all__ = [
    "BadInput",
    "BadTrace",
    "Cluster",
    "Config",
    "ConfigError",
    "CutOff",
    "Picture",
    "Replays",
    "Result",
    "explain",
    "replay",
    "simulate",
]


def __getattr__(name: str) -> object:
    """The names above are imported when they are first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'enbloc' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
