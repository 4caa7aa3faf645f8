"""Whatever is sent, the answer is an answer: 2xx, or a refusal with a Status; and all other clients are served on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from yarl import URL

from cluster.embedded.http.fuzzing import Fuzzer
from cluster.embedded.http.serving import MAPS, Api, config_map, serve
from enbloc import config
from enbloc.cluster.embedded.nodes.node_player import NodePlayer
from enbloc.config import scheduler_names
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.inspect.overview import KINDS, read_overview, shown
from enbloc.runtime.control_plane import ControlPlane
from support.seeds import new_seed


def fuzz(seed: int, count: int) -> None:
    print(f"seed {seed}")

    async def test(api: Api) -> None:
        fuzzer = Fuzzer(seed)
        settings = config.parse(None)
        plane = ControlPlane(api.store, settings, scheduler_names(settings, alone=True), simulated_key_pair)
        nodes = NodePlayer(api.store)
        async with api.watch(f"{MAPS}?fieldSelector=metadata.name%3Dcanary") as following:
            for number in range(count):
                request = fuzzer.request()
                reported = f"seed {seed}, request {number}: {request}"
                code = 0
                try:
                    url = URL(f"http://127.0.0.1:{api.port}{request.path}", encoded=True)
                    async with (
                        asyncio.timeout(60),
                        api.session.request(
                            request.method, url, data=request.body, headers=request.headers
                        ) as response,
                    ):
                        code, body = response.status, await response.json(content_type=None)
                except ValueError:
                    body = None  # no JSON: fine only where it went well
                    assert code < 300 or request.method == "HEAD", reported
                assert code < 500 or code == 504, f"{reported} -> {code} {body}"
                if code >= 400 and request.method != "HEAD":
                    assert body["kind"] == "Status", reported
                    assert body["code"] == code, reported
                    assert body["reason"], reported
                if number % 100 == 99:
                    api.store.collect_garbage()
                    api.store.settle()
                    plane.reconcile(api.store.now())
                    plane.schedule(api.store.now())
                    nodes.run(api.store.now())
                    shown(read_overview({kind: api.store.list(kind)[0] for kind in KINDS}))
            code, _ = await api("POST", MAPS, config_map("canary"))
            if code in (403, 404):
                return  # the namespace itself was deleted
            assert (await following())["object"]["metadata"]["name"] == "canary"

    serve(test, limit_s=None)  # each request has one: how long all of them take depends on the machine


def test_whatever_is_sent_is_answered() -> None:
    fuzz(new_seed(), 1_500)


@pytest.mark.parametrize("seed", range(3))
def test_these_were_answered_before(seed: int) -> None:
    fuzz(seed, 400)


@pytest.mark.soak
def test_whatever_is_sent_for_a_long_time(rounds: Iterator[int]) -> None:
    for seed in rounds:
        fuzz(seed, 5_000)
