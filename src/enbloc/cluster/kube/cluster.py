"""A real cluster, as the runtime uses it.

Everything runs in one event loop. `writes` has the semantics of each write, `informer` follows one kind, `http` handles
timeouts, retries and lost answers.
"""

from __future__ import annotations

import asyncio
import logging
from builtins import list as List  # noqa: N812 - the port names its method `list`
from collections.abc import Callable, Collection, Coroutine, Sequence
from types import TracebackType
from typing import Any

from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Refused, WatchEvent, Write
from enbloc.cluster.kube.credentials import Credentials, load
from enbloc.cluster.kube.discovery import Discovery, Resource
from enbloc.cluster.kube.http import Api, Bounds, Measure, refusal
from enbloc.cluster.kube.informer import Informer, list_all
from enbloc.cluster.kube.writes import Writer, read

log = logging.getLogger(__name__)

IN_FLIGHT = 64
"""At most this many requests are in flight at once; watches are not counted."""
_POD = "Pod"


class KubeCluster:
    """A cluster behind an API server. An async context manager: leaving it closes it."""

    def __init__(
        self,
        credentials: Credentials,
        in_flight: int = IN_FLIGHT,
        bounds: Bounds | None = None,
        measure: Measure | None = None,
    ) -> None:
        self._bounds = bounds or Bounds()
        self._api = Api(credentials, in_flight, self._bounds, measure)
        self._discovery = Discovery(self._api)
        self._writer = Writer(self._api, self._discovery, self._reported)
        self._kinds: frozenset[str] = frozenset()
        self._informers: dict[str, Informer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    async def reach(self) -> None:
        """Sends a small request. Raises `Refused` if the API server cannot be reached or rejects the credentials."""
        await self._discovery.look_up([_POD])

    async def start(self, kinds: Collection[str], observe: Callable[[WatchEvent], None]) -> None:
        """Lists every served kind of `kinds` (Pods last) and calls `observe` with ADDED for each object; returns when
        all lists are complete. From then on `observe` is called, in this event loop, for every event.

        Kinds that the cluster does not serve are followed once they appear. The events of one object are always ADDED,
        any number of MODIFIED, DELETED: an object recreated under the same name is DELETED and ADDED. Raises `Refused`
        if the cluster cannot be listed.
        """
        self._kinds = frozenset(kinds)
        await self._discovery.look_up(self._kinds)
        # Those of a start that failed halfway know what they have reported: only what has changed since is reported.
        known = self._informers
        informers = [
            known[kind] if kind in known else self._informer(kind, observe)
            for kind in sorted(self._kinds)
            if self.serves(kind)
        ]
        pods = [one for one in informers if one.resource.kind == _POD]  # last: their gangs and queues are known by then
        others = [one for one in informers if one.resource.kind != _POD]
        taken = asyncio.ensure_future(_take_all(others))
        try:
            await asyncio.gather(taken, *(one.begin(asyncio.shield(taken)) for one in pods))
        finally:
            taken.cancel()
        for one in informers:
            self._begin(self._follow(one))
        self._begin(self._discover_kinds(observe))

    async def execute(self, write: Write) -> Obj | None:
        """Executes one write; returns the object as it is now, if the API returns it (a BindPod gives `None`).

        Raises `Refused`. Retries by itself, within seconds, what may be retried (429, 5xx, a lost connection). A
        refusal with code 504 means that the write may or may not have been executed: the watch will show it.
        """
        return await self._writer.execute(write)

    async def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        """One object as it is now; `None` if it does not exist or its kind is not served. Raises `Refused`."""
        resource = await self._discovery.find(kind)
        return None if resource is None else await read(self._api, resource, namespace, name)

    async def list(self, kind: str, namespace: str | None = None) -> List[Obj]:
        """All objects of a kind, by namespace and name; empty if it is not served. Raises `Refused`."""
        resource = await self._discovery.find(kind)
        if resource is None:
            return []
        objects, _ = await list_all(self._api, resource, namespace)
        return objects

    async def text(self, path: str) -> str:
        """What the API server shows at a path that is no object's: its metrics. Raises `Refused`."""
        answer = await self._api.read(path)
        if not answer.is_good:
            raise refusal(answer)
        return answer.body.decode(errors="replace")

    async def stop_watching(self) -> None:
        """Ends the watches; requests go on."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._informers.clear()

    def serves(self, kind: str) -> bool:
        """Whether the kind is known to be served: one of those given to `start`, or one used since."""
        return self._discovery.known(kind) is not None

    def known(self, kind: str) -> List[Obj]:
        """The objects of a kind as they were last observed."""
        informer = self._informers.get(kind)
        return informer.objects() if informer is not None else []

    def healthy(self) -> bool:
        """Whether every watch is connected, or was until a moment ago, and no observer has failed."""
        if self._failure is not None:
            return False
        now_s = asyncio.get_running_loop().time()
        return all(informer.is_fresh(now_s) for informer in self._informers.values())

    async def close(self) -> None:
        """Ends the watches and closes every connection. Writes in flight are cancelled."""
        await self.stop_watching()
        await self._api.close()

    # -- internals

    def _reported(self, ref: Ref) -> Obj | None:
        """The object as observers last saw it."""
        informer = self._informers.get(ref.kind)
        return informer.get(ref.namespace, ref.name) if informer is not None else None

    def _informer(self, kind: str, observe: Callable[[WatchEvent], None]) -> Informer:
        resource = self._discovery.known(kind)
        assert resource is not None

        async def find() -> Resource | None:
            await self._discovery.look_up([kind])
            return self._discovery.known(kind)

        self._informers[kind] = Informer(self._api, resource, observe, find)
        return self._informers[kind]

    async def _follow(self, informer: Informer) -> None:
        await informer.follow()
        log.info("%s is no longer served", informer.resource.kind)
        del self._informers[informer.resource.kind]

    async def _discover_kinds(self, observe: Callable[[WatchEvent], None]) -> None:
        """Follows kinds once they are served."""
        while True:
            await asyncio.sleep(self._bounds.rediscover_s)
            missing = self._kinds - self._informers.keys()
            if not missing:
                continue
            try:
                await self._discovery.look_up(missing)
            except Refused as why:
                log.warning("cannot discover kinds: %s", why)
                continue
            for kind in sorted(kind for kind in missing if self.serves(kind)):
                log.info("%s is served now", kind)
                self._begin(self._follow(self._informer(kind, observe)))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Tasks here must not fail; one that does is a bug, and is logged."""
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
            log.critical("a watch has failed", exc_info=self._failure)

    async def __aenter__(self) -> KubeCluster:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _take_all(informers: Sequence[Informer]) -> None:
    fetched = await asyncio.gather(*(one.fetch() for one in informers))
    for one, listed in zip(informers, fetched, strict=True):
        one.take(*listed)


async def connect(
    kubeconfig: str | None,
    context: str | None,
    *,
    in_flight: int = IN_FLIGHT,
    bounds: Bounds | None = None,
    measure: Measure | None = None,
) -> KubeCluster:
    """A cluster by kubeconfig and context: the given file, else `$KUBECONFIG`, else `~/.kube/config`, else a pod's
    service account. Raises `NoCredentials` (see `credentials`) with one line for the user, or `Refused`."""
    cluster = KubeCluster(await load(kubeconfig, context), in_flight, bounds, measure)
    try:
        await cluster.reach()
    except BaseException:
        await cluster.close()
        raise
    return cluster
