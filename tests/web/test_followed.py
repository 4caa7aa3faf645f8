"""`enbloc run --components dashboard`: a cluster that is watched over HTTP, and who may read its pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp

from cluster.embedded.http.serving import TOKEN, fresh_store, served_in_background
from enbloc import config
from enbloc.cluster.embedded.http.access import Access
from enbloc.cluster.embedded.http.facade import Facade
from enbloc.cluster.embedded.http.listener import Listener
from enbloc.cluster.kube import connect
from enbloc.runtime.endpoints import Endpoints
from enbloc.runtime.metrics import Metrics
from enbloc.web.followed import FollowedCluster, is_strong
from support import manifests as m
from web.played import pages_of, played

LONG = "a-token-of-many-characters"


def _served(
    followed: FollowedCluster, kubeconfig: Path, test: Callable[[aiohttp.ClientSession], Awaitable[None]]
) -> None:
    async def run() -> None:
        endpoints = Endpoints(Metrics(), followed.is_listed, lambda: None, followed.handlers())
        await endpoints.start("127.0.0.1", 0)
        end = await followed.follow(lambda: connect(str(kubeconfig), None))
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{endpoints.port}") as session:
                async with asyncio.timeout(60):
                    await test(session)
        finally:
            await end()
            await endpoints.close()

    asyncio.run(run())


async def _model(session: aiohttp.ClientSession, **headers: str) -> dict[str, list[dict[str, str]]]:
    while True:
        async with session.get("/api/model", headers=headers) as answer:
            if answer.status == 200:
                found: dict[str, list[dict[str, str]]] = await answer.json()
                return found
            assert answer.status == 503, await answer.text()
        await asyncio.sleep(0.05)


def test_the_pages_show_the_cluster_and_what_changes_in_it(tmp_path: Path) -> None:
    with served_in_background(tmp_path, played()) as (kubeconfig, store):

        async def test(session: aiohttp.ClientSession) -> None:
            model = await _model(session)
            assert {"default/resnet", "default/bert", "default/giant"} <= {gang["gang"] for gang in model["gangs"]}
            assert len(model["nodes"]) == 2
            async with session.get("/api/gang/default/resnet") as answer:
                detail = await answer.json()
                assert len(detail["pods"]) == 4
            store.create(m.node("n9", cpu="8"))
            while len((await _model(session))["nodes"]) < 3:
                await asyncio.sleep(0.05)
            for path in ("/", "/static/app.js", "/healthz", "/readyz", "/metrics"):
                async with session.get(path) as answer:
                    assert answer.status == 200
            async with session.get("/api/model", headers={"Host": "evil.example"}) as answer:
                assert answer.status == 403
            async with session.post("/api/model") as answer:
                assert answer.status == 405

        _served(FollowedCluster(config.parse(None), "127.0.0.1"), kubeconfig, test)


def test_on_another_address_data_needs_the_token(tmp_path: Path) -> None:
    with served_in_background(tmp_path, played()) as (kubeconfig, _):

        async def test(session: aiohttp.ClientSession) -> None:
            for headers in ({}, {"Authorization": "Bearer other"}):
                for path in ("/api/model", "/api/stream", "/api/gang/default/resnet", "/api/explain/default/bert"):
                    async with session.get(path, headers=headers) as answer:
                        assert answer.status == 401, path
            for path in ("/", "/static/app.js", "/static/style.css"):
                async with session.get(path) as answer:
                    assert answer.status == 200
                    assert "resnet" not in await answer.text()
            assert (await _model(session, Authorization=f"Bearer {LONG}"))["gangs"]

        _served(FollowedCluster(config.parse(None), "0.0.0.0", LONG), kubeconfig, test)


def test_it_is_not_ready_before_the_cluster_was_listed() -> None:
    assert not FollowedCluster(config.parse(None), "127.0.0.1").is_listed()


def test_a_token_is_made_where_one_is_needed() -> None:
    made = {FollowedCluster(config.parse(None), "0.0.0.0").token for _ in range(3)}
    assert len(made) == 3
    assert all(is_strong(token) for token in made)
    assert FollowedCluster(config.parse(None), "::1", LONG).token == ""
    assert not is_strong("short")


def test_up_on_another_address_asks_for_its_token() -> None:
    store = fresh_store()

    async def run() -> None:
        facade = Facade(store, Access(TOKEN, loopback_only=False), pages_of(store).handlers())
        listener = Listener(facade)
        _, port = await listener.start("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
                for path, token, code in (
                    ("/api/model", "", 401),
                    ("/api/model", TOKEN, 200),
                    ("/", "", 200),
                    ("/static/app.js", "", 200),
                    ("/metrics", "", 200),
                ):
                    async with session.get(path, headers={"Authorization": f"Bearer {token}"}) as answer:
                        assert answer.status == code, path
        finally:
            facade.close()
            await listener.stop()

    asyncio.run(run())
