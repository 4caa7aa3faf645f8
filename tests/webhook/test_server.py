"""The webhook over real TLS on loopback: answers, bad input, and certificates that change under it."""

from __future__ import annotations

import asyncio
import io
import json
import ssl

import aiohttp
import pytest

from enbloc.api.writes import Refused
from enbloc.webhook import server as module
from enbloc.webhook.certificate_rotation import VALIDATING
from support import manifests as m
from support.webhook_api import job, review
from support.webhook_server import DAY, World, play, running


def test_it_answers_over_tls_by_the_authorities_in_the_configuration() -> None:
    async def story(world: World) -> None:
        world.sees("root", "default")
        assert world.server.ready
        mutated = await world.ask(review("CREATE", job()))
        assert mutated["allowed"]
        assert mutated["patchType"] == "JSONPatch"
        validated = await world.ask(review("CREATE", job()), "/validate", world.api.bundle(VALIDATING))
        assert validated == {"uid": mutated["uid"], "allowed": True}
        refused = await world.ask(review("CREATE", job(queue="nowhere")))
        assert refused["status"]["details"]["causes"] == [
            {
                "reason": "FieldValueInvalid",
                "message": "queue 'nowhere' does not exist: create it, or use another",
                "field": "spec.queue",
            }
        ]

    play(story)


def test_v4_the_default_queue_exists_before_the_controllers_have_created_it() -> None:
    """Right after an installation the first job must not be refused."""

    async def story(world: World) -> None:
        world.sees("root")
        for path in ("/mutate", "/validate"):
            assert (await world.ask(review("CREATE", job()), path))["allowed"]
        assert not (await world.ask(review("CREATE", job(queue="nowhere"))))["allowed"]

    play(story)


def test_the_author_of_a_pod_or_a_job_is_warned() -> None:
    async def story(world: World) -> None:
        world.sees("root", "default")
        notes = {"annotations": {"volcano.sh/sla-waiting-time": "soon"}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **notes}, "spec": {"containers": []}}
        for path, obj in (("/warn", pod), ("/validate", job() | {"metadata": job()["metadata"] | notes})):
            reported = await world.ask(review("CREATE", obj), path)
            assert reported["allowed"], reported
            assert ["soon" in one for one in reported["warnings"]] == [True]
        assert "warnings" not in await world.ask(review("CREATE", job()), "/validate")

    play(story)


def test_no_object_is_refused_because_a_cache_is_behind() -> None:
    async def story(world: World) -> None:
        world.sees("root", "default")
        world.api.store.create(m.queue("new"))  # the watch has not delivered it yet
        assert (await world.ask(review("CREATE", job(queue="new"))))["allowed"]
        world.api.calls.clear()
        assert (await world.ask(review("CREATE", job())))["allowed"]
        assert world.api.calls == [], "what is good is good without a question to the API"

    play(story)


def test_before_the_caches_are_filled_the_api_is_asked() -> None:
    async def story(world: World) -> None:
        assert not world.server.ready
        world.api.store.create(m.queue("default"))
        assert (await world.ask(review("CREATE", job())))["allowed"]
        assert not (await world.ask(review("CREATE", job(queue="nowhere"))))["allowed"]

    play(story)


def test_without_the_api_no_object_is_admitted_unchecked() -> None:
    """It fails closed, and goes on once the API is back."""

    async def story(world: World) -> None:
        world.api.store.create(m.queue("default"))
        world.api.is_down = True
        async with world.client() as client:
            async with client.post(world.url("/mutate"), json=review("CREATE", job())) as answer:
                assert answer.status == 503
            world.api.is_down = False
            async with client.post(world.url("/mutate"), json=review("CREATE", job())) as answer:
                assert answer.status == 200

    play(story)


BAD_BODIES = {
    "nothing": b"",
    "no JSON": b"hello",
    "no review": json.dumps({"kind": "Pod"}).encode(),
    "no request": json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}).encode(),
    "too large": b" " * 10_000_000,
    "too deep": b'{"apiVersion": "admission.k8s.io/v1", "x": ' + b"[" * 50_000,
    "deep object": json.dumps(review("CREATE", job())).encode().replace(b'"main"', b"[" * 5000 + b"]" * 5000),
    "no text": b"\xff\xfe\x00",
}


def test_bad_input_gets_a_4xx_and_never_a_wedge() -> None:
    async def story(world: World) -> None:
        world.sees("default")
        async with world.client() as client:
            for name, body in BAD_BODIES.items():
                async with client.post(world.url("/mutate"), data=io.BytesIO(body)) as answer:
                    assert 400 <= answer.status < 500, name
                    assert "Traceback" not in await answer.text(), name
            async with client.get(world.url("/mutate")) as answer:
                assert answer.status == 405
            async with client.post(world.url("/elsewhere"), json={}) as answer:
                assert answer.status == 404
            async with client.post(world.url("/mutate"), json=review("CREATE", job())) as answer:
                assert answer.status == 200

    play(story)


def test_a_bug_is_a_500_and_the_next_question_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        world.sees("default")
        with monkeypatch.context() as patched:
            patched.setattr(module, "evaluate", lambda *_, **__: 1 / 0)
            client = world.client()
            async with client, client.post(world.url("/mutate"), json=review("CREATE", job())) as answer:
                assert answer.status == 500
                assert "ZeroDivisionError" not in await answer.text()
        assert (await world.ask(review("CREATE", job())))["allowed"]

    play(story)


def test_a_renewed_certificate_is_served_without_a_restart() -> None:
    async def story(world: World) -> None:
        world.sees("default")
        first = world.api.bundle()
        async with world.client() as standing:
            async with standing.post(world.url("/mutate"), json=review("CREATE", job())) as answer:
                assert answer.status == 200
            seen = {await served(world)}
            world.now += 70 * DAY
            await world.server.renew()
            seen.add(await served(world))
            assert len(seen) == 2
            async with standing.post(world.url("/mutate"), json=review("CREATE", job())) as answer:
                assert answer.status == 200, "who was connected stays connected"
        assert (await world.ask(review("CREATE", job()), bundle=first))["allowed"], "the authority is the same"

    play(story)


def test_a_change_of_authority_breaks_no_connection() -> None:
    async def story(world: World) -> None:
        world.sees("default")
        old = world.api.bundle()
        while world.api.bundle() == old:
            world.now += 20 * DAY
            await world.server.renew()
        for bundle in (old, world.api.bundle()):
            assert (await world.ask(review("CREATE", job()), bundle=bundle))["allowed"]
        world.now += DAY
        await world.server.renew()
        assert (await world.ask(review("CREATE", job())))["allowed"]
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await world.ask(review("CREATE", job()), bundle=old)

    play(story)


async def served(world: World) -> bytes:
    """The certificate that a new connection is shown."""
    assert world.server.address is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("localhost", world.server.address[1], ssl=context)
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return certificate


def test_it_waits_for_an_api_that_is_down_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", (0.01, 0.02))

    async def play() -> None:
        world = World()
        world.api.is_down = True
        asyncio.get_running_loop().call_later(0.1, setattr, world.api, "is_down", False)
        async with running(world):
            world.sees("default")
            assert (await world.ask(review("CREATE", job())))["allowed"]

    asyncio.run(play())


def test_it_is_not_ready_with_an_expired_certificate() -> None:
    async def story(world: World) -> None:
        world.sees("default")
        assert world.server.ready
        world.now += 100 * DAY
        world.api.is_down = True
        with pytest.raises(Refused):
            await world.server.renew()
        assert not world.server.ready
        world.api.is_down = False
        await world.server.renew()
        assert world.server.ready

    play(story)
