"""How the whole suite runs: the profiles of the random tests, the time of the long ones, and Ctrl-C.

`make test` draws the same examples each time. `make soak` draws fresh ones; a failing one prints a seed, or a blob that
replays it (`@reproduce_failure`).

What raises while one gang's objects are looked at is caught in production (S8). A test fails for it, at once, unless it
is marked `faults`.
"""

import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from support.seeds import SOAK_S, seeds_for

settings.register_profile(
    "test",
    deadline=None,
    print_blob=True,
    max_examples=100,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("soak", settings.get_profile("test"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "test")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts jobs in the background so; ours would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> Iterator[int]:
    """Fresh seeds for one test of `make soak`. The tests that ask for them share the time equally."""
    asking = sum("rounds" in getattr(item, "fixturenames", ()) for item in request.session.items)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return seeds_for(SOAK_S * workers / asking)


class _Raising(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise AssertionError(record.getMessage()) from (record.exc_info or (None, None))[1]


@pytest.fixture(autouse=True)
def _no_faults(request: pytest.FixtureRequest) -> Iterator[None]:
    log, handler = logging.getLogger("enbloc.faults"), _Raising()
    if request.node.get_closest_marker("faults") is None:
        log.addHandler(handler)
    yield
    log.removeHandler(handler)
