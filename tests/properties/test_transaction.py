"""A transaction undoes everything that a placement touched (architecture, 11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.config.model import Scoring
from enbloc.engine.core.placement.attempt import attempt, one_by_one, runs
from enbloc.engine.core.placement.constraints import UNCONSTRAINED
from enbloc.engine.core.placement.request import request_of
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import GangState, pending_tasks
from properties import strategies
from support import manifests as m
from support.direct_scheduler import DirectScheduler
from support.seeds import soak_examples

SCORING = Scoring(least=1, balanced=1, node_affinity=1, pod_affinity=1, spread=1)


@st.composite
def clusters(draw: st.DrawFn) -> DirectScheduler:
    """A cluster on which some gangs run already, and others wait."""
    direct = DirectScheduler(strategies.configured(SCORING))
    direct.put(m.queue("q1", capability={"cpu": "5"}, parent="root"))
    direct.put(m.queue("q2", parent="q1"))
    for index in range(draw(st.integers(1, 5))):
        direct.put(draw(strategies.nodes(f"n{index}")))
    for wave in ("run", "wait"):
        for index in range(draw(st.integers(1, 3))):
            name = f"{wave}-{index}"
            size = draw(st.integers(1, 5))
            queue = draw(st.sampled_from(["default", "q1", "q2"]))
            group = m.podgroup(name, draw(st.integers(0, size)), queue=queue)
            direct.put({**group, "status": {"phase": "Inqueue"}})
            specs = draw(st.lists(strategies.pod_specs(moving_share=2), min_size=1, max_size=3))
            for number in range(size):
                labels = draw(strategies.labels)
                direct.put(m.pod(f"{name}-{number}", group=name, labels=labels, **specs[number % len(specs)]))
        if wave == "run":
            direct.engine.run(0)
    direct.engine.begin(1)
    return direct


def waiting(direct: DirectScheduler) -> list[GangState]:
    return [gang for gang in direct.engine.state.gangs.values() if pending_tasks(gang)]


def check_rollback(direct: DirectScheduler, data: st.DataObject) -> None:
    """Places and goes back at random; what was committed stays, and nothing else does."""
    state, placer = direct.engine.state, direct.engine.parts.placer
    for _ in range(data.draw(st.integers(1, 6))):
        gangs = waiting(direct)
        if not gangs:
            return
        gang = data.draw(st.sampled_from(gangs))
        direct.engine.parts.intake.queue(gang)
        before = state.digest()
        keys = {cls.id: state.candidates(cls).keys().tolist() for cls in state.classes.by_id.values()}
        match data.draw(st.sampled_from(["minima", "one by one", "by hand"])):
            case "minima":
                request = request_of(gang)
                if gang.need.missing or request.short > len(request.rest):
                    continue
                transaction = Transaction(placer.state)
                story = attempt(placer, [request], transaction, UNCONSTRAINED)
                assert (story is None) or not transaction.placed
            case "one by one":
                transaction = Transaction(state)
                one_by_one(placer, gang, transaction, pending_tasks(gang), UNCONSTRAINED)
            case _:
                transaction = Transaction(state)
                for run in runs(state, pending_tasks(gang)):
                    placer.place(transaction, run, data.draw(st.integers(0, len(run))), UNCONSTRAINED)
        state.validate()
        if transaction.placed and data.draw(st.booleans()):
            assert state.digest() != before
            continue  # committed
        transaction.rollback()
        state.validate()
        assert state.digest() == before
        assert {cls.id: state.candidates(cls).keys().tolist() for cls in state.classes.by_id.values()} == keys


@given(clusters(), st.data())
def test_rollback_restores_the_digest(direct: DirectScheduler, data: Any) -> None:
    check_rollback(direct, data)


@pytest.mark.soak
def test_rollback_restores_the_digest_at_length(rounds: Iterator[int]) -> None:
    soak_examples(given(clusters(), st.data())(check_rollback), rounds)


@given(clusters())
def test_a_placement_that_was_refused_leaves_no_trace(direct: DirectScheduler) -> None:
    """`forget_assumed` after a cycle is the way back once the transaction is gone."""
    state = direct.engine.state
    before = state.digest()
    for action in (direct.engine.run(2),):
        for decision in action:
            for placement in getattr(decision, "placements", ()):
                state.forget_assumed(placement.uid)
    state.validate()
    assert state.digest() == before
