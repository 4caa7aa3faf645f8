"""Every view, clicked through as a reader does it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import enbloc
from enbloc.web.pages import TICK_S
from support import manifests as m

VIEWS = ("summary", "map", "gangs", "gang/default/giant", "gang/default/llama", "timeline", "queues")


PRINTED = """() => {
  window.printed = [];
  addEventListener("beforeprint", () => printed.push(...[...document.querySelectorAll(".sheet > h2")].map((one) => one.textContent)));
}"""  # noqa: E501


def _open(page: Any, cluster: enbloc.Cluster, view: str = "summary") -> Any:
    page.goto(f"{cluster.address}#/{view}")
    page.wait_for_selector("main > *:not(noscript)")
    return page


def test_from_my_job_is_pending_to_its_cause_in_two_clicks(
    cluster: enbloc.Cluster, new_page: Callable[..., Any], shot: Callable[[Any, str], None]
) -> None:
    page = _open(new_page(1200, 900), cluster)
    page.get_by_role("link", name="Waiting").click()
    page.get_by_role("link", name="default/speech").click()
    sentence = page.text_content(".sentence")  # its cause, after two clicks
    assert re.search(r"It waits: \d of 6 pods do not fit: 0/16 nodes are available: 16 Insufficient nvidia", sentence)
    page.get_by_text("Each was tried on a copy of the cluster").wait_for(timeout=120_000)  # seconds on an idle machine
    for heading in ("What would let it start", "Who holds what it waits for", "Numbers", "Where it would fit", "Pods"):
        assert page.get_by_role("heading", name=heading, exact=True).count() == 1, heading
    assert page.get_by_text("Its best partial fit").count() == 1
    assert page.get_by_role("region", name="Who holds what it waits for").get_by_role("link").count() > 1
    assert page.get_by_role("region", name="Pods").get_by_role("row").count() == 7
    shot(page, "dashboard-gang")


def test_gangs_ahead_are_shown_where_others_hold_the_room(
    cluster: enbloc.Cluster, new_page: Callable[..., Any]
) -> None:
    page = _open(new_page(), cluster, "gang/default/giant")
    ahead = page.get_by_role("region", name="Ahead in its queue")
    ahead.wait_for(timeout=120_000)
    assert ahead.get_by_role("link").all_inner_texts() == ["default/vision"]


def test_gangs_are_searched_filtered_and_sorted_and_the_link_can_be_shared(
    cluster: enbloc.Cluster, new_page: Callable[..., Any], shot: Callable[[Any, str], None]
) -> None:
    page = _open(new_page(), cluster, "gangs")
    rows = page.locator("tbody tr")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 8")
    shot(page, "dashboard-gangs")
    page.get_by_label("Search gangs").fill("giant")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Queue").select_option("serving")
    page.get_by_label("State").select_option("Waiting")
    page.get_by_role("button", name="Priority").click()
    assert re.search(r"#/gangs\?queue=serving&state=Waiting&sort=priority", page.url)
    found = [row.inner_text().split()[0] for row in rows.all()]
    other = _open(new_page(), cluster, page.url.partition("#/")[2])  # a colleague opens the link
    assert [row.inner_text().split()[0] for row in other.locator("tbody tr").all()] == found != []
    chip = page.locator(".chips button").first
    chip.click()
    assert "reason=" in page.url


def test_the_map_names_what_is_on_a_node_and_opens_its_gang(
    cluster: enbloc.Cluster, new_page: Callable[..., Any], shot: Callable[[Any, str], None]
) -> None:
    page = _open(new_page(1040, 336), cluster, "map")
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 45)
    page.wait_for_selector(".tip:not([hidden])")
    assert re.match(r"n\d\d: Ready, \d of 8 nvidia.com/gpu\n", page.inner_text(".tip"))
    page.mouse.move(0, 0)
    shot(page, "dashboard-map")
    page.get_by_label("Colour").select_option("queue")
    page.get_by_label("Resource").select_option("cpu")
    assert "by=queue&resource=cpu" in page.url
    page.get_by_text("As a table").click()
    page.locator("details tbody a").first.click()
    page.wait_for_selector("article h2")
    page.go_back()
    box = page.locator("canvas").bounding_box()
    page.mouse.click(box["x"] + 20, box["y"] + 45)
    page.wait_for_selector("article h2")
    assert "#/gang/default/" in page.url


def test_the_timeline_zooms_pans_and_opens_a_gang(
    cluster: enbloc.Cluster, new_page: Callable[..., Any], shot: Callable[[Any, str], None]
) -> None:
    page = _open(new_page(), cluster, "timeline")
    canvas = page.locator("canvas")
    shot(page, "dashboard-timeline")
    before = canvas.screenshot()
    page.get_by_role("button", name="Zoom in").click()
    canvas.focus()
    for key in ("+", "ArrowRight", "-", "ArrowLeft", "ArrowDown"):
        page.keyboard.press(key)
    page.wait_for_timeout(100)
    assert canvas.screenshot() != before
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 30)
    page.wait_for_selector(".tip:not([hidden])")
    assert re.match(r"default/llama: Running\ncame .*, waited \d+s\nstarted .*, has run \d+s", page.inner_text(".tip"))
    page.mouse.click(box["x"] + 60, box["y"] + 30)
    page.wait_for_selector("article h2")


def test_the_timeline_ends_now_until_it_is_zoomed(cluster: enbloc.Cluster, new_page: Callable[..., Any]) -> None:
    """A page that stays open shows what happened since: the line of now stays where it is, and bars grow to it."""
    page = _open(new_page(), cluster, "timeline")
    now_at = """() => { const one = document.querySelector("canvas"), row = one.getContext("2d").getImageData(0, 20 * devicePixelRatio, one.width, 1).data;
      let last = -1; for (let x = 0; x < one.width; x += 1) if (row[4 * x + 3] > 200 && row[4 * x] < 60) last = x; return last / one.width; }"""  # noqa: E501
    page.wait_for_timeout(200)
    before = page.evaluate(now_at)
    assert before > 0.9
    page.wait_for_timeout(int(2_200 * TICK_S))
    assert page.evaluate(now_at) > 0.9
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_timeout(200)
    assert page.evaluate(now_at) < 0


def test_queues_show_bars_and_shares_over_time(
    cluster: enbloc.Cluster, new_page: Callable[..., Any], shot: Callable[[Any, str], None]
) -> None:
    page = _open(new_page(), cluster, "queues")
    page.get_by_role("img", name="Use of nvidia.com/gpu by queue over time").wait_for()
    assert page.locator("section .legend span").count() == 2
    assert page.locator("td .bar i").count() >= 4
    page.locator("td .bar u.deserved").first.wait_for()
    shot(page, "dashboard-queues")
    page.get_by_role("link", name="serving").click()
    page.wait_for_function("() => location.hash === '#/gangs?queue=serving'")


def test_keys_switch_views_search_and_explain_themselves(cluster: enbloc.Cluster, new_page: Callable[..., Any]) -> None:
    page = _open(new_page(), cluster)
    for key, view in (("2", "map"), ("3", "gangs"), ("4", "timeline"), ("5", "queues"), ("1", "summary")):
        page.keyboard.press(key)
        page.wait_for_function(f"() => location.hash === '#/{view}'")
    page.keyboard.press("/")
    page.wait_for_function("() => document.activeElement.id === 'search'")
    page.keyboard.type("5?")  # text, not keys
    page.wait_for_function("() => location.hash === '#/gangs?search=5%3F'")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog:not([open])", state="hidden")


def test_changes_are_seen_live_at_most_twice_a_second(cluster: enbloc.Cluster, new_page: Callable[..., Any]) -> None:
    page = _open(new_page(), cluster, "gangs")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/api/model") else None)
    page.wait_for_function("() => document.getElementById('as-of').textContent.includes('as of')")
    began_s = page.evaluate("performance.now()") / 1000
    for number in range(40):
        cluster.create(m.pod(f"late-{number}", cpu=1, run_time="1h"))
        page.wait_for_timeout(25)
    page.get_by_role("link", name="default/late-39").wait_for()
    took_s = page.evaluate("performance.now()") / 1000 - began_s
    assert 1 <= len(asked) <= 2 * took_s + 2
    for number in range(40):
        cluster.delete("Pod", f"late-{number}", namespace="default")
    page.get_by_role("link", name="default/late-39").wait_for(state="detached")


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_shows_every_view_without_scrolling_sideways(
    cluster: enbloc.Cluster, new_page: Callable[..., Any], shot: Callable[[Any, str], None], view: str
) -> None:
    page = _open(new_page(390, 800, has_touch=True), cluster, view)
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    if view == "gang/default/giant":
        shot(page, "dashboard-phone")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(cluster: enbloc.Cluster, new_page: Callable[..., Any], scheme: str) -> None:
    """Contrast, names of controls, headings, regions, tables, in both colour schemes."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="`make web` installs axe")
    page = _open(new_page(color_scheme=scheme), cluster)
    found: list[str] = []
    for view in VIEWS:
        _open(page, cluster, view)
        page.wait_for_timeout(400)
        results = axe.Axe().run(page)
        found += [
            f"{view}: {one['id']} ({one['impact']}): {one['nodes'][0]['html'][:160]}"
            for one in results.response["violations"]
            if one["impact"] in ("serious", "critical")
        ]
    assert found == []


def test_the_report_is_the_same_without_a_server(tmp_path: Path, new_page: Callable[..., Any]) -> None:
    from click.testing import CliRunner

    from enbloc.cli.main import cli

    quickstart = Path(__file__).parents[2] / "examples" / "quickstart.yaml"
    done = CliRunner().invoke(cli, ["sim", str(quickstart), "--report", str(tmp_path / "r.html")])
    assert done.exit_code == 0, done.output
    page = new_page()
    page.goto(f"file://{tmp_path}/r.html")
    for view, text in (
        ("summary", "a simulation, ended at"),
        ("map", "reserved or held"),
        ("gangs", "default/giant"),
        ("gang/default/giant", "add 1 larger node"),
        ("timeline", "expected"),
        ("queues", "by queue over time"),
    ):
        page.goto(f"file://{tmp_path}/r.html#/{view}")
        page.get_by_text(text).first.wait_for()
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    page.goto(f"file://{tmp_path}/r.html#/summary")
    page.get_by_text("a simulation, ended at").wait_for()
    page.evaluate(PRINTED)
    assert page.pdf(format="A4")[:5] == b"%PDF-"
    assert page.evaluate("printed") == ["Summary", "Map", "Timeline", "Queues", "Gangs"]
    page.wait_for_function("() => !document.querySelector('.sheet')")  # the view that was open is back


PIXELS = """async (gangs) => {
  const { colourOf, isDark } = await import("/static/format.js");
  const canvas = document.querySelector(".map canvas"), context = canvas.getContext("2d"), probe = document.createElement("canvas").getContext("2d");
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height), counts = {};
  for (const gang of gangs) {
    probe.fillStyle = colourOf("gang", gang, isDark()); probe.fillRect(0, 0, 1, 1);
    const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
    counts[gang] = 0;
    for (let at = 0; at < data.length; at += 4)
      if (data[at] === red && data[at + 1] === green && data[at + 2] === blue && data[at + 3] === 255) counts[gang] += 1;
  }
  return counts;
}"""  # noqa: E501


@pytest.mark.parametrize("shown, other", [("default/cpus", "default/gpus"), ("default/gpus", "default/cpus")])
def test_a_gang_lights_up_its_own_cells_and_no_other(new_page: Callable[..., Any], shown: str, other: str) -> None:
    """Both are on one node; one has all GPUs, the other none."""
    gpus = m.role("w", 1, cpu=1, extra={"nvidia.com/gpu": "4"})
    jobs = [m.job("gpus", gpus), m.job("cpus", m.role("w", 1, cpu=2))]
    with enbloc.Cluster([m.node("n", 4, extra={"nvidia.com/gpu": "4"}), *jobs]) as cluster:
        page = _open(new_page(), cluster, f"gang/{shown}")
        page.locator(".map canvas").wait_for()
        page.get_by_text("It runs").first.wait_for()
        counts = page.evaluate(PIXELS, [shown, other])
        page.close()
    assert counts[shown] > 100
    assert counts[other] == 0
