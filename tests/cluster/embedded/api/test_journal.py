"""What was acknowledged is there again, whatever ended the process; what cannot be read says so in one line."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import EmitEvent, Refused
from enbloc.cluster.embedded.api.admission import bootstrap
from enbloc.cluster.embedded.api.datadir import DataDir, DataDirError
from enbloc.cluster.embedded.api.journal import FILE, SKIP, Journal, JournalError
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.api.watch_log import Bounds
from support.embedded_store import config_map, make_store, node, owner, pod
from support.seeds import new_seed

WRITER = Path(__file__).with_name("journal_writer.py")


class Life:
    """A store with its journal, from start to stop."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.data = DataDir(path)
        try:
            self.store, self.clock = make_store(**options)
            self.journal = Journal(self.data)
            self.restored = self.journal.restore(self.store)
        except BaseException:
            self.data.close()
            raise

    def stop(self) -> None:
        self.journal.close()
        self.data.close()

    def crash(self) -> None:
        """As if the process were gone: nothing is written any more, and the lock is free."""
        self.journal._writer.shutdown()
        self.journal._db.close()
        self.journal._acknowledged.close()
        self.data.close()


def everything(store: Store) -> list[Obj]:
    return list(store.objects())


def test_all_is_there_again_and_versions_go_on(tmp_path: Path) -> None:
    first = Life(tmp_path)
    bootstrap(first.store)
    first.store.create(node())
    first.store.create(pod("p"))
    first.store.create(config_map("gone"))
    first.store.bind("default", "p", "", "n1", {"a": "b"})
    first.store.delete(Ref("ConfigMap", "default", "gone"))
    before, version = everything(first.store), first.store.version
    first.stop()

    second = Life(tmp_path)
    assert everything(second.store) == before
    assert second.restored == len(before)
    assert second.store.version == version
    bootstrap(second.store)  # what is there already is left alone
    assert second.store.version == version
    uids = {obj["metadata"]["uid"] for obj in before}
    made = second.store.create(config_map("new"))
    assert made["metadata"]["resourceVersion"] == str(version + 1)
    assert made["metadata"]["uid"] not in uids
    second.stop()


def test_a_uid_is_never_given_twice_even_if_its_object_went(tmp_path: Path) -> None:
    seen = set()
    for _ in range(3):
        life = Life(tmp_path)
        seen.add(life.store.create(config_map())["metadata"]["uid"])
        life.store.delete(Ref("ConfigMap", "default", "cm"))
        life.stop()
    assert len(seen) == 3


def test_a_watch_of_an_earlier_life_must_list_anew(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.store.create(config_map("a"))
    life.store.create(config_map("b"))
    version = life.store.version
    life.stop()
    life = Life(tmp_path)
    with pytest.raises(Refused) as refused:
        life.store.watch(None, version - 1)
    assert refused.value.code == 410
    life.store.watch(None, version).close()
    life.stop()


def test_after_a_crash_no_version_is_given_twice(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.store.create(config_map("a"))
    life.journal.commit()
    life.store.create(config_map("seen-but-never-acknowledged"))
    seen, durable = life.store.version, life.journal.version
    assert durable < seen
    life.crash()
    for lives in (1, 2):
        life = Life(tmp_path)
        assert life.store.version == durable + lives * SKIP > seen
        assert [obj["metadata"]["name"] for obj in life.store.list("ConfigMap")[0]] == ["a"]
        with pytest.raises(Refused) as refused:
            life.store.watch(None, seen)
        assert refused.value.code == 410
        life.crash()


def test_deletions_that_had_begun_go_on(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old"}})
    life.store.create(config_map("inside", namespace="old"))
    boss = life.store.create(config_map("boss"))
    life.store.create(config_map("child", ownerReferences=[owner(boss)]))
    life.store.delete(Ref("ConfigMap", "default", "boss"), propagation="Foreground")
    life.store.delete(Ref("Namespace", "", "old"))
    life.stop()
    life = Life(tmp_path)
    assert life.store.get("ConfigMap", "default", "child") is not None
    life.store.collect_garbage()
    left = [str(Ref("", "", obj["metadata"]["name"])) for obj in everything(life.store)]
    assert not {name.strip() for name in left} & {"old", "inside", "boss", "child"}
    life.stop()


def test_dependants_of_an_owner_that_went_are_collected_after_a_restart(tmp_path: Path) -> None:
    life = Life(tmp_path)
    boss = life.store.create(config_map("boss"))
    life.store.create(config_map("child", ownerReferences=[owner(boss)]))
    life.store.delete(Ref("ConfigMap", "default", "boss"))
    life.stop()
    life = Life(tmp_path)
    life.store.collect_garbage()
    assert life.store.get("ConfigMap", "default", "child") is None
    life.stop()


def test_events_are_counted_on_and_named_anew(tmp_path: Path) -> None:
    said = EmitEvent(Ref("Pod", "default", "p"), "u1", "Normal", "Waits", "no room")
    life = Life(tmp_path)
    first = life.store.emit(said)
    life.stop()
    life = Life(tmp_path)
    assert life.store.emit(said)["metadata"]["name"] == first["metadata"]["name"]
    assert life.store.list("Event")[0][0]["count"] == 2
    other = life.store.emit(EmitEvent(Ref("Pod", "default", "p"), "u1", "Normal", "Waits", "still no room"))
    assert other["metadata"]["name"] != first["metadata"]["name"]
    assert len(life.store.list("Event")[0]) == 2
    life.stop()


def test_quotas_count_what_was_there(tmp_path: Path) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}
    life = Life(tmp_path)
    life.store.create(pod("a"))
    life.store.create(quota)
    life.store.create(pod("b"))
    life.stop()
    life = Life(tmp_path)
    with pytest.raises(Refused, match="exceeded quota"):
        life.store.create(pod("c"))
    life.stop()


def test_kinds_of_a_definition_are_known_again(tmp_path: Path) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    life = Life(tmp_path)
    life.store.create(definition)
    life.store.create({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}})
    life.stop()
    life = Life(tmp_path)
    found = life.store.discovery.find("Thing.example.com")
    assert found is not None
    assert not found.namespaced
    assert life.store.get("Thing.example.com", "", "t") is not None
    life.stop()


def test_odd_numbers_and_letters_come_back_as_they_were(tmp_path: Path) -> None:
    odd = {"big": 10**40, "half": "\ud800", "text": "é\u2028\x00", "float": 1.5, "none": None}
    life = Life(tmp_path)
    life.store.create({**config_map(), "odd": odd})
    life.stop()
    life = Life(tmp_path)
    assert life.store.list("ConfigMap")[0][0]["odd"] == odd
    life.stop()


def test_a_journal_that_fell_far_behind_writes_everything(tmp_path: Path) -> None:
    life = Life(tmp_path, bounds=Bounds(history=10, unread=20))
    life.store.create(config_map("early"))
    life.journal.commit()
    life.store.delete(Ref("ConfigMap", "default", "early"))
    for number in range(100):
        life.store.create(config_map(f"c{number}"))
    before = everything(life.store)
    life.journal.commit()
    life.crash()
    life = Life(tmp_path)
    assert everything(life.store) == before
    life.stop()


def test_one_commit_serves_all_waiting_writes(tmp_path: Path) -> None:
    life = Life(tmp_path)
    commits = 0

    def count(statement: str) -> None:
        nonlocal commits
        commits += statement == "COMMIT"

    async def write(number: int) -> None:
        made = life.store.create(config_map(f"c{number}"))
        await life.journal.durable()
        assert life.journal.version >= int(made["metadata"]["resourceVersion"])

    async def all_at_once() -> None:
        await asyncio.gather(*(write(number) for number in range(200)))
        life.store.create(config_map("by-a-controller"))
        life.journal.commit_soon()
        await life.journal.durable()

    life.journal._db.set_trace_callback(count)
    asyncio.run(all_at_once())
    life.journal._db.set_trace_callback(None)
    assert 1 <= commits <= 4
    life.crash()
    life = Life(tmp_path)
    assert len(life.store.list("ConfigMap")[0]) == 201
    life.stop()


def test_a_waiter_that_gives_up_does_not_harm_the_others(tmp_path: Path) -> None:
    life = Life(tmp_path)

    async def scene() -> None:
        life.store.create(config_map("a"))
        waiters = [asyncio.create_task(life.journal.durable()) for _ in range(3)]
        await asyncio.sleep(0)
        waiters[0].cancel()
        await asyncio.gather(*waiters[1:])

    asyncio.run(scene())
    assert life.journal.version == life.store.version
    life.stop()


def test_nothing_is_acknowledged_once_a_commit_has_failed(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.store.create(config_map("a"))
    life.journal.commit()
    life.journal._db.execute("DROP TABLE objects")
    life.store.create(config_map("b"))
    with pytest.raises(JournalError, match="cannot be written"):
        life.journal.commit()
    with pytest.raises(JournalError):
        asyncio.run(life.journal.durable())
    life.stop()


def test_two_processes_never_share_a_directory(tmp_path: Path) -> None:
    life = Life(tmp_path)
    with pytest.raises(DataDirError, match=r"in use by another enbloc \(process \d+\)"):
        DataDir(tmp_path)
    life.stop()
    Life(tmp_path).stop()


def test_a_directory_that_cannot_be_one_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DataDirError, match="cannot be used as a data directory"):
            DataDir(path)


@pytest.mark.parametrize("harm", ["garbage", "cut", "foreign", "newer", "body", "middle", "directory"])
def test_a_file_that_cannot_be_read_says_so_in_one_line(tmp_path: Path, harm: str) -> None:
    life = Life(tmp_path)
    for number in range(200):
        life.store.create(config_map(f"c{number}"))
    life.stop()
    path = tmp_path / FILE
    whole = path.read_bytes()
    match harm:
        case "garbage":
            path.write_bytes(b"\xff" * 5_000)
        case "cut":
            path.write_bytes(whole[: len(whole) // 2])
        case "middle":
            third = len(whole) // 3
            path.write_bytes(whole[:third] + b"\xa5" * third + whole[2 * third :])
        case "directory":
            path.unlink()
            path.mkdir()
        case _:
            statement = {
                "foreign": "PRAGMA application_id = 7",
                "newer": "PRAGMA user_version = 99",
                "body": "UPDATE objects SET body = '{\"half'",
            }[harm]
            db = sqlite3.connect(path, isolation_level=None)
            db.execute(statement)
            db.close()
    with pytest.raises(DataDirError) as raised:
        Life(tmp_path)
    message = str(raised.value)
    assert message.startswith(f"{path} ")
    assert "\n" not in message
    assert ("newer enbloc" if harm == "newer" else "cannot be read") in message


class WriterLog:
    """What a writer said: for each key the states it tried, by number, and the last number that was acknowledged."""

    def __init__(self) -> None:
        self.tried: dict[str, dict[int, str]] = {}
        self.acknowledged: dict[str, int] = {}

    def hear(self, output: bytes) -> None:
        for line in output.split(b"\n")[:-1]:  # the last one may be cut off
            match line.decode().split():
                case ["T", key, number, state]:
                    self.tried.setdefault(key, {})[int(number)] = state
                case ["A", key, number]:
                    self.acknowledged[key] = int(number)

    def check(self, store: Store) -> None:
        present = {obj["metadata"]["name"]: int(obj["data"]["number"]) for obj in store.list("ConfigMap")[0]}
        for key, tried in self.tried.items():
            since = self.acknowledged.get(key, 0)
            possible = {number: state for number, state in tried.items() if number >= since}
            if key in present:
                assert possible.get(present[key]) == "here", (key, present[key], since, possible)
            else:
                assert since == 0 or "gone" in possible.values(), (key, since, possible)
        assert present.get("x") == present.get("y"), "half a transaction is visible"


def killed_lives(path: Path, rounds: int, chance: random.Random) -> int:
    log = WriterLog()
    for life in range(1, rounds + 1):
        writer = subprocess.Popen([sys.executable, WRITER, path, str(life)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        output = bytearray(writer.stdout.readline())

        def listen(pipe: Any = writer.stdout, heard: bytearray = output) -> None:
            while chunk := pipe.read1(65536):
                heard += chunk

        listener = threading.Thread(target=listen)
        listener.start()
        time.sleep(chance.random() ** 2 * 0.25)
        writer.send_signal(signal.SIGKILL)
        writer.wait(timeout=10)
        listener.join(timeout=10)
        writer.stdout.close()
        log.hear(bytes(output))
        store, _ = make_store()
        data = DataDir(path)
        journal = Journal(data)
        journal.restore(store)
        log.check(store)
        journal._db.close()  # this life ends without a word as well
        journal._acknowledged.close()
        journal._writer.shutdown()
        data.close()
    return sum(len(tried) for tried in log.tried.values())


def test_killed_at_any_instant_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    seed = new_seed()
    assert killed_lives(tmp_path, 32, random.Random(seed)) > 500


@pytest.mark.soak
def test_killed_many_times_nothing_acknowledged_is_lost(tmp_path: Path, rounds: Iterator[int]) -> None:
    for seed in rounds:
        killed_lives(tmp_path / str(seed), 32, random.Random(seed))
