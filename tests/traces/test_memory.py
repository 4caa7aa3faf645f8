"""`--fast` forgets jobs that have ended: what the engine keeps does not grow with the trace."""

from __future__ import annotations

import gc
import types
from typing import Any

import pytest

from enbloc.config.policies import policy_config
from enbloc.traces.cluster import shape_of
from enbloc.traces.fast import FastReplay
from enbloc.traces.replay import Settings, prepare
from enbloc.traces.synthetic import synthetic_trace

_SHARED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType)
"""Code is not what is kept of a trace."""


def _kept(jobs: int, policy: str, *, nodes: int = 24) -> int:
    """How many objects the engine refers to when all jobs have ended."""
    trace = synthetic_trace(jobs, 7)
    settings = Settings(shape_of(trace, nodes, None), True)
    replay = FastReplay(settings.shape, policy_config(policy))
    outcomes = replay.run(prepare(trace, settings)[0])
    assert len(outcomes) == len(prepare(trace, settings)[0])
    assert not replay._jobs
    gc.collect()
    seen: set[int] = set()
    left: list[Any] = [replay._engine]
    while left:
        one = left.pop()
        if id(one) not in seen and not isinstance(one, _SHARED):
            seen.add(id(one))
            left += gc.get_referents(one)
    return len(seen)


@pytest.mark.parametrize("policy", ["fifo-skip", "fair"])
def test_what_is_kept_does_not_grow_with_jobs_that_ended(policy: str) -> None:
    assert _kept(240, policy) < 1.2 * _kept(60, policy)


@pytest.mark.soak
@pytest.mark.parametrize("policy", ["default", "fifo", "fifo-skip", "easy", "sjf", "fair"])
def test_what_is_kept_does_not_grow_at_length(policy: str) -> None:
    assert _kept(8_000, policy, nodes=96) < 1.2 * _kept(1_000, policy, nodes=96)
