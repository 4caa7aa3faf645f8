"""The data directory is this user's alone, and what was acknowledged and is lost is never lost silently (F1 to F4)."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from enbloc.api.meta import Obj, Ref
from enbloc.cluster.embedded.api import acknowledged
from enbloc.cluster.embedded.api.database import FILE, FILES
from enbloc.cluster.embedded.api.datadir import DataDir, DataDirError
from enbloc.cluster.embedded.api.journal import SKIP, Journal, JournalError
from enbloc.cluster.embedded.api.private_files import NotPrivate, read_secret, write_private
from enbloc.cluster.embedded.http.certificate import load_certificate
from support.embedded_store import config_map, make_store
from support.seeds import new_seed

DAMAGED = 1_000


class Life:
    """A store with its journal, from start to stop."""

    def __init__(self, path: Path, *, accept_loss: bool = False) -> None:
        self.data = DataDir(path)
        try:
            self.store, _ = make_store()
            self.journal = Journal(self.data, accept_loss=accept_loss)
            self.journal.restore(self.store)
        except BaseException:
            self.data.close()
            raise

    def crash(self) -> None:
        """As if the process were gone: nothing is written any more, and the lock is free."""
        self.journal._writer.shutdown()
        self.journal._db.close()
        self.journal._acknowledged.close()
        self.data.close()

    def stop(self) -> None:
        self.journal.close()
        self.data.close()

    def content(self) -> list[Obj]:
        return list(self.store.objects())


def lived(path: Path, *, crashed: bool) -> list[Obj]:
    """A directory with something in it, part of it in the WAL if it crashed. Returns what was acknowledged."""
    life = Life(path)
    for number in range(30):
        life.store.create({**config_map(f"c{number}"), "data": {"text": f"{number}" * 100}})
        life.journal.commit()
    life.stop()
    life = Life(path)
    for number in range(20, 50):
        life.store.patch(Ref("ConfigMap", "default", "c3"), {"data": {"n": str(number)}})
        life.store.create({**config_map(f"d{number}"), "data": {"text": "x" * 300}})
        life.journal.commit()
    life.store.delete(Ref("ConfigMap", "default", "c5"))
    life.journal.commit()
    if crashed:
        copy = path.with_name("copy")  # closing the last connection would empty the WAL
        shutil.copytree(path, copy)
        life.crash()
        shutil.rmtree(path)
        copy.rename(path)
    else:
        life.stop()
    return life.content()


def damage(path: Path, chance: random.Random) -> str:
    """One fault in one file: a bit flipped, an end cut off, or the file deleted."""
    names = [name for name in (*FILES, acknowledged.FILE) if (path / name).exists() and (path / name).stat().st_size]
    name = chance.choice(names)
    file = path / name
    content = bytearray(file.read_bytes())
    match chance.choice(("flip", "flip", "cut", "delete" if chance.random() < 0.1 else "cut")):
        case "flip":
            bit = chance.randrange(len(content) * 8)
            content[bit // 8] ^= 1 << bit % 8
            file.write_bytes(content)
            return f"bit {bit} of {name}"
        case "cut":
            end = chance.randrange(len(content))
            file.write_bytes(content[:end])
            return f"{name} cut at {end}"
    file.unlink()
    return f"{name} deleted"


@pytest.mark.parametrize("crashed", [False, True], ids=["closed", "crashed"])
def test_f2_any_single_damage_is_noticed_or_loses_nothing(tmp_path: Path, crashed: bool) -> None:
    seed = new_seed()
    chance = random.Random(seed)
    expected = lived(tmp_path / "whole", crashed=crashed)
    noticed = 0
    for _ in range(DAMAGED // 2):
        path = tmp_path / "damaged"
        shutil.copytree(tmp_path / "whole", path)
        what = damage(path, chance)
        try:
            life = Life(path)
        except DataDirError:
            noticed += 1
        else:
            assert life.content() == expected, f"silent loss: {what}"
            life.crash()
        shutil.rmtree(path)
    assert noticed > DAMAGED // 10


def test_f2_damage_that_sqlite_cannot_name_in_utf8_is_refused(tmp_path: Path) -> None:
    """SQLite's message quotes the name of the damaged table."""
    lived(tmp_path / "d", crashed=False)
    file = tmp_path / "d" / FILE
    content = file.read_bytes()
    place = content.index(b"CREATE TABLE objects") + len(b"CREATE TABLE ")
    file.write_bytes(content[:place] + b"\xa0" + content[place + 1 :])
    with pytest.raises(DataDirError, match="--accept-data-loss"):
        Life(tmp_path / "d")
    life = Life(tmp_path / "d", accept_loss=True)
    life.stop()


@pytest.mark.parametrize("name", [FILE, f"{FILE}-wal", acknowledged.FILE])
@pytest.mark.parametrize("harm", ["deleted", "emptied", "halved"])
def test_f2_a_lost_or_cut_file_is_refused_with_a_way_to_go_on(tmp_path: Path, name: str, harm: str) -> None:
    expected = lived(tmp_path / "d", crashed=True)
    file = tmp_path / "d" / name
    content = file.read_bytes()
    if harm == "deleted":
        file.unlink()
    else:
        file.write_bytes(b"" if harm == "emptied" else content[: len(content) // 2])
    if (name, harm) == (acknowledged.FILE, "halved"):  # there are two records, and the database is whole
        life = Life(tmp_path / "d")
        assert life.content() == expected
        life.stop()
        return
    with pytest.raises(DataDirError, match="--accept-data-loss"):
        Life(tmp_path / "d")
    whole = {file.name: file.read_bytes() for file in (tmp_path / "d").iterdir() if file.name in FILES}
    assert all((tmp_path / "d" / name).read_bytes() == kept for name, kept in whole.items() if name == FILE)
    life = Life(tmp_path / "d", accept_loss=True)
    names = {obj["metadata"]["name"] for obj in life.content()}
    assert names <= {obj["metadata"]["name"] for obj in expected} | {"c5"}
    assert (tmp_path / "d" / "damaged-1").is_dir()
    if harm != "emptied" and name == acknowledged.FILE:
        assert life.content() == expected
    largest = max(int(obj["metadata"]["resourceVersion"]) for obj in expected)
    assert life.store.version >= SKIP
    assert life.store.version > largest or name != acknowledged.FILE
    made = life.store.create(config_map("new"))
    life.journal.commit()
    life.stop()
    again = Life(tmp_path / "d")
    assert made in again.content()
    again.stop()


def test_f2_an_older_copy_of_the_database_is_refused(tmp_path: Path) -> None:
    lived(tmp_path / "d", crashed=False)
    shutil.copy(tmp_path / "d" / FILE, tmp_path / "older")
    life = Life(tmp_path / "d")
    life.store.create(config_map("later"))
    life.stop()
    shutil.copy(tmp_path / "older", tmp_path / "d" / FILE)
    with pytest.raises(DataDirError, match=r"ends at version \d+, and version \d+ had been acknowledged"):
        Life(tmp_path / "d")


def test_f2_the_version_is_on_the_disk_before_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power failure could take it back, and a WAL that was cut then would not be noticed."""
    synced: list[int] = []
    sync = os.fdatasync

    def noting(descriptor: int) -> None:
        sync(descriptor)
        found = life.journal._acknowledged.read()
        synced.append(found.version if found else -1)

    life = Life(tmp_path / "d")
    monkeypatch.setattr(acknowledged.os, "fdatasync", noting)
    for number in range(3):
        life.store.create(config_map(f"c{number}"))
        life.journal.commit()
        assert synced[-1] == life.store.version
    life.stop()


def test_f2_another_database_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        lived(tmp_path / name, crashed=False)
    shutil.copy(tmp_path / "a" / FILE, tmp_path / "b" / FILE)
    with pytest.raises(DataDirError, match="another database"):
        Life(tmp_path / "b")


def test_f2_a_changed_body_is_not_served(tmp_path: Path) -> None:
    lived(tmp_path / "d", crashed=False)
    db = sqlite3.connect(tmp_path / "d" / FILE, isolation_level=None)
    db.execute("UPDATE objects SET body = replace(body, '333', '334') WHERE name = 'c3'")
    db.close()
    with pytest.raises(DataDirError, match=r"the record of .*c3 does not hold that object"):
        Life(tmp_path / "d")
    life = Life(tmp_path / "d", accept_loss=True)
    assert life.store.get("ConfigMap", "default", "c3") is None
    assert life.store.get("ConfigMap", "default", "c4") is not None
    life.stop()


def test_a_directory_of_the_first_schema_is_upgraded(tmp_path: Path) -> None:
    """Version 0.1 had no digests and no file `acknowledged`, and modes by the umask."""
    expected = lived(tmp_path / "d", crashed=False)
    db = sqlite3.connect(tmp_path / "d" / FILE, isolation_level=None)
    db.executescript(
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);"
        "INSERT INTO meta VALUES ('version', 500), ('open', 0);"
        "CREATE TABLE former (kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,"
        " version INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (kind, namespace, name));"
        "INSERT INTO former SELECT kind, namespace, name, version, body FROM objects;"
        "DROP TABLE objects; DROP TABLE state; ALTER TABLE former RENAME TO objects; PRAGMA user_version = 1;"
    )
    db.close()
    (tmp_path / "d" / acknowledged.FILE).unlink()
    (tmp_path / "d").chmod(0o755)
    (tmp_path / "d" / FILE).chmod(0o644)
    for _ in range(2):
        life = Life(tmp_path / "d")
        assert life.content() == expected
        assert life.store.version == 500
        assert modes(tmp_path / "d") == {0o600}
        life.stop()
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700


def modes(path: Path) -> set[int]:
    return {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()}


def test_f1_only_the_user_can_read_the_files(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        life = Life(tmp_path / "new" / "d")
        life.store.create(config_map())
        life.journal.commit()
        assert stat.S_IMODE((tmp_path / "new" / "d").stat().st_mode) == 0o700
        assert {file.name for file in (tmp_path / "new" / "d").iterdir()} >= {*FILES, "lock", acknowledged.FILE}
        assert modes(tmp_path / "new" / "d") == {0o600}
        life.stop()
    finally:
        os.umask(before)


@pytest.mark.parametrize("name", [*FILES, "lock", acknowledged.FILE])
def test_f3_no_symbolic_link_is_followed(tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    (tmp_path / "d").mkdir(mode=0o700)
    (tmp_path / "d" / name).symlink_to(target)
    with pytest.raises(DataDirError, match="is a symbolic link, which is not followed"):
        Life(tmp_path / "d")
    assert target.read_bytes() == b"precious"
    assert stat.S_IMODE(target.stat().st_mode) != 0o600


def test_f3_a_planted_token_or_certificate_is_not_used(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"x" * 40)
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "open").write_bytes(b"x" * 40)
    (tmp_path / "open").chmod(0o666)
    for name in ("link", "open"):
        with pytest.raises(NotPrivate):
            read_secret(tmp_path / name)
        with pytest.raises(NotPrivate):
            write_private(tmp_path / name, b"mine")
        with pytest.raises(NotPrivate):
            load_certificate(tmp_path / name, "127.0.0.1")
        assert (tmp_path / name).read_bytes() == b"x" * 40
    write_private(tmp_path / "mine", b"secret")
    assert read_secret(tmp_path / "mine") == b"secret"
    assert read_secret(tmp_path / "missing") is None


def test_f3_a_directory_that_others_can_write_is_refused_unless_it_is_empty_or_ours(tmp_path: Path) -> None:
    path = tmp_path / "d"
    path.mkdir()
    path.chmod(0o777)
    DataDir(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_text("")
    other.chmod(0o777)
    with pytest.raises(DataDirError, match="can be written by others"):
        DataDir(other)
    assert stat.S_IMODE(other.stat().st_mode) == 0o777


def test_f4_after_a_failed_commit_the_journal_says_why(tmp_path: Path) -> None:
    life = Life(tmp_path)
    assert life.journal.failure is None
    pages = life.journal._db.execute("PRAGMA page_count").fetchone()[0]
    life.journal._db.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own way to a full disk
    life.store.create({**config_map(), "data": {"a": "x" * 100_000}})
    with pytest.raises(JournalError, match="full"):
        life.journal.commit()
    assert life.journal.failure is not None
    assert "full" in life.journal.failure
    life.stop()
    again = Life(tmp_path)
    assert again.store.get("ConfigMap", "default", "cm") is None
    again.stop()
