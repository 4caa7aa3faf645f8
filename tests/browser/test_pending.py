"""From "my job is pending" to its true cause in two clicks, for every cause that a new user meets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import enbloc
from browser.pending import CAUSES, IN_THE_WAY, REMEDIES, pending_cluster

SEEN = "() => document.querySelector('.sentence').getBoundingClientRect().top > 0 && scrollY === 0"
DOMAIN = "no domain of topology.kubernetes.io/rack has room"


@pytest.fixture(scope="module")
def pending() -> Iterator[enbloc.Cluster]:
    with pending_cluster() as cluster:
        yield cluster


def test_two_clicks_lead_to_the_true_cause(
    pending: enbloc.Cluster, new_page: Callable[..., Any], shot: Callable[[Any, str], None]
) -> None:
    page = new_page(1200, 900)
    for gang, words in CAUSES.items():
        page.goto(f"{pending.address}#/summary")
        page.get_by_role("link", name="Gangs", exact=True).click()
        page.get_by_role("link", name=gang, exact=True).click()
        page.wait_for_function("name => document.querySelector('article h2')?.textContent.includes(name)", arg=gang)
        page.wait_for_function("words => document.querySelector('.sentence').textContent.includes(words)", arg=words)
        page.wait_for_function(SEEN)  # without scrolling, wherever in the list it stood
        if gang in IN_THE_WAY:
            found = page.get_by_role("region", name="Who holds what it waits for")
            found.wait_for(timeout=120_000)
            assert set(found.get_by_role("link").all_inner_texts()) == IN_THE_WAY[gang]
        if gang in REMEDIES:
            page.get_by_text(REMEDIES[gang]).wait_for(timeout=120_000)
    page.goto(f"{pending.address}#/gangs?state=Waiting")
    page.locator("tbody tr").first.wait_for()
    shot(page, "dashboard-pending")


def test_gangs_are_grouped_by_what_the_scheduler_found(pending: enbloc.Cluster, new_page: Callable[..., Any]) -> None:
    page = new_page()
    page.goto(f"{pending.address}#/gangs")
    page.locator(".chips button").first.wait_for()
    shown = {text.partition(": ")[2] for text in page.locator(".chips button").all_inner_texts()}
    assert {
        *("something in it or its queue is not valid", "behind another gang of a FIFO queue"),
        *("its pods could not be created", "too few of its pods exist", "Insufficient nvidia.com/gpu", DOMAIN),
    } <= shown
    page.locator(".chips button", has_text="is not valid").click()
    assert page.locator("td.name").all_inner_texts() == ["default/after-hours", "default/lost"]


def test_a_reserved_node_is_no_place_for_another_gang(pending: enbloc.Cluster, new_page: Callable[..., Any]) -> None:
    page = new_page()
    page.goto(f"{pending.address}#/gang/default/beside-a-reservation")
    page.get_by_text("No pod of it would fit on any node now.").wait_for(timeout=120_000)


@pytest.mark.parametrize("gang", ["default/typo", "default/starving", "team-a/quota"])
def test_a_phone_shows_whole_messages(pending: enbloc.Cluster, new_page: Callable[..., Any], gang: str) -> None:
    page = new_page(390, 800, has_touch=True)
    page.goto(f"{pending.address}#/gang/{gang}")
    page.get_by_role("region", name="Pods").wait_for()
    regions = page.locator(".scroll").evaluate_all("all => all.map((one) => one.scrollWidth - one.clientWidth)")
    assert max(regions) <= 1
