"""What the dashboard is served: its files, the model that it draws, a gang's page, the stream; and the report."""

from __future__ import annotations

import asyncio
import json
import re
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import enbloc
from cluster.embedded.http.serving import Api, fresh_store, serving
from enbloc import config
from enbloc.api.meta import Obj
from enbloc.api.reasons import PendingReason
from enbloc.cluster.embedded.api.store import Store
from enbloc.engine.core.why.cause import cause_of
from enbloc.engine.decisions import Reason
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


def test_a_pod_of_no_group_has_the_times_at_which_it_started_and_ended() -> None:
    """On the timeline it waits until it starts, and does not wait for ever; its wait counts in the median."""
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {**m.pod("web", cpu=1)["spec"], "restartPolicy": "Always"},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": m.metadata("web"),
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    lone = [m.pod("runs", cpu=1, run_time="1h"), m.pod("ran", cpu=1, run_time="1s")]
    with enbloc.Cluster([m.node("n1", cpu=8), deployment, *lone]) as cluster:
        end_s, states = time.monotonic() + 60, []
        while states != ["Finished", "Running", "Running"]:
            assert time.monotonic() < end_s, states
            with urllib.request.urlopen(f"{cluster.address}api/model", timeout=30) as answer:
                model = json.load(answer)
            states = sorted(gang["state"] for gang in model["gangs"])
    for gang in model["gangs"]:
        assert gang["came"] <= gang["started"] <= model["asOf"], gang
        assert (gang["ended"] is not None) == (gang["state"] == "Finished"), gang
    ((_, held),) = [(node["node"], node["pods"]) for node in model["nodes"]]
    assert {model["gangs"][number]["state"] for number, _ in held} == {"Running"}  # each is a gang of the map


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
        received: list[str] = []
        async with api.session.get(f"http://127.0.0.1:{api.port}/api/stream") as answer:
            assert answer.content_type == "text/event-stream"
            async for line in answer.content:
                if not line.startswith(b"event:"):
                    continue
                received.append(line.decode().split()[1])
                if received == ["tick"]:
                    store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
                if len(received) == 4:
                    break
        return received

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


def test_n6_every_reason_has_words_on_the_page() -> None:
    (table,) = re.findall(r"const REASONS = \{(.*?)\};", read("gangs.js"), re.DOTALL)
    assert sorted(re.findall(r"(\w+): \"", table)) == sorted(reason.value for reason in PendingReason)


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
    nodes = [Reason("", "Insufficient cpu", 1), Reason("", "node(s) had untolerated taint {a: b}", 3)]
    assert cause_of(PendingReason.UNSCHEDULABLE, nodes).words == "had untolerated taint {a: b}"
    assert cause_of(PendingReason.NOT_ENOUGH_RESOURCES, ()).words == "NotEnoughResources"
    assert cause_of(PendingReason.UNSCHEDULABLE, (), "rack").words == "no domain of rack has room"


SELECTOR = "node(s) didn't match Pod's node affinity/selector"


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([Reason("w", "node(s) had untolerated taint {gpu: true}", 1)], "had untolerated taint {gpu: true}"),
        ([Reason("w", "Insufficient cpu", 1)], "Insufficient cpu"),
        ([Reason("w", "node(s) were not ready", 1)], SELECTOR.removeprefix("node(s) ")),
        ([Reason("w", "node(s) were unschedulable", 1)], SELECTOR.removeprefix("node(s) ")),
        ([Reason("other", "Insufficient cpu", 1)], SELECTOR.removeprefix("node(s) ")),
        ([], SELECTOR.removeprefix("node(s) ")),
    ],
)
def test_n6_nodes_that_a_pod_does_not_select_are_its_cause_only_if_it_selects_none(
    others: list[Reason], words: str
) -> None:
    """A node that has what the pod selects, and rejects it for something else, says what to change. Nodes that are not
    ready or cordoned are rejected before their labels are looked at; those of another role prove nothing."""
    assert cause_of(PendingReason.UNSCHEDULABLE, [Reason("w", SELECTOR, 900), *others]).words == words


def test_n6_the_page_groups_by_fields_of_the_diagnosis_whatever_sentences_say() -> None:
    """A tenant's words in a sentence, here a quota's name, form no group; pods without a PodGroup have the reason of
    the enum, although their condition's reason is Kubernetes'."""
    quota = m.resource_quota(1)
    quota["metadata"]["name"] = "insufficient-nvidia.com"
    waiting = [
        m.job("refused", m.role("worker", 2)),
        m.pod("large", cpu=999),
        m.pod("lost", queue="nowhere"),
        *m.gang("few", 1, 2),
    ]
    for obj in waiting[1:]:
        obj["metadata"]["namespace"] = "other"
    with enbloc.Cluster([quota, *waiting]) as cluster:
        wanted = {
            "default/refused": ("FailedCreate", "FailedCreate"),
            "other/large": ("Unschedulable", "Insufficient cpu"),
            "other/lost": ("GangInvalid", "GangInvalid"),
            "other/few": ("NotEnoughPods", "NotEnoughPods"),
        }
        end_s, found = time.monotonic() + 60, {}
        while found != wanted:
            assert time.monotonic() < end_s, found
            with urllib.request.urlopen(f"{cluster.address}api/model", timeout=30) as answer:
                gangs = json.load(answer)["gangs"]
            found = {gang["gang"]: (gang["reason"], gang["cause"]) for gang in gangs}


def test_v4_queues_show_what_they_deserve_by_weight() -> None:
    """No queue says what it deserves, so the scheduler shares the cluster out by weight."""
    queues = [m.queue("research", weight=3), m.queue("serving", weight=1)]
    gangs = [m.gang(name, 10, cpu=1, queue=name) for name in ("research", "serving")]
    with enbloc.Cluster([m.node("n1", cpu=8), *queues, *(obj for gang in gangs for obj in gang)]) as cluster:
        end_s, found = time.monotonic() + 60, {}
        while found.get("research") != 6.0 or found.get("serving") != 2.0:
            assert time.monotonic() < end_s, found
            with urllib.request.urlopen(f"{cluster.address}api/model", timeout=30) as answer:
                found = {queue["queue"]: queue["deserved"].get("cpu") for queue in json.load(answer)["queues"]}


def test_a_report_shows_the_accelerators_first_only_where_a_gang_used_or_wants_them() -> None:
    answer = _answer()
    for node in (obj for obj in answer["objects"] if obj["kind"] == "Node"):
        node["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    assert report_model(answer)["resource"] == "cpu"
    answer["series"][0]["use"]["nvidia.com/gpu"] = 0.5
    assert report_model(answer)["resource"] == "nvidia.com/gpu"


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
