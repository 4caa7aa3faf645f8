"""How the whole suite runs: the profiles of the random tests, and Ctrl-C.

Every run draws new examples, but for CI's, which are always the same; a failing one prints a blob that replays it
(`@reproduce_failure`).
"""

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "dev", deadline=None, print_blob=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("dev"), max_examples=100, derandomize=True)
settings.register_profile("soak", settings.get_profile("dev"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts jobs in the background so; ours would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
