"""T6: whether a gang of several kinds of pods fits in a domain is answered by search, and "in none" is proved."""

from __future__ import annotations

import pytest

from enbloc.engine.core.placement import in_domains
from support import manifests as m
from support import racks as r
from support.simulation import NO_EVICTIONS, simulate


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


def test_t6_a_search_that_was_cut_off_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one try the first rack, which has enough in total and no assignment, is the only one that is looked at."""
    monkeypatch.setattr(in_domains, "TRIES", 1)
    answer = simulate(r.nodes({"a": [4, 4], "b": [4, 4, 4]}), mixed(3, 3, 2), config=NO_EVICTIONS)
    assert not answer.bound()
    assert "the search ended before every domain was ruled out" in answer.why("default/g")
