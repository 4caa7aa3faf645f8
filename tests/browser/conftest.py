"""Tests in a real browser: Playwright drives the system's Chromium. Run by `make web`.

Every page collects what its console says; a test with an error there fails, whatever else it checks.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import enbloc
from browser.served import SHOTS, gpu_cluster

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.web)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: `make web` does it")
    if BROWSER is None:
        pytest.skip("there is no chromium on the PATH")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages; at the end none of them may have reported an error."""
    errors: list[str] = []
    contexts: list[Any] = []

    def new(width: int = 1200, height: int = 800, **options: Any) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        return page

    yield new
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture(scope="session")
def cluster() -> Iterator[enbloc.Cluster]:
    with gpu_cluster() as running:
        yield running


@pytest.fixture
def shot() -> Callable[[Any, str], None]:
    """Takes a screenshot for the docs, where one is asked for."""

    def take(page: Any, name: str) -> None:
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=str(Path(SHOTS) / f"{name}.png"))

    return take
