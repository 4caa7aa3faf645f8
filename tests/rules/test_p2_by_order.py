"""P2 under `preempt` by order: gangs with more left to do are evicted, unless they are protected."""

from __future__ import annotations

import pytest
from tests.support import manifests as m
from tests.support.simulation import simulate

from enbloc.api.meta import Obj
from enbloc.config.policies import POLICIES

BUDGET = m.budget({"volcano.sh/job-name": "long"}, minAvailable=1)


def _job(name: str, run_time: str, at: str | None = None, **annotations: str) -> Obj:
    job = m.job(name, m.role("w", 2, run_time=run_time), at=at)
    job["metadata"].setdefault("annotations", {}).update({"enbloc.dev/expected-duration": run_time, **annotations})
    return job


@pytest.mark.parametrize(
    ("others", "annotations", "evicted"),
    [
        ((), {}, 2),
        ((BUDGET,), {}, 0),
        ((), {"volcano.sh/preemptable": "false"}, 0),
        ((), {"volcano.sh/cooldown-time": "2h"}, 0),
    ],
    ids=["unprotected", "budget", "not preemptable", "cooldown"],
)
def test_p2_by_order(others: tuple[Obj, ...], annotations: dict[str, str], evicted: int) -> None:
    objects = [m.node("n1", 2), *others, _job("long", "1h", **annotations), _job("short", "1m", at="10s")]
    answer = simulate(*objects, config=POLICIES["srtf"].config, until="30m")
    assert sum(line["what"] == "evicted" for line in answer.timeline) == evicted


def test_a_gang_with_less_left_to_do_is_not_evicted() -> None:
    objects = [m.node("n1", 2), _job("runs", "2m"), _job("comes", "100s", at="30s")]
    answer = simulate(*objects, config=POLICIES["srtf"].config)
    assert not [line for line in answer.timeline if line["what"] == "evicted"]


def test_p1_g9_by_order_all_are_placed_anew_when_a_gang_has_ended() -> None:
    """The room of `long` would not do for `wide`: it does when `other` has ended, whose pod is still there."""
    wide, other = (
        m.pod(name, cpu, at=at, run_time=run_time, annotations={"enbloc.dev/expected-duration": run_time})
        for name, cpu, at, run_time in (("wide", 4, "10s", "60s"), ("other", 2, None, "30s"))
    )
    answer = simulate(m.node("n1", 4), other, _job("long", "1h"), wide, config=POLICIES["srtf"].config, until="5m")
    assert answer.at("wide") == 30.0
