"""S6: `preemptable: "false"` and `cooldown-time` count as in Volcano; where a Queue or the config says so, only up to
the queue's share; and the config bounds the cooldown."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj
from enbloc.api.volcano import IMMUNITY
from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

PREEMPTABLE, COOLDOWN = "volcano.sh/preemptable", "volcano.sh/cooldown-time"
IMMUNE = [{PREEMPTABLE: "false"}, {COOLDOWN: "876000h"}]
ISOLATED = {"tenancy": "isolated"}
WITHIN_SHARE = {IMMUNITY: "within-share"}


def queue(name: str, annotations: dict[str, str] | None = None) -> Obj:
    found = m.queue(name)
    found["metadata"]["annotations"] = dict(annotations or {})
    return found


def reclaimed(immunity: dict[str, str], *, of_queue: dict[str, str] | None = None, **fields: Any) -> Answer:
    """Queue a takes all 8 cpu with pods that claim immunity; b, of equal weight, comes and asks for its half."""
    taker = [m.one_pod_job(f"a{n}", queue="a", namespace="a", annotations=immunity) for n in range(8)]
    comer = [m.one_pod_job(f"b{n}", queue="b", namespace="b", at="10s") for n in range(4)]
    return simulate(m.node("n", 8), queue("a", of_queue), queue("b"), taker, comer, until="60s", **fields)


@pytest.mark.parametrize("immunity", IMMUNE, ids=["preemptable", "cooldown"])
def test_s6_by_default_immunity_is_honoured_as_in_volcano(immunity: dict[str, str]) -> None:
    assert reclaimed(immunity).evicted() == []


@pytest.mark.parametrize("immunity", IMMUNE, ids=["preemptable", "cooldown"])
@pytest.mark.parametrize("way", [{"of_queue": WITHIN_SHARE}, {"config": ISOLATED}], ids=["queue", "isolated"])
def test_s6_attack_t9_immunity_ends_at_the_share_of_the_queue(immunity: dict[str, str], way: dict[str, Any]) -> None:
    """b gets its half; a keeps its own."""
    answer = reclaimed(immunity, **way)
    assert len(answer.evicted("a")) == 4
    assert sorted(answer.nodes("b")) == [f"b{n}-w-0" for n in range(4)]


@pytest.mark.parametrize("immunity", IMMUNE, ids=["preemptable", "cooldown"])
def test_s6_within_its_share_a_queue_keeps_what_is_immune(immunity: dict[str, str]) -> None:
    """Inside the one queue that deserves all of the cluster a higher priority does not preempt it."""
    low = m.job("low", m.role("w", 8, priority="low"), annotations=immunity)
    high = m.job("high", m.role("w", 8, priority="high"), at="10s")
    for config in ({}, ISOLATED):
        answer = simulate(m.node("n", 8), m.HIGH_LOW, low, high, config=config, until="60s")
        assert answer.evicted() == [], config


def test_s6_a_queue_below_inherits_the_bound() -> None:
    below = queue("below")
    below["spec"]["parent"] = "a"
    taker = [m.one_pod_job(f"a{n}", queue="below", annotations=IMMUNE[0]) for n in range(8)]
    comer = [m.one_pod_job(f"b{n}", queue="b", at="10s") for n in range(4)]
    answer = simulate(m.node("n", 8), queue("a", WITHIN_SHARE), below, queue("b"), taker, comer, until="60s")
    assert len(answer.evicted("a")) == 4


def test_s6_the_bound_may_be_set_while_pods_run() -> None:
    bound = m.patch("30s", "Queue", "a", metadata={"annotations": WITHIN_SHARE})
    taker = [m.one_pod_job(f"a{n}", queue="a", annotations=IMMUNE[0]) for n in range(8)]
    comer = [m.one_pod_job(f"b{n}", queue="b", at="10s") for n in range(4)]
    answer = simulate(m.node("n", 8), queue("a"), queue("b"), taker, comer, bound, until="60s")
    assert [at for at, _ in answer.evicted("a")] == [30.0] * 4


def test_s6_the_config_bounds_the_cooldown() -> None:
    answer = reclaimed(IMMUNE[1], config={"longestCooldownTime": "40s"})
    assert [at for at, _ in answer.evicted("a")] == [40.0] * 4


def test_s6_another_value_is_refused() -> None:
    answer = simulate(m.node("n"), queue("q", {IMMUNITY: "always"}))
    assert "'always' is not 'within-share'" in answer.rejected("q")


@pytest.mark.parametrize("immunity", IMMUNE, ids=["preemptable", "cooldown"])
def test_s6_v4_the_share_is_of_what_pods_of_other_schedulers_leave(immunity: dict[str, str]) -> None:
    """Another scheduler uses 8 of 16 cpu: of the 8 that are left 4 are the share of a, which uses 8."""
    foreign = m.pods(8, "foreign-", nodeName="other", scheduler="other")
    nodes = m.node("other", 8)
    taker = [m.one_pod_job(f"a{n}", queue="a", namespace="a", annotations=immunity) for n in range(8)]
    comer = [m.one_pod_job(f"b{n}", queue="b", namespace="b", at="10s") for n in range(4)]
    answer = simulate(m.node("n", 8), nodes, foreign, queue("a", WITHIN_SHARE), queue("b"), taker, comer, until="60s")
    assert len(answer.evicted("a")) == 4
