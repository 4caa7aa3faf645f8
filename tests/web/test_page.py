"""The page in a real browser, where there is one: what stands there after its script has run."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from cluster.embedded.http.serving import serving
from enbloc import config
from enbloc.inspect.overview import KINDS
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND
from enbloc.web import pages as pages_module
from enbloc.web.pages import Pages

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"
pytestmark = pytest.mark.web
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.skipif(BROWSER is None, reason="there is no chromium on the PATH")
@pytest.mark.parametrize(
    ("view", "texts"),
    [
        ("", ["<b>2</b> wait: its minimum is not available", "cpu in use", "88%"]),
        ("#/gangs", [">Not enqueued: requests 6 cpu, 2 of 16 available.", "#/gang/default/bert", "3 gangs"]),
        ("#/gangs?state=Running", ["default/resnet", "1 gang of 3"]),
        ("#/map", ["Map of 2 nodes", ">node-2</td>"]),
        ("#/gang/default/resnet", ["It runs: 4 pods on node-1 (2), node-2 (2)", "resnet-worker-2", "Map of 2 nodes"]),
        ("#/timeline", ["Timeline of gangs", "Zoom in"]),
        ("#/queues", ["root", "14 of 16"]),
    ],
)
def test_a_browser_shows_every_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, view: str, texts: list[str]
) -> None:
    monkeypatch.setattr(pages_module, "STREAMS", 0)  # the browser's virtual time waits for open connections
    assert BROWSER is not None
    simulation = Simulation(read_scenario(read_documents([str(QUICKSTART)])), config.parse(None))
    simulation.run(30 * SECOND)
    store = simulation._store
    pages = Pages(lambda: {kind: store.list(kind)[0] for kind in KINDS}, dict)

    async def look() -> str:
        async with serving(store, pages=pages.handlers()) as api:
            browser = await asyncio.create_subprocess_exec(
                *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"),
                *("--virtual-time-budget=3000", "--dump-dom", f"http://127.0.0.1:{api.port}/{view}"),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            out, _ = await asyncio.wait_for(browser.communicate(), 60)
            return out.decode()

    shown = asyncio.run(look())
    assert [text for text in texts if text not in shown] == []
    assert "as of" in shown
