"""Reads a cluster for the commands that ask about it: by kubeconfig, one list per kind."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import msgspec
import yaml

from enbloc import garbage_collector
from enbloc.api.meta import Obj, Ref, name_of
from enbloc.api.writes import Refused
from enbloc.cli.errors import Refusal
from enbloc.cli.running_up import running_kubeconfig
from enbloc.config import Config, ConfigError, parse
from enbloc.config.vocabulary import CONFIG_FILE, CONFIG_MAP
from enbloc.inspect.overview import IN_UP, KINDS, UNKNOWN, Overview, Scheduler, read_overview
from enbloc.units import SECOND, instant_of

if TYPE_CHECKING:
    from enbloc.cluster.kube import KubeCluster

PATIENCE_S: Final = 3.0
"""A user waits: a cluster that does not answer is reported soon."""
NAMESPACE: Final = "enbloc-system"
"""Where `enbloc install` puts what is its own by default."""
LEASES: Final = ("enbloc-scheduler", "enbloc")
"""Of `enbloc install`, and the default of `enbloc run`."""


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


@contextmanager
def reachable() -> Iterator[None]:
    """Turns a cluster that cannot be read into a refusal."""
    from enbloc.cluster.kube.credentials import NoCredentials

    try:
        yield
    except NoCredentials as why:
        raise Refusal([str(why)]) from None
    except Refused as why:
        what = "cannot be reached" if why.code in (503, 504) else "refused"
        raise Refusal([f"the cluster {what}: {why.message}"]) from None


class Fetched(NamedTuple):
    """What was read of a cluster, and what it tells of its scheduler."""

    lists: dict[str, list[Obj]]
    """By kind; without those that may not be listed."""
    config: Config
    """The scheduler's, where the cluster tells it; else the default."""
    scheduler: Scheduler


def fetch_overview(kubeconfig: str | None, context: str | None, *, with_trees: bool = False) -> Overview:
    """The cluster's overview. Raises `Refusal` with one line if the cluster cannot be read."""
    garbage_collector.relax(garbage_collector.BATCH)
    found = fetch(kubeconfig, context, KINDS)
    return read_overview(found.lists, found.config, with_trees=with_trees)


def fetch(
    kubeconfig: str | None, context: str | None, kinds: Sequence[str], needed: Collection[str] | None = None
) -> Fetched:
    """The objects of each kind, and of those by which the scheduler groups pods. Raises `Refusal` with one line if the
    cluster cannot be read; with `needed` other kinds than those may be forbidden: they are left out."""
    lists: dict[str, list[Obj]] = {}
    known = _fetch(lists, kubeconfig or running_kubeconfig(), context, kinds, needed, _scheduler_of)
    return Fetched(lists, *asyncio.run(known))


def fetch_lists(
    kubeconfig: str | None,
    context: str | None,
    kinds: Sequence[str],
    needed: Collection[str] | None = None,
    *,
    local: bool = True,
) -> dict[str, list[Obj]]:
    """The objects alone. `local`: without a kubeconfig, a running `enbloc up` counts."""
    found = running_kubeconfig() if kubeconfig is None and local else kubeconfig
    lists: dict[str, list[Obj]] = {}
    asyncio.run(_fetch(lists, found, context, kinds, needed))
    return lists


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
    lists: dict[str, list[Obj]],
    kubeconfig: str | None,
    context: str | None,
    kinds: Sequence[str],
    needed: Collection[str] | None,
    ask: Callable[[KubeCluster], Awaitable[tuple[Config, Scheduler]]] | None = None,
) -> tuple[Config, Scheduler]:
    """Fills `lists`. Not its result: `asyncio.run` takes the time to format that, of 20,000 pods a second."""
    from enbloc.cluster.kube import connect  # imported late: help must be fast
    from enbloc.cluster.kube.http import Bounds

    with reachable():
        async with await connect(kubeconfig, context, bounds=Bounds(patience_s=PATIENCE_S)) as cluster:
            config, scheduler = await ask(cluster) if ask is not None else (parse(None), UNKNOWN)
            needed = frozenset(kinds if needed is None else needed)
            kinds = tuple(dict.fromkeys((*kinds, *(entry.kind for entry in config.group_by_owner.active))))
            requests = [_unless_forbidden(cluster.list(kind), kind not in needed) for kind in kinds]
            found = await _all_or_none(requests)
    lists.update((kind, some) for kind, some in zip(kinds, found, strict=True) if some is not None)
    return config, scheduler


async def _scheduler_of(cluster: KubeCluster) -> tuple[Config, Scheduler]:
    """The scheduler's config, and whether it runs: an `enbloc up` says both; else the ConfigMap of `enbloc install`
    and the Lease of `enbloc run` do."""
    own = ""
    try:
        said = json.loads(await cluster.text("/api/scheduler"))
        if said["runs"]:
            return parse(yaml.safe_load(said["config"])), IN_UP
        own = "this `enbloc up` has none of its own (--no-scheduler), and "
    except (Refused, ValueError, KeyError, TypeError):  # another API server
        pass
    kept = await _get(cluster, "ConfigMap", CONFIG_MAP)
    try:
        config = parse(yaml.safe_load(((kept or {}).get("data") or {}).get(CONFIG_FILE) or "{}"))
    except (ConfigError, yaml.YAMLError):
        config = parse(None)
    grouping = msgspec.structs.replace(config.group_by_owner, enabled=bool(config.group_by_owner.enabled))
    config = msgspec.structs.replace(config, group_by_owner=grouping)
    leases = [await _get(cluster, "Lease.coordination.k8s.io", name) for name in LEASES]
    return config, _by_leases([lease for lease in leases if lease], own)


def _by_leases(leases: Sequence[Obj], own: str) -> Scheduler:
    """Whether one of these Leases is held. `own`: what precedes."""
    latest, found = 0, Scheduler(None, f"{own}there is no Lease {NAMESPACE}/{' or '.join(LEASES)}")
    for lease in leases:
        spec, name = lease.get("spec") or {}, f"Lease {NAMESPACE}/{name_of(lease)}"
        at, lasts_s = instant_of(spec.get("renewTime")), spec.get("leaseDurationSeconds") or 0
        if spec.get("holderIdentity") and at + lasts_s * SECOND > time.time_ns():
            return Scheduler(True, f"{spec['holderIdentity']} holds {name}")
        if at >= latest:
            latest, found = at, Scheduler(False, f"{own}{name} was last renewed at {spec.get('renewTime')}")
    return found


async def _get(cluster: KubeCluster, kind: str, name: str) -> Obj | None:
    """An object of our namespace; `None` if it does not exist, or may not be read."""
    try:
        return await cluster.get(kind, NAMESPACE, name)
    except Refused:
        return None


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
