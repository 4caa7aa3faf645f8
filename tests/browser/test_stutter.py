"""5,000 nodes of eight GPUs on the map: it is drawn when something changed and not in between, so that it does not
stutter under the pointer.

Times are printed as ratios, to a tenth of the nodes and to a blank page of the same browser, and asserted nowhere: what
is asserted is how often the map is drawn.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser.served import SHOTS, Served, filled_store, serve_store
from enbloc.web import pages
from support import manifests as m

NODES, GANGS = 5_000, 1_250
FRAMES = 120
DRAWN = """() => {
  window.drawn = [];
  new PerformanceObserver((list) => drawn.push(...list.getEntriesByName("draw").map((one) => one.duration)))
    .observe({ type: "measure" });
}"""
FRAME_TIMES = f"""() => new Promise((done) => {{
  const times = []; let last = performance.now();
  const frame = (now) => {{ times.push(now - last); last = now; if (times.length < {FRAMES}) requestAnimationFrame(frame); else done(times); }};
  requestAnimationFrame(frame);
}})"""  # noqa: E501


@pytest.fixture(scope="module")
def large() -> Iterator[Served]:
    with serve_store(filled_store(NODES, GANGS, running=GANGS, per_node=5)) as served:
        yield served


@pytest.fixture(scope="module")
def small() -> Iterator[Served]:
    with serve_store(filled_store(NODES // 10, GANGS // 10, running=GANGS // 10, per_node=5)) as served:
        yield served


def _open(page: Any, served: Served) -> None:
    page.goto(f"{served.address}#/map")
    page.wait_for_selector("canvas")
    page.evaluate(DRAWN)


def _redraw_ms(page: Any) -> float:
    """Of a change of the view's address, which draws it anew."""
    for _ in range(5):
        before = page.evaluate("drawn.length")
        page.evaluate("dispatchEvent(new HashChangeEvent('hashchange'))")
        page.wait_for_function(f"() => drawn.length > {before}")
    return statistics.median(page.evaluate("drawn.slice(-5)"))


def _frames_ms(page: Any) -> dict[str, float]:
    """Of frames while the pointer moves over the page."""
    page.evaluate(f"window.frames = ({FRAME_TIMES})()")
    for step in range(60):
        page.mouse.move(100 + step * 15, 200 + (step * 37) % 400)
    times = sorted(page.evaluate("window.frames"))
    return {"median_ms": statistics.median(times), "p95_ms": times[int(len(times) * 0.95)]}


def test_the_map_of_5000_nodes_is_drawn_only_when_something_changed(
    large: Served, small: Served, new_page: Callable[..., Any], shot: Callable[[Any, str], None]
) -> None:
    page = new_page(1400, 900)
    page.set_default_timeout(120_000)
    page.goto("about:blank")
    blank = _frames_ms(page)
    _open(page, small)
    tenth_ms = _redraw_ms(page)
    _open(page, large)
    whole_ms = _redraw_ms(page)
    before = page.evaluate("drawn.length")
    moved = _frames_ms(page)
    page.wait_for_timeout(1_500 * pages.TICK_S)  # at least one tick: nothing has changed
    assert page.evaluate("drawn.length") == before, "drawn although nothing changed"
    large.store.create(m.pod("one-more"))
    page.wait_for_function(f"() => drawn.length > {before}")
    figures = {
        "redraw_ms": round(whole_ms, 1),
        "redraw_ratio_to_a_tenth_of_the_nodes": round(whole_ms / max(tenth_ms, 0.1), 1),
        "frame_ratio_to_a_blank_page": {name: round(moved[name] / max(blank[name], 0.1), 1) for name in moved},
    }
    print(json.dumps(figures, indent=1))
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        (Path(SHOTS) / "stutter-figures.json").write_text(json.dumps(figures, indent=1))
    shot(page, "dashboard-map-5000")
