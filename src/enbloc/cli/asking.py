"""How `enbloc gangs`, `queues`, `nodes` and `explain` ask a cluster: by kubeconfig, one list a kind."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

import click

from enbloc.api.meta import Obj
from enbloc.api.writes import Refused
from enbloc.cli.problems import Refusal
from enbloc.facts.overview import KINDS, Overview, read_overview


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
    adapter = import_module("enbloc.cluster.kube.cluster")  # imported late: help must be quick
    credentials = import_module("enbloc.cluster.kube.credentials")
    try:
        async with await adapter.connect(kubeconfig, context) as cluster:
            lists = await asyncio.gather(*(cluster.list(kind) for kind in KINDS))
    except credentials.NoCredentials as why:
        raise Refusal([str(why)]) from None
    except Refused as why:
        raise Refusal([f"the cluster refused: {why.message}"]) from None
    return dict(zip(KINDS, lists, strict=True))
