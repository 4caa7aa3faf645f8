"""`enbloc dashboard`: a saved simulation, served or as one file; bad files are one line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from click.testing import CliRunner

from enbloc.cli.main import cli
from enbloc.web.saved import SavedPages

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"


@pytest.fixture(scope="module")
def run_json(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "run.json"
    path.write_text(CliRunner().invoke(cli, ["sim", str(QUICKSTART), "-o", "json"]).stdout)
    return path


def test_a_saved_run_is_served_as_a_live_cluster_is(run_json: Path) -> None:
    async def ask() -> None:
        pages = SavedPages(json.loads(run_json.read_text()))
        async with TestClient(TestServer(pages.application())) as client:
            model = await (await client.get("/api/model")).json()
            assert (model["virtual"], model["live"]) == (True, False)
            assert "details" not in model
            assert {queue for sample in model["series"] for queue in sample["queues"]} == {"default"}
            page = await client.get("/")
            assert "unsafe" not in page.headers["Content-Security-Policy"]
            detail = await (await client.get("/api/gang/default%2Fgiant")).json()
            assert detail["remedies"][0]["change"].startswith("add 1 larger node")
            assert (await client.get("/api/gang/default/none")).status == 404
            assert (await client.get("/static/pages.py")).status == 404
            assert (await client.get("/api/model", headers={"Host": "evil.example"})).status == 403

    asyncio.run(ask())


def test_a_saved_run_becomes_one_file(run_json: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.html"
    done = CliRunner().invoke(cli, ["dashboard", str(run_json), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "default/giant" in out.read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        ("{", "not JSON"),
        ("[]", "not what `enbloc sim -o json` prints: end is missing"),
        ('{"objects": 1, "gangs": [], "pending": [], "series": [], "end": 1}', "not what `enbloc sim -o json` prints"),
        (
            '{"objects": [{}], "gangs": [], "pending": [], "series": [], "end": 1, "without_effect": []}',
            "not what `enbloc sim -o json` prints",
        ),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "other.json"
    if content is not None:
        path.write_text(content)
    done = CliRunner().invoke(cli, ["dashboard", str(path), "-o", str(tmp_path / "out.html")])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.stderr
    assert message in done.stderr
