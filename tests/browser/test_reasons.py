"""What a newcomer reads of `examples/reasons.yaml`: five gangs that wait, and pods of no group that run or ran."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import enbloc
from support import manifests as m

REASONS = Path(__file__).parents[2] / "examples" / "reasons.yaml"
STATES = ["Finished", "Running", *["Waiting"] * 5]


@pytest.fixture(scope="module")
def reasons() -> Iterator[enbloc.Cluster]:
    lone = [m.pod("runs", cpu=1, run_time="1h"), m.pod("ran", cpu=1, run_time="1s")]
    with enbloc.Cluster([*yaml.safe_load_all(REASONS.read_text()), *lone]) as cluster:
        end_s, found = time.monotonic() + 60, []
        while found != STATES:
            assert time.monotonic() < end_s, found
            time.sleep(0.1)
            with urllib.request.urlopen(f"{cluster.address}api/model", timeout=30) as answer:
                found = sorted(gang["state"] for gang in json.load(answer)["gangs"])
        yield cluster


def _gang(page: Any, cluster: enbloc.Cluster, name: str) -> Any:
    page.goto(f"{cluster.address}#/gang/default/{name}")
    page.get_by_text("What would let it start").wait_for(timeout=120_000)
    page.get_by_text("Changes are being tried").wait_for(state="detached", timeout=120_000)
    return page


@pytest.mark.parametrize(
    ("gang", "says"),
    [
        ("too-big", "Its pods do not exist yet."),
        ("over-its-queue", "Its pods do not exist yet."),
        ("too-wide", "No pod of it would fit on any node now."),
        ("incomplete", "1 of 3 pods would fit now"),
    ],
)
def test_where_it_would_fit_is_said_of_pods_that_exist(
    reasons: enbloc.Cluster, new_page: Callable[..., Any], gang: str, says: str
) -> None:
    page = _gang(new_page(), reasons, gang)
    assert says in page.locator("section", has=page.get_by_role("heading", name="Where it would fit")).inner_text()


def test_the_chip_of_a_gang_names_the_taint_of_the_node_that_it_selects(
    reasons: enbloc.Cluster, new_page: Callable[..., Any]
) -> None:
    page = new_page()
    page.goto(f"{reasons.address}#/summary")
    page.get_by_text("waits: had untolerated taint {gpu: true}").wait_for()


def test_a_pod_of_no_group_has_its_times_on_the_timeline(reasons: enbloc.Cluster, new_page: Callable[..., Any]) -> None:
    page = new_page()
    page.goto(f"{reasons.address}#/gang/default/ran")
    page.locator("dt", has_text="Ran").wait_for()
    page.goto(f"{reasons.address}#/summary")
    page.locator(".card", has_text="Median wait").wait_for()
    assert page.locator(".card", has_text="Median wait").locator("b").inner_text() != "–"


def test_lists_say_why_beside_the_badge_and_chips_are_sentences(
    reasons: enbloc.Cluster, new_page: Callable[..., Any]
) -> None:
    page = new_page()
    page.goto(f"{reasons.address}#/gangs")
    page.locator("td.why").first.wait_for()
    said = page.locator("td.why").all_inner_texts()
    assert [text for text in said if text.startswith("It waits:")] == []
    assert "Not enqueued: requests 3 cpu, queue small uses 0 of its capability of 2." in said
    assert "It is over: 1 pod succeeded, 0 failed." in said
    page.locator(".chips button", has_text="too few of its pods exist").click()
    assert page.locator("td.name").all_inner_texts() == ["default/incomplete"]
    assert page.locator(".chips button[aria-pressed=true]").get_attribute("title") == "NotEnoughPods"


def test_a_gang_that_runs_has_no_expected_start_and_times_have_a_zone(
    reasons: enbloc.Cluster, new_page: Callable[..., Any]
) -> None:
    page = new_page(timezone_id="Asia/Tokyo", locale="en-US")
    page.goto(f"{reasons.address}#/gang/default/runs")
    page.locator("dt", has_text="Has run").wait_for()
    assert page.get_by_text("Expected start").count() == 0
    assert "times in GMT+9" in page.text_content("#as-of")


def test_the_legend_of_the_map_names_the_unit(reasons: enbloc.Cluster, new_page: Callable[..., Any]) -> None:
    page = new_page()
    page.goto(f"{reasons.address}#/map")
    page.get_by_text("4 nvidia.com/gpu free on 1 node").wait_for()


def test_a_number_of_gangs_is_whole_on_its_axis(reasons: enbloc.Cluster, new_page: Callable[..., Any]) -> None:
    """Five gangs wait: half of that is no number of gangs."""
    page = new_page()
    page.goto(f"{reasons.address}#/summary")
    page.get_by_role("img", name="Waiting gangs over time").wait_for()
    labels = page.locator(".chart.waits text[text-anchor=end]").all_text_contents()
    assert labels[:2] == ["0", "5"]


def test_what_limits_a_gang_is_not_called_a_holder(reasons: enbloc.Cluster, new_page: Callable[..., Any]) -> None:
    page = _gang(new_page(), reasons, "over-its-queue")
    row = page.get_by_role("region", name="What limits it").locator("tbody tr")
    assert row.inner_text().split("\t") == ["queue", "small", "uses 0 of its capability of 2 cpu, and 3 would be added"]
    assert page.get_by_text("Who holds what it waits for").count() == 0
    heads = page.get_by_role("region", name="Numbers").locator("th").all_inner_texts()
    assert heads == ["Role", "Minimum", "Exist", "Wait"]  # of pods that do not exist there is nothing more to say


def test_gangs_ahead_are_not_shown_where_the_order_decides_nothing(
    reasons: enbloc.Cluster, new_page: Callable[..., Any]
) -> None:
    """`too-big` is before `too-wide` in its queue, and not in its way: no gang holds what it waits for."""
    page = new_page()
    held: list[Any] = []
    page.route("**/api/explain/**", lambda route: held.append(route))
    page.goto(f"{reasons.address}#/gang/default/too-wide")
    page.get_by_text("Changes are being tried").wait_for()
    assert page.get_by_text("Ahead in its queue").count() == 0
    for route in held:
        route.continue_()
    page.get_by_text("Changes are being tried").wait_for(state="detached", timeout=120_000)
    assert page.get_by_text("Ahead in its queue").count() == 0


def test_a_phone_has_the_headings_of_cells_and_no_word_of_hovering(
    reasons: enbloc.Cluster, new_page: Callable[..., Any]
) -> None:
    page = _gang(new_page(390, 800, has_touch=True, is_mobile=True), reasons, "too-wide")
    label = "all => all.map((one) => getComputedStyle(one, '::before').content + one.innerText)"
    cells = page.get_by_role("region", name="Numbers").locator("tbody tr").first.locator("td").evaluate_all(label)
    assert cells[:5] == [
        "noneworker",
        *[f'"{text} "2' for text in ("Minimum", "Exist", "Wait")],
        '"Each requests "5 cpu',
    ]
    page.goto(f"{reasons.address}#/map")
    page.get_by_text("tap a node for its gang").wait_for()
    assert page.get_by_text("hover").count() == 0
