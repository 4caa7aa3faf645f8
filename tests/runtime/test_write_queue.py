"""Which writes go first."""

from __future__ import annotations

import asyncio
from typing import Any

from enbloc.api.writes import BindPod, Write
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
