"""`python -m benchmarks topology`: the same placements as attempts in every rack, and figures that can be compared."""

from __future__ import annotations

import pytest

from benchmarks import topology


@pytest.mark.parametrize("racks", [4, 20])
def test_placements_are_those_of_attempts_in_every_rack(racks: int) -> None:
    figures = topology.run(nodes=120, racks=racks, pods=600, seed=3)
    assert figures["identical"]
    assert figures["bound"] == figures["compared_pods"] == 600
    assert figures["ratio"] > 0
    assert figures["unfittable_ratio"] > 0
