"""The process of `enbloc run`, from its first connection to its end.

It exits with 0 on a signal and with 1 when it lost the Lease: then it is restarted with no state left. A cluster that
cannot be reached is retried without end, with a log line each time; a user's error ends it at once (`NoCredentials`, a
refused identity).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from enbloc.api.writes import Refused
from enbloc.cluster.kube import KubeCluster, connect
from enbloc.config import Config, scheduler_names
from enbloc.gangs.record_digests import Keyring, new_keyring
from enbloc.runtime.clock import SteadyClock
from enbloc.runtime.election import Elector, own_name
from enbloc.runtime.endpoints import Endpoints, Page
from enbloc.runtime.live_control_plane import SCHEDULER, LiveControlPlane
from enbloc.runtime.metrics import Metrics
from enbloc.runtime.record_keys import shared_keyring
from enbloc.runtime.recorder import LIMIT_BYTES, SEGMENT_BYTES, Limits, Recorder

log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
OTHER_WRITES_WITHIN_S: Final = 0.5
"""A new leader waits this long for the watch events of the last writes of the one before it."""
_UNAUTHORISED: Final = frozenset({401, 403})

Result = TypeVar("Result")
Component = Callable[[KubeCluster, Config], Awaitable[Callable[[], Awaitable[None]]]]
"""A component that is served beside the control plane on every replica, such as the webhook. It is called with the
cluster and the config, returns when it serves, and returns the function that stops it."""


class Options(msgspec.Struct, frozen=True):
    """The options of `enbloc run`."""

    config: Config
    kubeconfig: str | None = None
    context: str | None = None
    parts: frozenset[str] = frozenset()
    """Of the control plane: see `live_control_plane`. Without any only `components` are served."""
    leader_elect: bool = False
    lease_namespace: str = "enbloc-system"
    lease_name: str = "enbloc"
    host: str = "127.0.0.1"
    port: int = 8080
    record: str | None = None
    """The directory of a recording (see `recorder`)."""
    record_bytes: int = LIMIT_BYTES


async def serve(
    options: Options,
    components: Mapping[str, Component] | None = None,
    pages: Mapping[str, Page] | None = None,
    are_pages_ready: Callable[[], bool] = lambda: True,
) -> int:
    """Runs until a signal comes; `pages` are served too, and count for `/readyz`. Returns the exit code; raises
    `NoCredentials`, `Refused` (of the identity) and `OSError` (of the port) before it starts."""
    stop = _on_signals()
    async with AsyncExitStack() as stack:
        metrics = Metrics()
        cluster = await _until(stop, _connected(options, metrics))
        if cluster is None:
            return 0
        stack.push_async_callback(cluster.close)
        keyring = await _until(stop, _keyring(options, cluster))
        if keyring is None:
            return 0
        recorder = _recorder(options)
        if recorder is not None:
            stack.callback(recorder.close)
        plane = _plane(options, cluster, metrics, keyring, recorder)
        measure = plane.measure if plane else lambda: None
        endpoints = Endpoints(metrics, lambda: are_pages_ready() and _is_ready(plane, cluster), measure, pages)
        await endpoints.start(options.host, options.port)
        stack.push_async_callback(endpoints.close)
        log.info("serving /healthz, /readyz and /metrics on %s:%d", options.host, endpoints.port)
        for name, component in (components or {}).items():
            stack.push_async_callback(await component(cluster, options.config))
            log.info("serving the %s", name)
        if plane is None:
            await stop.wait()
            return 0
        return await _lead(options, cluster, plane, keyring, stop)


async def _keyring(options: Options, cluster: KubeCluster) -> Keyring:
    """The keys of records (S2); parts that write no records need none."""
    if SCHEDULER not in options.parts:
        return new_keyring()
    return await _retry(lambda: shared_keyring(cluster, options.lease_namespace), "cannot read the keys of records")


async def _lead(
    options: Options, cluster: KubeCluster, plane: LiveControlPlane, keyring: Keyring, stop: asyncio.Event
) -> int:
    """Watches the cluster, leads when it holds the Lease, and ends in order."""
    if not await _until(stop, _started(plane)):
        return 0
    elector = Elector(cluster, options.lease_namespace, options.lease_name, own_name())
    loop = asyncio.get_running_loop()
    running = loop.create_task(plane.run())
    ending = loop.create_task(stop.wait())

    async def has_same_keys() -> bool:
        return SCHEDULER not in options.parts or await _keyring(options, cluster) == keyring

    leading = loop.create_task(_hold(elector, plane, has_same_keys) if options.leader_elect else _alone(plane))
    try:
        await asyncio.wait({running, ending, leading}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()  # raises the exception of a part
        if leading.done():
            plane.stop_writing()
            await leading
            return 1
        log.info("ending")
        await plane.end()
        if options.leader_elect:
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)
            await elector.release()
        return 0
    finally:
        plane.stop_writing()
        for task in (running, ending, leading):
            task.cancel()
        await asyncio.gather(running, ending, leading, return_exceptions=True)


async def _hold(elector: Elector, plane: LiveControlPlane, has_same_keys: Callable[[], Awaitable[bool]]) -> None:
    """Returns when the Lease is lost, or when keys of records were added or removed since this process read them: it is
    started again with the new ones."""
    await elector.acquire()
    await asyncio.sleep(OTHER_WRITES_WITHIN_S)
    if not await has_same_keys():
        log.warning("the keys of records were changed: ending, to start again with them")
        await elector.release()
        return
    plane.lead()
    await elector.hold()


async def _alone(plane: LiveControlPlane) -> None:
    plane.lead()
    await asyncio.Event().wait()


def _recorder(options: Options) -> Recorder | None:
    if options.record is None or SCHEDULER not in options.parts:
        return None
    limits = Limits(options.record_bytes, min(SEGMENT_BYTES, options.record_bytes // 4))
    return Recorder(Path(options.record), options.config, scheduler_names(options.config, alone=False), limits)


def _plane(
    options: Options, cluster: KubeCluster, metrics: Metrics, keyring: Keyring, recorder: Recorder | None
) -> LiveControlPlane | None:
    if not options.parts:
        return None
    clock = SteadyClock()
    metrics.clock_skew_s.set_function(clock.skew_s)
    names = scheduler_names(options.config, alone=False)
    log.info(
        "scheduler names that are ours: %s (more: --compat, or schedulerNames in the config)", ", ".join(sorted(names))
    )
    return LiveControlPlane(cluster, options.config, names, clock, keyring, options.parts, metrics, recorder=recorder)


def _is_ready(plane: LiveControlPlane | None, cluster: KubeCluster) -> bool:
    return cluster.healthy() and (plane is None or plane.is_ready)


async def _connected(options: Options, metrics: Metrics) -> KubeCluster:
    def attempt() -> Awaitable[KubeCluster]:
        return connect(options.kubeconfig, options.context, measure=metrics.requested)

    return await _retry(attempt, "cannot reach the cluster")


async def _started(plane: LiveControlPlane) -> bool:
    gc.collect()
    gc.disable()  # what is listed stays: the collector would walk it again and again, and find nothing
    try:
        await _retry(plane.start, "cannot list the cluster")
    finally:
        settle_memory()
    log.info("watching %d kinds", len(plane.kinds))
    return True


def settle_memory() -> None:
    """Exempts the objects that exist now, the listed ones among them, and traverses later ones less often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


async def _retry(attempt: Callable[[], Awaitable[Result]], what: str) -> Result:
    """Tries without end, with a log line each time, unless the identity is refused."""
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return await attempt()
        except Refused as why:
            if why.code in _UNAUTHORISED:
                raise
            log.warning("%s, retrying in %.0f s: %s", what, pause_s, why)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, Result]) -> Result | None:
    """The result of some work, or `None` if `stop` came first."""
    loop = asyncio.get_running_loop()
    ending, working = loop.create_task(stop.wait()), loop.create_task(work)
    try:
        await asyncio.wait({ending, working}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        ending.cancel()
        working.cancel()
        await asyncio.gather(ending, working, return_exceptions=True)


def _on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(one, stop.set)
    return stop
