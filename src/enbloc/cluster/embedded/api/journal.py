"""The store on disk: every acknowledged write survives a crash, and one that is lost all the same is noticed.

The journal reads a watch, so the store does not know it. Every change of the store is one event; a commit writes the
present state of all objects that changed since the last commit, in one transaction. So the disk always holds the store
at one version, never half a change. The HTTP server awaits `durable` before it acknowledges a write; writes that wait
during a commit share the next one.

SQLite in WAL mode with `synchronous=FULL`: a commit returns when the disk has it (see docs/decisions/0045). Damage is
found by the checksums of `database`, and an end that was cut off by the version in `acknowledged`.

Watch history is not kept: watches from before a restart get 410 and list again. Versions continue. After a crash they
skip ahead, so that a version that a client read but that never reached the disk is not used twice.
"""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api import acknowledged
from enbloc.cluster.embedded.api.acknowledged import Acknowledged, AcknowledgedFile
from enbloc.cluster.embedded.api.database import FILE, FILES, Database, State, check_files, salvaged, unreadable
from enbloc.cluster.embedded.api.datadir import DataDir, DataDirError
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.api.watch_log import DEFAULT_BOUNDS, LogWatch

SKIP: Final = 2 * DEFAULT_BOUNDS.unread
"""How far versions skip ahead after a crash: further than a commit can lag behind."""
_log = logging.getLogger(__name__)


class JournalError(Exception):
    """A commit failed: no later write may be acknowledged."""


class _Batch(msgspec.Struct, frozen=True):
    """The changes up to `version`; a deleted object is `None`."""

    version: int
    changes: dict[Ref, Obj | None]
    everything: bool = False


class Journal:
    """Keeps a store in a data directory. Called on the store's thread; the writing happens on a thread of its own."""

    def __init__(self, data: DataDir, *, accept_loss: bool = False) -> None:
        """Reads what is there. Raises `DataDirError` if anything that was acknowledged is lost; with `accept_loss` it
        goes on with what is whole, and moves the damaged files into a directory of their own."""
        self._path = data.path / FILE
        check_files(data.path)
        try:
            self._open(data.path)
        except DataDirError as why:
            if not accept_loss:
                raise
            self._salvage(data.path, why)
        self._db = self._database.connection
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._store: Store | None = None
        self._watch: LogWatch | None = None
        self._taken = 0
        self._durable = 0
        self._failure: Exception | None = None
        self._under_way: asyncio.Task[None] | None = None

    def _open(self, directory: Path) -> None:
        self._acknowledged = _acknowledged_file(directory)
        try:
            known = self._acknowledged.read()
            is_new = not self._path.exists()
            if self._acknowledged.nothing_yet():  # it ended before anything was acknowledged
                is_new = True
                for name in FILES:
                    (directory / name).unlink(missing_ok=True)
            elif is_new and self._acknowledged.path.stat().st_size:
                raise unreadable(self._path, "it is missing, and something had been stored in it")
            new_id = None if not is_new else known.database if known is not None else os.urandom(acknowledged.ID_BYTES)
            if new_id is not None:
                self._acknowledged.start(Acknowledged(new_id, 0))
            self._load(known, new_id)
        except BaseException:
            self._acknowledged.close()
            raise

    def _load(self, known: Acknowledged | None, new_id: bytes | None) -> None:
        is_old = new_id is None and not self._acknowledged.existed  # schema 1 had no such file
        self._database = Database(self._path, new_id)
        try:
            self._state, self._objects = self._database.read()
            if new_id is None and not (is_old and self._database.upgraded):
                self._check_acknowledged(known)
        except BaseException:
            self._database.close()
            raise

    def _check_acknowledged(self, known: Acknowledged | None) -> None:
        if known is None:
            raise unreadable(self._acknowledged.path, "it is missing or damaged")
        if known.database.hex() != self._state.database:
            raise unreadable(self._path, f"it is another database than the one of {self._acknowledged.path.name}")
        if known.version > self._state.version:
            raise unreadable(
                self._path,
                f"it ends at version {self._state.version}, and version {known.version} had been acknowledged",
            )

    def _salvage(self, directory: Path, why: DataDirError) -> None:
        """A new database with the objects whose records are whole."""
        place = next(one for one in (directory / f"damaged-{n}" for n in range(1, 10_000)) if not one.exists())
        place.mkdir(mode=0o700)
        for name in (*FILES, acknowledged.FILE):
            if (directory / name).exists() or (directory / name).is_symlink():
                (directory / name).rename(place / name)
        known = None
        if (place / acknowledged.FILE).is_file():
            file = _acknowledged_file(place)
            known = file.read()
            file.close()
        version, objects = salvaged(place / FILE) if (place / FILE).is_file() else (0, [])
        self._acknowledged = _acknowledged_file(directory)
        new_id = os.urandom(acknowledged.ID_BYTES)
        self._acknowledged.start(Acknowledged(new_id, 0))
        self._database = Database(self._path, new_id)
        version = max(version, known.version if known is not None else 0)
        state = State(new_id.hex(), version, is_open=True)
        self._objects = objects
        self._state = self._database.write(state, {ref_of(obj): obj for obj in objects})
        _log.warning("%s", why)
        _log.warning("data loss was accepted: %d objects were whole; the damaged files are in %s", len(objects), place)

    @property
    def version(self) -> int:
        """The version of the store that is on disk."""
        return self._durable

    def restore(self, store: Store) -> int:
        """Fills an empty store with what is on disk, and journals it from here on. Returns the number of objects."""
        version = self._state.version + (SKIP if self._state.is_open else 0)
        objects, self._objects = self._objects, []
        store.restore(objects, version)
        self._commit(msgspec.structs.replace(self._state, version=version, is_open=True), {})
        self._store = store
        self._watch = store.watch(None, version)
        self._taken = self._durable = version
        return len(objects)

    @property
    def failure(self) -> str | None:
        """Why nothing can be written any more; `None` while it can."""
        return None if self._failure is None else f"{self._path} cannot be written: {self._failure}"

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
                self._commit(msgspec.structs.replace(self._state, is_open=False), {})
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._writer.shutdown()
            self._database.close()
            self._acknowledged.close()
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
            state = msgspec.structs.replace(self._state, version=batch.version)
            self._commit(state, batch.changes, everything=batch.everything)
        except Exception as why:  # whatever it was, the batch is not on disk: no further write may be acknowledged
            self._failure = why
            return
        self._durable = batch.version

    def _commit(self, state: State, changes: dict[Ref, Obj | None], *, everything: bool = False) -> None:
        self._state = self._database.write(state, changes, everything=everything)
        self._acknowledged.write(Acknowledged(bytes.fromhex(state.database), state.version))

    def _check(self) -> None:
        if self._failure is not None:
            raise JournalError(self.failure) from self._failure


def _acknowledged_file(directory: Path) -> AcknowledgedFile:
    try:
        return AcknowledgedFile(directory)
    except OSError as why:
        raise DataDirError(str(why)) from why
