"""Records of claims that the API refuses to write or to remove, on the live path (S2, R7, K8)."""

from __future__ import annotations

import asyncio

import pytest

from enbloc.api.koordinator import TIMEOUT
from enbloc.api.meta import annotations_of
from enbloc.api.writes import Patch, Refused, Write
from enbloc.config import parse
from support import manifests as m
from support.live_cluster import LiveWorld, in_virtual_time


@pytest.mark.parametrize("code", [503, 504])
def test_k8_the_record_of_a_clock_that_could_not_be_removed_is_removed_later(code: int) -> None:
    """The marks of the timeout come back before the refusal: nothing else happens to the gang afterwards."""

    async def main() -> None:
        gang = m.koordinator_gang("a", 2, groups=["default/a", "default/absent"], wait="5s")
        world = LiveWorld(m.node("n1"), *gang)
        refused: list[Write] = []

        def refuse(write: Write) -> Refused | None:
            if not isinstance(write, Patch) or "'enbloc.dev/claim-hold': None" not in str(write.patch) or refused:
                return None
            refused.append(write)
            return Refused(code, "Bad", "no")

        world.cluster.refuse = refuse
        await world.begin()
        assert await world.comes_to_rest(120, timers=True)
        assert refused
        assert all(annotations_of(pod).get(TIMEOUT) == "true" for pod in world.pods())
        assert [key for pod in world.pods() for key in annotations_of(pod) if "enbloc.dev/claim-" in key] == []
        await world.end()

    in_virtual_time(main)


@pytest.mark.parametrize("killed", [False, True])
def test_r7_the_record_of_a_pod_that_was_bound_meanwhile_is_removed_later(killed: bool) -> None:
    """A pod that is a gang of its own carries its record, also when it has a node: by the same scheduler, or by the one
    that starts after it was killed."""

    async def main() -> None:
        reserve = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 1, "reservedNodePercent": 100}}
        config = parse({"actions": [{"name": "allocate"}, reserve]})
        world = LiveWorld(m.node("n1", 1), m.pod("a", 1, run_time="20s"), m.pod("b", 1, at="1s"), config=config)
        refused: list[Write] = []

        def refuse(write: Write) -> Refused | None:
            is_removal = isinstance(write, Patch) and "'enbloc.dev/claim-reserve': None" in str(write.patch)
            if not is_removal or (refused and not killed):
                return None
            refused.append(write)
            return Refused(503, "Bad", "no")

        world.cluster.refuse = refuse
        await world.begin()
        await asyncio.sleep(40)
        if killed:
            assert [key for pod in world.pods() for key in annotations_of(pod) if "enbloc.dev/claim-" in key]
            world.cluster.refuse = lambda write: None
            await world.restart()
        assert await world.comes_to_rest(120, timers=True)
        assert refused
        assert world.bound().keys() == {"a", "b"}
        assert [key for pod in world.pods() for key in annotations_of(pod) if "enbloc.dev/claim-" in key] == []
        await world.end()

    in_virtual_time(main)
