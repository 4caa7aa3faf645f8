"""What containers write, and how it is read."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import pytest

from cluster.embedded.process.running import World, pod_of, python, shell
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.nodes.runtime import LogQuery
from enbloc.cluster.embedded.process.logs import FileLogReader, follow
from enbloc.cluster.embedded.process.supervisor import LINE_BYTES, Log


def read(path: Path, *, runs: bool = False, **query: object) -> str:
    reader = FileLogReader(path, LogQuery(**query), lambda: runs)  # type: ignore[arg-type]
    out = b""
    while data := reader.read():
        out += data
    assert reader.ended is not runs
    reader.close()
    return out.decode()


def written(path: Path, *pieces: bytes, bound: int = 1 << 20) -> Path:
    log = Log(str(path), bound)
    for piece in pieces:
        log.write(piece)
    log.close()
    return path


def test_lines_come_back_as_they_were_written(tmp_path: Path) -> None:
    log = written(tmp_path / "log", b"one\ntw", b"o\n\nthree", b" and\n", b"no end")
    assert read(log) == "one\ntwo\n\nthree and\nno end"
    assert read(log, tail_lines=2) == "three and\nno end"
    assert read(log, tail_lines=1) == "no end"
    assert read(log, tail_lines=0) == ""
    assert read(log, tail_lines=99) == "one\ntwo\n\nthree and\nno end"
    assert read(log, limit_bytes=5) == "one\nt"
    assert read(log, tail_lines=2, limit_bytes=3) == "thr"


def test_a_long_line_counts_once_and_is_whole(tmp_path: Path) -> None:
    long = b"x" * (3 * LINE_BYTES + 5)
    log = written(tmp_path / "log", b"first\n" + long + b"\n", b"last\n")
    assert read(log, tail_lines=2) == long.decode() + "\nlast\n"
    assert read(log, tail_lines=2, timestamps=True).count("Z ") == 2


def test_times_are_shown_and_asked_for(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "log"), 1 << 20)
    log.write(b"early\n")
    time.sleep(0.01)
    between = time.time_ns()
    time.sleep(0.01)
    log.write(b"late\n")
    log.close()
    assert read(tmp_path / "log", since_ns=between) == "late\n"
    assert re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z \w+\n){2}", read(tmp_path / "log", timestamps=True))


def test_what_is_kept_is_bounded_and_the_newest(tmp_path: Path) -> None:
    bound = 100_000
    log = written(tmp_path / "log", *(b"%06d %s\n" % (number, b"y" * 93) for number in range(5_000)), bound=bound)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= bound
    lines = read(log).splitlines()
    assert lines[-1].startswith("004999")
    assert [int(line[:6]) for line in lines] == list(range(5_000 - len(lines), 5_000))
    assert len(lines) > 300


def test_a_reader_follows_over_the_turn_of_a_file(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "log"), 100_000)
    log.write(b"0\n")
    reader = FileLogReader(tmp_path / "log", LogQuery(), lambda: True)
    out = b""
    for number in range(1, 3_000):
        log.write(b"%d %s\n" % (number, b"z" * 50))
        if number % 100 == 0:
            while data := reader.read():
                out += data
    while data := reader.read():
        out += data
    log.close()
    reader.close()
    assert [int(line.split()[0]) for line in out.splitlines()] == list(range(3_000))


def test_output_and_errors_are_one_stream_in_order() -> None:
    with World() as world:
        world.run(pod_of(shell("for i in 1 2 3; do echo o$i; echo e$i >&2; done")))
        world.ended()
        assert world.log() == "o1\ne1\no2\ne2\no3\ne3\n"


def test_following_ends_with_the_run() -> None:
    async def scene(world: World) -> str:
        out = b""

        async def drive() -> None:
            while world.phase() not in ("Succeeded", "Failed"):
                world.step()
                await asyncio.sleep(0.01)

        driving = asyncio.create_task(drive())
        async for data in follow(world.nodes.logs("default", "p", "", LogQuery())):
            out += data
        await driving
        return out.decode()

    with World() as world:
        world.run(pod_of(shell("for i in 1 2 3; do echo $i; sleep 0.2; done")))
        world.said("1")
        assert asyncio.run(asyncio.wait_for(scene(world), 20)) == "1\n2\n3\n"


def test_what_is_not_there_is_refused_in_words() -> None:
    with World() as world:
        world.run(pod_of(shell("true", "a"), shell("true", "b")))
        world.ended()
        for name, container, words in (
            ("q", "", 'pods "q" not found'),
            ("p", "", "a container name must be specified"),
            ("p", "c", "container c is not valid for pod p"),
        ):
            with pytest.raises(Refused, match=words):
                world.log(name, container)
        with pytest.raises(Refused, match="previous terminated container"):
            world.log("p", "a", previous=True)


def test_a_flood_is_bounded_and_does_not_stop_the_command(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        code = "import sys\nfor i in range(400): sys.stdout.write(('%07d' % i + 'x' * 92 + chr(10)) * 1000)"
        world.run(pod_of(python(code)))
        assert world.ended()["status"]["phase"] == "Succeeded"
        logs = list(tmp_path.glob("pods/*/main/*.log*"))
        assert 0 < sum(path.stat().st_size for path in logs) <= 10 * 1024 * 1024
        assert world.log(tail_lines=1).startswith("0000399")
