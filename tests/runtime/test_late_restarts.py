"""I5 on the live path: random scenarios of the oracle on an API that answers late and out of order; the scheduler is
killed and started anew at random instants. In the end the invariants hold, the records of claims included,
and one more restart changes nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from enbloc.api.meta import Obj, annotations_of, name_of, namespace_of
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.pods import node_of
from enbloc.config import parse
from enbloc.gangs import claim_records
from enbloc.scenario.documents import Document
from enbloc.scenario.player import Player
from enbloc.scenario.scenario import read_scenario
from enbloc.units import SECOND
from oracle import dialects, generate, reading, records
from support.live_cluster import LiveWorld, in_virtual_time

LAYERS = ("koordinator", "waves", "evict", "reserve", "all")
END_S = 60.0
"""All edits of a scenario have been made by then."""


class Kill:
    """What the player of a scenario reports to; a Step that restarts the scheduler is carried out by the caller."""

    def __init__(self) -> None:
        self.is_due = False

    def refused(self, obj: Obj, why: Refused) -> None:
        """Edits of a random scenario may be refused."""

    def warned(self, obj: Obj, message: str) -> None:
        """Nor does it matter whether they were warned of."""

    def restart_scheduler(self) -> None:
        self.is_due = True


async def play(world: LiveWorld, documents: list[Obj], dice: random.Random) -> None:
    """The scenario in its own time, with restarts at random instants besides its own."""
    read = read_scenario([Document("late", number, value) for number, value in enumerate(documents, 1)])
    host = Kill()
    player = Player(read, world.store, world.nodes, host)
    kills = sorted(dice.uniform(0.0, END_S) for _ in range(dice.randint(1, 4)))
    while player.due() is not None or world.loop.time() < END_S:
        for _ in player.run(int(world.loop.time() * SECOND)):
            pass
        if host.is_due or (kills and kills[0] <= world.loop.time()):
            kills = [at for at in kills if at > world.loop.time()]
            host.is_due = False
            await world.restart()
        await asyncio.sleep(0.05)


def claims_of(world: LiveWorld) -> Iterator[tuple[Obj, claim_records.Record]]:
    for kind in ("Pod", *dialects.OBJECTS):
        for obj in world.store.list(kind)[0]:
            for key, text in annotations_of(obj).items():
                if key in claim_records.ANNOTATIONS:
                    record = claim_records.read(text)
                    assert record is not None, f"{name_of(obj)}: {text}"
                    yield obj, record


def left_behind(world: LiveWorld) -> list[Any]:
    """What a scheduler that starts now finds: where pods are, and the records of claims."""
    bound = sorted((namespace_of(pod), name_of(pod), node_of(pod)) for pod in world.pods())
    claimed = sorted((obj["kind"], name_of(obj), str(record)) for obj, record in claims_of(world))
    return [*bound, *claimed]


def broken(world: LiveWorld) -> list[str]:
    """I1, I3, I4 by the objects alone."""
    found = []
    now = reading.read_world(world.store, world.config, records.new_memory(), world.now())
    for gang in now["gangs"].values():
        bound = [task for task in gang["tasks"] if task["status"] in ("bound", "succeeded")]
        by_role = Counter(task["role"] for task in bound)
        whole = len(bound) >= gang["minimum"] and all(by_role[role] >= n for role, n in gang["minima"].items())
        named = [now["gangs"][key] for key in gang["group"] if key in now["gangs"]]
        marked = any(task["mark"] for one in (gang, *named) for task in one["tasks"])
        if gang["dialect"] != "pod" and bound and not whole and not marked:
            found.append(f"{gang['title']} is partly started (I1): {[task['name'] for task in bound]}")
    twice = [uid for uid, times in Counter(write.uid for write in world.binds()).items() if times > 1]
    found += [f"{uid} was bound twice (I3)" for uid in twice]
    nodes = {node["name"]: dict(node["allocatable"]) for node in now["nodes"]}
    tasks = {(task["namespace"], task["name"]): task for task in now["tasks"]}
    for task in now["tasks"]:
        _take(nodes, task["node"], task["request"])
    for obj, record in claims_of(world):
        for name, places in record.slots.items():
            task = tasks.get((namespace_of(obj), name))
            if task is None or task["node"]:
                found.append(f"{name_of(obj)}: {record.kind} for {name}, which does not wait (R7)")
            elif record.kind in (claim_records.ClaimKind.HOLD, claim_records.ClaimKind.PREEMPT):
                for node, count in places.items():
                    _take(nodes, node, {what: amount * count for what, amount in task["request"].items()})
    for name, free in nodes.items():
        found += [
            f"{name} lacks {-left} {what} for what is bound and claimed (I4)" for what, left in free.items() if left < 0
        ]
    return found


def _take(nodes: dict[str, dict[str, int]], node: str, request: dict[str, int]) -> None:
    for what, amount in request.items() if node in nodes else ():
        nodes[node][what] = nodes[node].get(what, 0) - amount


def _restarts_without_end(documents: list[Obj]) -> bool:
    """Whether a QueueJob has a pod that fails at each attempt: it is run again and again, with growing delays (A5)."""
    return any(one["kind"] == "QueueJob" and "sim.enbloc.dev/exit-code" in str(one) for one in documents)


def _refuses_pods(documents: list[Obj]) -> bool:
    """Whether a quota may refuse pods of a job: their creates are tried again without end."""
    return any(one["kind"] == "ResourceQuota" for one in documents)


def restarted(layer: str, seed: int) -> list[str]:
    async def main() -> list[str]:
        dice = random.Random(f"late/{layer}/{seed}")
        documents, settings = generate.scenario(seed, layer)
        lag = {
            "lag_s": dice.choice((0.05, 0.3, 1.0)),
            "refusals": dice.choice((0.0, 0.1)),
            "losses": dice.choice((0.0, 0.1)),
        }
        world = LiveWorld(seed=seed, config=parse(settings), tick_s=0.02, in_disorder=True, **lag)
        await world.begin()
        await play(world, documents, dice)
        retries = not _refuses_pods(documents)
        if not await world.comes_to_rest(600, timers=True, retries=retries):
            await world.end()
            return [] if _restarts_without_end(documents) else ["it does not come to rest"]
        found = broken(world)
        before = left_behind(world)
        await world.restart()
        if not await world.comes_to_rest(600, timers=True, retries=retries):
            found.append("it does not come to rest after one more restart")
        after = left_behind(world)
        if before != after:
            gone, new = [one for one in before if one not in after], [one for one in after if one not in before]
            found.append(f"one more restart changes {gone} to {new} (I5)")
        world.plane.scheduler.engine.state.validate()  # type: ignore[union-attr]
        await world.end()
        return found

    return in_virtual_time(main)


@pytest.mark.parametrize("layer", LAYERS)
def test_i5_restarts_on_a_cluster_that_answers_late(layer: str) -> None:
    assert restarted(layer, 1) == []


@pytest.mark.soak
@pytest.mark.parametrize("layer", LAYERS)
def test_i5_restarts_on_a_cluster_that_answers_late_for_long(layer: str, rounds: Iterator[int]) -> None:
    found = {seed: why for seed in rounds if (why := restarted(layer, seed))}
    assert found == {}
