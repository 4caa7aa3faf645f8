"""`enbloc.explain`: why a gang waits, what would let it start, and when it is expected to; from Python."""

from __future__ import annotations

from typing import Any

import msgspec

from enbloc.advice.explanation import explain as explain_objects
from enbloc.api.meta import Obj
from enbloc.config import Config
from enbloc.inspect.overview import IN_UP, UNKNOWN
from enbloc.library.cluster import Cluster
from enbloc.library.inputs import ConfigLike, Manifests, config_of, scenario_of
from enbloc.scenario.live_objects import resumed
from enbloc.scenario.scenario import Scenario
from enbloc.sim.result import UNTIL
from enbloc.sim.simulation import Simulation
from enbloc.sim.snapshot import KINDS
from enbloc.units import SECOND, parse_duration


def explain(
    gang: str, where: Manifests | Cluster, *, config: ConfigLike = None, until: str | None = None
) -> dict[str, Any]:
    """The same as `enbloc explain -o json` prints: reason, numbers, what is in the way, remedies that were tried, the
    expected start, the gang's story.

    `where`: manifests, which are simulated to their end, or to `until` (`"1h30m"`); a snapshot, as it is; or a running
    `Cluster`. `gang`: `namespace/name`, or a name alone. Raises `KeyError` if there is no such gang.
    """
    used, scheduler = config_of(config), UNKNOWN
    if isinstance(where, Cluster):
        objects, now_ns = where.situation((*KINDS, "Event"))
        used, scheduler = where.config if config is None else used, IN_UP
    else:
        objects, now_ns = situation_of(scenario_of(where), used, parse_duration(until) if until is not None else None)
    found = explain_objects(objects, now_ns, used, gang, scheduler)
    if found is None:
        raise KeyError(f"there is no gang {gang!r}")
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain


def situation_of(scenario: Scenario, config: Config, until_ns: int | None = None) -> tuple[list[Obj], int]:
    """The objects to explain, and the time: a snapshot as it is, a scenario at its end."""
    live = resumed(scenario)
    if live.existing and not live.events and until_ns is None:
        assert live.begin_ns is not None, "live objects say when they were read"
        return live.existing, live.begin_ns
    simulation = Simulation(live, config)
    result = simulation.run(until_ns)
    end_ns = simulation.elapsed_ns if result.ended == UNTIL else round(result.end * SECOND)
    return result.objects, simulation.begin_ns + end_ns
