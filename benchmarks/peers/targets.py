"""The targets of this project's speed, each with what was measured: met, missed, or not measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Median = Callable[[Sequence[float]], float]
Runs = Sequence[Mapping[str, Any]]

LEAST_PODS = 5_000
"""Targets of live runs hold for at least so many pods in gangs of 20."""


BUSY = 6
"""A load above this is not that of a benchmark alone: API server, etcd, scheduler and client on two cores."""


class Row(NamedTuple):
    what: str
    target: str
    measured: str
    is_met: bool | None
    """`None`: not measured."""


def table(runs: Runs, others: Mapping[str, Any], median: Median) -> str:
    """As Markdown. `others`: figures that need no API server, and memory."""
    text = "## Targets\nOn two cores shared with the API server. Live rows are those of gangs of 20 and "
    text += f"{LEAST_PODS:,} pods or more; of several loads the smallest."
    runs = _smallest(runs)
    busy = max((one["load_average"] for one in runs), default=0.0)
    if busy > BUSY:
        text += (
            f" The machine was busy with other work (load {busy:.0f}): shares and seconds of live rows are not firm."
        )
    text += "\n\n| what | target | measured | |\n|---|---|---|---|\n"
    for row in (*_live(runs, median), *_without_network(others)):
        verdict = {True: "met", False: "**missed**", None: "not measured"}[row.is_met]
        text += f"| {row.what} | {row.target} | {row.measured or '–'} | {verdict} |\n"
    return text + "\n"


def _smallest(runs: Runs) -> Runs:
    """Those of one number of nodes and pods: medians of several would be of none."""
    enough = [(one["nodes"], one["pods"]) for one in runs if one["pods"] >= LEAST_PODS and one["gang_size"] == 20]
    return [one for one in runs if (one["nodes"], one["pods"]) == min(enough)] if enough else []


def _of(runs: Runs, scheduler: str, dialect: str, *, arrive: bool) -> Runs:
    return [
        one
        for one in runs
        if (one["scheduler"], one["dialect"], bool(one["arrive"])) == (scheduler, dialect, arrive)
        and one["gang_size"] == 20
        and one["pods"] >= LEAST_PODS
        and one["bound"] >= one["pods"]
    ]


def _live(runs: Runs, median: Median) -> Iterator[Row]:
    def middle(some: Runs, key: str) -> float | None:
        return median([one[key] for one in some]) if some else None

    ours = {name: _of(runs, "Enbloc", name, arrive=False) for name in ("native", "volcano", "job")}
    for name, least in (("native", 0.9), ("volcano", 0.85), ("job", 0.85)):
        share = middle(ours[name], "share_of_limit")
        shown = "" if share is None else f"{share:.2f}"
        if name == "job" and share is not None:
            shown += f"; {middle(ours[name], 'share_of_create_and_bind'):.2f} of a loop that creates and binds"
        yield Row(
            f"share of the bare bind loop, {name}", f"≥ {least}", shown, None if share is None else share >= least
        )
    peer = _of(runs, "kube-scheduler", "native", arrive=False)
    yield _sooner("all bound, against kube-scheduler", 8, peer, ours["native"], runs, median)
    volcano = _of(runs, "Volcano", "volcano", arrive=False)
    yield _sooner("all bound, against Volcano", 4, volcano, ours["volcano"], runs, median)
    yield _cpu(runs, middle(ours["native"], "cpu_s"), middle)
    first, listed = middle(ours["native"], "first_bind_s"), middle(ours["native"], "list_and_decode_s")
    times = first / listed if first is not None and listed else None
    shown = "" if times is None else f"{times:.1f}× ({first:.1f} s and {listed:.1f} s)"
    yield Row("start to first bind, against listing and decoding", "≤ 2×", shown, None if times is None else times <= 2)
    for name in ("native", "volcano"):
        yield _arrivals(name, _of(runs, "Enbloc", name, arrive=True), middle)


def _cpu(runs: Runs, cpu: float | None, middle: Callable[[Runs, str], float | None]) -> Row:
    """Against the peer that took least, whatever gangs it reads."""
    peers = {(one["scheduler"], one["dialect"]) for one in runs if one["scheduler"] != "Enbloc"}
    spent = {name: middle(_of(runs, name, dialect, arrive=False), "cpu_s") for name, dialect in peers}
    best = min((took, name) for name, took in spent.items() if took) if any(spent.values()) else None
    part = cpu / best[0] if cpu is not None and best is not None else None
    shown = "" if part is None or best is None else f"{part:.2f} ({cpu:.1f} s and {best[0]:.1f} s, {best[1]})"
    what = "CPU of the scheduler, against the best peer"
    return Row(what, "≤ 0.25", shown, None if part is None else part <= 0.25)


def _arrivals(name: str, some: Runs, middle: Callable[[Runs, str], float | None]) -> Row:
    keys = ("gang_p50_s", "gang_p99_s", "bare_gang_p50_s", "bare_gang_p99_s")
    p50, p99, bare50, bare99 = (middle(some, key) for key in keys)
    what, target = f"arrivals at half the limit, {name}: a gang's p50 and p99", "≤ 0.1 s and ≤ 0.5 s"
    if p50 is None or p99 is None or bare50 is None or bare99 is None:
        return Row(what, target, "", None)
    return Row(
        what, target, f"{p50:.2f} s and {p99:.2f} s; the bare loop's own: {bare50:.2f} s and {bare99:.2f} s",
        p50 <= 0.1 and p99 <= 0.5,
    )  # fmt: skip


def _sooner(what: str, least: float, peer: Runs, own: Runs, runs: Runs, median: Median) -> Row:
    """Each run of the peer is compared with ours of the same repeat, the last before it; each time is counted in
    Bindings of its own bare loops: the machine may have been busier beside one of them."""
    pairs = []
    before: Mapping[str, Any] | None = None
    for one in runs:
        if any(one is ours for ours in own):
            before = one
        elif before is not None and any(one is theirs for theirs in peer):
            pairs.append((one, before))
    if not pairs:
        return Row(what, f"≥ {least:g}×", "", None)
    theirs, ours = (median([pair[side]["all_bound_s"] for pair in pairs]) for side in (0, 1))
    counted = median([_in_bare_loops(one) / _in_bare_loops(mine) for one, mine in pairs])
    shown = f"{counted:.1f}×, in units of each one's bare loops ({theirs:.0f} s and {ours:.0f} s as measured)"
    return Row(what, f"≥ {least:g}×", shown, counted >= least)


def _in_bare_loops(one: Mapping[str, Any]) -> float:
    return float(one["all_bound_s"] * one["bare_bind_per_s"])


def _without_network(others: Mapping[str, Any]) -> Iterator[Row]:
    engine = others.get("engine") or {}
    for size, least in (("20", 10), ("64", 25)):
        found = engine.get(size)
        what = f"engine, 20,000 pods in gangs of {size} on 5,000 nodes, against pod by pod"
        shown = f"{found['ratio']:.1f}× ({found['pods_per_s']:,} pods/s)" if found else ""
        yield Row(what, f"≥ {least}×", shown, found["ratio"] >= least if found else None)
    ratio, share = others.get("pending_cycle_ratio"), others.get("simulation_share")
    what = "cycle beside 5,000 gangs that do not fit, against none"
    yield Row(what, "≤ 2×", f"{ratio:.2f}×" if ratio else "", ratio <= 2 if ratio else None)
    what = "simulation, whole stack, against the bare store doing the same writes"
    yield Row(what, "≥ 0.25", f"{share:.2f}" if share else "", share >= 0.25 if share else None)
    memory = others.get("memory")
    what = "peak memory of `enbloc run`, 10,000 nodes and 200,000 pods"
    yield Row(
        what, "< 1.2 GB", f"{memory['peak_memory_mb'] / 1000:.2f} GB" if memory else "",
        memory["peak_memory_mb"] < 1_200 if memory else None,
    )  # fmt: skip
