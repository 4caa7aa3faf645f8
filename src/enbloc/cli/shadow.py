"""`enbloc shadow`: what this scheduler would decide on a cluster that another one schedules."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from enbloc.cli.compat import compat_option
from enbloc.cli.errors import Refusal, read_config
from enbloc.cli.fetch import cluster_options, reachable
from enbloc.listing import plural
from enbloc.units import SECOND, format_duration, parse_duration

if TYPE_CHECKING:
    from enbloc.cluster.kube import KubeCluster
    from enbloc.config import Config
    from enbloc.runtime.shadow import Shadow

GATHER_S: Final = 0.05
"""Events that come within this time of the first are read together."""
_SHOWN: Final = 15


@click.command("shadow")
@cluster_options
@compat_option
@click.option("--config", "config_file", metavar="FILE", help="The config to try; `enbloc config` prints one.")
@click.option("--for", "duration", metavar="DURATION", help="End after so long [until Ctrl-C].")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For people or for programs.")
def command(
    kubeconfig: str | None,
    context: str | None,
    compat: str | None,
    config_file: str | None,
    duration: str | None,
    output: str,
) -> None:
    """Watch a cluster that another scheduler runs, and say what Enbloc would have decided, and when.

    Only reads: an account that may get, list and watch is enough. At the end it reports which gangs would have started
    earlier or later, and the room that was lost to half-started gangs.

    \b
    Example: enbloc shadow --compat volcano --for 1h
    """
    config = read_config(config_file, compat)
    try:
        seconds = parse_duration(duration) / SECOND if duration is not None else None
    except ValueError as why:
        raise Refusal([f"--for: {why}"]) from None
    with reachable():
        report = asyncio.run(watch(kubeconfig, context, config, seconds))
    click.echo(json.dumps(report) if output == "json" else "\n".join(lines(report)))


async def watch(kubeconfig: str | None, context: str | None, config: Config, seconds: float | None) -> dict[str, Any]:
    from enbloc.cli.running_up import running_kubeconfig
    from enbloc.cluster.kube import connect
    from enbloc.config import scheduler_names
    from enbloc.runtime.clock import SteadyClock
    from enbloc.runtime.shadow import Shadow

    shadow = Shadow(config, scheduler_names(config, alone=True))
    clock = SteadyClock()
    async with await connect(kubeconfig or running_kubeconfig(), context) as cluster:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        await _follow(shadow, cluster, clock, ended, seconds)
    await asyncio.sleep(0.1)  # TLS has a few words left to say
    return shadow.report(clock())


async def _follow(
    shadow: Shadow, cluster: KubeCluster, clock: Any, ended: asyncio.Event, seconds: float | None
) -> None:
    """Cycles, whenever something happened or a timer fires, until the end: `seconds` after the cluster was read."""
    from enbloc.api import volcano
    from enbloc.api.writes import WatchEvent

    woken = asyncio.Event()

    def observe(event: WatchEvent) -> None:
        shadow.observe(event)
        woken.set()

    shadow.known = cluster.known
    await cluster.start(shadow.kinds, observe)
    if seconds is not None:
        asyncio.get_running_loop().call_later(seconds, ended.set)
    if not cluster.serves(volcano.QUEUE):
        for queue in volcano.BUILT_IN_QUEUES:
            shadow.observe(WatchEvent("ADDED", volcano.QUEUE, queue))
    while not ended.is_set():
        woken.clear()
        shadow.cycle(clock())
        if shadow.busy():
            woken.set()
        due_ns = shadow.due()
        wait_s = None if due_ns is None else max(0.0, (due_ns - clock()) / SECOND)
        waits = [asyncio.ensure_future(woken.wait()), asyncio.ensure_future(ended.wait())]
        await asyncio.wait(waits, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        for one in waits:
            one.cancel()
        await asyncio.sleep(GATHER_S)


def lines(report: Mapping[str, Any]) -> Iterator[str]:
    gangs = report["gangs"]
    yield f"watched for {_time(report['seconds'])}: {plural(len(gangs), 'gang')} waited or came"
    yield (
        f"  {report['earlier']:,} would have started earlier, {report['later']:,} later, "
        f"{report['same']:,} at the same time; {report['only_here']:,} would have started and still wait, "
        f"{report['only_there']:,} started that would wait"
    )
    amounts = sorted(report["lost_to_half_started"].items())
    lost = ", ".join(f"{amount / 3600:,.1f} {name}-hours" for name, amount in amounts)
    half = report["half_started"]
    were = f"{plural(half, 'gang')} {'was' if half == 1 else 'were'} half started"
    yield f"  {were}{f', which held {lost} for nothing' if lost else ''}"
    if report["evictions"]:
        yield f"  {plural(report['evictions'], 'pod')} would have been evicted"
    different = [gang for gang in gangs if gang["difference"]]
    for gang in sorted(different, key=lambda gang: -abs(gang["difference"]))[:_SHOWN]:
        word = "earlier" if gang["difference"] < 0 else "later"
        yield f"  {gang['gang']}: {_time(abs(gang['difference']))} {word}"
    for gang in [gang for gang in gangs if gang["why"]][:_SHOWN]:
        yield f"  {gang['gang']} would wait too: {gang['why']}"


def _time(seconds: float) -> str:
    return format_duration(round(seconds * 10) * (SECOND // 10) if seconds < 60 else round(seconds) * SECOND)
