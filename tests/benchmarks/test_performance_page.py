"""The page that `python -m benchmarks.peers` writes: what a scheduler did not do is not shown as not measured."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.peers.performance import markdown


def run(**figures: Any) -> dict[str, Any]:
    found = dict.fromkeys(("first_bind_s", "all_bound_s", "gang_p50_s", "gang_p99_s", "bound_per_s", "bound"), 0)
    load = {"nodes": 10, "pods": 20, "gang_size": 5, "arrive": 0.0, "load_average": 1.0, "bare_bind_per_s": 100}
    named = {"scheduler": "other", "version": "1", "dialect": "native", "requests": {}, "share_of_limit": 0.0}
    return {**found, **load, **named, "cpu_s": 2.0, "peak_memory_mb": 0, **figures}


def page_of(*runs: dict[str, Any]) -> str:
    return markdown(runs, statistics.median)


def cells(*runs: dict[str, Any]) -> list[str]:
    page = page_of(*runs)
    (line,) = [line for line in page.splitlines() if line.startswith("| other, native (")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_a_scheduler_that_bound_nothing_is_shown_with_its_zeros() -> None:
    none = ["none bound"] * 4
    assert cells(run()) == ["0", "0.00", *none, "2.0", "not measured"]


def test_times_are_those_of_the_runs_that_bound_something() -> None:
    half = run(bound=10, bound_per_s=50, share_of_limit=0.5, first_bind_s=1.0, all_bound_s=2.0, peak_memory_mb=80)
    assert cells(run(), half)[:4] == ["25 (0–50)", "0.25 (0.00–0.50)", "1.0", "2.0"]


def test_every_target_is_met_or_missed_or_not_measured() -> None:
    whole = {"pods": 5000, "gang_size": 20, "bound": 5000, "share_of_create_and_bind": 1.1, "list_and_decode_s": 1.0}
    native = run(**whole, scheduler="Enbloc", share_of_limit=0.95, all_bound_s=10.0, first_bind_s=3.0, cpu_s=5.0)
    small = {**native, "pods": 500, "bound": 500, "share_of_limit": 0.1}
    peer = run(**whole, scheduler="kube-scheduler", all_bound_s=90.0, cpu_s=10.0)
    page = page_of(native, small, peer, {"pending_cycle_ratio": 1.1}, {"memory": {"peak_memory_mb": 1300}})
    rows = [line for line in page.partition("## Targets")[2].partition("\n## ")[0].splitlines() if "|" in line][2:]
    verdicts = {row.split("|")[1].strip(): row.split("|")[-2].strip() for row in rows}
    assert len(verdicts) == 14
    assert verdicts["share of the bare bind loop, native"] == "met"
    assert verdicts["all bound, against kube-scheduler"] == "met"
    assert verdicts["all bound, against Volcano"] == "not measured"
    assert verdicts["CPU of the scheduler, against the best peer"] == "**missed**"
    assert verdicts["start to first bind, against listing and decoding"] == "**missed**"
    assert verdicts["peak memory of `enbloc run`, 10,000 nodes and 200,000 pods"] == "**missed**"
    assert verdicts["cycle beside 5,000 gangs that do not fit, against none"] == "met"


def test_a_peer_that_does_not_end_is_shown_with_how_many_it_bound() -> None:
    page = page_of(run(bound=20), run(bound=7, at_most_s=60.0))
    assert "| other, native (1 of 2 runs did not end: 7 bound in 60 s) |" in page


def test_the_loads_of_several_invocations_are_one_page_in_order() -> None:
    large, small = run(nodes=2000, bound=20), run(nodes=500, bound=20, commands=["peer --qps=1"], how="by hand")
    page = page_of(large, small, large)
    assert page.index("## 500 nodes") < page.index("## 2,000 nodes")
    assert page.count("## 2,000 nodes") == 1
    assert "| other | 1 | `peer --qps=1` | by hand |" not in page, "the last run of a scheduler counts"


def test_peers_that_were_not_run_are_listed_with_the_reason() -> None:
    ran = run(scheduler="YuniKorn", bound=20)
    failed = {**run(scheduler="KAI", dialect="kai"), "failed": "kai ended with code 1:\nno kind"}
    page = page_of(ran, failed, {"not_run": "Koordinator", "why": "it does not build:\nno module"})
    part = page.partition("## Not run\n")[2].partition("\n## ")[0]
    assert "- Koordinator: it does not build: no module\n" in part
    assert "- KAI, kai, 10 nodes, 20 pods in gangs of 5: kai ended with code 1: no kind\n" in part
    assert "- Volcano: not served as a Go module" in part
    assert "- scheduler-plugins: left out of these runs\n" in part
    assert "YuniKorn" not in part


def test_targets_are_those_of_one_load() -> None:
    whole = {"scheduler": "Enbloc", "gang_size": 20, "share_of_create_and_bind": 1.0, "list_and_decode_s": 1.0}
    small = run(**whole, nodes=500, pods=5000, bound=5000, share_of_limit=0.95)
    large = run(**whole, nodes=2000, pods=10000, bound=10000, share_of_limit=0.1)
    page = page_of(small, large, large)
    assert "| share of the bare bind loop, native | ≥ 0.9 | 0.95 | met |" in page


def test_the_best_peer_in_cpu_may_read_any_dialect() -> None:
    whole = {"pods": 5000, "gang_size": 20, "bound": 5000, "share_of_create_and_bind": 1.0, "list_and_decode_s": 1.0}
    ours = run(**whole, scheduler="Enbloc", cpu_s=4.0)
    peers = [run(**whole, scheduler=name, dialect=name, cpu_s=spent) for name, spent in (("KAI", 8.0), ("Other", 40.0))]
    page = page_of(ours, *peers)
    assert "| ≤ 0.25 | 0.50 (4.0 s and 8.0 s, KAI) | **missed** |" in page
