"""Who leads: one at a time, the next one within the Lease's duration, whatever the clocks say."""

from __future__ import annotations

import asyncio
import random

from enbloc import config as configs
from enbloc.api.writes import Refused, Write
from enbloc.cluster.embedded.cluster import make_store
from enbloc.runtime.election import LEASE, Elector, LeaseTimes, own_name
from enbloc.sim.clock import EPOCH
from enbloc.units import SECOND
from support.live_cluster import LateCluster, in_virtual_time

HOUR = 3600 * SECOND


class Replica:
    """A process that leads when it may, and notes when."""

    def __init__(self, cluster: LateCluster, name: str, wall_offset: int = 0) -> None:
        self.cluster = cluster
        self.wall_offset = wall_offset
        self.elector = Elector(cluster, "default", "enbloc", name, LeaseTimes(), self.wall)
        self.leads_since: float | None = None
        self.led_until: float | None = None
        self.task = asyncio.get_running_loop().create_task(self._run())

    def wall(self) -> int:
        return now() + self.wall_offset

    @property
    def leads(self) -> bool:
        return self.leads_since is not None and self.led_until is None

    async def _run(self) -> None:
        await self.elector.acquire()
        self.leads_since = asyncio.get_running_loop().time()
        try:
            await self.elector.hold()
        finally:
            self.led_until = asyncio.get_running_loop().time()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def now() -> int:
    return EPOCH + int(asyncio.get_running_loop().time() * SECOND)


def a_cluster(seed: int = 0, **lag: float) -> LateCluster:
    return LateCluster(make_store(now, configs.parse(None)), seed, **lag)


def test_one_leads_and_the_next_takes_over_within_the_lease() -> None:
    async def main() -> None:
        cluster = a_cluster()
        first = Replica(cluster, "a")
        await asyncio.sleep(1)
        second = Replica(cluster, "b")
        await asyncio.sleep(60)
        assert first.leads
        assert not second.leads
        await first.stop()  # as by SIGKILL: it released nothing
        killed = asyncio.get_running_loop().time()
        await asyncio.sleep(20)
        assert second.leads
        assert second.leads_since is not None
        assert 12 < second.leads_since - killed <= 15 + 1
        await second.stop()

    in_virtual_time(main)


def test_a_lease_that_is_released_is_taken_at_once() -> None:
    async def main() -> None:
        cluster = a_cluster()
        first = Replica(cluster, "a")
        await asyncio.sleep(1)
        second = Replica(cluster, "b")
        await asyncio.sleep(10)
        await first.stop()
        await first.elector.release()
        await asyncio.sleep(3)
        assert second.leads
        [lease] = cluster.store.list(LEASE)[0]
        assert lease["spec"]["holderIdentity"] == "b"
        assert lease["spec"]["leaseTransitions"] == 1
        await second.stop()

    in_virtual_time(main)


def test_who_cannot_renew_stops_before_another_may_begin() -> None:
    async def main() -> None:
        cluster, other = a_cluster(), LateCluster(make_store(now, configs.parse(None)), 1)
        other.store = cluster.store
        first = Replica(cluster, "a")
        await asyncio.sleep(1)
        second = Replica(other, "b")
        await asyncio.sleep(10)

        def cut(write: Write) -> Refused:
            return Refused(503, "ServiceUnavailable", "cut off")

        cluster.refuse = cut
        await asyncio.sleep(30)
        assert not first.leads
        assert second.leads
        assert first.led_until is not None
        assert second.leads_since is not None
        assert second.leads_since - first.led_until > 1, "time for what was under way"
        await first.stop()
        await second.stop()

    in_virtual_time(main)


def test_clocks_that_differ_by_hours_do_no_harm() -> None:
    async def main() -> None:
        cluster = a_cluster()
        first = Replica(cluster, "a", wall_offset=-5 * HOUR)
        await asyncio.sleep(1)
        second = Replica(cluster, "b", wall_offset=5 * HOUR)
        await asyncio.sleep(30)
        first.wall_offset = 9 * HOUR
        await asyncio.sleep(30)
        assert first.leads
        assert not second.leads
        await first.stop()
        await second.stop()

    in_virtual_time(main)


def test_never_two_at_once_under_lag_and_refusals() -> None:
    for seed in range(5):

        async def main(seed: int = seed) -> None:
            dice = random.Random(seed)
            store = make_store(now, configs.parse(None))
            replicas: list[Replica] = []
            for name in "abc":
                cluster = LateCluster(store, dice.randrange(2**31), lag_s=1.0, refusals=0.3, losses=0.2)
                replicas.append(Replica(cluster, f"{seed}-{name}"))
            for _ in range(600):
                await asyncio.sleep(0.5)
                assert sum(replica.leads for replica in replicas) <= 1
                for replica in [one for one in replicas if one.task.done() or dice.random() < 0.005]:
                    await replica.stop()
                    replicas.remove(replica)
                    replicas.append(Replica(replica.cluster, own_name()))
            for replica in replicas:
                await replica.stop()

        in_virtual_time(main)
