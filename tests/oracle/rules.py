"""Which text of a rule the oracle follows: rules that were sharpened stand here until the engine follows the new text.

`old` is what `docs/semantics.md` said before, `new` what it is to say. Flip one, run the seeds, and see who is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

RULES_AS_OF: dict[str, str] = {}

NOT_WRITTEN = ("D5", "R8 and EASY", "G6 (affinity, spread, volumes)")
"""Rules whose new text, or all of it, the oracle does not follow yet. G1, M2, D2, A3 and C are read by admission,
controllers and config, which both runs share."""


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
