"""`enbloc up`: a cluster on this machine that kubectl can use."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

import click

from enbloc.cli.compat import compat_option, names_only_here
from enbloc.cli.errors import Refusal, cannot_listen, read_config, readable_input
from enbloc.config import Config
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import Scenario, read_scenario
from enbloc.up.options import MOST_NODES, Options, parse_resources

_NO_RUNTIME = (
    "--runtime was removed: containers of `enbloc up` are simulated, real ones run on a Kubernetes cluster, such as "
    "one of kind"
)


def _refuse_runtime(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise Refusal([_NO_RUNTIME])


@click.command("up")
@click.option("--nodes", type=click.IntRange(0, MOST_NODES), help="Nodes at the start [2, or those of --load].")
@click.option("--node-resources", metavar="NAME=AMOUNT,...", help="Capacity of each node [cpu=8,memory=32Gi].")
@click.option("--runtime", hidden=True, expose_value=False, callback=_refuse_runtime)
@click.option("--speed", type=click.FloatRange(0.001, 10_000), default=1.0, help="Speed of simulated containers.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8001, show_default=True, help="0: any free port.")
@click.option("--listen", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option("--load", multiple=True, metavar="FILE", help="Manifests to apply at the start; may be repeated.")
@click.option("--data", metavar="DIR", type=click.Path(file_okay=False, path_type=Path), help="Keep the state here.")
@click.option("--accept-data-loss", is_flag=True, help="With --data: go on with what is whole of damaged files.")
@click.option("--no-scheduler", is_flag=True, help="Only API and nodes: `enbloc run` adds the rest.")
@compat_option
@click.option("--config", "config_file", metavar="FILE", help="Scheduler config; `enbloc config` prints the default.")
@click.argument("files", nargs=-1, metavar="[FILE...]")
def command(
    nodes: int | None,
    node_resources: str | None,
    speed: float,
    port: int,
    listen: str,
    load: tuple[str, ...],
    data: Path | None,
    accept_data_loss: bool,
    no_scheduler: bool,
    config_file: str | None,
    compat: str | None,
    files: tuple[str, ...],
) -> None:
    """Run a cluster on this machine: a Kubernetes API for kubectl, nodes, controllers, the scheduler and a page.

    \b
    Example:
      enbloc up --load examples/quickstart.yaml
      export KUBECONFIG=...          (the path that it prints)
      kubectl get vcjob,podgroup,pods

    Ctrl-C ends it. With --data it continues where it was when it is started again.
    """
    try:
        resources = parse_resources(node_resources) if node_resources is not None else None
    except ValueError as why:
        raise Refusal([f"--node-resources: {why}"]) from None
    options = Options(
        nodes, resources, speed, listen, port, data, scheduled=not no_scheduler, accept_loss=accept_data_loss
    )
    config = read_config(config_file, compat)
    with readable_input():
        scenario = read_scenario(read_documents((*load, *files)))
    note = ""
    if here := names_only_here(config):
        names = ", ".join(here)
        note = f"pods that name {names} are scheduled here, where no other scheduler runs; `enbloc run` needs --compat"
    logging.basicConfig(level=logging.WARNING, format="enbloc: %(message)s", stream=sys.stderr)
    asyncio.run(_run(options, config, scenario, note))
    _leave()


def _leave() -> None:
    """Ends the process at once: everything is closed and on disk, and Python's own teardown of a large cluster's
    objects would take longer than a user waits."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


async def _run(options: Options, config: Config, scenario: Scenario, note: str) -> None:
    from enbloc.cluster.embedded.api.datadir import DataDirError
    from enbloc.up.session import run_session

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # the terminal is closed, and there is no `nohup`
        loop.add_signal_handler(signal.SIGHUP, stop.set)
    try:
        await run_session(options, config, scenario, stop, note)
    except DataDirError as why:
        raise Refusal([f"--data: {why}"]) from None
    except BrokenPipeError:
        raise  # whatever read what is printed has ended
    except OSError as why:
        raise cannot_listen(why, options.host, options.port) from None
