"""One run of a cluster on this machine, from its start to Ctrl-C, with something to read for whoever started it."""

from __future__ import annotations

import asyncio
import gc
import shlex
import sys
from typing import Final

import click

from enbloc.api.meta import Obj
from enbloc.api.writes import Refused
from enbloc.config import Config
from enbloc.local.cluster import LocalCluster
from enbloc.local.narrator import Narrator
from enbloc.local.options import Options
from enbloc.sim.scenario import Scenario

TELL_S: Final = 0.25


async def run_session(options: Options, config: Config, scenario: Scenario, stop: asyncio.Event) -> None:
    """Runs until `stop`. Raises `OSError` if the address is taken, `DataDirError` for a directory that is not ours."""
    told: list[Narrator] = []

    def refused(obj: Obj, why: Refused) -> None:
        for narrator in told:
            narrator.refused(obj, why)

    def warned(obj: Obj, message: str) -> None:
        for narrator in told:
            narrator.warned(obj, message)

    cluster = LocalCluster(options, config, scenario, refused, warned)
    try:
        narrator = Narrator(cluster.store, click.echo)
        told.append(narrator)
        address, kubeconfig = await cluster.start({})
        _calm_the_collector()
        for line in _greeting(address, str(kubeconfig)):
            click.echo(line)
        sys.stdout.flush()
        while not stop.is_set():
            try:
                async with asyncio.timeout(TELL_S):
                    await stop.wait()
            except TimeoutError:
                pass
            narrator.tell()
            sys.stdout.flush()
    finally:
        await cluster.stop()


def _greeting(address: str, kubeconfig: str) -> list[str]:
    return [
        f"enbloc is up: {address}",
        "",
        "In another terminal:",
        f"  export KUBECONFIG={shlex.quote(kubeconfig)}",
        "  kubectl get vcjob,podgroup,pods -A",
        "  enbloc gangs",
        "",
        "Ctrl-C ends it.",
        "",
    ]


def _calm_the_collector() -> None:
    """Objects stay, and hardly a cycle is among them: what is there now is not searched through again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
