"""The live control plane on a cluster that answers late: the same rules as in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine

import pytest

from enbloc import config as configs
from enbloc.api.meta import Ref, annotations_of, name_of
from enbloc.api.writes import BindPod, Create, Delete, EmitEvent, EvictPod, Patch, Refused, Write
from enbloc.cluster.embedded.api.pods import node_of
from enbloc.config import Config, parse
from support import manifests as m
from support.answers import waits_because
from support.live_cluster import LiveWorld, in_virtual_time


def run(main: Callable[[], Coroutine[None, None, None]]) -> None:
    in_virtual_time(main)


def gangs_of(world: LiveWorld) -> dict[str, Counter[bool]]:
    """By gang: how many members are bound, and how many are not."""
    found: dict[str, Counter[bool]] = {}
    for one in world.pods():
        gang = annotations_of(one).get("scheduling.k8s.io/group-name", "")
        found.setdefault(gang, Counter())[bool(node_of(one))] += 1
    return found


def test_a_job_runs_through_its_whole_life() -> None:
    async def main() -> None:
        world = LiveWorld(m.node("n1", 8), m.job("train", m.role("w", 3, run_time="5s")))
        await world.begin()
        await world.settle()
        [ran] = world.store.list("Job.batch.volcano.sh")[0]
        assert ran["status"]["state"]["phase"] == "Completed"
        assert Counter(type(write).__name__ for write in world.cluster.writes)["BindPod"] == 3
        await world.end()

    run(main)


def test_g11_the_binding_that_commits_goes_after_the_others_were_answered() -> None:
    async def main() -> None:
        world = LiveWorld(m.node("n1", 30), m.job("train", m.role("w", 20)), lag_s=0.1)
        await world.begin()
        await world.settle()
        binds = world.binds()
        assert len(binds) == 20
        assert ["enbloc.dev/committed" in write.annotations for write in binds] == [False] * 19 + [True]
        await world.end()

    run(main)


def test_nothing_is_created_twice_while_echoes_are_late() -> None:
    """A controller that is asked again before its pods came back would make them again."""

    async def main() -> None:
        jobs = [m.job(f"j{i}", m.role("w", 5)) for i in range(6)]
        world = LiveWorld(m.node("n1", 40), *jobs, lag_s=0.3)
        refused: list[Write] = []
        execute = world.store.execute

        def watched(write: Write) -> m.Obj | None:
            try:
                return execute(write)
            except Refused:
                refused.append(write)
                raise

        world.store.execute = watched  # type: ignore[method-assign]
        await world.begin()
        await world.settle()
        assert len(world.bound()) == 30
        assert not [write for write in refused if isinstance(write, Create | BindPod)]
        await world.end()

    run(main)


def test_cycles_run_while_writes_are_under_way() -> None:
    """Room that was given in one cycle is not given again in the next, though nothing has come back (G5)."""

    async def main() -> None:
        world = LiveWorld(m.node("n1", 4), lag_s=2.0)
        await world.begin()
        for i in range(8):
            for obj in m.gang(f"g{i}", 2):
                world.store.create(obj)
            await asyncio.sleep(0.2)
        await world.settle()
        assert len(world.bound()) == 4
        assert all(counts in (Counter({True: 2}), Counter({False: 2})) for counts in gangs_of(world).values())
        assert len(world.binds()) == 4
        await world.end()

    run(main)


def test_k10_a_refused_binding_is_tried_again_and_not_in_a_loop() -> None:
    async def main() -> None:
        world = LiveWorld(m.node("n1", 8), *m.gang("g", 3))
        tried: list[str] = []

        def refuse(write: Write) -> Refused | None:
            if isinstance(write, BindPod) and write.name == "g-1":
                tried.append(write.name)
                return Refused(500, "InternalError", "no") if world.loop.time() < 20 else None
            return None

        world.cluster.refuse = refuse
        await world.begin()
        await asyncio.sleep(10)
        assert 3 < len(tried) < 20
        assert "g-2" not in world.bound(), "it commits, and was held back"
        await world.settle()
        assert sorted(world.bound()) == ["g-0", "g-1", "g-2"]
        await world.end()

    run(main)


def test_g10_why_a_gang_waits_is_said_once_and_withdrawn() -> None:
    async def main() -> None:
        world = LiveWorld(m.node("n1", 2), *m.gang("g", 3))
        await world.begin()
        await world.settle()
        [waits] = world.store.list("PodGroup.scheduling.volcano.sh")[0]
        conditions = {one["type"]: one for one in waits["status"]["conditions"]}
        assert conditions["Unschedulable"]["status"] == "True"
        assert all(pod["status"]["conditions"][0]["reason"] == "Unschedulable" for pod in world.pods())
        world.store.create(m.node("n2", 2))
        await world.settle()
        [started] = world.store.list("PodGroup.scheduling.volcano.sh")[0]
        conditions = {one["type"]: one for one in started["status"]["conditions"]}
        assert conditions["Unschedulable"]["status"] == "False"
        said = [write for write in world.cluster.writes if isinstance(write, Patch) and write.ref.kind == "Pod"]
        assert len(said) == 3
        await world.end()

    run(main)


def test_an_event_says_that_a_gang_was_bound_though_its_conditions_do_not_change() -> None:
    """Also of a gang that waited for a moment, and never reported that it did."""

    async def main() -> None:
        world = LiveWorld(m.node("n1", 4), m.job("at-once", m.role("w", 2)), *m.gang("waits", 3))
        await world.begin()
        await asyncio.sleep(0.1)
        world.store.create(m.node("n2", 4))
        await world.settle()
        answer = {
            write.ref.name.partition("-0")[0]: write.message
            for write in world.cluster.writes
            if isinstance(write, EmitEvent)
            and write.reason == "GangScheduled"
            and write.ref.kind.startswith("PodGroup")
        }
        assert len(answer) == 2, answer
        assert all("pods bound together" in message for message in answer.values())
        await world.end()

    run(main)


def test_what_is_said_of_a_gang_that_starts_at_once_is_not_written() -> None:
    async def main() -> None:
        world = LiveWorld(m.node("n1", 40))
        await world.begin()
        for obj in m.gang("g", 20):  # as they come, there are too few of them
            world.store.create(obj)
            await asyncio.sleep(0.01)
        await world.settle()
        assert len(world.bound()) == 20
        patches = [write for write in world.cluster.writes if isinstance(write, Patch)]
        assert [write.ref.kind for write in patches if write.ref.kind == "Pod"] == []
        warnings = [write for write in world.cluster.writes if isinstance(write, EmitEvent) and write.type == "Warning"]
        assert not warnings
        await world.end()

    run(main)


def _native_gang(name: str, count: int) -> list[m.Obj]:
    policy = {"gang": {"minCount": count}}
    return [m.native_podgroup(name, policy, "v1alpha2"), *m.native_pods(name, count)]


@pytest.mark.parametrize("gang, before", [(m.gang, 1), (_native_gang, 0)])
def test_a_gang_that_starts_at_once_costs_one_status_write_before_its_bindings_at_most(
    gang: Callable[[str, int], list[m.Obj]], before: int
) -> None:
    """Nothing is written that says what is there already, or that is outdated when it arrives."""

    async def main() -> None:
        nodes = [m.node(f"n{at}", 100) for at in range(3)]
        world = LiveWorld(*nodes, *(obj for at in range(12) for obj in gang(f"g{at}", 20)), lag_s=0.05)
        await world.begin()
        await world.settle()
        assert len(world.bound()) == 240
        writes = world.cluster.writes
        last = max(at for at, write in enumerate(writes) if isinstance(write, BindPod))
        patched = [
            [write.ref.name for write in some if isinstance(write, Patch) and write.subresource == "status"]
            for some in (writes[:last], writes[last:])
        ]
        groups = [f"g{at}" for at in range(12)]
        assert sorted(name for name in patched[0] if name in groups) == sorted(groups * before)
        assert sorted(name for name in patched[1] if name in groups) == sorted(groups)  # that they run
        await world.end()

    run(main)


def test_a_graceful_end_finishes_what_is_under_way() -> None:
    async def main() -> None:
        world = LiveWorld(m.node("n1", 40), *m.gang("g", 20), lag_s=0.5)
        await world.begin()
        while not world.binds():
            await asyncio.sleep(0.01)
        await world.end()
        assert len(world.bound()) == 20

    run(main)


def test_who_lost_the_lead_writes_nothing_more() -> None:
    async def main() -> None:
        world = LiveWorld(m.node("n1", 400, pods=500), *m.gang("g", 200), lag_s=0.5)
        await world.begin()
        while not world.binds():
            await asyncio.sleep(0.01)
        world.plane.stop_writing()
        await asyncio.sleep(1.0)
        done = len(world.cluster.writes)
        await asyncio.sleep(10.0)
        assert len(world.cluster.writes) == done < 200
        await world.cluster.close()

    run(main)


@pytest.mark.parametrize("seed", range(12))
def test_i1_i2_i3_hold_under_lag_refusals_lost_answers_and_restarts(seed: int) -> None:
    """Random gangs on too little room; in the end every gang that could start did, whole, and once."""

    async def main() -> None:
        dice = random.Random(seed)
        world = LiveWorld(
            *(m.node(f"n{i}", dice.randint(2, 6)) for i in range(5)),
            seed=seed,
            lag_s=dice.choice((0.01, 0.1, 1.0)),
            refusals=dice.choice((0.0, 0.05, 0.3)),
            losses=dice.choice((0.0, 0.1, 0.3)),
        )
        await world.begin()
        for i in range(12):
            size = dice.randint(1, 8)
            run_time = f"{dice.randint(1, 9)}s"
            world.store.create(m.job(f"j{i}", m.role("w", size, cpu=dice.randint(1, 2), run_time=run_time)))
            await asyncio.sleep(dice.uniform(0, 2))
            if dice.random() < 0.15:
                await world.restart()
            if dice.random() < 0.1:
                world.store.delete(Ref("Job.batch.volcano.sh", "default", f"j{i}"))
        await world.settle(600)
        state = {name_of(one): one["status"]["state"]["phase"] for one in world.store.list("Job.batch.volcano.sh")[0]}
        for name, counts in gangs_of(world).items():
            assert not (counts[True] and counts[False]), f"{name} is partly started: {counts}"
        assert set(state.values()) <= {"Completed", "Pending", "Inqueue"}, state
        uids = Counter(write.uid for write in world.binds())
        assert not [uid for uid, times in uids.items() if times > 1]
        world.plane.scheduler.engine.state.validate()  # type: ignore[union-attr]
        await world.end()

    run(main)


def test_g10_an_object_made_anew_under_its_name_says_why_its_gang_waits() -> None:
    async def main() -> None:
        world = LiveWorld(m.node("n1", 1), m.sigs_podgroup("k", 2), *m.labelled_pods("k", 2))
        await world.begin()
        await world.settle()
        ref = Ref("PodGroup.scheduling.sigs.k8s.io", "default", "k")
        world.store.delete(ref)
        world.store.create(m.sigs_podgroup("k", 2))
        await world.settle()
        anew = world.store.get(*ref)
        assert anew is not None
        assert "Insufficient cpu" in waits_because(anew)
        await world.end()

    run(main)


@pytest.mark.parametrize("seed", range(4))
def test_g10_what_was_said_together_with_a_phase_is_withdrawn(seed: int) -> None:
    """The phase was refused at first; when it is written there are no pods yet. Its echo may come before its answer."""

    async def main() -> None:
        world = LiveWorld(m.node("n1", 4), m.job("j", m.role("w", 2, start_delay="2s")), seed=seed, lag_s=0.05)
        refused: list[Write] = []

        def refuse(write: Write) -> Refused | None:
            if refused or not (isinstance(write, Patch) and write.patch.get("status", {}).get("phase") == "Inqueue"):
                return None
            refused.append(write)
            return Refused(503, "ServiceUnavailable", "no")

        world.cluster.refuse = refuse
        await world.begin()
        await world.settle()
        [group] = world.store.list("PodGroup.scheduling.volcano.sh")[0]
        assert len(world.bound()) == 2
        assert waits_because(group) == ""
        await world.end()

    run(main)


def test_g10_what_is_said_last_of_an_object_counts_whichever_gang_it_is_of_by_then() -> None:
    """Its owner left a SchedulingSpec behind before its condition said why the owner's gang waits."""

    async def main() -> None:
        world = LiveWorld(
            m.CRDJOB_DEFINITION, m.node("n1", 2), m.crdjob(), m.scheduling_spec(minimum=3), *m.owned(m.pod("c-0"))
        )
        await world.begin()
        await asyncio.sleep(0.2)
        ref = Ref("SchedulingSpec.arbitrator.incubator.k8s.io", "default", "c")
        world.store.patch(ref, {"metadata": {"ownerReferences": None}})
        await world.settle()
        left = world.store.get(*ref)
        assert left is not None
        assert "it has no controlling owner" in waits_because(left)
        await world.end()

    run(main)


def test_d3_what_an_earlier_wave_lost_waits_while_the_bindings_of_the_next_are_under_way() -> None:
    async def main() -> None:
        later = m.role("b", 2) | {"dependsOn": {"name": ["a"]}}
        world = LiveWorld(m.node("n1", 4), m.job("j", m.role("a", 2), later))
        execute = world.cluster.execute

        async def slowly(write: Write) -> m.Obj | None:
            if isinstance(write, BindPod) and write.name.startswith("j-b-"):
                await asyncio.sleep(10)
            return await execute(write)

        world.cluster.execute = slowly  # type: ignore[method-assign]
        await world.begin()
        await asyncio.sleep(2)
        assert sorted(world.bound()) == ["j-a-0", "j-a-1"]
        world.store.create(m.pod("x", 1, scheduler="other", nodeName="n1"))
        world.store.delete(Ref("Pod", "default", "j-a-0"), grace_s=0)
        await asyncio.sleep(2)
        world.check()
        await world.settle()
        assert sorted(world.bound()) == ["j-a-1", "j-b-0", "j-b-1", "x"]
        world.store.delete(Ref("Pod", "default", "x"), grace_s=0)
        await world.settle()
        assert sorted(world.bound()) == ["j-a-0", "j-a-1", "j-b-0", "j-b-1"]
        await world.end()

    run(main)


def _config(**arguments: int) -> Config:
    named = ["enqueue", "allocate", "backfill", "preempt"]
    return configs.parse({"actions": [*named, {"name": "reserve", "arguments": arguments}]})


def test_p3_no_pod_is_evicted_before_the_claim_is_written() -> None:
    async def main() -> None:
        low = [m.pod(f"low-{index}", 1, priority="low") for index in range(3)]
        classes = [m.priority_class("low", 1), m.priority_class("high", 9)]
        world = LiveWorld(*classes, m.node("n1", 3), *low, lag_s=0.05)
        await world.begin()
        await world.settle()
        refused: list[Write] = []

        def refuse(write: Write) -> Refused | None:
            if isinstance(write, Patch) and "enbloc.dev/claim-" in str(write.patch) and not refused:
                refused.append(write)
                return Refused(500, "InternalError", "no")
            return None

        world.cluster.refuse = refuse
        for obj in m.gang("vip", 3, priority="high"):
            world.store.create(obj)
        await world.settle()
        assert [one for one in world.cluster.writes if isinstance(one, EvictPod)] == []
        await asyncio.sleep(40)  # those whose eviction was held back are asked again after 30 s
        await world.settle()
        writes = [one for one in world.cluster.writes if isinstance(one, EvictPod) or "enbloc.dev/claim-" in str(one)]
        assert len(refused) == 1
        assert isinstance(writes[0], Patch), "the claim comes first"
        assert Counter(type(one) for one in writes)[EvictPod] == 3, "and no pod is evicted twice"
        assert sorted(world.bound()) == ["vip-0", "vip-1", "vip-2"]
        await world.end()

    run(main)


def test_r7_a_reservation_that_could_not_be_taken_off_is_taken_off_later() -> None:
    async def main() -> None:
        reserve = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 1, "reservedNodePercent": 100}}
        config = parse({"actions": [{"name": "enqueue"}, {"name": "allocate"}, reserve]})
        world = LiveWorld(m.node("n1", 1), m.pod("a", 1, run_time="20s"), *m.gang("big", 1), config=config)
        refused: list[Write] = []
        reserved_nodes: set[float | None] = set()

        def refuse(write: Write) -> Refused | None:
            world.plane.measure()
            reserved_nodes.add(world.plane._metrics.registry.get_sample_value("enbloc_reserved_nodes"))
            if isinstance(write, Patch) and "'enbloc.dev/claim-reserve': None" in str(write.patch) and not refused:
                refused.append(write)
                return Refused(503, "Bad", "no")
            return None

        world.cluster.refuse = refuse
        await world.begin()
        await world.settle()
        assert list(world.bound()) == ["a", "big-0"]
        assert refused
        assert reserved_nodes == {0, 1}, "a gauge shows them"
        group = world.store.get("PodGroup.scheduling.volcano.sh", "default", "big")
        assert group is not None
        assert "enbloc.dev/claim-" not in annotations_of(group)
        await world.end()

    run(main)


@pytest.mark.parametrize("code", [503, 504])
def test_p3_a_claim_that_could_not_be_taken_off_is_taken_off_later(code: int) -> None:
    async def main() -> None:
        classes = [m.priority_class("low", 1), m.priority_class("high", 9)]
        world = LiveWorld(*classes, m.node("n1", 1), m.pod("low", 1, priority="low", stop_delay="2s"))
        await world.begin()
        await world.settle()
        refused: list[Write] = []

        def refuse(write: Write) -> Refused | None:
            if isinstance(write, Patch) and "'enbloc.dev/claim-preempt': None" in str(write.patch) and not refused:
                refused.append(write)
                return Refused(code, "Bad", "no")
            return None

        world.cluster.refuse = refuse
        for obj in m.gang("vip", 1, group_priority="high"):
            world.store.create(obj)
        await world.settle()
        assert list(world.bound()) == ["vip-0"]
        assert refused
        group = world.store.get("PodGroup.scheduling.volcano.sh", "default", "vip")
        assert group is not None
        assert "enbloc.dev/claim-" not in annotations_of(group)
        await world.end()

    run(main)


def test_p3_an_eviction_that_is_refused_leaves_its_pod_alone_for_a_while() -> None:
    async def main() -> None:
        classes = [m.priority_class("low", 1), m.priority_class("high", 9)]
        world = LiveWorld(*classes, m.node("n1", 1), m.pod("low", 1, priority="low"))
        await world.begin()
        await world.settle()
        tried: list[float] = []

        def refuse(write: Write) -> Refused | None:
            if isinstance(write, EvictPod):
                tried.append(world.loop.time())
                return Refused(403, "Forbidden", "no")
            return None

        world.cluster.refuse = refuse
        world.store.create(m.pod("vip", 1, priority="high"))
        await asyncio.sleep(20)
        assert len(tried) == 1
        assert list(world.bound()) == ["low"]
        world.store.delete(Ref("Pod", "default", "low"))
        await world.settle()
        assert list(world.bound()) == ["vip"]
        await world.end()

    run(main)


def test_r8_a_gang_does_not_wait_until_its_expected_start_is_written() -> None:
    async def main() -> None:
        config = _config(starvingJobTimeThreshold=1, reservedNodePercent=100)
        first = m.pod("first", 1, run_time="10s", annotations={"enbloc.dev/expected-duration": "10s"})
        world = LiveWorld(m.node("n1", 2), first, config=config)

        def refuse(write: Write) -> Refused | None:
            answer = isinstance(write, Patch) and "enbloc.dev/expected-start" in str(write.patch)
            return Refused(500, "InternalError", "no") if answer else None

        world.cluster.refuse = refuse
        await world.begin()
        await asyncio.sleep(1)
        for obj in m.gang("big", 2):
            world.store.create(obj)
        await asyncio.sleep(8)
        assert "big-0" not in world.bound()
        await asyncio.sleep(2)
        assert {"big-0", "big-1"} <= world.bound().keys(), "it is bound as soon as there is room"
        await world.end()

    run(main)


def _refusing(world: LiveWorld, until_s: float, *kinds: type[Write]) -> None:
    """The API server has a bad time, longer than anybody's patience."""

    def refuse(write: Write) -> Refused | None:
        bad = isinstance(write, kinds) and world.loop.time() < until_s
        return Refused(503, "ServiceUnavailable", "no") if bad else None

    world.cluster.refuse = refuse


def test_a_status_that_was_refused_for_a_while_is_written_later() -> None:
    """Though nothing happens any more to what it is about."""

    async def main() -> None:
        world = LiveWorld(
            m.node("n1", 8),
            *m.gang("g", 2, start_delay="5s"),
            m.sigs_podgroup("k", 2),
            *m.labelled_pods("k", 2, start_delay="5s"),
        )
        await world.begin()
        await asyncio.sleep(3)
        _refusing(world, 20.0, Patch)
        await asyncio.sleep(60)
        await world.settle()
        queue = world.store.get("Queue.scheduling.volcano.sh", "", "default")
        assert queue is not None
        assert queue["status"]["running"] == 1
        for kind, name in (("PodGroup.scheduling.volcano.sh", "g"), ("PodGroup.scheduling.sigs.k8s.io", "k")):
            group = world.store.get(kind, "default", name)
            assert group is not None
            assert (group["status"]["phase"], group["status"]["running"]) == ("Running", 2)
        await world.end()

    run(main)


@pytest.mark.parametrize("refused", [Patch, Delete], ids=["what-it-asks-for", "its-own-end"])
def test_v2_a_command_is_obeyed_and_goes_though_that_was_refused_for_a_while(refused: type[Write]) -> None:
    async def main() -> None:
        world = LiveWorld(m.node("n1", 8), m.queue("q"), m.job("j", m.role("w", 2)))
        await world.begin()
        await world.settle()
        _refusing(world, world.loop.time() + 20, refused)
        for kind, name, action in (("Job", "j", "AbortJob"), ("Queue", "q", "CloseQueue")):
            command = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "action": action}
            metadata = {"name": f"c-{name}", "namespace": "default"}
            world.store.create(command | {"metadata": metadata, "target": {"kind": kind, "name": name}})
        await asyncio.sleep(60)
        await world.settle()
        [aborted] = world.store.list("Job.batch.volcano.sh")[0]
        assert aborted["status"]["state"]["phase"] == "Aborted"
        closed = world.store.get("Queue.scheduling.volcano.sh", "", "q")
        assert closed is not None
        assert closed["status"]["state"] == "Closed"
        assert world.store.list("Command.bus.volcano.sh")[0] == []
        assert world.pods() == []
        await world.end()

    run(main)


def test_pods_too_many_go_though_that_was_refused_for_a_while() -> None:
    async def main() -> None:
        world = LiveWorld(m.node("n1", 8), m.job("j", m.role("w", 4, 1)))
        await world.begin()
        await world.settle()
        _refusing(world, world.loop.time() + 20, Delete)
        tasks = [m.role("w", 1, 1)]
        world.store.patch(Ref("Job.batch.volcano.sh", "default", "j"), {"spec": {"tasks": tasks, "minAvailable": 1}})
        await asyncio.sleep(60)
        await world.settle()
        assert [name_of(one) for one in world.pods()] == ["j-w-0"]
        await world.end()

    run(main)
