"""Usage over time (G12): what is charged to which account, which records are written, and what a gang says of it."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.config import parse
from enbloc.config.model import Fair
from enbloc.engine.decisions import Decision, RecordUsage
from enbloc.engine.plugins.fair_share import OF_QUEUE, FairShare
from enbloc.engine.queueing import usage as module
from enbloc.engine.queueing.usage import Usage
from enbloc.engine.tables.accounts import WHOLE, Account
from enbloc.engine.tables.resources import CPU, PODS
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.hints import USER
from enbloc.gangs.usage_records import AccountRecord, UsageRecord
from enbloc.units import SECOND
from support import manifests as m
from support.direct_scheduler import DirectScheduler
from support.simulation import NO_EVICTIONS, flat

HOUR = 3600 * SECOND


class Scene:
    """Two nodes of 4 cpu; gangs are PodGroups in queues `q` and `r`."""

    def __init__(self, *objects: Any, plans: bool = False, **settings: Any) -> None:
        self.direct = DirectScheduler(parse(NO_EVICTIONS))
        for one in flat([m.queue(name) for name in "qr"], [m.node(name) for name in "ab"], *objects):
            self.direct.put(one)
        self.state = self.direct.engine.state
        self.state.settle()
        self.decided: list[Decision] = []
        self.fair = FairShare(Fair(half_life_ns=HOUR, **settings))
        self.usage = Usage(self.state, self.fair, self.decided.append, plans=plans)

    def gang(self, name: str) -> GangState:
        return next(gang for gang in self.state.gangs.values() if gang.spec.title.endswith(f"/{name}"))

    def cycle(self, now_s: float = 0) -> dict[str, list[str]]:
        """All gangs are read; the records that are written: queue → accounts."""
        self.decided.clear()
        self.usage.cycle_begins(int(now_s * SECOND))
        for gang in self.state.gangs.values():
            self.usage.gang_read(gang)
        self.usage.settle()
        self.usage.publish()
        self.state.events.clear()
        return {one.queue: sorted(one.record.accounts) for one in self.records()}

    def records(self) -> list[RecordUsage]:
        return [one for one in self.decided if isinstance(one, RecordUsage)]

    def written(self) -> None:
        """The records that were written come back as events."""
        for one in self.records():
            self.usage.observe(one.queue, one.record)

    def account(self, name: str, queue: str = "q") -> Account:
        return self.fair.accounts[queue][name]

    def rate(self, name: str, queue: str = "q") -> float:
        return self.account(name, queue).rate / WHOLE


def gang(name: str, queue: str = "q", count: int = 2, namespace: str = "default", **fields: Any) -> list[m.Obj]:
    return m.gang(name, count, queue=queue, namespace=namespace, **fields)


def test_g12_charged_are_our_pods_on_nodes_that_have_not_ended() -> None:
    leaving = m.pod("g-2", group="g", nodeName="a")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ended = {**m.pod("g-3", group="g", nodeName="a"), "status": {"phase": "Succeeded"}}
    foreign = m.pod("g-4", 3, group="g", nodeName="b", scheduler="kai")
    scene = Scene(
        m.podgroup("g", 1, queue="q"), m.pod("g-0", group="g", nodeName="a"), m.pod("g-1", group="g"), leaving, ended,
        foreign,
    )  # fmt: skip
    scene.cycle()
    assert scene.account("default").used[CPU] == 2000
    assert scene.account("default").used[PODS] == 2
    assert scene.account("default").gangs == 1


def test_g12_a_gang_is_charged_once_whatever_changes() -> None:
    scene = Scene(gang("g", nodeName="a"))
    scene.cycle()
    assert (scene.account("default").used[CPU], scene.rate("default")) == (2000, 0.25)
    scene.cycle(1)
    assert (scene.account("default").used[CPU], scene.account("default").gangs) == (2000, 1)
    scene.direct.put({**m.pod("g-0", group="g", nodeName="a"), "status": {"phase": "Failed"}})
    scene.cycle(2)
    assert (scene.account("default").used[CPU], scene.rate("default")) == (1000, 0.125)
    scene.direct.put(m.podgroup("g", 2, queue="r"))
    scene.cycle(3)
    assert scene.account("default").used == {}
    assert (scene.account("default").gangs, scene.rate("default"), scene.rate("default", "r")) == (0, 0.0, 0.125)
    gone = scene.gang("g")
    scene.usage.gang_gone(gone)
    assert (scene.account("default", "r").gangs, scene.account("default", "r").used) == (0, {})
    scene.usage.gang_gone(gone)
    assert scene.account("default", "r").gangs == 0


def test_g12_what_a_gang_binds_counts_within_the_cycle() -> None:
    scene = Scene(gang("g"))
    scene.cycle()
    assert scene.rate("default") == 0
    scene.direct.put(m.pod("g-0", group="g", nodeName="a"))
    scene.usage.note_bound(scene.gang("g"))
    assert scene.rate("default") == 0.125


def test_g12_rates_follow_the_nodes() -> None:
    scene = Scene(gang("g", nodeName="a"))
    scene.cycle()
    scene.direct.put(m.node("c", 8))
    scene.state.settle()
    scene.cycle(1)
    assert scene.rate("default") == 0.125


# ---- records


def test_g12_a_record_is_written_when_a_rate_changes_and_again_once_it_was_seen() -> None:
    scene = Scene(gang("g", nodeName="a"))
    assert scene.cycle() == {"q": ["default", "default/"]}
    assert not scene.usage.has_unwritten()
    scene.direct.put({**m.pod("g-0", group="g", nodeName="a"), "status": {"phase": "Failed"}})
    assert scene.cycle(1) == {}, "one is under way"
    assert not scene.usage.has_unwritten()
    scene.decided.clear()
    scene.usage.observe("q", UsageRecord({}))  # another one
    assert scene.cycle(2) == {}


def test_g12_the_record_that_was_written_frees_the_way_for_the_next() -> None:
    scene = Scene(gang("g", nodeName="a"))
    scene.cycle()
    first = scene.records()[0]
    assert first.record.accounts["default"] == AccountRecord(0, 0, WHOLE // 4)
    scene.direct.put({**m.pod("g-0", group="g", nodeName="a"), "status": {"phase": "Failed"}})
    scene.cycle(10)
    scene.usage.observe("q", first.record)
    assert scene.usage.has_unwritten()
    assert scene.cycle(10) == {"q": ["default", "default/"]}
    account = scene.records()[0].record.accounts["default"]
    assert (account.as_of_ns, account.rate) == (10 * SECOND, WHOLE // 8)
    assert 2.4 < account.usage_ns / SECOND < 2.5


def test_g12_a_refused_record_is_written_again() -> None:
    scene = Scene(gang("g", nodeName="a"))
    scene.cycle()
    scene.usage.refused("q")
    assert scene.usage.has_unwritten()
    assert scene.cycle(1) == {"q": ["default", "default/"]}


@pytest.mark.parametrize("by", ["user", "queue"])
def test_g12_records_from_before_the_first_cycle_count(by: str) -> None:
    scene = Scene(gang("g"), by=by)
    used = {name: AccountRecord(100 * SECOND, 0, 0) for name in (OF_QUEUE, "default")}
    scene.usage.observe("q", UsageRecord({}))
    scene.usage.observe("q", UsageRecord(used))
    scene.usage.observe("r", UsageRecord(used))
    scene.usage.observe("r", None)
    scene.cycle()
    known = {name for name, one in scene.fair.accounts["q"].items() if one.usage_ns}
    assert known == {OF_QUEUE if by == "queue" else "default"}
    assert not [one for one in scene.fair.accounts.get("r", {}).values() if one.usage_ns]
    scene.usage.observe("q", UsageRecord({"default": AccountRecord(999, 0, 0)}))
    scene.cycle(1)
    assert {one.usage_ns for one in scene.fair.accounts["q"].values() if one.usage_ns} == {100 * SECOND}


def test_g12_the_usage_of_a_queue_that_is_gone_is_forgotten() -> None:
    scene = Scene(gang("g", nodeName="a"))
    scene.cycle()
    scene.direct.delete("Queue.scheduling.volcano.sh", "q")
    scene.usage.forget("q")
    assert scene.cycle(100) == {}
    assert (scene.account("default").usage_ns, scene.rate("default")) == (0, 0.0)
    scene.direct.put(m.queue("q"))
    assert scene.cycle(200) == {"q": ["default", "default/"]}
    assert scene.account("default").usage_ns == 0


def test_g12_accounts_that_have_used_nothing_are_not_kept_in_a_record() -> None:
    scene = Scene(gang("g", nodeName="a"), gang("waits", namespace="idle"))
    scene.cycle()
    assert set(scene.records()[0].record.accounts) == {"default", "default/"}
    assert {"idle", "idle/"} < scene.fair.accounts["q"].keys(), "a gang waits"
    scene.usage.gang_gone(scene.gang("waits"))
    scene.usage.refused("q")
    scene.usage.publish()
    assert not {"idle", "idle/"} & scene.fair.accounts["q"].keys()


def test_g12_of_too_many_accounts_those_that_used_least_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ACCOUNTS", 3)
    scene = Scene(gang("g", nodeName="a"))
    used = {name: AccountRecord(number * HOUR, 0, 0) for number, name in enumerate(("x", "y", "z"), 1)}
    scene.usage.observe("q", UsageRecord(used))
    assert scene.cycle() == {"q": ["default", "default/", "z"]}
    assert {name: one.usage_ns for name, one in scene.fair.accounts["q"].items() if one.usage_ns} == {"z": 3 * HOUR}


# ---- the order of gangs


@pytest.mark.parametrize(
    ("fields", "fifo", "gangs", "is_due"),
    [
        ({}, True, 2, True),
        ({}, False, 2, False),
        ({"plans": True}, False, 2, True),
        ({}, True, 1, False),
        ({"by": "queue"}, True, 2, False),
    ],
    ids=["fifo", "not fifo", "starts are planned", "one gang waits", "by queue"],
)
def test_g12_a_cycle_is_due_when_accounts_change_places_where_the_order_decides(
    fields: dict[str, Any], fifo: bool, gangs: int, is_due: bool
) -> None:
    """Namespace `x` has used more, and nothing now; `y` uses 2 of 8 cpu, and overtakes it one day."""
    waiting = flat(*[gang("wx", namespace="x"), gang("wy", namespace="y")][:gangs])
    queue = m.queue("q", dequeueStrategy="fifo") if fifo else m.queue("q")
    scene = Scene(waiting, queue, gang("runs", namespace="y", nodeName="a"), **fields)
    scene.usage.observe("q", UsageRecord({name: AccountRecord(HOUR // 10, 0, 0) for name in ("x", "x/")}))
    scene.cycle()
    assert scene.usage.note_ranks() is is_due, "there was no order before"
    assert (scene.usage.due() is not None) is is_due
    assert not scene.usage.note_ranks()
    if not is_due:
        return
    at_ns = scene.usage.due()
    assert at_ns is not None
    assert 0 < at_ns < HOUR
    scene.usage.cycle_begins(at_ns - SECOND)
    assert not scene.usage.note_ranks()
    scene.usage.cycle_begins(at_ns + SECOND)
    assert scene.usage.note_ranks()


def test_g12_the_next_cycle_is_due_for_the_queue_whose_accounts_change_places_first() -> None:
    """In both `x` has used more and `y` uses now; in `q` it takes longer until `y` has used more."""
    waiting = [gang(f"{queue}-{name}", queue, namespace=name) for queue in "qr" for name in "xy"]
    running = [gang(f"{queue}-runs", queue, namespace="y", nodeName=node) for queue, node in ("qa", "rb")]
    due_ns = {}
    for queues in ("q", "r", "qr"):
        fifo = [m.queue(name, dequeueStrategy="fifo") if name in queues else m.queue(name) for name in "qr"]
        scene = Scene(fifo, *waiting, *running)
        for name, part in (("q", 10), ("r", 20)):
            record = UsageRecord({account: AccountRecord(HOUR // part, 0, 0) for account in ("x", "x/")})
            scene.usage.observe(name, record)
        scene.cycle()
        scene.usage.note_ranks()
        due_ns[queues] = scene.usage.due() or 0
    assert 0 < due_ns["r"] < due_ns["q"]
    assert due_ns["qr"] == due_ns["r"]


# ---- what a gang says of it


def note(scene: Scene, name: str = "waits") -> str:
    scene.cycle()
    return scene.usage.note_of(scene.gang(name))


@pytest.mark.parametrize(
    ("used", "shares", "text"),
    [
        ({"default": 3, "y": 1}, {}, "namespace default used 1.5 of its share over the last hour"),
        ({"default": 1, "y": 1}, {}, ""),
        ({"default": 1, "y": 3}, {}, ""),
        ({"default": 3}, {}, ""),  # there is no other
        ({"default": 3, "y": 1}, {"default": 3}, ""),
        ({"default": 3, "y": 1}, {"y": 3}, "namespace default used 3.0 of its share over the last hour"),
        ({}, {}, ""),
    ],
)
def test_g12_a_gang_says_what_its_namespace_used_beyond_its_share(
    used: dict[str, int], shares: dict[str, int], text: str
) -> None:
    scene = Scene(gang("waits"), shares=shares)
    accounts = {name: AccountRecord(amount * HOUR, 0, 0) for name, amount in used.items()}
    scene.usage.observe("q", UsageRecord(accounts))
    assert note(scene) == text


def test_g12_a_gang_says_what_its_user_used_where_its_namespace_is_within_its_share() -> None:
    """Users of other namespaces do not count."""
    group, *pods = gang("waits")
    group["metadata"]["annotations"] = {USER: "ann"}
    scene = Scene(group, pods)
    used = {"default": 4, "y": 4, "default/ann": 3, "default/bob": 1, "y/cyd": 99}
    accounts = {name: AccountRecord(amount * HOUR, 0, 0) for name, amount in used.items()}
    scene.usage.observe("q", UsageRecord(accounts))
    assert note(scene) == "user ann used 1.5 of its share over the last hour"


@pytest.mark.parametrize(
    ("used", "weights", "text"),
    [
        ({"q": 3, "r": 1}, {}, "queue q used 1.5 of its share over the last hour"),
        ({"q": 3, "r": 1}, {"q": 3}, ""),
        ({"q": 1, "r": 1, "sub": 9}, {}, ""),  # a queue below another one is no sibling
        ({"q": 1}, {}, ""),
    ],
)
def test_g12_by_queue_a_gang_says_what_its_queue_used(used: dict[str, int], weights: dict[str, int], text: str) -> None:
    queues = [m.queue(name, weights.get(name, 1)) for name in "qr"]
    scene = Scene(queues, m.queue("sub", parent="r"), gang("waits"), by="queue")
    for name, amount in used.items():
        scene.usage.observe(name, UsageRecord({OF_QUEUE: AccountRecord(amount * HOUR, 0, 0)}))
    assert note(scene) == text


def test_g12_by_queue_queues_in_a_circle_have_no_parent_and_are_compared() -> None:
    scene = Scene(m.queue("q", parent="r"), m.queue("r", parent="q"), gang("waits"), gang("other", "r"), by="queue")
    for name, amount in (("q", 3), ("r", 1)):
        scene.usage.observe(name, UsageRecord({OF_QUEUE: AccountRecord(amount * HOUR, 0, 0)}))
    assert note(scene) == "queue q used 1.5 of its share over the last hour"


@pytest.mark.parametrize(
    ("half_life_s", "span"),
    [
        (7 * 86_400, "week"),
        (14 * 86_400, "2 weeks"),
        (86_400, "day"),
        (36 * 3600, "1.5 days"),
        (3600, "hour"),
        (60, "minute"),
        (59, "59 seconds"),
    ],
)
def test_g12_the_span_of_time_that_usage_counts_over(half_life_s: int, span: str) -> None:
    scene = Scene(gang("waits"))
    scene.fair.half_life_ns = half_life_s * SECOND
    scene.usage.observe("q", UsageRecord({"default": AccountRecord(HOUR, 0, 0), "y": AccountRecord(HOUR // 3, 0, 0)}))
    assert note(scene).endswith(f"over the last {span}")
