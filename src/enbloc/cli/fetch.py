"""How `enbloc gangs`, `queues`, `nodes` and `explain` ask a cluster: by kubeconfig, one list a kind."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import click

from enbloc.api.meta import Obj
from enbloc.api.writes import Refused
from enbloc.cli.errors import Refusal
from enbloc.inspect.overview import KINDS, Overview, read_overview

PATIENCE_S: Final = 3.0
"""Somebody sits and waits: a cluster that does not answer is told soon."""


def kubeconfig_options(command: Any) -> Any:
    """The options that every one of them has."""
    for option in (
        click.option(
            "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For people, or for programs."
        ),
        click.option("--context", metavar="NAME", help="Which context of the kubeconfig."),
        click.option("--kubeconfig", metavar="FILE", help="Which cluster [$KUBECONFIG, then ~/.kube/config]."),
    ):
        command = option(command)
    return command


def ask(kubeconfig: str | None, context: str | None) -> Overview:
    """Everything at a glance. Raises `Refusal` with one line if the cluster cannot be asked."""
    return read_overview(asyncio.run(_fetch(kubeconfig, context)))


async def _fetch(kubeconfig: str | None, context: str | None) -> dict[str, list[Obj]]:
    from enbloc.cluster.kube import connect  # imported late: help must be quick
    from enbloc.cluster.kube.credentials import NoCredentials
    from enbloc.cluster.kube.http import Bounds

    try:
        async with await connect(kubeconfig, context, bounds=Bounds(patience_s=PATIENCE_S)) as cluster:
            lists = await asyncio.gather(*(cluster.list(kind) for kind in KINDS))
    except NoCredentials as why:
        raise Refusal([str(why)]) from None
    except Refused as why:
        what = "cannot be reached" if why.code in (503, 504) else "refused"
        raise Refusal([f"the cluster {what}: {why.message}"]) from None
    return dict(zip(KINDS, lists, strict=True))
