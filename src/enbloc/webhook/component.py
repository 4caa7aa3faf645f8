"""Runs the webhook beside a control plane, or alone in its process: started and stopped as one."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Final, Protocol

from enbloc.api.writes import Refused, WatchEvent
from enbloc.config import Config
from enbloc.webhook import server
from enbloc.webhook.cache import ObjectCache
from enbloc.webhook.clients import ANY_CLIENT, Clients
from enbloc.webhook.server import PORT, RETRY_S, SERVICE, Server

NAMESPACE: Final = "enbloc-system"
NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

log = logging.getLogger("enbloc.webhook")


class Api(server.Api, Protocol):
    """What the webhook needs of a cluster that it watches itself."""

    async def start(self, kinds: Collection[str], observe: Callable[[WatchEvent], None]) -> None:
        """Observes all objects of the kinds, returns when all were reported, and continues to observe."""
        ...


def own_namespace() -> str:
    """The namespace of this pod; the default one if this is not a pod."""
    namespace = os.environ.get("ENBLOC_NAMESPACE")
    if namespace:
        return namespace
    try:
        return NAMESPACE_FILE.read_text().strip() or NAMESPACE
    except (OSError, UnicodeDecodeError):
        return NAMESPACE


async def serve_webhook(
    api: Api,
    config: Config,
    *,
    known: ObjectCache | None = None,
    follow: bool = True,
    namespace: str | None = None,
    service: str = SERVICE,
    host: str = "127.0.0.1",
    port: int = PORT,
    clients: Clients = ANY_CLIENT,
) -> Callable[[], Awaitable[None]]:
    """Starts to serve, which may take until the API answers; returns at once the function that stops it.

    A caller that watches the cluster already passes its cache as `known`. With neither that nor `follow`, other objects
    are fetched from the API at each review. Raises `OSError` if the CA of `clients` cannot be read.
    """
    following = ObjectCache() if known is None and follow else None
    serving = Server(
        api,
        known or following,
        config,
        namespace=namespace or own_namespace(),
        service=service,
        host=host,
        port=port,
        clients=clients,
    )
    tasks = [asyncio.create_task(serving.serve())]
    if following is not None:
        tasks.append(asyncio.create_task(_follow(api, following)))
    for task in tasks:
        task.add_done_callback(_log_failure)

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    return end


async def _follow(api: Api, known: ObjectCache) -> None:
    wait_s, longest_s = RETRY_S
    while True:
        try:
            await api.start(known.kinds, known.observe)
            known.listed()
            return
        except Refused as why:
            log.warning("webhook: cannot list queues and priority classes, again in %s s: %s", wait_s, why)
        await asyncio.sleep(wait_s)
        wait_s = min(wait_s * 2, longest_s)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.critical("webhook: it has stopped", exc_info=task.exception())
