"""One run of `enbloc up`, from its start to Ctrl-C, with a live view on a terminal and a log elsewhere."""

from __future__ import annotations

import asyncio
import resource
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from enbloc import garbage_collector
from enbloc.api.meta import Obj
from enbloc.api.writes import Refused
from enbloc.config import Config, render, scheduler_names, where_alone
from enbloc.engine.core.why.cause import Cause
from enbloc.inspect.gangs import Objects
from enbloc.inspect.overview import IN_UP, KINDS, UNKNOWN, Overview
from enbloc.runtime.engine_metrics import EngineMetrics, deserved_of
from enbloc.scenario.scenario import Scenario
from enbloc.up.cluster import LocalCluster
from enbloc.up.event_log import EventLog
from enbloc.up.live_view import LiveView
from enbloc.up.options import Options
from enbloc.web.explaining import Explainer
from enbloc.web.pages import Pages

LOG_S: Final = 0.25
DRAW_S: Final = 0.5


async def run_session(
    options: Options, config: Config, scenario: Scenario, stop: asyncio.Event, note: str = ""
) -> None:
    """Runs until `stop`. `note` is shown after the address. Raises `OSError` if the address is in use, and
    `DataDirError` for a directory of another kind."""
    logs: list[EventLog] = []

    def refused(obj: Obj, why: Refused) -> None:
        for log in logs:
            log.refused(obj, why)

    def warned(obj: Obj, message: str) -> None:
        for log in logs:
            log.warned(obj, message)

    config = where_alone(config)
    cluster = LocalCluster(options, config, scenario, refused, warned)

    try:
        pages = pages_of(cluster, config)
        address, kubeconfig = await cluster.start(pages.handlers())
        garbage_collector.relax(garbage_collector.SERVICE)
        greeting = _greeting(address, str(kubeconfig))
        if sys.stdout.isatty():
            await _show(cluster, pages, address, greeting[2:-2], note, stop, logs)
        else:
            await _write_log(cluster, greeting, note, stop, logs)
    finally:
        await cluster.stop()


def pages_of(cluster: LocalCluster, config: Config) -> Pages:
    """The dashboard of a cluster."""
    store = cluster.store
    kinds = (*KINDS, *sorted({entry.kind for entry in config.group_by_owner.active}.difference(KINDS)))

    def objects() -> Objects:
        return {kind: store.list(kind)[0] for kind in kinds}

    def figures() -> dict[str, float]:
        peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {
            "store_version": store.version,
            "watches": cluster.watch_count,
            "peak_memory_bytes": peak_kb * 1024.0,
        }

    collector = EngineMetrics(cluster.engine, volcano=config.volcano_metrics)
    collectors = (collector, *cluster.metrics.collectors)
    seen = IN_UP if cluster.engine() is not None else UNKNOWN
    explainer = Explainer(store.objects, lambda: store.version, where_alone(config), seen)

    def causes() -> Mapping[str, Cause]:
        engine = cluster.engine()
        return engine.causes() if engine is not None else {}

    def deserved() -> Mapping[str, Mapping[str, float]]:
        engine = cluster.engine()
        return deserved_of(engine) if engine is not None else {}

    def scheduler() -> dict[str, Any]:
        """For commands that read this cluster: what is a gang, and whether a scheduler runs."""
        names = tuple(sorted(scheduler_names(config, alone=True)))
        text = render(msgspec.structs.replace(config, scheduler_names=names))
        return {"runs": cluster.engine() is not None, "config": text}

    def version() -> int:
        """Changes with every write, and with demands, which change what queues deserve and are not written."""
        engine = cluster.engine()
        return store.version + (engine.state.queues.version if engine is not None else 0)

    return Pages(
        *(objects, figures, config, lambda: store.list("Event")[0], version, collectors, explainer),
        causes=causes,
        deserved=deserved,
        scheduler=scheduler,
    )


async def _write_log(
    cluster: LocalCluster, greeting: list[str], note: str, stop: asyncio.Event, logs: list[EventLog]
) -> None:
    """One line for each event, for logs and pipes."""
    log = EventLog(cluster.store, click.echo)
    logs.append(log)
    for line in greeting:
        click.echo(line)
    sys.stdout.flush()
    if note:
        click.echo(f"enbloc: note: {note}", err=True)
    while not stop.is_set():
        await _pause(stop, LOG_S)
        log.update()
        sys.stdout.flush()


async def _show(
    cluster: LocalCluster,
    pages: Pages,
    address: str,
    commands: list[str],
    note: str,
    stop: asyncio.Event,
    logs: list[EventLog],
) -> None:
    """A view that is redrawn on a terminal."""
    view = LiveView(address, commands)
    log = EventLog(cluster.store, view.log)
    logs.append(log)
    if note:
        view.log(note)
    view.open()
    try:
        while not stop.is_set():
            log.update()
            overview, as_of_s = await pages.dated_overview()
            view.draw(overview, as_of_s, next_steps(overview, has_more_load=cluster.has_more_load))
            await _pause(stop, DRAW_S)
    finally:
        view.close()
    click.echo("enbloc has stopped.")


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass


def _greeting(address: str, kubeconfig: str) -> list[str]:
    return [
        f"enbloc is up: {address}  (Ctrl-C ends it)",
        "",
        "In another terminal:",
        f"  export KUBECONFIG={shlex.quote(kubeconfig)}",
        "  kubectl get vcjob,podgroup,pods -A",
        f"  {_own_name()} gangs",
        "",
        "",
    ]


def next_steps(overview: Overview, *, has_more_load: bool) -> list[str]:
    """What a user may do now, if nothing goes on by itself; empty while something does."""
    name = _own_name()
    if not overview.gangs and not has_more_load:
        return [
            "No gang yet. In another terminal:",
            "  kubectl apply -f examples/quickstart.yaml",
            f"  {name} sim examples/quickstart.yaml     # in virtual time",
        ]
    if has_more_load or any(gang.runs for gang in overview.gangs):
        return []
    waiting = [gang for gang in overview.gangs if gang.waits]
    if waiting:
        first = waiting[0].gang
        return [
            f"Nothing runs any more, and {first} waits. In another terminal:",
            f"  {name} explain {first}     # why, and what would let it start",
        ]
    return [
        "All gangs have ended. In another terminal:",
        "  kubectl get pods -A     # what became of their pods; kubectl apply -f starts others",
    ]


def _own_name() -> str:
    """The command that runs this program: its name if PATH has it, else its path."""
    if shutil.which("enbloc"):
        return "enbloc"
    path = Path(sys.argv[0])
    if path.name != "enbloc" or not path.is_file():
        return "enbloc"
    try:
        path = path.absolute().relative_to(Path.cwd())
    except ValueError:
        path = path.absolute()
    return shlex.quote(str(path))
