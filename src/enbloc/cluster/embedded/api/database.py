"""The SQLite file of a data directory: its tables, and checksums over all that is in them.

Each row has a digest of its own; one more row has the version, the number of objects and the sum of their digests. So a
changed, missing or additional row is noticed when the file is read, wherever a bit was flipped. That the file is not an
earlier one is for `acknowledged` to say. Raises `DataDirError` for a file that cannot be used.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref
from enbloc.cluster.embedded.api.datadir import DataDirError
from enbloc.cluster.embedded.api.object_size import encoded
from enbloc.cluster.embedded.api.private_files import NotPrivate, open_private
from enbloc.listing import plural

FILE: Final = "state.db"
FILES: Final = (FILE, f"{FILE}-wal", f"{FILE}-shm")
SCHEMA: Final = 2
_APPLICATION: Final = 0x456E626C  # "Enbl": marks the file as enbloc's
_CHECKPOINT_PAGES: Final = 4_000
_DIGEST_BYTES: Final = 16
_SUMS: Final = 1 << (8 * _DIGEST_BYTES)
_DAMAGE: Final = (sqlite3.Error, UnicodeDecodeError)
"""What sqlite3 raises on a damaged file: its own message, which may quote the file, need not be UTF-8."""

_TABLES: Final = """
CREATE TABLE state (id INTEGER PRIMARY KEY, content BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TABLE objects (
    kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, body BLOB NOT NULL,
    digest BLOB NOT NULL, PRIMARY KEY (kind, namespace, name)
) WITHOUT ROWID;
"""


class State(msgspec.Struct, frozen=True):
    """What the file holds besides objects."""

    database: str
    """The id of this file, in hexadecimal."""
    version: int = 0
    is_open: bool = False
    """Whether a process has it open, or ended without closing it."""
    count: int = 0
    total: str = "0"
    """The sum of the objects' digests, in hexadecimal: too long a number for JSON."""


class Database:
    """An open file. `digests` are those of the objects in it; `upgraded`: it was of an earlier schema."""

    def __init__(self, path: Path, database: bytes | None) -> None:
        """Creates a new file with the id `database`, or opens an existing one."""
        self.path = path
        self.digests: dict[Ref, int] = {}
        self.connection, self.upgraded = _opened(path, database)

    def read(self) -> tuple[State, list[Obj]]:
        """Everything in it, checked."""
        try:
            state = _state(self.connection, self.path)
            objects = list(self._rows())
        except _DAMAGE as why:
            raise unreadable(self.path, str(why)) from why
        total = sum(self.digests.values()) % _SUMS
        if (len(objects), f"{total:x}") != (state.count, state.total):
            held = plural(len(objects), "object")
            raise unreadable(self.path, f"it holds {held}, and not the {state.count} that were stored")
        return state, objects

    def _rows(self) -> Iterator[Obj]:
        for kind, namespace, name, version, body, digest in self.connection.execute("SELECT * FROM objects"):
            ref = Ref(kind, namespace, name)
            obj = _checked(ref, version, body, digest)
            if obj is None:
                raise unreadable(self.path, f"the record of {ref} does not hold that object")
            self.digests[ref] = int.from_bytes(digest, "big")
            yield obj

    def write(self, state: State, changes: Mapping[Ref, Obj | None], *, everything: bool = False) -> State:
        """One transaction: objects that are `None` are deleted; with `everything`, so are all that are not named.
        Returns the state that was stored. Raises `sqlite3.Error`."""
        rows, added = [], {}
        for ref, obj in changes.items():
            if obj is not None:
                version, body = int(obj["metadata"]["resourceVersion"]), encoded(obj)
                digest = _digest(ref, version, body)
                rows.append((*ref, version, body, digest))
                added[ref] = int.from_bytes(digest, "big")
        replaced = set(self.digests) if everything else self.digests.keys() & changes.keys()
        total = int(state.total, 16) - sum(self.digests[ref] for ref in replaced) + sum(added.values())
        count = state.count - len(replaced) + len(added)
        state = msgspec.structs.replace(state, count=count, total=f"{total % _SUMS:x}")
        with self.connection as db:
            db.execute("BEGIN IMMEDIATE")
            if everything:
                db.execute("DELETE FROM objects")
            gone = [ref for ref, obj in changes.items() if obj is None]
            db.executemany("DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?", gone)
            db.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)", rows)
            _put_state(db, state)
        for ref in replaced:
            del self.digests[ref]
        self.digests.update(added)
        return state

    def close(self) -> None:
        self.connection.close()


def check_files(directory: Path) -> None:
    """Raises `DataDirError` if one of the files is not this user's own."""
    for name in FILES:
        try:
            os.close(open_private(directory / name, os.O_RDONLY))
        except FileNotFoundError:
            pass
        except NotPrivate as why:
            raise DataDirError(str(why)) from why
        except OSError as why:
            raise unreadable(directory / name, why.strerror or str(why)) from why


def salvaged(path: Path) -> tuple[int, list[Obj]]:
    """The largest version that is named, and the objects whose records are whole, of a file that may be damaged."""
    objects, version = [], 0
    db = sqlite3.connect(path, isolation_level=None)
    try:
        with suppress(*_DAMAGE, DataDirError):
            version = _state(db, path).version
        with suppress(*_DAMAGE):
            for kind, namespace, name, row_version, body, digest in db.execute("SELECT * FROM objects"):
                obj = _checked(Ref(kind, namespace, name), row_version, body, digest)
                if obj is not None:
                    objects.append(obj)
                    version = max(version, row_version)
    finally:
        db.close()
    return version, objects


def unreadable(path: Path, why: str) -> DataDirError:
    return DataDirError(
        f"{path} cannot be read: {why}; restore a copy, or go on with what is whole by --accept-data-loss"
    )


def _opened(path: Path, database: bytes | None) -> tuple[sqlite3.Connection, bool]:
    upgraded = False
    try:
        if database is not None:
            os.close(open_private(path, os.O_RDWR | os.O_CREAT))  # SQLite gives its other files the same mode
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except (*_DAMAGE, OSError) as why:
        raise unreadable(path, str(why)) from why
    try:
        if database is None:
            _check_schema(db, path)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        if database is not None:
            _create(db, State(database.hex()), ())
        elif _pragma(db, "user_version") == 1:
            _upgrade(db, path)
            upgraded = True
    except _DAMAGE as why:
        db.close()
        raise unreadable(path, str(why)) from why
    except DataDirError:
        db.close()
        raise
    return db, upgraded


def _check_schema(db: sqlite3.Connection, path: Path) -> None:
    """Checks that the file is enbloc's, before it is changed."""
    if _pragma(db, "application_id") != _APPLICATION:
        raise unreadable(path, "it is not an enbloc data file")
    schema = _pragma(db, "user_version")
    if schema > SCHEMA:
        raise DataDirError(
            f"{path} was written by a newer enbloc (schema {schema}; this one reads up to {SCHEMA}): "
            "use that version, or another directory"
        )
    if schema < 1:
        raise unreadable(path, f"its schema is {schema}")
    found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise unreadable(path, str(found).replace("\n", " "))


def _create(db: sqlite3.Connection, state: State, rows: Iterable[tuple[Any, ...]]) -> None:
    with db:
        db.execute("BEGIN IMMEDIATE")
        for statement in _TABLES.split(";")[:-1]:
            db.execute(statement)
        db.executemany("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?)", rows)
        _put_state(db, state)
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.execute(f"PRAGMA user_version = {SCHEMA}")


def _upgrade(db: sqlite3.Connection, path: Path) -> None:
    """From schema 1, which had no digests."""
    meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
    rows, total = [], 0
    for kind, namespace, name, version, body in db.execute("SELECT kind, namespace, name, version, body FROM objects"):
        ref = Ref(kind, namespace, name)
        digest = _digest(ref, version, body)
        if _checked(ref, version, body, digest) is None:
            raise unreadable(path, f"the record of {ref} does not hold that object")
        total += int.from_bytes(digest, "big")
        rows.append((*ref, version, body, digest))
    if not isinstance(meta.get("version"), int):
        raise unreadable(path, "its version is missing")
    state = State(os.urandom(16).hex(), meta["version"], bool(meta.get("open")), len(rows), f"{total % _SUMS:x}")
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute("DROP TABLE meta")
        db.execute("ALTER TABLE objects RENAME TO former")
        for statement in _TABLES.split(";")[:-1]:
            db.execute(statement)
        db.executemany("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?)", rows)
        db.execute("DROP TABLE former")
        _put_state(db, state)
        db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _put_state(db: sqlite3.Connection, state: State) -> None:
    content = msgspec.json.encode(state)
    digest = hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
    db.execute("INSERT OR REPLACE INTO state VALUES (0, ?, ?)", (content, digest))


def _state(db: sqlite3.Connection, path: Path) -> State:
    rows = db.execute("SELECT content, digest FROM state").fetchall()
    if len(rows) == 1:
        content, digest = rows[0]
        if isinstance(content, bytes) and hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest() == digest:
            return msgspec.json.decode(content, type=State)
    raise unreadable(path, "its state is missing or changed")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    value: int = db.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _digest(ref: Ref, version: int, body: bytes) -> bytes:
    head = json.dumps([*ref, version, len(body)]).encode()
    return hashlib.blake2b(head + b"\n" + body, digest_size=_DIGEST_BYTES).digest()


def _checked(ref: Ref, version: Any, body: Any, digest: Any) -> Obj | None:
    """The object of a record; `None` if the record was changed."""
    if not isinstance(body, bytes) or not isinstance(version, int) or _digest(ref, version, body) != digest:
        return None
    try:
        obj: Obj = _decoded(body)
        return obj if ref_of(obj) == ref and obj["metadata"]["uid"] else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return json.loads(body)
