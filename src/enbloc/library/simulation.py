"""`enbloc.simulate`: a cluster in virtual time, from Python."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from enbloc.advice.advise import advise
from enbloc.library.inputs import ConfigLike, Manifests, config_of, scenario_of
from enbloc.library.plot import Bar, Picture, gantt
from enbloc.listing import plural
from enbloc.scenario.scenario import with_nodes, with_run_time
from enbloc.sim.result import CUT_OFF
from enbloc.sim.result import Result as Simulated
from enbloc.sim.simulation import Simulation
from enbloc.units import parse_duration
from enbloc.up.options import Options, make_nodes

if TYPE_CHECKING:
    import pandas

_COLUMNS: Final = ("gang", "queue", "came", "started", "ended", "waited", "pods", "outcome", "why")


class CutOff(RuntimeError):
    """The load never settles; the message tells the last lines of its timeline."""


class Result:
    """What a simulation gave; the same as `enbloc sim -o json` prints. Times are virtual seconds."""

    def __init__(self, simulated: Simulated) -> None:
        self.end: float = simulated.end
        """Time of the last change."""
        self.ended: str = simulated.ended
        """`idle`: nothing more could happen; `until`: the given time was reached."""
        self.gangs: list[dict[str, Any]] = simulated.all_gangs
        """Each gang: came, started, ended, waited, why it waited, pods, nodes, outcome."""
        self.pending: list[dict[str, Any]] = _plain(simulated.pending)
        """Gangs that wait at the end, each with its reason, remedies that were tried, and its expected start."""
        self.timeline: list[dict[str, Any]] = _plain(simulated.timeline)
        """Every state change: `t`, `what`, `kind`, `namespace`, `name`, `node`, `message`."""
        self.objects: list[dict[str, Any]] = simulated.objects
        """Every object that exists at the end, as the API returns it."""
        self.without_effect: list[dict[str, Any]] = _plain(simulated.without_effect)
        self.summary: dict[str, Any] = simulated.summary

    def gang(self, name: str) -> dict[str, Any]:
        """One gang by `namespace/name`. Raises `KeyError`."""
        for gang in self.gangs:
            if gang["gang"] == name:
                return gang
        raise KeyError(f"no gang {name!r}; there are {', '.join(sorted(one['gang'] for one in self.gangs)) or 'none'}")

    def to_pandas(self, what: Literal["gangs", "timeline"] = "gangs") -> pandas.DataFrame:
        """The gangs, or the timeline, as a DataFrame. Needs pandas."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise ModuleNotFoundError("to_pandas needs pandas, which is not installed: pip install pandas") from None
        return pandas.DataFrame(self.gangs if what == "gangs" else self.timeline)

    def plot(self) -> Picture:
        """A Gantt chart: a row a gang, its wait and its run. A notebook shows it; `save` writes it as SVG."""
        return gantt([_bar(gang) for gang in self.gangs], self.end)

    def __repr__(self) -> str:
        started = sum(gang["started"] is not None for gang in self.gangs)
        return f"<enbloc.Result: {plural(started, 'gang')} started, {len(self.pending)} wait, end at {self.end:g} s>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
        rows = "".join(
            "<tr>" + "".join(f"<td>{_cell(gang.get(column))}</td>" for column in _COLUMNS) + "</tr>"
            for gang in self.gangs
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def simulate(
    manifests: Manifests,
    *,
    config: ConfigLike = None,
    until: str | float | None = None,
    nodes: int | None = None,
    node_resources: Mapping[str, str | int] | None = None,
    default_run_time: str | None = None,
    plugins: Sequence[object] = (),
) -> Result:
    """Runs a whole cluster in virtual time: API objects, admission, controllers, scheduler, nodes.

    `manifests`: a file, a directory, an object (a mapping), or several of them.
    `config`: a file, a mapping, or a policy by name (`"easy"`); `until`: `"1h30m"` or seconds.
    `nodes`, `node_resources`: nodes to add to those of the manifests. `default_run_time`: of pods that do not say.
    `plugins`: objects with `gang_order`, `score`, `mask` (see `enbloc.engine.core.plugins.plugin`), or a function from
    a gang to its sort key, which is its `gang_order`.

    The same input gives the same result. Raises `BadInput` or `ConfigError` with every fault of the input, `ValueError`
    for another argument, `CutOff` for a load that never settles.
    """
    scenario = scenario_of(manifests)
    if nodes is not None or node_resources is not None:
        resources = None if node_resources is None else {name: str(amount) for name, amount in node_resources.items()}
        scenario = with_nodes(
            scenario, make_nodes(Options(nodes=nodes or 1, resources=resources), load_brings_nodes=False)
        )
    if default_run_time is not None:
        scenario = with_run_time(scenario, default_run_time)
    simulation = Simulation(scenario, config_of(config, plugins))
    simulated = simulation.run(_nanoseconds(until))
    if simulated.ended == CUT_OFF:
        raise CutOff(simulated.reason)
    advise(simulation, simulated)
    return Result(simulated)


def _nanoseconds(until: str | float | None) -> int | None:
    if until is None:
        return None
    found = parse_duration(until if isinstance(until, str) else f"{until}s")
    if found < 0:
        raise ValueError(f"until: {until!r} is negative")
    return found


def _plain(values: Sequence[object]) -> list[dict[str, Any]]:
    """As they are in JSON."""
    found: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(values))
    return found


def _bar(gang: dict[str, Any]) -> Bar:
    return Bar(gang["gang"], gang["came"], gang["started"], gang.get("stopped", gang["ended"]), gang["outcome"])


def _cell(value: object) -> str:
    return "" if value is None else html.escape(f"{value:g}" if isinstance(value, float) else str(value))
