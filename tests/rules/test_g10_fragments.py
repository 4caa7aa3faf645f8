"""G10: a gang that waits although there is enough room in total says how much the emptiest node has free, and what one
pod needs."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import waits_because
from support.simulation import NO_EVICTIONS, simulate


@pytest.mark.parametrize(
    "wanted, said",
    [
        ((2, 3), "Free cpu is in pieces: 8 in total, the emptiest nodes have 2, 2 and 2, one pod needs 3."),
        ((1, 5), "Free cpu is in pieces: 8 in total, the emptiest nodes have 2, 2 and 2, one pod needs 5."),
        ((3, 3), ""),  # 9 are not there at all
    ],
)
def test_g10_fragments_are_named_beside_what_one_pod_needs(wanted: tuple[int, int], said: str) -> None:
    count, cpu = wanted
    nodes = [m.node(name, 8) for name in "abcd"]
    wide, next_one = m.job("wide", m.role("w", 4, cpu=6)), m.job("j", m.role("w", count, cpu=cpu), at="1s")
    answer = simulate(nodes, wide, next_one, config=NO_EVICTIONS)
    written = waits_because(answer.obj("Pod", "j-w-0"))  # less room wakes nobody, and would make it false
    assert answer.why("default/j") == " ".join(filter(None, (written, said)))


def test_g10_fragments_are_those_of_the_cluster_and_not_of_the_attempt() -> None:
    """Of two pods one would fit: its room counts as free."""
    nodes = [m.node("a", 8), m.node("b", 8), m.node("c", 8)]
    taken = [m.pod("x", 3, nodeName="a"), m.pod("y", 6, nodeName="b"), m.pod("z", 7, nodeName="c")]
    answer = simulate(nodes, taken, m.job("j", m.role("w", 2, cpu=4), at="1s"), config=NO_EVICTIONS)
    assert answer.why("default/j").endswith(
        "Free cpu is in pieces: 8 in total, the emptiest nodes have 5, 2 and 1, one pod needs 4."
    )


def test_g10_fragments_are_counted_on_nodes_that_the_pod_may_use() -> None:
    """Two free CPUs on each of four nodes, of which the pods may use one."""
    nodes = [m.node(name, 8, labels={"zone": name}) for name in "abcd"]
    wide = m.job("wide", m.role("w", 4, cpu=6))
    picky = m.job("j", m.role("w", 1, cpu=3, nodeSelector={"zone": "a"}), at="1s")
    answer = simulate(nodes, wide, picky, config=NO_EVICTIONS)
    assert "Insufficient cpu" in answer.why("default/j")
    assert "in pieces" not in answer.why("default/j")
