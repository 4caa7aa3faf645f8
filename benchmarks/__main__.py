"""`python -m benchmarks`: the command line of each benchmark. What a user can get wrong is one line and exit code 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from enbloc.cli.errors import Refusal


@click.group()
def command() -> None:
    """Run benchmarks; every figure is a ratio to a reference of the same run.

    \b
    Example: python -m benchmarks engine --nodes 1000 --pods 5000
    """


@command.command()
@click.option("--nodes", default=5000, show_default=True, type=click.IntRange(1, 100_000), help="Nodes of the cluster.")
@click.option("--pods", default=20000, show_default=True, type=click.IntRange(1, 1_000_000), help="Pods that wait.")
@click.option("--gang-size", default=20, show_default=True, type=click.IntRange(1, 100_000), help="Pods in one gang.")
@click.option("--seed", default=1, show_default=True, help="Another seed, another load.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def engine(nodes: int, pods: int, gang_size: int, seed: int, output: str) -> None:
    """Place gangs by class, and the same gangs pod by pod; compare speed and placements."""
    from benchmarks import engine as measured

    _print(measured.run(nodes, pods, gang_size, seed), output)


@command.command()
@click.option("--case", "cases", multiple=True, metavar="NAME", help="Only this case; may be repeated.")
@click.option("--repeats", default=1, show_default=True, type=click.IntRange(1, 20), help="The least time counts.")
@click.option("--scale", default=1.0, show_default=True, type=click.FloatRange(0.05, 20), help="Size of the loads.")
@click.option("--expect", metavar="FILE", help="Fail if a case grows clearly more than this file says.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def growth(cases: tuple[str, ...], repeats: int, scale: float, expect: str | None, output: str) -> None:
    """Simulate loads of three sizes each: how does the cost grow? Prints exponents; 1 is linear."""
    from benchmarks import growth as measured
    from benchmarks.growth_cases import CASES

    unknown = [name for name in cases if name not in CASES]
    if unknown:
        raise Refusal([f"--case: {name}: known are {', '.join(CASES)}" for name in unknown])
    try:
        expected = measured.read_expected(expect) if expect is not None else {}
    except (OSError, ValueError) as why:
        raise Refusal([f"--expect: {expect}: {why}"]) from None

    def note(one: measured.Growth) -> None:
        if output == "text":
            seconds = " ".join(f"{each:8.2f}" for each in one.seconds)
            click.echo(f"{one.name:<18} {'/'.join(map(str, one.sizes)):<16} {seconds}  exponent {one.exponent:.2f}")

    found = measured.run(cases or tuple(CASES), repeats, scale, note)
    if output == "json":
        click.echo(json.dumps(measured.figures(found)))
    worse = measured.regressions(found, expected)
    if worse:
        raise Refusal(worse)


@command.command()
@click.option("--kubeconfig", metavar="FILE", help="The cluster to measure.")
@click.option("--context", metavar="NAME", help="A context of the kubeconfig other than its current one.")
@click.option("--nodes", default=500, show_default=True, type=click.IntRange(1, 10_000), help="Nodes to create.")
@click.option("--pods", default=5000, show_default=True, type=click.IntRange(2, 100_000), help="Pods to schedule.")
@click.option("--gang-size", default=20, show_default=True, type=click.IntRange(1, 10_000), help="Pods in one gang.")
@click.option(
    "--dialect",
    default="volcano",
    show_default=True,
    type=click.Choice(["volcano", "native", "koordinator", "job", "scheduler-plugins", "kai", "yunikorn"]),
    help="How the gangs are written; the pods of a job are made by our controllers.",
)
@click.option(
    "--arrive",
    metavar="RATE",
    default=0.0,
    type=click.FloatRange(0, 100_000),
    help="Create RATE pods a second while it runs, instead of all of them before.",
)
@click.option("--record", is_flag=True, help="Keep a flight recorder, and show its share of the CPU time.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def live(
    kubeconfig: str | None,
    context: str | None,
    nodes: int,
    pods: int,
    gang_size: int,
    dialect: str,
    arrive: float,
    record: bool,
    output: str,
) -> None:
    """Run `enbloc run` on a real API server and watch it from outside; compare with a loop that only binds.

    Creates nodes without kubelets and a namespace on the cluster, and deletes them again.
    """
    import asyncio

    from benchmarks import live as measured
    from benchmarks.live_bench import NotServed
    from benchmarks.live_load import PODS_A_NODE
    from enbloc.api.writes import Refused
    from enbloc.cluster.kube.credentials import NoCredentials

    if pods > nodes * PODS_A_NODE:
        raise Refusal([f"--pods: {pods} do not fit on {nodes} nodes, {PODS_A_NODE} on each"])

    def note(what: str) -> None:
        click.echo(f"enbloc: {what}", err=True)

    wanted = measured.Wanted(nodes, pods, gang_size, dialect, arrive, record)
    try:
        figures = asyncio.run(measured.run(kubeconfig, context, wanted, note))
    except (NoCredentials, NotServed, Refused, RuntimeError) as why:
        raise Refusal([str(why)]) from None
    _print(figures, output)


@command.command()
@click.option("--nodes", default=2000, show_default=True, type=click.IntRange(1, 20_000), help="Nodes of the cluster.")
@click.option("--pods", default=20000, show_default=True, type=click.IntRange(100, 200_000), help="Pods to create.")
@click.option("--watches", default=200, show_default=True, type=click.IntRange(1, 1_000), help="Watches at once.")
@click.option("--data", is_flag=True, help="Keep everything on disk, as `enbloc up --data` does.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def facade(nodes: int, pods: int, watches: int, data: bool, output: str) -> None:
    """Create pods over HTTP, list them, watch them; compare with a server that does nothing."""
    from benchmarks import facade as measured

    _print(measured.run(nodes, pods, watches, data=data), output)


@command.command()
@click.option("--nodes", default=2000, show_default=True, type=click.IntRange(1, 20_000), help="Nodes of the cluster.")
@click.option("--pods", default=20000, show_default=True, type=click.IntRange(1, 200_000), help="Pods that run.")
@click.option("--writes", default=200, show_default=True, type=click.IntRange(0, 10_000), help="Writes a second.")
@click.option("--seconds", default=20.0, show_default=True, type=click.FloatRange(1, 600), help="How long.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def freshness(nodes: int, pods: int, writes: int, seconds: float, output: str) -> None:
    """Ask for the dashboard's data while pods change; how old is it? Compare with reading everything anew."""
    from benchmarks import freshness as measured

    _print(measured.run(nodes, pods, writes, seconds), output)


@command.command()
@click.option("--clients", default=400, show_default=True, type=click.IntRange(1, 900), help="Slow clients.")
@click.option("--reviews", default=500, show_default=True, type=click.IntRange(1, 100_000), help="Reviews to measure.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def webhook(clients: int, reviews: int, output: str) -> None:
    """Review jobs while slow clients hang on the webhook's port; compare with the same reviews without them."""
    from benchmarks import webhook as measured

    _print(measured.run(clients, reviews), output)


@command.command()
@click.option(
    "--nodes", default=5000, show_default=True, type=click.IntRange(20, 100_000), help="Nodes of the cluster."
)
@click.option("--pods", default=50000, show_default=True, type=click.IntRange(20, 1_000_000), help="Pods that run.")
@click.option("--gang-size", default=20, show_default=True, type=click.IntRange(1, 10_000), help="Pods in the gang.")
@click.option(
    "--load",
    "kind",
    default="mixed",
    show_default=True,
    type=click.Choice(["mixed", "alone", "gangs", "large-gangs", "priorities", "budgets", "queues"]),
    help="What fills the cluster: single pods and gangs, or a special load.",
)
@click.option("--seed", default=1, show_default=True, help="Another seed, another load.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def contention(nodes: int, pods: int, gang_size: int, kind: str, seed: int, output: str) -> None:
    """Decide for a gang in a full cluster: preempt, reclaim, reserve, each compared with allocate.

    Measured is the whole cycle that decides for the gang, with the failed attempt to place it: the median of several
    rounds, each with a new gang and the state restored. Allocate places the same gang on free nodes, in the same run.
    The first preempt, which computes usage, is reported separately.
    """
    from benchmarks import contention as measured

    try:
        found = measured.run(nodes, pods, gang_size, kind, seed)
    except measured.Unmeasurable as why:
        raise Refusal([f"--gang-size: {why}; use a smaller one, or more nodes"]) from None
    _print(found, output)


@command.command()
@click.option("--nodes", default=20, show_default=True, type=click.IntRange(4, 1000), help="Nodes, of 8 CPUs each.")
@click.option("--load", default=0.95, show_default=True, type=click.FloatRange(0.1, 2), help="Load by small jobs.")
@click.option("--hours", default=6.0, show_default=True, type=click.FloatRange(0.5, 100), help="Duration of the load.")
@click.option("--seed", default=1, show_default=True, help="Another seed, another stream of jobs.")
@click.option("--plot", metavar="FILE.svg", help="Draw it, too.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def starvation(nodes: int, load: float, hours: float, seed: int, plot: str | None, output: str) -> None:
    """Measure how long a large gang waits in a busy cluster: without reserve, with reserve, with backfill in mode easy.

    Runs in virtual time; the same seed gives the same figures on every machine.
    """
    from benchmarks import starvation as measured
    from benchmarks.starvation_plot import draw

    wanted = measured.Load(nodes, load, hours, seed)
    if plot is not None:
        try:
            open(plot, "w").close()  # fail now, not after minutes
        except OSError as why:
            raise Refusal([f"--plot: {plot}: {why.strerror}"]) from None
    outcomes = measured.run(wanted)
    if plot is not None:
        Path(plot).write_text(draw(wanted, outcomes))
    found = measured.figures(wanted, outcomes)
    if output == "json":
        click.echo(json.dumps(found))
        return
    runs = found.pop("runs")
    _print(found, output)
    for one in runs:
        click.echo()
        _print(one, output)


@command.command()
@click.option(
    "--nodes", default=5000, show_default=True, type=click.IntRange(10, 100_000), help="Nodes of the cluster."
)
@click.option("--racks", default=50, show_default=True, type=click.IntRange(1, 10_000), help="Racks they are in.")
@click.option("--pods", default=20000, show_default=True, type=click.IntRange(4, 1_000_000), help="Pods that wait.")
@click.option("--seed", default=1, show_default=True, help="Another seed, another load.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def topology(nodes: int, racks: int, pods: int, seed: int, output: str) -> None:
    """Place gangs that must be in one rack; compare with the same gangs anywhere, and with attempts in every rack."""
    from benchmarks import topology as measured

    if nodes < 3 * racks:
        raise Refusal([f"--racks: {racks} racks of {nodes} nodes: a rack has at least 3 nodes"])
    _print(measured.run(nodes, racks, pods, seed), output)


def _print(figures: dict[str, Any], output: str) -> None:
    if output == "json":
        click.echo(json.dumps(figures))
        return
    width = max(len(name) for name in figures)
    for name, figure in figures.items():
        number = isinstance(figure, int) and not isinstance(figure, bool)
        click.echo(f"{name:<{width}}  {figure:,}" if number else f"{name:<{width}}  {figure}")


if __name__ == "__main__":
    command(prog_name="python -m benchmarks")
