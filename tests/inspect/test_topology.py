"""Racks and how full they are: `enbloc nodes --topology`, and the groups of the dashboard's map."""

from __future__ import annotations

from typing import Any

from enbloc import config as configs
from enbloc.cli.nodes import _domains
from enbloc.inspect.dashboard import dashboard_model
from enbloc.inspect.gangs import Objects, Reading
from enbloc.inspect.overview import KINDS, overview_of, read_overview
from enbloc.inspect.topology import NO_DOMAIN, Trees, read_domains
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND
from support import manifests as m
from support import racks as r
from support.simulation import documents


def objects_at(seconds: int, *values: Any, config: dict[str, Any] | None = None) -> Objects:
    simulation = Simulation(read_scenario(documents(*values)), configs.parse(config))
    simulation.run(seconds * SECOND)
    return {kind: simulation._store.list(kind)[0] for kind in KINDS}


CLUSTER = [*r.nodes({"a": 2}, "one"), *r.nodes({"b": 1}, "two"), m.node("loose", 4)]


def test_domains_of_every_level_with_their_use() -> None:
    objects = objects_at(5, CLUSTER, r.topology("dc", r.BLOCK, r.RACK), r.kueue("g", 6, required=r.RACK))
    listing = _domains(read_overview(objects, with_trees=True))
    rows = [
        (one["level"], one["domain"], one["nodes"], one["resources"]["cpu"]["used"], one["resources"]["cpu"]["percent"])
        for one in listing.objects
    ]
    assert rows == [
        (r.BLOCK, "one", 2, "6", 75),
        (r.BLOCK, "two", 1, "0", 0),
        (r.BLOCK, NO_DOMAIN, 1, "0", 0),
        (r.RACK, "one/a", 2, "6", 75),
        (r.RACK, "two/b", 1, "0", 0),
        (r.RACK, NO_DOMAIN, 1, "0", 0),
    ]
    assert listing.columns == ["TREE", "LEVEL", "DOMAIN", "NODES", "PODS", "CPU", "MEMORY"]
    assert listing.cells[3][:6] == ["dc", r.RACK, "one/a", "2", "6", "6/8 75%"]


def test_labels_that_gangs_name_are_trees_too() -> None:
    objects = objects_at(5, CLUSTER, r.native("g", 2))
    reading = Reading(objects)
    assert Trees(reading).names == [f"label/{r.RACK}"]
    domains = read_domains(Trees(reading), overview_of(reading).nodes)
    assert [(one.tree, one.domain, one.pods) for one in domains] == [
        (r.RACK, "a", 0), (r.RACK, "b", 2), (r.RACK, NO_DOMAIN, 0),
    ]  # fmt: skip


def test_reserved_room_is_shown_by_domain() -> None:
    config = {"actions": [{"name": "allocate"}, {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 2}}]}
    busy = [m.pod(f"f{n}", 4, run_time="60s", nodeSelector={r.RACK: "a"}) for n in range(2)]
    objects = objects_at(10, r.nodes({"a": 2, "b": 1}), busy, r.native("g", 8, at="1s"), config=config)
    domains = read_domains(Trees(Reading(objects)), read_overview(objects).nodes)
    assert {one.domain: one.reserved for one in domains} == {"a": {"default/g": 8}, "b": {}}
    [reserved] = [one.reserved_room["default/g"] for one in domains if one.domain == "a"]
    assert reserved == {"cpu": 8 * 10**9}


def test_the_map_is_grouped_by_the_lowest_level_above_single_nodes() -> None:
    tree = r.topology("dc", r.BLOCK, r.RACK, "kubernetes.io/hostname")
    objects = objects_at(1, CLUSTER, tree)
    reading = Reading(objects)
    model = dashboard_model(reading, overview_of(reading), 1.0, {})
    assert {one["node"]: one["domain"] for one in model["nodes"]} == {
        "a-0": "one/a", "a-1": "one/a", "b-0": "two/b", "loose": "",
    }  # fmt: skip


def test_without_trees_there_are_no_domains() -> None:
    objects = objects_at(1, m.node("n"))
    assert not _domains(read_overview(objects, with_trees=True)).objects
