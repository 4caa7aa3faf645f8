"""C, `sla`: where the plugin is in the tiers, deadlines order gangs; a gang whose deadline has passed is enqueued."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

KEYS = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
ACTIONS = "enqueue, allocate, backfill"
CLASSES = [m.priority_class("high", 1000), m.priority_class("low", 10)]


def listed(*plugins: m.Obj | str, actions: str = ACTIONS) -> m.Obj:
    """A config whose only tier has these plugins."""
    named = [{"name": one} if isinstance(one, str) else one for one in plugins]
    return {"actions": actions, "tiers": [{"plugins": named}]}


def sla(waiting: str | None = None, **flags: bool) -> m.Obj:
    arguments = {"arguments": {"sla-waiting-time": waiting}} if waiting else {}
    return {"name": "sla", **arguments, **flags}


def waits(made: m.Obj, waiting: str, key: str = KEYS[0]) -> m.Obj:
    made["metadata"].setdefault("annotations", {})[key] = waiting
    return made


def big(replicas: int = 8, name: str = "big", at: str = "1s") -> m.Obj:
    """A job of one cpu a pod; the cluster of these tests has four."""
    return m.job(name, m.role("w", replicas), at=at)


def created(answer: Answer, pod: str = "big-w-0") -> float | None:
    return answer.at(pod, "created")


@pytest.mark.parametrize("key", KEYS)
def test_c_sla_a_gang_is_enqueued_when_its_deadline_has_passed_even_beyond_the_cluster(key: str) -> None:
    answer = simulate(m.node("n"), waits(big(), "20s", key), config=listed(sla()), until="1m")
    assert created(answer) == 21.0
    assert answer.group_of("big")["status"]["phase"] == "Inqueue"
    assert not answer.bound()


def test_c_sla_the_default_argument_is_the_deadline_of_the_others() -> None:
    answer = simulate(
        m.node("n"), big(), waits(big(name="own"), "5s"), config=listed(sla("30s"), "priority"), until="1m"
    )
    assert created(answer) == 31.0
    assert created(answer, "own-w-0") == 6.0


def test_c_sla_without_the_plugin_no_gang_has_a_deadline() -> None:
    for config in (listed("priority"), {"actions": ACTIONS}, listed(sla(enableJobEnqueued=False))):
        answer = simulate(m.node("n"), waits(big(), "20s"), config=config, until="1h")
        assert created(answer) is None
        assert "not enqueued" in answer.why("default/big")


def test_c_sla_without_a_deadline_a_gang_waits() -> None:
    answer = simulate(m.node("n"), big(), config=listed(sla()), until="1h")
    assert created(answer) is None


def test_c_sla_the_queue_still_limits() -> None:
    """The deadline opens the cluster, not the capability of the queue."""
    capped = m.queue("q", capability={"cpu": "3"})
    answer = simulate(
        capped, m.node("n"), waits(m.job("big", m.role("w", 4), queue="q"), "5s"), config=listed(sla()), until="1h"
    )
    assert created(answer, "big-w-0") is None


def test_c_sla_counts_as_enqueued_by_starving() -> None:
    """A gang that was enqueued by its deadline takes no room from others at enqueue."""
    answer = simulate(
        m.node("n"), waits(big(), "5s"), m.job("small", m.role("w", 4), at="10s"), config=listed(sla()), until="1m"
    )
    assert created(answer) == 6.0
    assert answer.times("small-") == [10.0] * 4


def test_c_sla_a_restart_knows_the_deadline() -> None:
    documents = [m.node("n"), waits(big(), "20s"), m.restart("10s")]
    assert created(simulate(*documents, config=listed(sla()), until="1m")) == 21.0


# ---- order


def served(config: m.Obj, *jobs: m.Obj) -> list[str]:
    """The order in which jobs of a whole node each are started."""
    answer = simulate(*CLASSES, m.node("n", 2), list(jobs), config=config)
    return [name for name, _ in sorted(answer.bound().items(), key=lambda one: one[1][0])]


def job(name: str, waiting: str | None = None, priority: str = "low") -> m.Obj:
    made = m.job(name, m.role("w", 2, run_time="10s"), priorityClassName=priority)
    return waits(made, waiting) if waiting else made


def firsts(order: list[str]) -> list[str]:
    return list(dict.fromkeys(name.partition("-")[0] for name in order))


def test_c_sla_the_earliest_deadline_first_and_those_without_one_last() -> None:
    jobs = [job("a"), job("b", "3h"), job("c", "1h"), job("d", "2h")]
    assert firsts(served(listed(sla(), actions="allocate, backfill"), *jobs)) == ["c", "d", "b", "a"]
    assert firsts(served({"actions": "allocate, backfill"}, *jobs)) == ["a", "b", "c", "d"]
    off = listed(sla(enableJobOrder=False), actions="allocate, backfill")
    assert firsts(served(off, *jobs)) == ["a", "b", "c", "d"]


def test_c_sla_orders_where_it_stands_among_the_plugins() -> None:
    jobs = [job("a", priority="high"), job("b", "3h"), job("c", "1h", "high"), job("d", "1h")]
    first = listed(sla(), "priority", actions="allocate, backfill")
    last = listed("priority", sla(), actions="allocate, backfill")
    unlisted = listed(sla(), actions="allocate, backfill")
    assert firsts(served(first, *jobs)) == ["c", "d", "b", "a"]
    assert firsts(served(last, *jobs)) == ["c", "a", "d", "b"]
    assert firsts(served(unlisted, *jobs)) == ["c", "a", "d", "b"]
