"""What was acknowledged, in a file beside the database: the version, and which database it is.

A database whose end was cut off is an earlier one without a fault. This file says that there was more: it is written
after each commit and before the commit is acknowledged, so the database is never behind it unless something was lost.
Two records are written in turn, so that one that was half written leaves the other.
"""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path
from typing import Final

import msgspec

from enbloc.cluster.embedded.api.private_files import open_private

FILE: Final = "acknowledged"
ID_BYTES: Final = 16
_RECORD: Final = struct.Struct(f">8s{ID_BYTES}sQ")
_DIGEST_BYTES: Final = 16
_SLOT_BYTES: Final = 64
_MAGIC: Final = b"enblocak"


class Acknowledged(msgspec.Struct, frozen=True):
    """The version that was acknowledged last, of the database with this id."""

    database: bytes
    version: int


class AcknowledgedFile:
    """The file in a data directory. Raises `OSError` if it cannot be opened or written."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE
        self.existed = self.path.exists() or self.path.is_symlink()
        self._descriptor = open_private(self.path, os.O_RDWR | os.O_CREAT)
        self._turn = 0

    def read(self) -> Acknowledged | None:
        """The latest record; `None` if there is none that can be read."""
        return max((one for one in self._records() if one is not None), key=lambda one: one.version, default=None)

    def nothing_yet(self) -> bool:
        """Whether it is certain that nothing was acknowledged: both records are whole and say so."""
        return all(one is not None and one.version == 0 for one in self._records())

    def _records(self) -> list[Acknowledged | None]:
        raw = os.pread(self._descriptor, 2 * _SLOT_BYTES, 0)
        return [_decoded(raw[at : at + _SLOT_BYTES]) for at in (0, _SLOT_BYTES)]

    def write(self, acknowledged: Acknowledged) -> None:
        """On the disk when this returns: it outlives a power failure, as the commit before it does."""
        os.pwrite(self._descriptor, _encoded(acknowledged), self._turn * _SLOT_BYTES)
        os.fdatasync(self._descriptor)
        self._turn = 1 - self._turn

    def start(self, acknowledged: Acknowledged) -> None:
        """Writes both records, and the file's size."""
        self.write(acknowledged)
        self.write(acknowledged)
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.fsync(self._descriptor)
        os.close(self._descriptor)


def _encoded(acknowledged: Acknowledged) -> bytes:
    record = _RECORD.pack(_MAGIC, acknowledged.database, acknowledged.version)
    return (record + hashlib.blake2b(record, digest_size=_DIGEST_BYTES).digest()).ljust(_SLOT_BYTES, b"\n")


def _decoded(slot: bytes) -> Acknowledged | None:
    record, digest = slot[: _RECORD.size], slot[_RECORD.size : _RECORD.size + _DIGEST_BYTES]
    if len(slot) != _SLOT_BYTES or hashlib.blake2b(record, digest_size=_DIGEST_BYTES).digest() != digest:
        return None
    magic, database, version = _RECORD.unpack(record)
    return Acknowledged(database, version) if magic == _MAGIC else None
