"""K3, N5: `lint` names the values that are read as something else, as the API server's warnings and the Events do."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.simulation import lint

PREFIX = "gang.scheduling.koordinator.sh/"


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"min-available": "2"}, "without a gang name"),
        ({"name": "a", "min-available": "2", "mode": "Weird"}, "mode 'Weird'"),
        ({"name": "a", "min-available": "2", "waiting-time": "-3s"}, "waiting-time '-3s'"),
        ({"name": "a", "min-available": "2", "total-number": "1"}, "total-number 1"),
        ({"name": "Gang_A", "min-available": "2"}, "not RFC 1123"),
        ({"name": "a", "min-available": "x"}, "min-available 'x'"),
    ],
)
def test_k3_lint_warns_of_bad_values_of_pods(annotations: dict[str, str], said: str) -> None:
    pod = m.pod("p", annotations={PREFIX + key: value for key, value in annotations.items()})
    linted = lint(pod)
    assert not linted.faults
    assert [one for one in linted.warnings if said in one.message], linted.warnings


def test_k3_lint_warns_of_bad_values_of_podgroups() -> None:
    linted = lint(m.sigs_podgroup("g", 3, mode="Weird"))
    assert [one for one in linted.warnings if "mode 'Weird'" in one.message], linted.warnings
