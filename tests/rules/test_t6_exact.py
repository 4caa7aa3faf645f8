"""T6: whether a gang of several kinds of pods fits in a domain is answered by search, and "in none" is proved."""

from __future__ import annotations

from support import manifests as m
from support import racks as r
from support.simulation import simulate


def mixed(*cpus: int) -> list[dict[str, object]]:
    group = m.native_podgroup(
        "g", {"gang": {"minCount": len(cpus)}}, schedulingConstraints={"topology": [{"key": r.RACK}]}
    )
    found = [group]
    for n, cpu in enumerate(cpus):
        [pod] = m.native_pods("g", 1, cpu=cpu)
        pod["metadata"]["name"] = f"g-{n}"
        found.append(pod)
    return found


def test_t6_a_mixed_gang_is_found_a_rack_in_which_greedy_placement_fails() -> None:
    """The first pods, of 2 cpu, would spread over both nodes of 5 and leave no room for 4: 4+1 and 2+2+1 fit."""
    answer = simulate(r.nodes({"a": [5, 5]}), mixed(2, 2, 4, 1, 1))
    assert r.racks_of(answer.nodes("g")) == ["a"]


def test_t6_a_rack_with_enough_in_total_and_no_assignment_is_passed_by() -> None:
    answer = simulate(r.nodes({"a": [3, 3, 3], "b": [4, 4, 4]}), mixed(2, 2, 2, 2, 1))
    assert r.racks_of(answer.nodes("g")) == ["b"]


def test_t6_fits_in_no_rack_is_proved() -> None:
    answer = simulate(r.nodes({"a": [3, 3, 3]}), mixed(2, 2, 2, 2, 1))
    assert answer.why("default/g") == (
        "5 pods must fit in one domain of example.com/rack: of 1 domain, 1 has room for 4 of 5."
    )
