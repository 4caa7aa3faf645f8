"""Every metric with its type, labels and meaning, read from the objects that count: docs/metrics.md is made of it.

`reference_pages.py` writes the page, and `tests/test_observability.py` checks queries against the names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from prometheus_client.registry import Collector

from enbloc.runtime.cycle_metrics import CycleMetrics
from enbloc.runtime.engine_metrics import REFERENCE, VOLCANO_REFERENCE
from enbloc.runtime.metrics import Metrics

UP: Final = {
    "enbloc_pods": ("gauge", ("state",), "Pods by state."),
    "enbloc_nodes": ("gauge", (), "Nodes."),
    "enbloc_store_version": ("gauge", (), "Writes to the API since the first start."),
    "enbloc_watches": ("gauge", (), "Open watches."),
    "enbloc_peak_memory_bytes": ("gauge", (), "The most memory that the process had."),
}
"""What only `enbloc up` has."""


class Described(NamedTuple):
    name: str
    """As it is queried; a histogram has `_bucket`, `_sum` and `_count` after it."""
    kind: str
    labels: tuple[str, ...]
    text: str


def of_engine() -> list[Described]:
    """Read when Prometheus asks, in `up` and `run`."""
    return [Described(name, "gauge", labels, text) for name, (text, labels) in REFERENCE.items()]


def of_cycles() -> list[Described]:
    return sorted(_described(CycleMetrics().collectors))


def of_run() -> list[Described]:
    """What `enbloc run` counts besides."""
    return sorted(_described(Metrics().registry._collector_to_names))


def of_up() -> list[Described]:
    return [Described(name, kind, labels, text) for name, (kind, labels, text) in UP.items()]


def of_volcano() -> list[Described]:
    """With `metrics.compat: volcano`."""
    gauges = [Described(name, "gauge", labels, text) for name, (text, labels) in VOLCANO_REFERENCE.items()]
    counted = CycleMetrics(volcano=True).volcano
    assert counted is not None
    return sorted([*gauges, *_described([counted])])


def names() -> set[str]:
    """Every name that a query may use."""
    found: set[str] = set()
    for one in (*of_engine(), *of_cycles(), *of_run(), *of_up(), *of_volcano()):
        found.add(one.name)
        if one.kind == "histogram":
            found.update(f"{one.name}_{part}" for part in ("bucket", "sum", "count"))
    return found


def _described(collectors: Iterable[Collector]) -> Iterator[Described]:
    for collector in collectors:
        parts: list[Any] = [collector] if hasattr(collector, "_labelnames") else []
        if not parts:
            parts = [part for part in vars(collector).values() if hasattr(part, "_labelnames")]
            for family in collector.collect():
                if not any(part._name == family.name for part in parts):
                    labels = tuple(getattr(family, "_labelnames", ()))
                    yield Described(family.name, family.type, labels, family.documentation)
        for part in parts:
            kind = part._type
            name = f"{part._name}_total" if kind == "counter" else part._name
            yield Described(name, kind, tuple(part._labelnames), part._documentation)


def tables() -> str:
    both = "In `enbloc up` and `enbloc run`."
    sections = (
        (
            "The engine",
            "Read when Prometheus asks; they cost nothing in between. In `enbloc up` and `enbloc run`.",
            of_engine(),
        ),
        ("Cycles and decisions", f"Counted by the scheduler. {both}", of_cycles()),
        ("Requests and writes", "Counted by `enbloc run`.", of_run()),
        ("The embedded cluster", "Only `enbloc up`.", of_up()),
        ("Volcano's names", "With `metrics: {compat: volcano}` in the config, for existing boards.", of_volcano()),
    )
    return "\n".join(part for section in sections for part in _table(*section))


def _table(title: str, text: str, rows: list[Described]) -> Iterator[str]:
    yield f"## {title}\n\n{text}\n\n| metric | type | labels | what |\n|---|---|---|---|"
    for row in rows:
        yield f"| `{row.name}` | {row.kind} | {', '.join(row.labels) or '–'} | {row.text} |"
    yield ""
