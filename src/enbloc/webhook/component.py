"""The webhook beside a control plane, or alone in its process: all that runs it, begun and ended in one piece."""

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
from enbloc.webhook.server import PORT, RETRY_S, SERVICE, Server

NAMESPACE: Final = "enbloc-system"
NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

log = logging.getLogger("enbloc.webhook")


class Api(server.Api, Protocol):
    """What the webhook asks of a cluster that it follows itself."""

    async def start(self, kinds: Collection[str], observe: Callable[[WatchEvent], None]) -> None:
        """Observes all objects of the kinds, returns when they were all told, and goes on observing."""
        ...


def own_namespace() -> str:
    """Where this pod runs; the usual namespace, if this is no pod."""
    told = os.environ.get("ENBLOC_NAMESPACE")
    if told:
        return told
    try:
        return NAMESPACE_FILE.read_text().strip() or NAMESPACE
    except OSError:
        return NAMESPACE


async def serve_webhook(
    api: Api,
    config: Config,
    *,
    known: ObjectCache | None = None,
    follow: bool = True,
    namespace: str | None = None,
    service: str = SERVICE,
    port: int = PORT,
) -> Callable[[], Awaitable[None]]:
    """Begins to serve, which may take until the API answers, and returns at once what ends it.

    Who follows the cluster already gives what is `known` and feeds it. With neither that nor `follow`, the API is asked
    about other objects at each review.
    """
    following = ObjectCache() if known is None and follow else None
    serving = Server(
        api, known or following, config, namespace=namespace or own_namespace(), service=service, port=port
    )
    tasks = [asyncio.create_task(serving.serve())]
    if following is not None:
        tasks.append(asyncio.create_task(_follow(api, following)))
    for task in tasks:
        task.add_done_callback(_tell_bug)

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


def _tell_bug(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.critical("webhook: it does not run any more", exc_info=task.exception())
