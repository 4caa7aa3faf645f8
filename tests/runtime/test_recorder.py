"""The flight recorder: a recording of a live run with faults replays to the same decisions, and holds no secret."""

from __future__ import annotations

import asyncio
import gzip
import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.support import manifests as m
from tests.support.live_cluster import LiveWorld, in_virtual_time
from tests.support.seeds import new_seed

from enbloc.api.meta import Ref, name_of
from enbloc.cli.replay_recording import command
from enbloc.config import parse
from enbloc.gangs.own_annotations import COMMITTED
from enbloc.gangs.record_digests import new_keyring
from enbloc.runtime.recorder import BASE, SEGMENT, Limits
from enbloc.sim.recording import BadRecording, replay_recording

STARVING = {"actions": [*({"name": name} for name in ("enqueue", "allocate", "backfill", "preempt", "reclaim")),
                        {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 5}}]}  # fmt: skip


def live_run(directory: Path, seed: int, jobs: int = 10) -> None:
    """Gangs of several priorities on too little room, with lag, refused writes, lost answers and restarts."""

    async def main() -> None:
        dice = random.Random(seed)
        world = LiveWorld(
            *(m.node(f"n{i}", dice.randint(2, 6)) for i in range(5)),
            m.priority_class("high", 100),
            seed=seed,
            config=parse(STARVING),
            record=directory,
            keyring=new_keyring(),
            lag_s=dice.choice((0.01, 0.1, 1.0)),
            refusals=dice.choice((0.05, 0.3)),
            losses=dice.choice((0.0, 0.1, 0.3)),
        )
        await world.begin()
        for i in range(jobs):
            job = m.job(
                f"j{i}", m.role("w", dice.randint(1, 8), cpu=dice.randint(1, 2), run_time=f"{dice.randint(1, 9)}s")
            )
            if dice.random() < 0.3:
                job["spec"]["priorityClassName"] = "high"
            world.store.create(job)
            await asyncio.sleep(dice.uniform(0, 2))
            if dice.random() < 0.15:
                await world.restart()
            if dice.random() < 0.1:
                world.store.delete(Ref("Job.batch.volcano.sh", "default", f"j{i}"))
        await world.settle(600)
        await world.end()

    in_virtual_time(main)


@pytest.mark.parametrize("seed", [0, 1, None])
def test_a_live_run_with_faults_replays_to_the_same_decisions(tmp_path: Path, seed: int | None) -> None:
    live_run(tmp_path, new_seed() if seed is None else seed)
    recordings = sorted(tmp_path.iterdir())
    assert recordings
    for recording in recordings:
        found = replay_recording(recording)
        assert not found.differences, found.differences[0]
        assert found.cycles
    assert sum(replay_recording(recording).decisions for recording in recordings) > 10
    lines = b"".join(gzip.decompress(path.read_bytes()) for path in tmp_path.glob(f"*/{SEGMENT}"))
    assert b'["r","' in lines, "no write was refused: the run had no faults"


def test_the_command_says_so_and_shows_what_another_config_decides(tmp_path: Path) -> None:
    async def main() -> None:
        large = (m.sigs_podgroup("large", 5), *m.labelled_pods("large", 5))
        small = (m.sigs_podgroup("small", 2), *m.labelled_pods("small", 2))
        world = LiveWorld(m.node("n1", 4), *large, *small, record=tmp_path)
        await world.begin()
        await world.settle()
        await world.end()

    in_virtual_time(main)
    same = CliRunner().invoke(command, [str(tmp_path / "0")])
    assert (same.exit_code, "the same decisions" in same.output) == (0, True), same.output
    strict = tmp_path / "fifo.yaml"
    strict.write_text("queues: {dequeueStrategy: fifo}\n")
    other = CliRunner().invoke(command, [str(tmp_path / "0"), "--config", str(strict)])
    assert other.exit_code == 1
    assert "other decisions in" in other.output
    assert "- Bind default/small" in other.output, other.output
    until = CliRunner().invoke(command, [str(tmp_path / "0"), "--until", "0s", "--config", str(strict), "-o", "json"])
    assert '"cycles":1' in until.output


def test_a_recording_is_bounded_and_replays_from_what_is_left(tmp_path: Path) -> None:
    async def main() -> None:
        LiveWorld.limits = Limits(limit_bytes=12_000, segment_bytes=3_000)
        world = LiveWorld(*(m.node(f"n{i}", 4) for i in range(3)), record=tmp_path)
        await world.begin()
        for i in range(36):  # about 17 kB each; a segment is cut after 256 kB
            world.store.create(m.job(f"j{i}", m.role("w", 3, run_time="4s")))
            await asyncio.sleep(6)
            world.wait_recorded()
        await world.settle(600)
        await world.end()

    limits = LiveWorld.limits
    try:
        in_virtual_time(main)
    finally:
        LiveWorld.limits = limits
    files = [*(tmp_path / "0").iterdir()]
    assert (tmp_path / "0" / BASE) in files
    assert sum(path.stat().st_size for path in files) < 60_000
    assert len(files) <= 4
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)
    found = replay_recording(tmp_path / "0")
    assert found.from_base
    assert found.decisions > 5
    assert not found.differences, found.differences[0]


def test_s2_a_recording_holds_no_secret_and_no_forged_mark_counts(tmp_path: Path) -> None:
    async def main() -> None:
        pods = m.labelled_pods("k", 2)
        for pod in pods:
            pod["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": "hunter2"}]
            pod["spec"]["containers"][0]["args"] = ["--password=hunter2"]
        world = LiveWorld(m.node("n1", 1), m.sigs_podgroup("k", 2), *pods, record=tmp_path, keyring=new_keyring())
        await world.begin()
        await world.settle()
        [pod, _] = world.pods()
        forged = {COMMITTED: "2;w=2", "enbloc.dev/decision": "x", "enbloc.dev/digest": "key-1:" + 32 * "0"}
        world.store.patch(Ref("Pod", "default", name_of(pod)), {"metadata": {"annotations": forged}})
        await world.settle()
        await world.end()

    in_virtual_time(main)
    text = b"".join(gzip.decompress(path.read_bytes()) for path in tmp_path.glob(f"*/{SEGMENT}")).decode()
    assert "hunter2" not in text
    assert "TOKEN" in text
    found = replay_recording(tmp_path / "0")
    assert not found.differences, found.differences[0]


def test_a_recording_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    live_run(tmp_path, 1, jobs=3)
    [segment, *_] = sorted(tmp_path.glob(f"*/{SEGMENT}"))
    whole = replay_recording(segment.parent)
    segment.write_bytes(segment.read_bytes()[:-40])
    cut = replay_recording(segment.parent)
    assert not cut.differences
    assert cut.cycles <= whole.cycles


def test_a_directory_without_a_recording_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadRecording, match="holds no recording"):
        replay_recording(tmp_path)
    shown = CliRunner().invoke(command, [str(tmp_path)])
    assert (shown.exit_code, shown.output.count("\n")) == (2, 1)
