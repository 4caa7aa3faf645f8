"""What other schedulers' own tables expect (T0 to T7): at least 95 % of the cases hold, each other says why."""

from __future__ import annotations

import pytest

from peers import kai, koordinator, kubernetes, kueue, volcano
from peers.case import Case, problems

TABLES = {
    "KAI": kai.CASES,
    "Kubernetes": kubernetes.CASES,
    "Kueue": kueue.CASES,
    "Koordinator": koordinator.CASES,
    "Volcano": volcano.CASES,
}
CASES = [pytest.param(case, id=f"{peer}: {case.name}") for peer, cases in TABLES.items() for case in cases]


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case) -> None:
    found = problems(case)
    if case.differs:
        assert found, "it is decided as the peer decides it by now: the case holds"
    else:
        assert not found
