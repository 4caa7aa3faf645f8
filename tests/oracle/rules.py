"""Which text of a rule the oracle follows: rules that were sharpened stand here until the engine follows the new text.

`old` is what `docs/semantics.md` said before, `new` what it is to say. Flip one, run the seeds, and see who is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

RULES_AS_OF: dict[str, str] = {}

SHARED = {
    "M1": "admission",
    "M2": "admission",
    "M3": "the Job's controller",
    "M5": "the Job's controller",
    "D1": "admission",
    "K13": "the controller of phases",
    "A3": "decoding",
    "A4": "the QueueJob's controller",
    "A6": "the QueueJob's controller",
    "A7": "the QueueJob's controller",
    "V0": "the Job's controller",
    "V2": "the Job's controller",
    "V3": "the Job's controller",
    "N2": "admission",
    "N3": "commands",
    "N5": "config",
    "N6": "one enum of reasons",
}
"""Rules that admission, controllers and config follow, which both runs share."""

BY_COMPARISON = {
    "G9": "the oracle tries everything in every cycle: a gang that the engine did not wake is a disagreement",
    "O3": "an example, see tests/rules",
    "O4": "keys are computed once",
    "R9": "an example, see tests/rules",
    "K2": "values are read in that order",
    "K10": "the simulation's API server refuses no Binding",
    "K11": "G8",
}
"""Rules that need no function of their own."""

NOT_WRITTEN = {
    "D5": "whole-job gangs",
    "R8": "run times, EASY and conservative backfill",
    "G12": "fairness over time",
    "N1": "constraints that are not honoured",
    "S2": "digests of records",
    "S3": "granted priorities",
    "S5": "doors of queues",
    "S6": "immunity within a share",
    "S7": "names of others",
    **{f"T{number}": "topology" for number in range(9)},
}
"""Rules that the oracle does not follow: the generator makes nothing that they decide. Of G6 it knows readiness,
taints, node selectors, required pod affinity and anti-affinity, and resources."""


def follows(rule: str) -> bool:
    """Whether the new text of a rule counts."""
    return RULES_AS_OF[rule] == "new"


@contextmanager
def reading(texts: Mapping[str, str]) -> Iterator[None]:
    """While it lasts these rules are read as given: `{"P1": "new"}`."""
    before = dict(RULES_AS_OF)
    RULES_AS_OF.update(texts)
    try:
        yield
    finally:
        RULES_AS_OF.update(before)
