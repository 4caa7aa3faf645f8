"""`enbloc.replay`: a workload trace under one or several policies, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from enbloc.config import Config
from enbloc.library.inputs import ConfigLike, amounts_of, config_of
from enbloc.library.plot import Bar, Picture, gantt
from enbloc.listing import plural
from enbloc.traces.answer import answer_of
from enbloc.traces.cluster import shape_of, with_queues
from enbloc.traces.formats.columns import parse_map
from enbloc.traces.reading import read_trace
from enbloc.traces.replay import Estimates, Settings, prepare, replay_all
from enbloc.traces.synthetic import PREFIX, parse_name, synthetic_trace

if TYPE_CHECKING:
    import pandas

Policies = str | Sequence[str] | Mapping[str, ConfigLike]
"""A name, several, or configs by the name that the answer has for them."""


class Replays:
    """The same as `enbloc replay -o json` prints."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.trace: dict[str, Any] = answer["trace"]
        self.cluster: dict[str, Any] = answer["cluster"]
        self.policies: dict[str, dict[str, Any]] = {one["policy"]: one for one in answer["policies"]}
        """By policy: `mean_wait_s`, `mean_bounded_slowdown`, `makespan_s`, …, and `starts`."""
        self.comparison: list[dict[str, Any]] = answer["comparison"]
        """Each policy after the first against the first."""

    def to_pandas(self) -> pandas.DataFrame:
        """A row a policy and job: `policy`, `job`, `submit`, `start`, `end`. Needs pandas."""
        import pandas

        return pandas.DataFrame(
            [{"policy": name, **start} for name, one in self.policies.items() for start in one["starts"]]
        )

    def plot(self, policy: str | None = None) -> Picture:
        """A Gantt chart of the jobs under a policy (the first one)."""
        starts = self.policies[policy if policy is not None else next(iter(self.policies))]["starts"]
        bars = [Bar(one["job"], one["submit"], one["start"], one["end"]) for one in starts]
        return gantt(bars, max((one["end"] or 0.0 for one in starts), default=0.0))

    def __repr__(self) -> str:
        means = ", ".join(f"{name}: mean wait {one['mean_wait_s']:,.0f} s" for name, one in self.policies.items())
        return f"<enbloc.Replays: {plural(self.trace['jobs'], 'job')}; {means}>"


def replay(
    trace: str | os.PathLike[str],
    policies: Policies = "default",
    *,
    format: str | None = None,
    columns: str | None = None,
    nodes: int | None = None,
    node_resources: Mapping[str, str | int] | None = None,
    estimates: Estimates = "users",
    duration_factor: float = 1.0,
    fast: bool = True,
    queues: Literal["one", "trace"] = "one",
    progress: Literal["kept", "lost"] = "kept",
    plugins: Sequence[object] = (),
) -> Replays:
    """Replays a trace (SWF, CSV, Batsim's JSON, `sacct --parsable`, or `synthetic:JOBS[:SEED]`) in virtual time.

    `columns` is `--map` of the command: `"submit=t:ms,duration=d:ms,gpus=n"`. `fast` leaves out API and controllers;
    the starts are the same. `queues`: all jobs in one, or each in the one that the trace names. `progress`: whether a
    job that is evicted goes on where it was. `plugins`: as for `simulate`, in every policy. Raises `BadTrace`,
    `ConfigError`, or `ValueError` for another argument.
    """
    name = os.fspath(trace)
    if name.startswith(PREFIX):
        read = synthetic_trace(*parse_name(name))
    else:
        read = read_trace(Path(name), format, parse_map(columns) if columns is not None else None)
    shape = shape_of(read, nodes, amounts_of(node_resources))
    shape = with_queues(shape, read) if queues == "trace" else shape
    settings = Settings(shape, fast, estimates, duration_factor, progress == "kept")
    jobs, too_large = prepare(read, settings)
    if not jobs:
        raise ValueError(f"{os.fspath(trace)}: has no job that ran and fits on {plural(settings.shape.nodes, 'node')}")
    return Replays(answer_of(read, settings.shape, too_large, replay_all(_configs(policies, plugins), settings, jobs)))


def _configs(policies: Policies, plugins: Sequence[object]) -> list[tuple[str, Config]]:
    if isinstance(policies, str):
        policies = (policies,)
    named = policies.items() if isinstance(policies, Mapping) else [(name, name) for name in policies]
    return [(name, config_of(config, plugins)) for name, config in named]
