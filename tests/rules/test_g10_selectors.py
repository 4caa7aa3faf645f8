"""G10, A2: node selectors of a SchedulingSpec and of its pods: each is named by its owner, and each may be removed."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.advised import advised
from support.simulation import simulate

NODES = [m.node("na", labels={"zone": "a"}), m.node("nb", labels={"zone": "b"})]
SPEC = "its SchedulingSpec"


@pytest.mark.parametrize(
    ("of_spec", "of_pod", "said"),
    [
        ({"zone": "a"}, {"zone": "b"}, f"contradict each other: its pods select zone=b, {SPEC} zone=a."),
        ({"zone": "c"}, {"zone": "b"}, f"No node has label zone=c, which {SPEC} selects; they have a, b."),
        ({"zone": "c"}, {}, f"No node has label zone=c, which {SPEC} selects; they have a, b."),
        ({"zone": "a"}, {"zone": "c"}, "No node has label zone=c; they have a, b."),
        ({"zone": "c"}, {"zone": "c"}, "No node has label zone=c; they have a, b."),
    ],
)
def test_g10_a_selector_is_named_by_its_owner(of_spec: m.Obj, of_pod: m.Obj, said: str) -> None:
    spec = m.scheduling_spec("c", 1, nodeSelector=of_spec)
    answer = simulate(NODES, m.CRDJOB_DEFINITION, m.crdjob(), spec, *m.owned(m.pod("p", nodeSelector=of_pod)))
    (why,) = (one["message"] for one in answer.data["pending"])
    assert why.endswith(said)


def test_g10_a_selector_of_the_schedulingspec_may_be_removed() -> None:
    spec = m.scheduling_spec("c", 1, nodeSelector={"zone": "c"})
    answer = advised(NODES, m.CRDJOB_DEFINITION, m.crdjob(), spec, *m.owned(m.pod("p")))
    (found,) = answer.data["pending"]
    assert "remove nodeSelector zone=c of the SchedulingSpec" in [one["change"] for one in found["remedies"]]
