"""Settings of Python's garbage collector for processes that keep millions of objects with hardly a cycle among them.

By default it would traverse all of them again and again: a third of a simulation's time, and nothing found.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

BATCH: Final = (100_000, 100, 1_000)
"""Thresholds of a process that ends soon."""
SERVICE: Final = (50_000, 50, 100)
"""Thresholds of a process that runs for long: cycles that it makes are found in the end."""


def relax(thresholds: tuple[int, int, int]) -> None:
    """Exempts the objects that exist now, and traverses later ones less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*thresholds)


@contextmanager
def relaxed(thresholds: tuple[int, int, int]) -> Iterator[None]:
    """The same for a while."""
    before = gc.get_threshold()
    relax(thresholds)
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
