"""The seeds of random tests: fixed in `make test`, fresh in `make soak`, printed in both, set by `ENBLOC_SEED`.

A suite that judges a change draws the same examples each time. Fresh ones are what `make soak` is for: each of
its random tests goes from seed to seed until its share of `ENBLOC_SOAK_MINUTES` is over.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

SOAKS = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
SOAK_S = 60 * float(os.environ.get("ENBLOC_SOAK_MINUTES", "60"))


def new_seed() -> int:
    """Returns this run's seed, which is printed so that a failure can be repeated."""
    given = os.environ.get("ENBLOC_SEED")
    seed = int(given) if given else random.SystemRandom().randrange(2**32) if SOAKS else 0
    print(f"ENBLOC_SEED={seed}", flush=True)
    return seed


def seeds_for(share_s: float) -> Iterator[int]:
    """Yields fresh seeds until the share is over, at least one; `ENBLOC_SEED` alone if it is set."""
    until = time.monotonic() + share_s
    yield new_seed()
    while "ENBLOC_SEED" not in os.environ and time.monotonic() < until:
        yield new_seed()


def soak_examples(test: Callable[[], None], rounds: Iterator[int]) -> None:
    """Runs a test that Hypothesis gives its arguments with each seed."""
    for seed in rounds:
        seeded(seed)(test)()


def soak(machine: type[RuleBasedStateMachine], rounds: Iterator[int], steps: int = 40, examples: int = 5) -> None:
    """Runs a state machine with each seed."""
    for seed in rounds:
        run_state_machine_as_test(
            seeded(seed)(machine), settings=settings(max_examples=examples, stateful_step_count=steps)
        )
