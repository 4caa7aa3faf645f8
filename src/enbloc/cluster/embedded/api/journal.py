"""The store on disk: every acknowledged write survives a crash.

The journal reads a watch, so the store does not know it. Every change of the store is one event; a commit writes the
present state of all objects that changed since the last commit, in one transaction. So the disk always holds the store
at one version, never half a change. The HTTP server awaits `durable` before it acknowledges a write; writes that wait
during a commit share the next one.

SQLite in WAL mode with `synchronous=FULL`: a commit returns when the disk has it (see docs/decisions/0045).

Watch history is not kept: watches from before a restart get 410 and list again. Versions continue. After a crash they
skip ahead, so that a version that a client read but that never reached the disk is not used twice.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.datadir import DataDir, DataDirError
from enbloc.cluster.embedded.api.object_size import encoded
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.api.watch_log import DEFAULT_BOUNDS, LogWatch

FILE: Final = "state.db"
SCHEMA: Final = 1
SKIP: Final = 2 * DEFAULT_BOUNDS.unread
"""How far versions skip ahead after a crash: further than a commit can lag behind."""
_APPLICATION: Final = 0x456E626C  # "Enbl": marks the file as enbloc's
_CHECKPOINT_PAGES: Final = 4_000

_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE objects (
    kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (kind, namespace, name)
);
INSERT INTO meta VALUES ('version', 0), ('open', 0);
"""


class JournalError(Exception):
    """A commit failed: no later write may be acknowledged."""


class _Batch(msgspec.Struct, frozen=True):
    """The changes up to `version`; a deleted object is `None`."""

    version: int
    changes: dict[Ref, Obj | None]
    everything: bool = False


class Journal:
    """Keeps a store in a data directory. Called on the store's thread; the writing happens on a thread of its own."""

    def __init__(self, data: DataDir) -> None:
        self._path = data.path / FILE
        self._db = _opened(self._path)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._store: Store | None = None
        self._watch: LogWatch | None = None
        self._taken = 0
        self._durable = 0
        self._failure: Exception | None = None
        self._under_way: asyncio.Task[None] | None = None

    @property
    def version(self) -> int:
        """The version of the store that is on disk."""
        return self._durable

    def restore(self, store: Store) -> int:
        """Fills an empty store with what is on disk, and journals it from here on. Returns the number of objects."""
        try:
            version = self._meta("version")
            if self._meta("open"):
                version += SKIP
            objects = list(_stored(self._db, self._path))
            store.restore(objects, version)
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.execute("UPDATE meta SET value = 1 WHERE key = 'open'")
                self._db.execute("UPDATE meta SET value = ? WHERE key = 'version'", (version,))
        except sqlite3.Error as why:
            raise _unreadable(self._path, str(why)) from why
        self._store = store
        self._watch = store.watch(None, version)
        self._taken = self._durable = version
        return len(objects)

    async def durable(self) -> None:
        """Returns once the present version of the store is on disk. Raises `JournalError` if it cannot be written."""
        assert self._store is not None, "restore comes first"
        wanted = self._store.version
        while self._durable < wanted:
            self._check()
            if self._under_way is None:
                self._under_way = asyncio.create_task(self._commit_all_ready())
            await asyncio.shield(self._under_way)
        self._check()

    def commit_soon(self) -> None:
        """Starts a commit, unless there is nothing to write or one is running; does not block. Needs a running loop."""
        assert self._store is not None, "restore comes first"
        if self._under_way is None and self._failure is None and self._store.version > self._taken:
            self._under_way = asyncio.create_task(self._commit_all_ready())

    def commit(self) -> None:
        """As `durable`, without an event loop: blocks."""
        self._check()
        self._submit().result()
        self._check()

    def close(self) -> None:
        """Commits the rest and marks the file as cleanly closed."""
        try:
            if self._store is not None and self._failure is None:
                self._submit().result()
            self._writer.shutdown()
            if self._store is not None and self._failure is None:
                with self._db:
                    self._db.execute("UPDATE meta SET value = 0 WHERE key = 'open'")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._writer.shutdown()
            self._db.close()
            if self._watch is not None:
                self._watch.close()

    # -- internals

    async def _commit_all_ready(self) -> None:
        await asyncio.sleep(0)  # writes of the same turn of the loop join this commit
        try:
            await asyncio.wrap_future(self._submit())
        finally:
            self._under_way = None

    def _submit(self) -> Future[None]:
        """Writes everything since the last batch; batches are written in order."""
        return self._writer.submit(self._write, self._take())

    def _take(self) -> _Batch:
        assert self._store is not None, "restore comes first"
        assert self._watch is not None
        version = self._store.version
        self._taken = version
        try:
            events = self._watch.drain()
        except Refused:  # the watch lags behind the store's history: write everything
            self._watch.cursor = version
            return _Batch(version, {ref_of(obj): obj for obj in self._store.objects()}, everything=True)
        return _Batch(version, {ref_of(event.obj): None if event.type == "DELETED" else event.obj for event in events})

    def _write(self, batch: _Batch) -> None:
        """One transaction; on the writer's thread."""
        if self._failure is not None or (batch.version == self._durable and not batch.changes):
            return
        try:
            gone = [ref for ref, obj in batch.changes.items() if obj is None]
            here = [
                (*ref, int(obj["metadata"]["resourceVersion"]), encoded(obj))
                for ref, obj in batch.changes.items()
                if obj is not None
            ]
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                if batch.everything:
                    self._db.execute("DELETE FROM objects")
                self._db.executemany("DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?", gone)
                self._db.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", here)
                self._db.execute("UPDATE meta SET value = ? WHERE key = 'version'", (batch.version,))
        except Exception as why:  # whatever it was, the batch is not on disk: no further write may be acknowledged
            self._failure = why
            return
        self._durable = batch.version

    def _check(self) -> None:
        if self._failure is not None:
            raise JournalError(f"{self._path} cannot be written: {self._failure}") from self._failure

    def _meta(self, key: str) -> int:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        if row is None or not isinstance(row[0], int):
            raise _unreadable(self._path, f"its {key} is missing")
        return int(row[0])


def _opened(path: Path) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as why:
        raise _unreadable(path, str(why)) from why
    try:
        _prepare(db, path)
    except sqlite3.Error as why:
        db.close()
        raise _unreadable(path, str(why)) from why
    except DataDirError:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """Checks that the file is enbloc's before it changes it; creates the tables in a new one."""
    schema = _pragma(db, "user_version")
    application = _pragma(db, "application_id")
    is_new = schema == 0 and application == 0 and _pragma(db, "page_count") == 0
    if not is_new and application != _APPLICATION:
        raise _unreadable(path, "it is not an enbloc data file")
    if schema > SCHEMA:
        raise DataDirError(
            f"{path} was written by a newer enbloc (schema {schema}; this one reads up to {SCHEMA}): "
            "use that version, or another directory"
        )
    found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise _unreadable(path, str(found).replace("\n", " "))
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    if is_new:
        stamps = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {SCHEMA};"
        db.executescript(f"BEGIN IMMEDIATE; {_TABLES} {stamps} COMMIT;")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    value: int = db.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _stored(db: sqlite3.Connection, path: Path) -> Iterator[Obj]:
    for kind, namespace, name, body in db.execute("SELECT kind, namespace, name, body FROM objects"):
        try:
            obj = _decoded(body)
            known = ref_of(obj) == (kind, namespace, name) and obj["metadata"]["uid"]
        except (ValueError, KeyError, TypeError, AttributeError):
            known = False
        if not known:
            raise _unreadable(path, f"the record of {Ref(kind, namespace, name)} does not hold that object")
        yield obj


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return json.loads(body)


def _unreadable(path: Path, why: str) -> DataDirError:
    return DataDirError(f"{path} cannot be read: {why}; move it away to start with an empty cluster")
