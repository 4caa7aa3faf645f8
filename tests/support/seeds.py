"""The seeds of random tests: printed, set by `ENBLOC_SEED`, new at each run but in CI.

CI judges a change, so it repeats the seed that the change was tried with; new ones are tried by each developer's run
and by `make soak`.
"""

from __future__ import annotations

import os
import random


def new_seed() -> int:
    """A seed for this run; it is printed, so that a failure can be repeated."""
    given = os.environ.get("ENBLOC_SEED")
    seed = int(given) if given else 0 if os.environ.get("CI") else random.SystemRandom().randrange(2**32)
    print(f"ENBLOC_SEED={seed}")
    return seed
