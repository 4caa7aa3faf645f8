"""The rules of write plans, over both transports: what holds in virtual time holds on a cluster that answers late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import BindPod, EmitEvent, Patch, Refused, Write
from enbloc.engine.decisions import Enqueue
from enbloc.gangs.model import GangKey
from enbloc.runtime.executor import TRIES, Executor
from enbloc.runtime.live_transport import LiveTransport
from enbloc.runtime.metrics import Metrics
from enbloc.runtime.task_group import TaskGroup
from enbloc.runtime.transport import ImmediateTransport
from enbloc.runtime.write_plans import Step, WritePlan
from enbloc.runtime.write_queue import WriteQueue
from support.live_cluster import in_virtual_time

A, B = GangKey("volcano", "default", "a"), GangKey("volcano", "default", "b")


class Api:
    """Accepts every write but those of `refusals`, by name: each code refuses one attempt."""

    def __init__(self, **refusals: list[int]) -> None:
        self.accepted: list[str] = []
        self.attempts: list[str] = []
        self._refusals = refusals

    def execute(self, write: Write) -> Obj | None:
        name = _name(write)
        self.attempts.append(name)
        codes = self._refusals.get(name)
        if codes:
            raise Refused(codes.pop(0), "Reason", "no")
        self.accepted.append(name)
        return None


class LateApi(Api):
    async def execute(self, write: Write) -> Obj | None:  # type: ignore[override]
        await asyncio.sleep(0.01)
        return super().execute(write)


def _name(write: Write) -> str:
    return write.ref.name if isinstance(write, Patch) else write.name if isinstance(write, BindPod) else "event"


def patch(name: str) -> Patch:
    return Patch(Ref("Pod", "default", name), {}, uid=name)


def bind(name: str) -> BindPod:
    return BindPod("default", name, name, "n1")


def plan(*steps: Step, gangs: tuple[GangKey, ...] = (A,), **fields: bool) -> WritePlan:
    return WritePlan(Enqueue(gangs[0]), gangs, steps, **fields)


class Run:
    """What came of plans."""

    def __init__(self) -> None:
        self.refused: list[str | None] = []
        self.events: list[EmitEvent] = []

    def executor(self, transport: ImmediateTransport | LiveTransport) -> Executor:
        return Executor(
            transport,
            lambda plan, write: self.refused.append(None if write is None else _name(write)),
            self.events.append,
        )


Scenario = Callable[[Executor], None]


def immediately(api: Api, scenario: Scenario) -> Run:
    run = Run()
    scenario(run.executor(ImmediateTransport(api)))  # type: ignore[arg-type]
    return run


def late(api: Api, scenario: Scenario) -> Run:
    run = Run()

    async def main() -> None:
        late_api = LateApi()
        late_api.__dict__ = api.__dict__
        tasks = TaskGroup()
        queue = WriteQueue(late_api, Metrics())  # type: ignore[arg-type]
        executor = run.executor(LiveTransport(late_api, queue, tasks))  # type: ignore[arg-type]
        scenario(executor)
        while executor.tasks:
            await asyncio.sleep(1)

    in_virtual_time(main)
    return run


transports = pytest.mark.parametrize("carry_out", [immediately, late])
CarryOut = Callable[[Api, Scenario], Run]


@transports
def test_a_step_starts_when_the_one_before_is_answered(carry_out: CarryOut) -> None:
    api = Api()
    steps = (Step((bind("a"), bind("b"))), Step((bind("c"),)), Step((patch("d"),)))
    run = carry_out(api, lambda executor: executor.take(plan(*steps)))
    assert sorted(api.accepted[:2]) == ["a", "b"]
    assert api.accepted[2:] == ["c", "d"]
    assert run.refused == []


@transports
def test_g11_what_is_sent_only_if_all_was_accepted_is_held_back_and_counts_as_refused(carry_out: CarryOut) -> None:
    api = Api(b=[500])
    steps = (Step((bind("a"), bind("b"))), Step((bind("commit"),), if_accepted=True))
    run = carry_out(api, lambda executor: executor.take(plan(*steps)))
    assert api.accepted == ["a"]
    assert run.refused == ["b", "commit"]


@transports
def test_a_refusal_that_may_be_has_no_consequence(carry_out: CarryOut) -> None:
    api = Api(volume=[404])
    event = EmitEvent(Ref("Pod", "default", "x"), "x", "Normal", "Bound", "")
    steps = (
        Step((patch("volume"),), may_fail=True),
        Step((bind("a"),), if_accepted=True),
        Step((event,), if_accepted=True, may_fail=True),
    )
    run = carry_out(api, lambda executor: executor.take(plan(*steps)))
    assert (api.accepted, run.refused) == (["a"], [])
    assert [(one.reason, one.ref.name) for one in run.events] == [("Scheduled", "a"), ("Bound", "x")]


@transports
@pytest.mark.parametrize("base", [plan(Step((patch("base"),)), is_base=True), plan(is_base=True, has_no_object=True)])
def test_d5_plans_that_rely_on_a_base_that_failed_are_dropped(carry_out: CarryOut, base: WritePlan) -> None:
    """Whatever comes between them, and not those of other gangs, nor those that do not rely on it."""
    api = Api(base=[500])

    def scenario(executor: Executor) -> None:
        executor.begin_cycle()
        executor.take(base)
        executor.take(plan(Step((patch("between"),))))
        executor.take(plan(Step((bind("a"),)), needs_base=True))
        executor.take(plan(Step((bind("both"),)), gangs=(B, A), needs_base=True, is_base=True))
        executor.take(plan(Step((bind("b"),)), gangs=(B,), needs_base=True))

    run = carry_out(api, scenario)
    assert sorted(api.accepted) == ["between"]
    assert sorted(run.refused, key=str) == sorted([None if base.has_no_object else "base", "a", "both", "b"], key=str)


@transports
def test_d5_a_base_that_failed_in_an_earlier_cycle_holds_nothing_back(carry_out: CarryOut) -> None:
    api = Api(base=[500])

    def scenario(executor: Executor) -> None:
        executor.begin_cycle()
        executor.take(plan(Step((bind("before"),)), needs_base=True))
        executor.take(plan(Step((patch("base"),)), is_base=True))

    def again(executor: Executor) -> None:
        scenario(executor)
        executor.begin_cycle()
        executor.take(plan(Step((bind("a"),)), needs_base=True))

    if carry_out is immediately:
        run = carry_out(api, again)
        assert (api.accepted, run.refused) == (["before", "a"], ["base"])
    else:  # the second cycle ran before the failure was known
        run = carry_out(api, again)
        assert (api.accepted, run.refused) == (["before"], ["base", "a"])


@transports
def test_r8_no_binding_waits_for_a_plan_that_only_informs(carry_out: CarryOut) -> None:
    api = Api(expected=[500] * (TRIES - 1))

    def scenario(executor: Executor) -> None:
        executor.take(plan(Step((patch("expected"),), may_fail=True), informs=True))
        executor.take(plan(Step((bind("a"),))))

    run = carry_out(api, scenario)
    assert run.refused == []
    assert api.accepted == (["a"] if carry_out is immediately else ["a", "expected"])
    assert api.attempts.count("expected") == (1 if carry_out is immediately else TRIES)
