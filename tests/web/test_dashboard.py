"""What the dashboard is served: its files, the model that it draws, a gang's page, the stream; and the report."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from cluster.embedded.http.serving import Api, fresh_store, serving
from enbloc import config
from enbloc.api.meta import Obj
from enbloc.cluster.embedded.api.store import Store
from enbloc.inspect.dashboard import cause_of
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.web import assets, pages
from enbloc.web.assets import MODULES, bundled, read
from enbloc.web.history import History
from enbloc.web.pages import Pages
from enbloc.web.report import report_model, report_page
from support import manifests as m
from web.played import QUICKSTART, pages_of, played


def _asked(path: str, store: Store | None = None) -> Any:
    store = store or played()

    async def ask() -> Any:
        async with serving(store, pages=pages_of(store).handlers()) as api:
            return await api("GET", path)

    return asyncio.run(ask())


def test_the_model_has_gangs_queues_and_what_is_on_each_node() -> None:
    code, model = _asked("/api/model")
    assert code == 200
    names = [gang["gang"] for gang in model["gangs"]]
    resnet = model["gangs"][names.index("default/resnet")]
    assert (resnet["state"], resnet["minimum"], resnet["pods"]) == ("Running", 4, {"running": 4})
    assert resnet["started"] == resnet["came"]
    waiting = [gang for gang in model["gangs"] if gang["state"] == "Waiting"]
    assert {gang["gang"]: gang["cause"] for gang in waiting} == dict.fromkeys(
        ["default/bert", "default/giant"], "NotEnoughResources"
    )
    assert model["resource"] == "cpu"
    assert model["total"]["cpu"] == sum(node["capacity"]["cpu"] for node in model["nodes"]) == 16
    held = {node["node"]: {names[gang]: amounts["cpu"] for gang, amounts in node["pods"]} for node in model["nodes"]}
    assert held == {"node-1": {"default/resnet": 6}, "node-2": {"default/resnet": 8}}
    assert {queue["queue"]: queue["running"] for queue in model["queues"]} == {"default": 1, "root": 1}


def test_nothing_secret_is_in_the_model() -> None:
    store = played()
    secret = "hunter2"
    container = {"name": "main", "image": "busybox", "env": [{"name": "PASSWORD", "value": secret}]}
    pod: Obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "annotations": {"note": secret}},
        "spec": {"schedulerName": "enbloc", "containers": [container]},
    }
    store.create(pod)
    for path in ("/api/model", "/api/gang/default/p", "/api/overview"):
        code, body = _asked(path, store)
        assert code == 200
        assert secret not in json.dumps(body)


def test_a_gangs_page_has_its_pods_and_events() -> None:
    code, detail = _asked("/api/gang/default/resnet")
    assert code == 200
    assert [pod["name"] for pod in detail["pods"]] == [
        "resnet-ps-0",
        "resnet-worker-0",
        "resnet-worker-1",
        "resnet-worker-2",
    ]
    assert {pod["node"] for pod in detail["pods"]} == {"node-1", "node-2"}
    code, detail = _asked("/api/gang/default/giant")
    assert "not enqueued: requests" in detail["sentence"]
    assert any("giant" in event["object"] for event in detail["events"])
    assert _asked("/api/gang/default/nothing")[0] == 404


def test_files_are_served_with_their_type_and_a_strict_policy() -> None:
    store = fresh_store()

    async def ask() -> None:
        async with serving(store, pages=pages_of(store).handlers()) as api:
            for path, kind in (
                ("/", "text/html"),
                ("/static/app.js", "text/javascript"),
                ("/static/style.css", "text/css"),
            ):
                async with api.session.get(f"http://127.0.0.1:{api.port}{path}") as answer:
                    assert answer.status == 200
                    assert answer.content_type == kind
                    assert answer.headers["X-Content-Type-Options"] == "nosniff"
            async with api.session.get(f"http://127.0.0.1:{api.port}/") as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "unsafe" not in policy
                assert "default-src 'none'" in policy
            for path in ("/static/nothing.js", "/static/../pages.py", "/static/%2e%2e/pages.py", "/static/"):
                assert (await api("GET", path))[0] in (400, 404)

    asyncio.run(ask())


def test_the_stream_tells_of_a_write_once_and_of_quiet_by_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "STREAM_S", 0.01)
    monkeypatch.setattr(pages, "TICK_S", 0.05)
    store = fresh_store()

    async def follow(api: Api) -> list[str]:
        told: list[str] = []
        async with api.session.get(f"http://127.0.0.1:{api.port}/api/stream") as answer:
            assert answer.content_type == "text/event-stream"
            async for line in answer.content:
                if not line.startswith(b"event:"):
                    continue
                told.append(line.decode().split()[1])
                if told == ["tick"]:
                    store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
                if len(told) == 4:
                    break
        return told

    async def ask() -> None:
        async with serving(store, pages=pages_of(store).handlers()) as api:
            assert await asyncio.wait_for(follow(api), 30) == ["tick", "changed", "tick", "tick"]

    asyncio.run(ask())


def test_streams_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "STREAMS", 0)
    code, body = _asked("/api/stream", fresh_store())
    assert (code, body["message"][:10]) == (503, "0 browsers")


IMPORT = re.compile(r'^import .* from "(.*)";$', re.MULTILINE)


def test_modules_import_only_modules_before_them() -> None:
    folder = Path(assets.__file__).parent / "static"
    assert {path.stem for path in folder.glob("*.js")} == set(MODULES)
    for number, name in enumerate(MODULES):
        for imported in IMPORT.findall(read(f"{name}.js")):
            assert imported in [f"./{earlier}.js" for earlier in MODULES[:number]]


def test_no_address_of_another_host_is_in_the_files() -> None:
    """The page needs no network."""
    for path in (Path(assets.__file__).parent / "static").iterdir():
        assert [url for url in re.findall(r"https?://[^\"' ]+", path.read_text()) if "www.w3.org" not in url] == []


def test_no_data_ends_the_script_of_a_bundled_page() -> None:
    page = bundled(b'{"gangs": "</script><script>alert(1)</script>"}', "<b>")
    assert page.count("<script") == page.count("</script>") == 2
    assert "<title>&lt;b&gt;</title>" in page
    assert "import {" not in page
    assert "\nexport " not in page


def _answer() -> Any:
    from io import BytesIO

    simulation = Simulation(read_scenario(read_documents([str(QUICKSTART)])), config.parse(None))
    out = BytesIO()
    simulation.run().write_json(out)
    return json.loads(out.getvalue())


def test_waiting_gangs_are_grouped_by_what_is_missing() -> None:
    first = "0/9 nodes are available: 5 node(s) had untolerated taint {a: b}, 4 Insufficient nvidia.com/gpu."
    assert cause_of(first, "Unschedulable") == "had untolerated taint {a: b}"
    assert cause_of("0/2 nodes: 2 Insufficient nvidia.com/gpu.", "Unschedulable") == "Insufficient nvidia.com/gpu"
    assert cause_of("not enqueued: requests 6 cpu", "NotEnoughResources") == "NotEnoughResources"
    diagnosed = [
        {"reason": "Insufficient cpu", "nodes": 1},
        {"reason": "node(s) had untolerated taint {a: b}", "nodes": 3},
    ]
    assert cause_of("2 Insufficient memory", "Unschedulable", diagnosed) == "had untolerated taint {a: b}"


def test_the_report_has_the_gangs_of_the_answer_with_their_times() -> None:
    answer = _answer()
    model = report_model(answer)
    assert {gang["gang"]: (gang["came"], gang["started"], gang["ended"]) for gang in model["gangs"]} == {
        gang["gang"]: (gang["came"], gang["started"], gang["ended"]) for gang in answer["gangs"]
    }
    states = {gang["gang"]: gang["state"] for gang in model["gangs"]}
    assert states == {"default/resnet": "Finished", "default/bert": "Finished", "default/giant": "Waiting"}
    assert (model["virtual"], model["live"], model["asOf"]) == (True, False, answer["end"])
    assert model["series"][0] == {"t": 0.0, "use": 0.875, "waiting": 0, "queues": {"default": 0.875}}
    assert max(point["waiting"] for point in model["series"]) == 2
    assert (model["series"][-1]["use"], model["series"][-1]["waiting"]) == (0.0, 1)
    assert "</html>" in report_page(answer, "quickstart")


def test_the_report_of_a_waiting_gang_has_its_remedies_and_who_is_ahead(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from enbloc.cli.main import cli

    done = CliRunner().invoke(cli, ["sim", str(QUICKSTART), "--until", "30s", "-o", "json"])
    details = report_model(json.loads(done.stdout))["details"]
    assert details["default/giant"]["ahead"] == ["default/bert"]
    assert details["default/bert"]["ahead"] == []
    assert details["default/giant"]["remedies"][0]["change"].startswith("add 1 larger node")


def test_an_answer_is_as_old_as_it_says_and_never_older_than_two_seconds() -> None:
    """Once half of that is over the next one is waited for, though reading takes its time."""
    store = Store(time.time_ns)
    served = Pages(lambda: {"Node": store.list("Node")[0]}, dict)

    async def main() -> None:
        assert (await served.overview()).nodes == []
        store.create(m.node("n1"))
        known = served._known
        assert known is not None
        served._known = known._replace(listed_s=known.listed_s - pages.OLDEST_S / 2)
        before_s = time.time()
        overview, as_of_s = await served.dated_overview()
        assert [node.node for node in overview.nodes] == ["n1"]
        assert before_s <= as_of_s <= time.time()

    asyncio.run(main())


def test_the_timeline_has_the_spans_in_which_room_was_reserved() -> None:
    """`examples/starving.yaml`: nodes are reserved for the large gang until its pods are bound."""
    from io import BytesIO

    starving = QUICKSTART.parent / "starving.yaml"
    out = BytesIO()
    Simulation(read_scenario(read_documents([str(starving)])), config.parse(None)).run().write_json(out)
    answer = json.loads(out.getvalue())
    reserved = [line["t"] for line in answer["timeline"] if line["what"] == "reserved"]
    claimed = {gang["gang"]: gang["claimed"] for gang in report_model(answer)["gangs"] if gang["claimed"]}
    assert len(claimed) == 1, claimed
    ((first, last),) = next(iter(claimed.values()))
    assert first == min(reserved)
    assert last is None or last > first


def test_live_gangs_with_room_set_aside_say_since_when() -> None:
    history = History()
    gang = {"gang": "default/g", "state": "Waiting", "setAside": {"n1": 1}}
    model = {"asOf": 5.0, "resource": "cpu", "total": {"cpu": 4.0}, "queues": [], "nodes": [], "gangs": [gang]}
    history.add(model)
    later = {**model, "asOf": 9.0, "gangs": [{**gang}]}
    history.add(later)
    assert later["gangs"][0]["claimed"] == [[5.0, None]]
    history.add({**model, "asOf": 10.0, "gangs": [{**gang, "setAside": {}}]})
    again = {**model, "asOf": 11.0, "gangs": [{**gang}]}
    history.add(again)
    assert again["gangs"][0]["claimed"] == [[11.0, None]]
