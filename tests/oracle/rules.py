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
    "T8": "families `trees` and `freed-trees` change labels and trees and restart; commands and pages have their tests",
    "S2": "the oracle reads no records, it remembers: forged ones (family `tenants`) must change nothing",
}
"""Rules that need no function of their own."""

NOT_WRITTEN: dict[str, str] = {
    "S8": "nothing raises in a scenario: `tests/rules/test_s8_faults.py` throws",
    "E1": "reasons of gangs are compared, not those of pods",
    "U2": "the generator makes no `preemptionPolicy`",
}
"""Rules that the oracle does not follow: the generator makes nothing that they decide. Of G6 it knows readiness,
taints, node selectors, node affinity, required pod affinity and anti-affinity, hard topology spread, bound volumes,
ReadWriteOncePod, host ports and resources; not volumes that are bound when a pod is, and preferred pod affinity and
spread. Of T5 it knows node labels, the config's trees, HyperNodes, the trees of Kueue, KAI and Koordinator and what
pods, Jobs and PodGroups ask of them; not KAI's PodGroups and the owners of ordinary pods. Of T0 it knows Volcano's
`subGroupPolicy` and KAI's sub-groups without levels of their own; not composite PodGroups, nor a `minMember` between
the members of the sub-groups that are needed and all. Of R8 it knows `backfill` in
modes `easy` and `conservative` with gangs alone: not groups, waves and reservations beside them. Of G12 it does
not know what a gang that waits says of usage, nor the bound on how many accounts are recorded."""

OPEN: frozenset[str] = frozenset()
"""Files of `found/` with a bug of the engine that is not fixed yet."""

OPEN_SEEDS: frozenset[str] = frozenset()
"""Seeds that disagree for the same reasons, as `layer/seed`: they are left out until these are fixed."""

OPEN_RESTARTED: frozenset[str] = frozenset()
"""Those of them that further restarts change (I5)."""


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
