"""Accounts of usage over time (G12): arithmetic against plain integration, the instant at which two change places, and
records that are refused or whose queue is deleted."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from enbloc.config import parse
from enbloc.engine.decisions import RecordUsage
from enbloc.engine.engine import Engine
from enbloc.engine.tables.accounts import WHOLE, Account, next_change, ranked, rate_of
from enbloc.engine.tables.nodes import NodeFacts
from enbloc.engine.tables.queues import QueueFacts
from enbloc.engine.tables.tasks import PodFacts, TaskStatus
from enbloc.gangs import usage_records
from enbloc.gangs.model import GangKey, GangSpec, Membership
from enbloc.gangs.usage_records import AccountRecord, UsageRecord
from enbloc.units import NANO, SECOND
from support.seeds import new_seed

HALF_LIFE_NS = 100 * SECOND


def _account(name: str, usage_s: float, rate: float, share: int = 1) -> Account:
    found = Account("q", name, share)
    found.usage_ns, found.rate = round(usage_s * SECOND), round(rate * WHOLE)
    found.update_order(0, HALF_LIFE_NS)
    return found


def test_g12_usage_is_the_integral_of_the_rate_with_a_half_life() -> None:
    account = _account("a", 40, 0.25)
    step_s, usage = 0.01, 40.0
    for _ in range(5_000):
        usage = (usage + 0.25 * step_s / 2) * 2 ** (-step_s / 100) + 0.25 * step_s / 2
    assert math.isclose(account.usage_at(50 * SECOND, HALF_LIFE_NS) / SECOND, usage, rel_tol=1e-5)
    account.rate = 0
    assert account.usage_at(100 * SECOND, HALF_LIFE_NS) == 20 * SECOND
    assert account.usage_at(100_000 * SECOND, HALF_LIFE_NS) == 0


def test_g12_the_instant_at_which_accounts_change_places_is_found() -> None:
    """Just before it the order is as it was; at the instant, or a moment later, it is another one."""
    dice = random.Random(new_seed())
    changed = 0
    for _ in range(200):
        accounts = [
            _account(
                str(n), dice.choice((0, 10, dice.uniform(0, 200))), dice.choice((0, 0.5, dice.random())), n % 2 + 1
            )
            for n in range(dice.randint(2, 5))
        ]
        before, at_ns = ranked(accounts), next_change(accounts, 0, HALF_LIFE_NS)
        last_ns = at_ns if at_ns is not None else 1_000 * SECOND
        for part in (0.25, 0.5, 0.999):
            for account in accounts:
                account.update_order(int(last_ns * part), HALF_LIFE_NS)
            alike = {name for names in before for name in names if len(names) > 1}
            assert alike or ranked(accounts) == before
        if at_ns is not None:
            for account in accounts:
                account.update_order(at_ns + 1_000, HALF_LIFE_NS)
            assert ranked(accounts) != before
            changed += 1
    assert changed > 20


class _World:
    """An engine with one node, one queue and one pod that runs."""

    def __init__(self) -> None:
        self.engine = Engine(parse({"actions": "allocate", "tiers": [{"plugins": [{"name": "fair"}]}]}))
        state = self.engine.state
        state.put_queue(QueueFacts("root"))
        state.put_queue(QueueFacts("default", parent="root"))
        state.put_node(NodeFacts("n", 0, {}, {"cpu": 4 * NANO, "pods": 9 * NANO}, (), unschedulable=False, ready=True))
        key = GangKey("volcano", "a", "g")
        self.spec = GangSpec(key=key, title="a/g", created_ns=0, minimum=1)
        container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
        facts = PodFacts(
            "u", "a", "p", {}, {"containers": [container]}, 0, 0, "n", TaskStatus.BOUND, ours=True, since_ns=0
        )
        state.put_gang(self.spec)
        state.put_pod(facts, Membership(key, "", 0), lambda: self.spec)

    def run(self, at_s: int) -> list[RecordUsage]:
        return [one for one in self.engine.run(at_s * SECOND) if isinstance(one, RecordUsage)]


def test_g12_a_refused_record_is_written_again() -> None:
    world = _World()
    usage = world.engine.parts.usage
    assert usage is not None
    (record,) = world.run(1)
    assert record.record.accounts["a"] == AccountRecord(0, SECOND, WHOLE // 2)
    assert world.run(2) == []
    world.engine.report(record)
    assert world.engine.busy()
    assert world.run(3) == [record]
    usage.observe("default", record.record)
    assert not world.engine.busy()


def test_g12_while_a_record_is_under_way_no_other_is_written() -> None:
    world = _World()
    usage = world.engine.parts.usage
    assert usage is not None
    (record,) = world.run(1)
    world.engine.state.remove_pod("u")
    assert world.run(5) == []
    usage.observe("default", UsageRecord({}))  # an older event
    assert world.run(6) == []
    usage.observe("default", record.record)
    (second,) = world.run(7)
    used, as_of, rate = second.record.accounts["a"].usage_ns, second.record.accounts["a"].as_of_ns, 0
    assert (round(used / SECOND, 3), as_of, rate) == (2.0, 5 * SECOND, 0)


def test_g12_the_usage_of_a_deleted_queue_is_gone() -> None:
    world = _World()
    usage = world.engine.parts.usage
    assert usage is not None
    (record,) = world.run(1)
    usage.observe("default", record.record)
    usage.forget("default")
    world.engine.state.remove_queue("default")
    assert world.run(50) == []
    world.engine.state.put_queue(QueueFacts("default", parent="root"))
    (again,) = world.run(60)
    assert again.record.accounts["a"] == AccountRecord(0, 60 * SECOND, WHOLE // 2)


@pytest.mark.parametrize("share", [2, 3, 7])
@pytest.mark.parametrize("cpus", [3, 7, 11, 97])
def test_g12_accounts_that_used_as_much_of_their_shares_are_equal(share: int, cpus: int) -> None:
    """However long they ran, however often their rates changed, and whatever part of the cluster they used."""
    one, other, totals = Account("q", "a", 1), Account("q", "b", share), np.array([cpus * share, 0], np.int64)
    now_ns, half_life_ns = 0, 7 * 86_400 * SECOND
    for hours in (1, 5, 30, 200, 11, 3):
        for is_used in (1, 0):
            for account in (one, other):
                account.set_rate(rate_of({0: account.share * is_used}, totals), now_ns, half_life_ns)
                account.update_order(now_ns, half_life_ns)
            assert one == other
            now_ns += hours * 3_600 * SECOND
        for account in (one, other):
            account.update_order(now_ns, half_life_ns)
        assert one == other


def test_g12_a_record_of_version_1_is_read() -> None:
    """Its rates are in billionths."""
    assert usage_records.read('{"accounts": {"a": [5, 7, 500000000]}, "version": 1}') == UsageRecord(
        {"a": AccountRecord(5, 7, WHOLE // 2)}
    )
