"""A saved simulation at its instants: the control, what the views show then, and the link that carries the time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from enbloc.cli.main import cli
from enbloc.web.report import report_page

PREEMPT = Path(__file__).parents[2] / "examples" / "preempt.yaml"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    """At 30 s `urgent` evicts pods of two gangs, at 140 s all has ended."""
    done = CliRunner().invoke(cli, ["sim", str(PREEMPT), "-o", "json"])
    assert done.exit_code == 0, done.output
    file = tmp_path_factory.mktemp("saved") / "run.html"
    file.write_text(report_page(json.loads(done.stdout), "preempt"))
    return f"file://{file}"


def states(page: Any) -> dict[str, str]:
    rows = page.locator("main table tbody tr").all()
    return {row.locator("td").nth(0).inner_text(): row.locator("td").nth(1).inner_text() for row in rows}


def test_the_gangs_of_an_instant(saved: str, new_page: Callable[..., Any]) -> None:
    page = new_page()
    page.goto(f"{saved}#/gangs")
    page.get_by_text("the end, 2m 20s").wait_for()
    assert set(states(page).values()) == {"Finished"}
    page.goto(f"{saved}#/gangs?t=10")
    page.get_by_text("10s of 2m 20s").wait_for()
    assert states(page) == {"default/batch": "Running", "default/elastic": "Running", "default/protected": "Running"}
    assert page.locator("#as-of").inner_text() == "a simulation, shown at 10s"
    page.goto(f"{saved}#/gangs?t=40")
    page.get_by_text("40s of 2m 20s").wait_for()
    assert states(page)["default/urgent"] == "Running"
    assert states(page)["default/batch"] == "Waiting"


def test_the_time_is_chosen_by_keys_and_stays_in_the_address(saved: str, new_page: Callable[..., Any]) -> None:
    page = new_page()
    page.goto(f"{saved}#/gangs")
    slider = page.get_by_role("slider", name="Time")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    shown = page.locator("output").inner_text()
    assert shown.endswith("of 2m 20s")
    assert slider.get_attribute("aria-valuetext") == shown.removesuffix(" of 2m 20s")
    page.keyboard.press("Home")
    assert page.locator("output").inner_text() == "0s of 2m 20s"
    assert page.url.endswith("?t=0")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press(".")
    after = page.url.partition("?t=")[2]
    assert float(after) > 0
    page.keyboard.press("4")
    page.locator("canvas#timeline").wait_for()
    assert page.url.endswith(f"#/timeline?t={after}"), "another view shows the same instant"
    page.get_by_role("button", name="Change before").click()
    assert page.locator("output").inner_text() == "0s of 2m 20s"
    page.get_by_role("slider", name="Time").press("End")
    assert page.url.endswith("#/timeline")


def test_the_map_of_an_instant(saved: str, new_page: Callable[..., Any]) -> None:
    """At 10 s both nodes are full, at the end both are empty."""
    page = new_page()
    page.goto(f"{saved}#/map?t=10")
    page.get_by_text("As a table").click()
    rows = page.locator("main table tbody tr")
    assert rows.count() == 2
    assert all("default/protected" in text for text in rows.all_inner_texts())
    page.get_by_role("slider", name="Time").press("End")
    page.get_by_text("the end, 2m 20s").wait_for()
    assert not any("default/" in text for text in page.locator("main table tbody tr").all_inner_texts())


def test_the_page_of_a_gang_and_the_queues_at_an_instant(saved: str, new_page: Callable[..., Any]) -> None:
    page = new_page()
    page.goto(f"{saved}#/gang/default/batch?t=40")
    page.locator("article .state", has_text="Waiting").wait_for()
    page.goto(f"{saved}#/gang/default/urgent?t=10")
    page.get_by_text("There is no such gang").wait_for()
    page.goto(f"{saved}#/queues?t=10")
    page.get_by_text("3 running · 0 waiting").wait_for()


def test_a_phone_shows_the_control_without_scrolling_sideways(saved: str, new_page: Callable[..., Any]) -> None:
    page = new_page(390, 800, has_touch=True)
    page.goto(f"{saved}#/map?t=40")
    page.get_by_text("40s of 2m 20s").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_control_is_accessible(saved: str, new_page: Callable[..., Any]) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="`make web` installs axe")
    page = new_page()
    found = []
    for view in ("summary", "map", "gangs", "timeline", "queues"):
        page.goto(f"{saved}#/{view}?t=40")
        page.get_by_text("40s of 2m 20s").wait_for()
        results = axe.Axe().run(page)
        found += [one["id"] for one in results.response["violations"] if one["impact"] in ("serious", "critical")]
    assert found == []
