"""Leader election: one replica holds a Lease and renews it; when it stops, another one acquires the Lease.

Times in a Lease are the holder's, and clocks differ and jump. So they are not compared with a local clock: a Lease has
expired when it did not change for its duration by the observer's monotonic clock, and a holder stops by itself when it
could not renew for less than that. A replica that lost the Lease exits and is restarted.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from enbloc.api.meta import Obj, Ref, uid_of
from enbloc.api.writes import Create, Patch, Refused
from enbloc.cluster.port import LiveCluster
from enbloc.runtime.expectations import version_of
from enbloc.units import format_micro_timestamp

log = logging.getLogger(__name__)

LEASE: Final = "Lease.coordination.k8s.io"


class LeaseTimes(msgspec.Struct, frozen=True):
    """The defaults of Kubernetes' own components, but for `poll_s`."""

    duration_s: int = 15
    """A Lease that did not change for this long has expired."""
    renew_deadline_s: float = 10.0
    """A holder that could not renew for this long stops. The difference is for writes that are still under way."""
    retry_s: float = 2.0
    """The period of renewals."""
    poll_s: float = 0.5
    """The period in which standbys read the Lease: they take over soon after it has expired."""


def own_name() -> str:
    """The identity of this replica; unique, also across restarts."""
    return f"{socket.gethostname()}_{os.getpid():x}{random.SystemRandom().getrandbits(32):08x}"


class Elector:
    """Acquires, renews and releases the Lease for one replica."""

    def __init__(
        self,
        cluster: LiveCluster,
        namespace: str,
        name: str,
        identity: str,
        times: LeaseTimes = LeaseTimes(),  # noqa: B008 - it is frozen
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self._cluster = cluster
        self._ref = Ref(LEASE, namespace, name)
        self._identity = identity
        self._times = times
        self._wall = wall
        self._lease: Obj | None = None
        self._changed_s = 0.0
        self._renewed_s = 0.0

    async def acquire(self) -> None:
        """Returns when this replica leads."""
        logged = ""
        while True:
            try:
                if await self._try():
                    log.info("acquired Lease %s/%s", self._ref.namespace, self._ref.name)
                    return
            except Refused as why:
                log.warning("cannot read or write the Lease: %s", why)
            holder = self._spec().get("holderIdentity") or ""
            if holder != logged:
                logged = holder
                log.info("standby: the Lease is held by %s", holder or "no replica")
            await asyncio.sleep(self._times.poll_s * random.uniform(0.8, 1.2))

    async def hold(self) -> None:
        """Renews the Lease; returns when it is lost."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._times.retry_s)
            left_s = self._renewed_s + self._times.renew_deadline_s - loop.time()
            try:
                if left_s <= 0 or not await asyncio.wait_for(self._try(), left_s):
                    break
            except Refused as why:
                log.warning("cannot renew the Lease: %s", why)
            except TimeoutError:
                break
        log.error("lost the Lease")

    async def release(self) -> None:
        """Gives the Lease up, so that a standby takes over at once. All writes must have ended before."""
        lease = self._lease
        if lease is None or self._spec().get("holderIdentity") != self._identity:
            return
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._stamp()}
        try:
            await self._cluster.execute(Patch(self._ref, {"spec": spec}, "", uid_of(lease), version_of(lease)))
        except Refused as why:
            log.warning("cannot release the Lease: %s", why)

    def _spec(self) -> dict[str, Any]:
        return (self._lease or {}).get("spec") or {}

    async def _try(self) -> bool:
        """One attempt to acquire or renew the Lease. Returns whether this replica holds it."""
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        found = await self._cluster.get(*self._ref)
        if self._lease is None or found is None or version_of(found) != version_of(self._lease):
            self._changed_s = begun_s
        self._lease = found
        holder = self._spec().get("holderIdentity") or ""
        if holder not in ("", self._identity) and begun_s < self._changed_s + self._duration_s():
            return False
        try:
            self._lease = await self._write(found, holder)
        except Refused as why:
            if why.code == 409:
                return False  # another replica was faster
            raise
        self._changed_s = self._renewed_s = begun_s
        return True

    async def _write(self, found: Obj | None, holder: str) -> Obj | None:
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._times.duration_s,
            "renewTime": self._stamp(),
        }
        if holder != self._identity:
            spec["acquireTime"] = self._stamp()
            spec["leaseTransitions"] = int(self._spec().get("leaseTransitions") or 0) + (1 if found else 0)
        if found is None:
            metadata = {"namespace": self._ref.namespace, "name": self._ref.name}
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
            return await self._cluster.execute(Create(lease))
        return await self._cluster.execute(Patch(self._ref, {"spec": spec}, "", uid_of(found), version_of(found)))

    def _duration_s(self) -> float:
        """The duration in the Lease, bounded."""
        stated = self._spec().get("leaseDurationSeconds")
        return float(min(max(stated, 1), 3600)) if isinstance(stated, int) else float(self._times.duration_s)

    def _stamp(self) -> str:
        return format_micro_timestamp(self._wall())
