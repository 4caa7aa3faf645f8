"""The annotations that only the scheduler writes (S2). Admission strips them from what users create, and refuses their
changes.

What users write under `enbloc.dev/` (run times, namespaces that a Queue allows) is not among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from enbloc.gangs import claim_records, lapse_records, usage_records
from enbloc.gangs.hints import EXPECTED_START

DECISION: Final = "enbloc.dev/decision"
"""On a bound pod: the id of the decision that bound it (G11)."""
COMMITTED: Final = "enbloc.dev/committed"
"""On a bound pod: the minima that were bound with it (G7, G11)."""
DIGEST: Final = "enbloc.dev/digest"
"""On a bound pod: the digest over its decision and its commit mark."""
EXPECTED_START_DIGEST: Final = "enbloc.dev/expected-start-digest"

MARKS: Final = (DECISION, COMMITTED, DIGEST)
"""On pods."""
OWN_ANNOTATIONS: Final = frozenset(
    {
        *MARKS,
        *claim_records.ANNOTATIONS,
        claim_records.LEGACY_ANNOTATION,
        EXPECTED_START,
        EXPECTED_START_DIGEST,
        usage_records.ANNOTATION,
        lapse_records.ANNOTATION,
    }
)


def without_own(annotations: Mapping[str, str]) -> dict[str, str]:
    """What a template's author may have copied from a pod that was scheduled is not copied to pods."""
    return {key: text for key, text in annotations.items() if key not in OWN_ANNOTATIONS}
