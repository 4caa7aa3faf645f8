"""2,000 nodes and 20,000 pods: the time to the first paint and of an update, as ratios to those of an empty cluster.

No time is asserted: the figures are printed, and written where ENBLOC_SHOTS says.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser.served import SHOTS, Served, filled_store, serve_store
from enbloc.cluster.embedded.api.store import Store

NODES, GANGS = 2_000, 1_000
RUNS = 3
LAST = "const last = performance.getEntriesByName('draw')[0];"


@pytest.fixture(scope="module")
def full() -> Iterator[Served]:
    with serve_store(filled_store(NODES, GANGS, running=800, per_node=8)) as served:
        yield served


@pytest.fixture(scope="module")
def empty() -> Iterator[Served]:
    with serve_store(Store(lambda: 1_700_000_000_000_000_000)) as served:
        yield served


def _measured(page: Any, address: str, view: str) -> dict[str, float]:
    """Milliseconds: from the navigation to the drawn view, and of one redraw."""
    painted, drawn = [], []
    for _ in range(RUNS):
        page.goto("about:blank")
        page.goto(f"{address}#/{view}")
        page.wait_for_function("() => performance.getEntriesByName('draw').length > 0")
        painted.append(page.evaluate(f"(() => {{ {LAST} return last.startTime + last.duration; }})()"))
        page.evaluate("performance.clearMeasures('draw'); dispatchEvent(new HashChangeEvent('hashchange'))")
        page.wait_for_function("() => performance.getEntriesByName('draw').length > 0")
        drawn.append(page.evaluate(f"(() => {{ {LAST} return last.duration; }})()"))
    return {"first_paint_ms": statistics.median(painted), "update_ms": statistics.median(drawn)}


def test_first_paint_and_updates_at_scale(
    full: Served, empty: Served, new_page: Callable[..., Any], shot: Callable[[Any, str], None]
) -> None:
    page = new_page(1400, 900)
    figures: dict[str, Any] = {}
    for view in ("summary", "map", "gangs", "timeline", "queues"):
        large, small = _measured(page, full.address, view), _measured(page, empty.address, view)
        figures[view] = {
            **{name: round(value, 1) for name, value in large.items()},
            **{
                f"{name.removesuffix('_ms')}_ratio": round(value / max(small[name], 0.1), 1)
                for name, value in large.items()
            },
        }
        if view == "map":
            page.goto(f"{full.address}#/map")
            page.wait_for_selector("canvas")
            shot(page, "dashboard-map-2000")
    print(json.dumps(figures, indent=1))
    if SHOTS:
        (Path(SHOTS) / "dashboard-figures.json").write_text(json.dumps(figures, indent=1))
    page.goto(f"{full.address}#/gangs")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 100")
    page.get_by_role("button", name="Next").click()
    page.get_by_text("Page 2 of 10").wait_for()
