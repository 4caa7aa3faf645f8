"""T0: `partitionPolicy.minPartitions` of a Job's role. Each partition starts as a whole; those beyond the minimum are
surplus."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support import racks as r
from support.simulation import lint, simulate

Obj = dict[str, Any]
TREES = [r.hyper_node("ha", 1, "/^a-/"), r.hyper_node("hb", 1, "/^b-/")]
FIRST, SECOND = ["j-w-0", "j-w-1"], ["j-w-2", "j-w-3"]


def role(name: str = "w", least: int = 1, **fields: Any) -> Obj:
    """Two partitions of two pods, each in one HyperNode of tier 1."""
    policy = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": least}
    return m.role(name, 4, cpu=2) | {
        "partitionPolicy": policy | {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}},
        **fields,
    }


@pytest.mark.parametrize("cpu", [4, 6])
def test_t0_w4_the_partitions_that_are_needed_start(cpu: int) -> None:
    """A third pod has room on 6 cpus, and is half a partition."""
    answer = simulate(TREES, r.nodes({"a": [cpu]}), m.job("j", role()), until="5s")
    assert sorted(answer.nodes("j-")) == FIRST


def test_t0_w4_a_partition_beyond_the_minimum_starts_as_a_whole_in_its_own_domain() -> None:
    late = [m.node("b-0", 4, at="9s")]
    answer = simulate(TREES, r.nodes({"a": [6]}), late, m.job("j", role()))
    where = answer.nodes("j-")
    assert {where[name] for name in FIRST} == {"a-0"}
    assert {where[name] for name in SECOND} == {"b-0"}
    assert answer.times("j-w-2") == answer.times("j-w-3") == [9.0]


def test_t0_w4_no_partition_starts_in_two_domains() -> None:
    answer = simulate(TREES, r.nodes({"a": [2], "b": [2]}), m.job("j", role()), until="5s")
    assert not answer.bound()


def test_t0_w4_other_roles_need_their_own_minimum() -> None:
    """The head needs a cpu beside the first partition."""
    head = m.role("head", 1, cpu=1)
    assert not simulate(TREES, r.nodes({"a": [4]}), m.job("j", head, role()), until="5s").bound()
    answer = simulate(TREES, r.nodes({"a": [5]}), m.job("j", head, role()), until="5s")
    assert sorted(answer.nodes("j-")) == ["j-head-0", *FIRST]


def test_t0_m1_w4_the_default_of_the_minimum_is_what_the_partitions_need() -> None:
    [job] = lint([m.job("j", role())]).objects
    assert job["spec"]["minAvailable"] == job["spec"]["tasks"][0]["minAvailable"] == 2
    [job] = lint([m.job("j", role(least=2))]).objects
    assert job["spec"]["minAvailable"] == 4


def test_n1_w4_partitions_of_a_job_in_waves_are_held() -> None:
    later = role(dependsOn={"name": ["head"]})
    answer = simulate(TREES, r.nodes({"a": [5]}), m.job("j", m.role("head", 1), later), until="5s")
    assert "minPartitions below totalPartitions beside dependsOn" in answer.why("default/j")


def test_s8_w4_partitions_are_bounded() -> None:
    large = role()
    large["partitionPolicy"]["totalPartitions"] = 2**31 - 1
    [fault] = lint([m.job("j", large)]).faults
    assert "2,147,483,648 partitions: a gang has at most" in str(fault)
