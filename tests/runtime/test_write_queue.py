"""Which writes go first."""

from __future__ import annotations

import asyncio
from typing import Any

from enbloc.api.writes import BindPod, Write
from enbloc.cluster.kube.cluster import IN_FLIGHT
from enbloc.runtime.metrics import Metrics
from enbloc.runtime.transport import WritePriority
from enbloc.runtime.write_queue import MOST, WriteQueue


class Held:
    """A cluster that answers when it is asked to."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.answers: list[asyncio.Future[None]] = []

    async def execute(self, write: Write) -> None:
        assert isinstance(write, BindPod)
        self.sent.append(write.name)
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.answers.append(answer)
        await answer


def binding(name: str) -> BindPod:
    return BindPod("default", name, name, "n1", {})


def test_g11_the_last_binding_of_a_gang_goes_before_the_first_of_the_next() -> None:
    async def run() -> list[str]:
        cluster: Any = Held()
        queue = WriteQueue(cluster, Metrics())
        decided = [queue.send(binding(f"p{number}"), WritePriority.DECISION) for number in range(MOST + 2)]
        tasks = [asyncio.get_running_loop().create_task(one) for one in decided]
        await asyncio.sleep(0)
        tasks.append(asyncio.get_running_loop().create_task(queue.send(binding("last"), WritePriority.COMPLETION)))
        await asyncio.sleep(0)
        assert "last" not in cluster.sent
        while len(cluster.sent) < MOST + 3:
            cluster.answers.pop(0).set_result(None)
            for _ in range(4):
                await asyncio.sleep(0)
        for answer in cluster.answers:
            answer.set_result(None)
        await asyncio.gather(*tasks)
        return list(cluster.sent[MOST:])

    assert asyncio.run(run()) == ["last", f"p{MOST}", f"p{MOST + 1}"]


def test_the_pods_that_controllers_create_do_not_wait_for_all_bindings() -> None:
    """And all that is under way together leaves the HTTP client room for the Lease."""

    async def run() -> tuple[int, int]:
        cluster: Any = Held()
        queue = WriteQueue(cluster, Metrics())
        loop = asyncio.get_running_loop()
        sent = [queue.send(binding(f"b{number}"), WritePriority.DECISION) for number in range(200)]
        sent += [queue.send(binding(f"c{number}"), WritePriority.CONTROLLER) for number in range(200)]
        sent += [queue.send(binding(f"s{number}"), WritePriority.STATUS) for number in range(20)]
        tasks = [loop.create_task(one) for one in sent]
        most = 0
        for _ in range(120):
            for _ in range(4):
                await asyncio.sleep(0)
            most = max(most, queue.under_way)
            cluster.answers.pop(0).set_result(None)
        created = sum(name.startswith("c") for name in cluster.sent)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return created, most

    created, most = asyncio.run(run())
    assert created > 50
    assert most < IN_FLIGHT
