"""Where the page is not on loopback, it asks for the token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from browser.served import serve_store
from cluster.embedded.http.serving import TOKEN
from web.played import played


@pytest.fixture
def address() -> Iterator[str]:
    """A façade that counts every address as foreign."""
    with serve_store(played(), loopback_only=False) as served:
        yield served.address


def test_the_page_asks_for_the_token_and_keeps_it_for_the_tab(address: str, chromium: Any) -> None:
    page = chromium.new_page()  # its console names the refused requests
    page.goto(f"{address}#/gangs")
    page.get_by_role("heading", name="This dashboard needs a token").wait_for()
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Show").click()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="default/resnet").wait_for()
    page.reload()
    page.get_by_role("link", name="default/resnet").wait_for()
    page.close()


def test_a_token_in_the_fragment_is_used_and_removed(address: str, new_page: Callable[..., Any]) -> None:
    page = new_page()
    page.goto(f"{address}#token={TOKEN}")
    page.get_by_text("Why gangs wait").wait_for()
    assert page.url == f"{address}#/summary"
