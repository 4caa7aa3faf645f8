from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import msgspec
import pytest

from cluster.kube.server import DROP, QUICK, ApiServer, Fail, SeenEvents, Stream, a_cluster, node, play, pod, until
from enbloc.api.meta import Obj
from enbloc.api.writes import Refused, WatchEvent

JOB = "Job.batch.volcano.sh"
A = "/api/v1/namespaces/default/pods/a"


def stream_of(server: ApiServer, plural: str) -> Stream:
    """The latest one: a server does not see at once that a client has left."""
    return next(stream for stream in reversed(server.streams) if stream.collection.endswith(f"/{plural}"))


def watches(server: ApiServer, plural: str) -> list[str]:
    return server.asked("GET", f"/{plural}?watch=true")


def lists(server: ApiServer, plural: str) -> list[str]:
    return server.asked("GET", f"/{plural}?limit")


def test_a_list_is_paged_and_pods_come_last() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            for number in range(7):
                server.put(pod(f"p{number}"))
            server.put(node("n1"))
            seen = SeenEvents()
            await cluster.start({"Node", "Pod", JOB}, seen)
            assert [(kind, name) for kind, name, _ in seen] == [
                ("ADDED", "n1"),
                *(("ADDED", f"p{n}") for n in range(7)),
            ]
            assert lists(server, "pods") == [
                "/api/v1/pods?limit=3",
                "/api/v1/pods?limit=3&continue=108-3",
                "/api/v1/pods?limit=3&continue=108-6",
            ]

    play(story)


def test_a_list_of_pods_that_expires_between_its_pages_is_reported_once() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            for number in range(7):
                server.put(pod(f"p{number}"))
            server.next("GET", "/pods?limit=3&continue=", Fail(410, "Expired"))
            seen = SeenEvents()
            await cluster.start({"Pod"}, seen)
            assert sorted((kind, name) for kind, name, _ in seen) == [("ADDED", f"p{n}") for n in range(7)]

    play(story)


def test_a_start_that_is_tried_again_reports_what_has_changed_since() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            for number in range(7):
                server.put(pod(f"p{number}"))
            server.put(node("n1"))
            server.next("GET", "/pods?limit=3&continue=108-6", Fail(403, "Forbidden"))
            seen = SeenEvents()
            with pytest.raises(Refused):
                await cluster.start({"Node", "Pod"}, seen)
            assert ("ADDED", "p0") in {(kind, name) for kind, name, _ in seen}
            server.remove("/api/v1/namespaces/default/pods/p0")
            await cluster.start({"Node", "Pod"}, seen)
            found = [(kind, name) for kind, name, _ in seen]
            assert len(set(found)) == len(found), "nothing is reported twice"
            assert ("DELETED", "p0") in found
            assert {name for kind, name in found if kind == "ADDED"} == {"n1", *(f"p{n}" for n in range(7))}

    play(story)


def test_pages_that_took_too_long_are_listed_at_once() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            for number in range(5):
                server.put(pod(f"p{number}"))
            server.next("GET", "continue=", Fail(410, "Expired"))
            found = await cluster.list("Pod")
            assert [obj["metadata"]["name"] for obj in found] == [f"p{number}" for number in range(5)]
            assert server.asked("GET", "/pods")[-1] == "/api/v1/pods"

    play(story)


def test_events_are_listed_in_order() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            seen = SeenEvents()
            await cluster.start({"Pod"}, seen)
            server.put(pod("a"))
            server.put(pod("a", nodeName="n1"))
            server.remove(A)
            await until(lambda: len(seen) == 3)
            assert seen == [("ADDED", "a", "uid-1"), ("MODIFIED", "a", "uid-1"), ("DELETED", "a", "uid-1")]

    play(story)


def test_a_watch_that_is_cut_in_the_middle_of_a_line_goes_on_where_it_was() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            seen = SeenEvents()
            await cluster.start({"Pod"}, seen)
            server.put(pod("a"))
            await until(lambda: len(seen) == 1)
            stream = stream_of(server, "pods")
            with server.unheard():
                changed = server.put(pod("a", nodeName="n1"))
            line = json.dumps({"type": "MODIFIED", "object": changed}).encode() + b"\n"
            stream.cut(line[: len(line) // 2])
            await until(lambda: len(seen) == 2)
            assert seen[1] == ("MODIFIED", "a", "uid-1")
            server.put(pod("b"))
            await until(lambda: len(seen) == 3)
            assert [path.partition("resourceVersion=")[2][:3] for path in watches(server, "pods")] == ["100", "101"]
            assert len(lists(server, "pods")) == 1

    play(story)


def test_lines_come_in_any_pieces() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            got: list[Obj] = []
            await cluster.start({"Pod"}, lambda event: got.append(event.obj))
            await until(lambda: bool(server.streams))
            stream = stream_of(server, "pods")
            text = b""
            for number in range(20):
                made = pod(f"p{number}", note="x" * 500)
                made["metadata"] |= {"uid": f"u{number}", "resourceVersion": str(200 + number)}
                text += json.dumps({"type": "ADDED", "object": made}).encode() + b"\n"
            chance = random.Random(7)
            while text:
                size = chance.choice((1, 5, 100, 3000))
                stream.lines.put_nowait(text[:size])
                text = text[size:]
            await until(lambda: len(got) == 20)
            assert [obj["metadata"]["name"] for obj in got] == [f"p{number}" for number in range(20)]

    play(story)


def test_a_bookmark_moves_the_place_from_which_a_watch_goes_on() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            seen = SeenEvents()
            await cluster.start({"Pod"}, seen)
            await until(lambda: bool(server.streams))
            stream = stream_of(server, "pods")
            stream.say("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "150"}})
            stream.end()
            await until(lambda: len(watches(server, "pods")) == 2)
            assert "resourceVersion=150" in watches(server, "pods")[1]
            assert "allowWatchBookmarks=true" in watches(server, "pods")[1]
            assert seen == []

    play(story)


@pytest.mark.parametrize("how", ["status", "event"])
def test_a_compacted_history_is_listed_and_the_difference_sent(how: str) -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            for name in ("stays", "changes", "goes", "again"):
                server.put(pod(name))
            seen = SeenEvents()
            await cluster.start({"Pod"}, seen)
            await until(lambda: bool(server.streams))
            stream = stream_of(server, "pods")
            seen.clear()
            with server.unheard():
                server.put(pod("changes", nodeName="n1"))
                server.remove("/api/v1/namespaces/default/pods/goes")
                server.remove("/api/v1/namespaces/default/pods/again")
                server.put(pod("again"))
                server.put(pod("new"))
            server.forget()
            if how == "event":
                stream.say("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
            else:
                stream.cut()
            await until(lambda: len(seen) == 5)
            assert sorted(seen) == [
                ("ADDED", "again", "uid-5"),
                ("ADDED", "new", "uid-6"),
                ("DELETED", "again", "uid-4"),
                ("DELETED", "goes", "uid-3"),
                ("MODIFIED", "changes", "uid-2"),
            ]
            assert seen.index(("DELETED", "again", "uid-4")) < seen.index(("ADDED", "again", "uid-5"))
            server.put(pod("later"))
            await until(lambda: len(seen) == 6)

    play(story)


def test_a_stream_that_skips_is_sent_without_gaps() -> None:
    """Whatever the server says, an observer hears ADDED, MODIFIED, DELETED of each UID and nothing twice."""

    async def story() -> None:
        async with a_cluster() as (server, cluster):
            seen = SeenEvents()
            await cluster.start({"Pod"}, seen)
            await until(lambda: bool(server.streams))
            stream = stream_of(server, "pods")

            def say(type_: str, uid: str, version: int) -> None:
                made = pod("a")
                made["metadata"] |= {"uid": uid, "resourceVersion": str(version)}
                stream.say(type_, made)

            say("MODIFIED", "x", 201)
            say("ADDED", "x", 202)
            say("MODIFIED", "y", 203)
            say("DELETED", "x", 204)
            say("DELETED", "y", 205)
            say("DELETED", "y", 206)
            say("ADDED", "z", 207)
            await until(lambda: bool(seen) and seen[-1][2] == "z")
            assert [(type_, uid) for type_, _, uid in seen] == [
                ("ADDED", "x"),
                ("MODIFIED", "x"),
                ("DELETED", "x"),
                ("ADDED", "y"),
                ("DELETED", "y"),
                ("ADDED", "z"),
            ]

    play(story)


@pytest.mark.parametrize("line", [b"{nonsense}\n", b'{"type":"ADDED","object":{}}\n', b'{"type":"ADDED"}\n', b"[]\n"])
def test_lines_that_are_no_events_are_a_cut_and_in_the_end_a_list(line: bytes) -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            seen = SeenEvents()
            await cluster.start({"Pod"}, seen)
            await until(lambda: bool(server.streams))
            for number in range(1, 4):
                stream_of(server, "pods").lines.put_nowait(line)
                await until(lambda number=number: server.opened > number)  # type: ignore[misc]
            assert len(lists(server, "pods")) == 2
            server.put(pod("a"))
            await until(lambda: len(seen) == 1)

    play(story)


def test_a_watch_that_stalls_is_begun_again() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            seen = SeenEvents()
            await cluster.start({"Pod"}, seen)
            await until(lambda: bool(server.streams))
            stream_of(server, "pods").is_silent = True
            server.put(pod("a"))
            await until(lambda: len(seen) == 1)
            assert len(watches(server, "pods")) == 2

    play(story)


def test_errors_are_retried_and_reported_as_bad_health() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            seen = SeenEvents()
            await cluster.start({"Pod"}, seen)
            await until(lambda: bool(server.streams))
            assert cluster.healthy()
            server.next("GET", "/pods", *[Fail(500), Fail(403), DROP, Fail(503), Fail(429)] * 9)
            stream_of(server, "pods").cut()
            await until(lambda: not cluster.healthy())
            server.put(pod("a"))
            await until(lambda: len(seen) == 1)
            await until(cluster.healthy)

    play(story)


def test_a_kind_that_appears_is_watched_and_one_that_goes_is_sent_as_deleted() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            seen = SeenEvents()
            await cluster.start({"Pod", JOB}, seen)
            assert not cluster.serves(JOB)
            group = "batch.volcano.sh/v1alpha1"
            server.groups[group] = [("jobs", "Job", True, True)]
            job = {"apiVersion": group, "kind": "Job", "metadata": {"name": "j", "namespace": "default"}}
            path = server.path_of(server.put(job))
            await until(lambda: len(seen) == 1)
            assert cluster.serves(JOB)
            await until(lambda: len(server.streams) == 2)
            del server.groups[group]
            del server.objects[path]
            stream_of(server, "jobs").end()
            await until(lambda: len(seen) == 2)
            assert [type_ for type_, _, _ in seen] == ["ADDED", "DELETED"]
            assert cluster.healthy()
            server.groups[group] = [("jobs", "Job", True, True)]
            server.put(job)
            await until(lambda: len(seen) == 3)

    play(story)


def test_a_server_that_is_starting_and_knows_no_kinds_yet_loses_nothing() -> None:
    async def story() -> None:
        bounds = msgspec.structs.replace(QUICK, rediscover_s=5.0)
        async with a_cluster(bounds) as (server, cluster):
            group = "batch.volcano.sh/v1alpha1"
            server.groups[group] = [("jobs", "Job", True, True)]
            job = {"apiVersion": group, "kind": "Job", "metadata": {"name": "j", "namespace": "default"}}
            server.put(job)
            seen = SeenEvents()
            await cluster.start({JOB}, seen)
            await until(lambda: bool(server.streams))
            entries = server.groups.pop(group)
            stream_of(server, "jobs").end()
            await until(lambda: len(watches(server, "jobs")) >= 3)
            server.groups[group] = entries
            await until(lambda: bool(server.streams))
            assert [type_ for type_, _, _ in seen] == ["ADDED"]

    play(story)


def test_an_observer_that_fails_is_bad_health_for_good() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):

            def observe(event: WatchEvent) -> None:
                raise KeyError("a bug")

            await cluster.start({"Pod"}, observe)
            await until(lambda: bool(server.streams))
            server.put(pod("a"))
            await until(lambda: not cluster.healthy())

    play(story)


def test_a_cluster_that_may_not_be_listed_is_an_error_at_the_start() -> None:
    async def story() -> None:
        async with a_cluster() as (server, cluster):
            server.next("GET", "/pods?limit", Fail(403, "Forbidden", "you may not list pods"))
            with pytest.raises(Refused, match="you may not list pods"):
                await cluster.start({"Pod", "Node"}, SeenEvents())

    play(story)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_to_the_wire_an_observer_ends_up_with_what_is(seed: int) -> None:
    """Random changes, cuts, stalls, compacted histories, errors: events are consistent, and their end is the truth."""

    async def story() -> None:
        chance = random.Random(seed)
        async with a_cluster() as (server, cluster):
            now: dict[str, Obj] = {}

            def observe(event: WatchEvent) -> None:
                name, uid = event.obj["metadata"]["name"], event.obj["metadata"]["uid"]
                if event.type == "ADDED":
                    assert name not in now
                    now[name] = event.obj
                else:
                    assert now[name]["metadata"]["uid"] == uid
                    now[name] = event.obj
                    if event.type == "DELETED":
                        del now[name]

            await cluster.start({"Pod"}, observe)
            for _ in range(150):
                disturb(chance, server)
                name = f"p{chance.randrange(6)}"
                path = f"/api/v1/namespaces/default/pods/{name}"
                if path in server.objects and chance.random() < 0.5:
                    server.remove(path)
                server.put(pod(name, priority=chance.randrange(100)))
                if chance.random() < 0.3:
                    await asyncio.sleep(0.003)

            def bare(obj: Obj) -> dict[str, Any]:
                metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
                return {**obj, "metadata": metadata}

            def is_told() -> bool:
                truth = {obj["metadata"]["name"]: bare(obj) for obj in server.objects.values()}
                return truth == {name: bare(obj) for name, obj in now.items()}

            server.script.clear()
            await until(is_told)
            await until(cluster.healthy)

    play(story)


def disturb(chance: random.Random, server: ApiServer) -> None:
    stream = server.streams[-1] if server.streams else None
    match chance.randrange(16):
        case 0 if stream:
            stream.cut()
        case 1 if stream:
            stream.cut(b'{"type":"ADDED","object":{"metadata":{"na')
        case 2 if stream:
            stream.is_silent = True
        case 3 if stream:
            stream.end()
        case 4 if stream:
            stream.say("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
        case 5:
            server.forget()
            if stream:
                stream.cut()
        case 6:
            server.next("GET", "/pods", chance.choice([Fail(500), Fail(410, "Expired"), Fail(429), DROP]))
        case _:
            pass
