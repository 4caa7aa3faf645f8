"""A1: `lint` warns where pods of a customised controller would not wait for their SchedulingSpec."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.simulation import lint, simulate

WORDS = "start without it; name kar-scheduler in them, or set arbitrator.requireSchedulingSpec"


def docs(scheduler: str, **spec: Any) -> list[m.Obj]:
    pods = m.owned(*m.pods(2, "c-", scheduler=scheduler))
    return [m.CRDJOB_DEFINITION, m.crdjob(), *pods, m.scheduling_spec("c", 2, **spec)]


def warned(*documents: m.Obj, config: Any = None) -> list[str]:
    return [one.message for one in lint(list(documents), config=config).warnings if WORDS in one.message]


@pytest.mark.parametrize("scheduler", ["enbloc", "default-scheduler"])
def test_a1_pods_that_do_not_wait_for_their_spec_are_warned_of(scheduler: str) -> None:
    (message,) = warned(*docs(scheduler))
    assert f"pods of its controller name scheduler {scheduler}:" in message
    required = {"arbitrator": {"requireSchedulingSpec": True}}
    assert not warned(*docs(scheduler), config=required)


def test_a1_pods_that_wait_for_their_spec_are_not_warned_of() -> None:
    assert not warned(*docs("kar-scheduler"))
    assert not warned(*docs("volcano-of-another-cluster"))
    assert not warned(m.queue_job("q", m.role("w", 2)))
    assert not warned(*m.pods(2, "alone"), *docs("kar-scheduler"))


def test_a1_the_warning_is_true() -> None:
    """With the spec a moment later, pods of `enbloc` have started, and those of `kar-scheduler` have not."""
    for scheduler, starts in (("enbloc", True), ("kar-scheduler", False)):
        answer = simulate(m.node("n", 1), docs(scheduler, at="5s"), until="20s")
        assert bool(answer.bound()) is starts
