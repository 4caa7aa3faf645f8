"""What other schedulers' own tables expect (T0 to T7): at least 95 % of the cases hold, each other says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from peers import kai, koordinator, kubernetes, kubernetes_composite, kueue, volcano
from peers.case import Case, problems

TABLES = {
    "KAI": kai.CASES,
    "Kubernetes": [*kubernetes.CASES, *kubernetes_composite.CASES],
    "Kueue": kueue.CASES,
    "Koordinator": koordinator.CASES,
    "Volcano": volcano.CASES,
}
CASES = [pytest.param(case, id=f"{peer}: {case.name}") for peer, cases in TABLES.items() for case in cases]


def test_at_least_95_percent_of_150_cases_of_four_dialects_hold() -> None:
    every = [case for cases in TABLES.values() for case in cases]
    assert len(every) >= 150
    assert len([cases for cases in TABLES.values() if len(cases) >= 10]) >= 4
    assert len([case for case in every if not case.differs]) >= 0.95 * len(every)


def test_every_case_that_differs_is_listed_with_its_reason() -> None:
    page = Path("docs/dialects.md").read_text()
    for peer, cases in TABLES.items():
        listed = [f"| {peer} | {case.name} | {case.differs} |" for case in cases if case.differs]
        assert not [line for line in listed if line not in page]


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case) -> None:
    found = problems(case)
    if case.differs:
        assert found, "it is decided as the peer decides it by now: the case holds"
    else:
        assert not found
