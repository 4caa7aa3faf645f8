"""Reads a cluster for the commands that ask about it: by kubeconfig, one list per kind."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Sequence
from typing import Any, Final

import click

from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Refused
from enbloc.cli.errors import Refusal
from enbloc.cli.running_up import running_kubeconfig
from enbloc.inspect.overview import KINDS, Overview, read_overview

PATIENCE_S: Final = 3.0
"""A user waits: a cluster that does not answer is reported soon."""


def cluster_options(command: Any) -> Any:
    """The options that say which cluster."""
    for option in (
        click.option("--context", metavar="NAME", help="The context of the kubeconfig."),
        click.option(
            "--kubeconfig",
            metavar="FILE",
            help="The cluster [$KUBECONFIG, ~/.kube/config, or a running `enbloc up`].",
        ),
    ):
        command = option(command)
    return command


def fetch_overview(kubeconfig: str | None, context: str | None, *, with_trees: bool = False) -> Overview:
    """The cluster's overview. Raises `Refusal` with one line if the cluster cannot be read."""
    return read_overview(fetch_lists(kubeconfig, context, KINDS), with_trees=with_trees)


def fetch_lists(
    kubeconfig: str | None,
    context: str | None,
    kinds: Sequence[str],
    needed: Collection[str] | None = None,
    *,
    local: bool = True,
) -> dict[str, list[Obj]]:
    """The objects of each kind. Raises `Refusal` with one line if the cluster cannot be read; with `needed` other kinds
    than those may be forbidden: they are left out. `local`: without a kubeconfig, a running `enbloc up` counts."""
    found = running_kubeconfig() if kubeconfig is None and local else kubeconfig
    return asyncio.run(_fetch(found, context, kinds, needed))


def fetch_if_allowed(kubeconfig: str | None, context: str | None, ref: Ref) -> Obj | None:
    """One object; `None` if it does not exist, or may not be read."""

    async def get() -> Obj | None:
        from enbloc.cluster.kube import connect
        from enbloc.cluster.kube.http import Bounds

        try:
            async with await connect(kubeconfig, context, bounds=Bounds(patience_s=PATIENCE_S)) as cluster:
                return await cluster.get(*ref)
        except Refused:
            return None

    kubeconfig = running_kubeconfig() if kubeconfig is None else kubeconfig
    return asyncio.run(get())


async def _fetch(
    kubeconfig: str | None, context: str | None, kinds: Sequence[str], needed: Collection[str] | None
) -> dict[str, list[Obj]]:
    from enbloc.cluster.kube import connect  # imported late: help must be fast
    from enbloc.cluster.kube.credentials import NoCredentials
    from enbloc.cluster.kube.http import Bounds

    try:
        async with await connect(kubeconfig, context, bounds=Bounds(patience_s=PATIENCE_S)) as cluster:
            optional = [kind for kind in kinds if needed is not None and kind not in needed]
            requests = [_unless_forbidden(cluster.list(kind), kind in optional) for kind in kinds]
            lists = await _all_or_none(requests)
    except NoCredentials as why:
        raise Refusal([str(why)]) from None
    except Refused as why:
        what = "cannot be reached" if why.code in (503, 504) else "refused"
        raise Refusal([f"the cluster {what}: {why.message}"]) from None
    return {kind: found for kind, found in zip(kinds, lists, strict=True) if found is not None}


async def _unless_forbidden(request: Coroutine[Any, Any, list[Obj]], optional: bool) -> list[Obj] | None:
    """`None` if the kind is optional and must not be listed."""
    try:
        return await request
    except Refused as why:
        if optional and why.code == 403:
            return None
        raise


async def _all_or_none(requests: Iterable[Coroutine[Any, Any, list[Obj] | None]]) -> list[list[Obj] | None]:
    """All answers. After the first failure the other requests are cancelled, and over before the connection closes."""
    tasks = [asyncio.ensure_future(request) for request in requests]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
