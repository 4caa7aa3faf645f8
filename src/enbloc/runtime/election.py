"""Who leads: one replica holds a Lease and renews it; when it stops, another one takes the Lease and goes on.

Times in a Lease are the holder's; clocks differ and jump. So nobody compares them with an own clock: a Lease is over
when it has not changed for its duration by the watcher's own steady clock, and a holder that could not renew it for
less than that stops by itself. Whoever lost the lead never leads again: its process ends, and is started anew.
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

log = logging.getLogger(__name__)

LEASE: Final = "Lease.coordination.k8s.io"


class Terms(msgspec.Struct, frozen=True):
    """The usual ones of Kubernetes' own components."""

    duration_s: int = 15
    """A Lease that has not changed for so long is anybody's."""
    give_up_s: float = 10.0
    """Who could not renew it for so long leads no more. The difference is for writes that are still under way."""
    retry_s: float = 2.0
    """How often it is renewed."""
    look_s: float = 0.5
    """How often those who stand by look: they take over when it is over, and not much later."""


def own_name() -> str:
    """Which replica this is; no two have the same name, not even after a restart."""
    return f"{socket.gethostname()}_{os.getpid():x}{random.SystemRandom().getrandbits(32):08x}"


class Elector:
    """One replica's way to the lead, and its end."""

    def __init__(
        self,
        cluster: LiveCluster,
        namespace: str,
        name: str,
        identity: str,
        terms: Terms = Terms(),  # noqa: B008 - it is frozen
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self._cluster = cluster
        self._ref = Ref(LEASE, namespace, name)
        self._identity = identity
        self._terms = terms
        self._wall = wall
        self._lease: Obj | None = None
        self._changed_s = 0.0
        self._renewed_s = 0.0

    async def acquire(self) -> None:
        """Returns when this replica leads."""
        told = ""
        while True:
            try:
                if await self._try():
                    log.info("leads, by Lease %s/%s", self._ref.namespace, self._ref.name)
                    return
            except Refused as why:
                log.warning("cannot read or write the Lease: %s", why)
            holder = self._spec().get("holderIdentity") or ""
            if holder != told:
                told = holder
                log.info("%s leads; this one stands by", holder or "nobody")
            await asyncio.sleep(self._terms.look_s * random.uniform(0.8, 1.2))

    async def hold(self) -> None:
        """Renews the Lease for as long as it can; returns when the lead is lost."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._terms.retry_s)
            left_s = self._renewed_s + self._terms.give_up_s - loop.time()
            try:
                if left_s <= 0 or not await asyncio.wait_for(self._try(), left_s):
                    break
            except Refused as why:
                log.warning("cannot renew the Lease: %s", why)
            except TimeoutError:
                break
        log.error("lost the lead")

    async def release(self) -> None:
        """Lets another one lead at once. Whatever was under way must have ended before."""
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
        """One attempt to have or to keep the lead. Says whether it is ours."""
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
                return False  # another one was faster
            raise
        self._changed_s = self._renewed_s = begun_s
        return True

    async def _write(self, found: Obj | None, holder: str) -> Obj | None:
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._terms.duration_s,
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
        """What its holder promised, within reason."""
        said = self._spec().get("leaseDurationSeconds")
        return float(min(max(said, 1), 3600)) if isinstance(said, int) else float(self._terms.duration_s)

    def _stamp(self) -> str:
        """With six digits after the second: the API takes no other form."""
        second, nanos = divmod(self._wall(), 10**9)
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)) + f".{nanos // 1000:06d}Z"
