from __future__ import annotations

import asyncio
import socket
import time

import msgspec
import pytest

from cluster.kube.server import DROP, HANG, LOST, QUICK, ApiServer, Fail, a_cluster, play, pod
from enbloc.api.meta import Ref
from enbloc.api.writes import BindPod, Patch, Refused
from enbloc.cluster.kube.cluster import KubeCluster
from enbloc.cluster.kube.credentials import Credentials, NoCredentials
from enbloc.cluster.kube.http import Answer, backoff_s, is_unserved, refusal

SHORT = msgspec.structs.replace(QUICK, attempt_s=0.1, patience_s=0.3)


def test_requests_in_flight_are_bounded() -> None:
    async def story() -> None:
        async with a_cluster(in_flight=3) as (server, cluster):
            server.put(pod("a"))
            await asyncio.gather(*(cluster.get("Pod", "default", "a") for _ in range(30)))
            assert server.most_in_flight <= 3

    play(story)


def test_retry_after_is_honoured_within_the_bound() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            server.put(pod("a"))
            server.next("GET", "/pods/a", Fail(429, retry_after="1"))
            began = time.monotonic()
            assert await cluster.get("Pod", "default", "a") is not None
            assert 0.9 < time.monotonic() - began < 2.5
            server.next("GET", "/pods/a", Fail(429, "TooManyRequests", retry_after="3600"))
            with pytest.raises(Refused) as caught:
                await cluster.get("Pod", "default", "a")
            assert (caught.value.code, caught.value.reason) == (429, "TooManyRequests")

    play(story)


def test_a_server_that_never_answers_leaves_it_unsure_and_one_that_is_not_there_does_not() -> None:
    async def story() -> None:
        async with a_cluster(SHORT) as (server, cluster):
            uid = server.put(pod("a"))["metadata"]["uid"]
            server.next("POST", "/binding", *[HANG] * 9)
            began = time.monotonic()
            with pytest.raises(Refused) as caught:
                await cluster.execute(BindPod("default", "a", uid, "n1"))
            assert (caught.value.code, caught.value.reason) == (504, "Timeout")
            assert time.monotonic() - began < 2
        patient = msgspec.structs.replace(SHORT, attempt_s=5.0)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and no server listens
            async with KubeCluster(Credentials(f"http://127.0.0.1:{taken.getsockname()[1]}"), bounds=patient) as nobody:
                with pytest.raises(Refused) as caught:
                    await nobody.execute(BindPod("default", "a", uid, "n1"))
                assert (caught.value.code, caught.value.reason) == (503, "ServiceUnavailable")

    play(story)


def test_errors_of_the_server_are_tried_a_few_times_only() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            server.put(pod("a"))
            server.next("PATCH", "/pods/a", *[Fail(500, "InternalError", "failed calling webhook")] * 9)
            with pytest.raises(Refused) as caught:
                await cluster.execute(Patch(Ref("Pod", "default", "a"), {"metadata": {"labels": {"x": "y"}}}))
            assert len(server.asked("PATCH")) == QUICK.max_server_errors
            # A server says 500 too when its store did not answer in time: the outcome is unknown.
            assert (caught.value.code, caught.value.message) == (504, "failed calling webhook")
            server.script.clear()
            server.next("GET", "/pods/a", *[Fail(500, "InternalError")] * QUICK.max_server_errors)
            with pytest.raises(Refused) as caught:
                await cluster.get("Pod", "default", "a")
            assert (caught.value.code, caught.value.reason) == (500, "InternalError")

    play(story)


def test_an_answer_that_was_lost_is_not_made_up_for_by_a_later_refusal_to_listen() -> None:
    async def story() -> None:
        async with a_cluster(SHORT) as (server, cluster):
            uid = server.put(pod("a"))["metadata"]["uid"]
            server.next("POST", "/binding", LOST, *[Fail(429)] * 99)
            with pytest.raises(Refused) as caught:
                await cluster.execute(BindPod("default", "a", uid, "n1"))
            assert caught.value.code == 504
            server.script.clear()
            server.next("POST", "/binding", *[Fail(429, "TooManyRequests")] * 99)
            with pytest.raises(Refused) as caught:
                await cluster.execute(BindPod("default", "a", uid, "n1"))
            assert caught.value.code == 429

    play(story)


def test_what_may_not_be_is_not_tried_again() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            server.next("GET", "/pods/a", Fail(403, "Forbidden", "you may not"))
            with pytest.raises(Refused) as caught:
                await cluster.get("Pod", "default", "a")
            assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
            assert len(server.asked("GET", "/pods/a")) == 1

    play(story)


class Rotating(Credentials):
    """A token a time it is asked."""

    refresh_s = 3600.0

    def __init__(self, base_url: str) -> None:
        super().__init__(base_url)
        self.asked = 0

    async def authorization(self, *, refused: bool = False) -> str | None:
        self.asked += 1
        if self.asked > 3:
            raise NoCredentials("the plug-in is gone")
        await asyncio.sleep(0.01)
        return f"Bearer token-{self.asked}"


def test_a_token_that_is_refused_is_renewed_once_for_all_requests() -> None:
    async def story() -> None:
        made: list[Rotating] = []

        def credentials(url: str) -> Rotating:
            made.append(Rotating(url))
            return made[0]

        async with a_cluster(credentials=credentials) as (server, cluster):
            server.put(pod("a"))
            server.token = "token-1"
            assert await cluster.get("Pod", "default", "a") is not None
            server.token = "token-2"
            found = await asyncio.gather(*(cluster.get("Pod", "default", "a") for _ in range(20)))
            assert None not in found
            assert made[0].asked == 2
            server.token = "nobody's"
            with pytest.raises(Refused) as caught:
                await cluster.get("Pod", "default", "a")
            assert caught.value.code == 401
            with pytest.raises(Refused, match="the plug-in is gone"):
                await cluster.get("Pod", "default", "a")

    play(story)


def test_tokens_are_asked_for_again_before_they_are_refused() -> None:
    async def story() -> None:
        class Quick(Rotating):
            refresh_s = 0.0

        async with a_cluster(credentials=Quick) as (server, cluster):
            server.put(pod("a"))
            await cluster.get("Pod", "default", "a")
            assert server.tokens == ["Bearer token-1", "Bearer token-2"][-len(server.tokens) :]
            assert len(set(server.tokens)) == len(server.tokens)

    play(story)


def test_credentials_that_cannot_be_renewed_are_used_until_they_are_refused() -> None:
    async def story() -> None:
        class Ending(Rotating):
            refresh_s = 0.0

        async with a_cluster(credentials=Ending) as (server, cluster):
            server.put(pod("a"))
            for _ in range(9):
                assert await cluster.get("Pod", "default", "a") is not None
            assert server.tokens[-1] == "Bearer token-3"
            server.token = "another"
            with pytest.raises(Refused, match="the plug-in is gone"):
                await cluster.get("Pod", "default", "a")

    play(story)


def test_a_connection_that_was_kept_and_is_dead_does_no_harm() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            server.put(pod("a"))
            server.next("GET", "/pods/a", DROP, DROP, DROP)
            assert await cluster.get("Pod", "default", "a") is not None

    play(story)


@pytest.mark.parametrize(
    "answer, code, reason, message",
    [
        (Answer(409, b'{"reason":"AlreadyExists","message":"m","code":409}'), 409, "AlreadyExists", "m"),
        (Answer(404, b"404 page not found\n"), 404, "NotFound", "404 page not found"),
        (Answer(502, b"<html>"), 502, "Unknown", "<html>"),
        (Answer(503, b""), 503, "ServiceUnavailable", "ServiceUnavailable"),
    ],
)
def test_refusals_are_read(answer: Answer, code: int, reason: str, message: str) -> None:
    why = refusal(answer)
    assert (why.code, why.reason, why.message) == (code, reason, message)


def test_a_404_is_about_a_path_or_about_an_object() -> None:
    assert is_unserved(Answer(404, b"404 page not found"))
    assert is_unserved(Answer(404, b'{"reason":"NotFound","details":{}}'))
    assert not is_unserved(Answer(404, b'{"reason":"NotFound","details":{"name":"a","kind":"pods"}}'))


def test_backoff_grows_within_its_bound() -> None:
    for attempt in (0, 1, 5, 50, 900):
        wait_s = backoff_s(QUICK, attempt, QUICK.max_backoff_s)
        assert 0 < wait_s <= min(QUICK.backoff_s * 2**attempt, QUICK.max_backoff_s)


def test_api_server_is_a_test_double_that_knows_collections() -> None:
    server = ApiServer()
    assert server.path_of(pod("a")) == "/api/v1/namespaces/default/pods/a"
