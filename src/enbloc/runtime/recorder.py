"""The flight recorder of `enbloc run --record`: what the scheduler observed, and what it decided, in bounded files.

It records what the translator reads and decides: watch events, refused writes, and the decisions of each cycle.
`sim.recording` runs the same engine over it. A recording holds no key and no secret: objects go through
`api.redaction`, and of records that did not verify nothing is kept, so that a reader trusts what is left (S2).

Lines are JSON, compressed in a thread of its own:

    ["head", {…}]                                    version, config, scheduler names
    ["e", "ADDED", "Pod", {…}]                       an event
    ["c", 1767225600000000000]                       a cycle begins at that time
    ["d", [["Bind", {…}], …]]                        its decisions
    ["r", "Bind", [dialect, namespace, name], …]     a write of a decision was refused
    ["b"]                                            the state is rebuilt (S8): all objects follow

Segments are cut when nothing is under way: there a scheduler that starts anew decides the same (I5). When the files
exceed their limit, the oldest segment is folded into `base.jsonl.gz`, the objects as they were at its end.

Requests to the API are not recorded: a replay of them would depend on the timing of a network.
"""

from __future__ import annotations

import gzip
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import msgspec

from enbloc.api.meta import Obj, annotations_of, uid_of
from enbloc.api.redaction import without_secrets
from enbloc.api.writes import BindPod, EvictPod, Patch, WatchEvent, Write
from enbloc.config import Config, render
from enbloc.engine.decisions import Decision, SetAside
from enbloc.gangs.own_annotations import COMMITTED, DECISION, MARKS
from enbloc.version import __version__

log = logging.getLogger(__name__)

BASE: Final = "base.jsonl.gz"
SEGMENT: Final = "segment-*.jsonl.gz"
LIMIT_BYTES: Final = 256 * 2**20
SEGMENT_BYTES: Final = 16 * 2**20
FLUSH_BYTES: Final = 256 * 2**10
MOST_QUEUED: Final = 200_000
"""Lines that wait for the thread. With more it has fallen behind for good: the recording ends, and says so."""
BATCH: Final = 64
LARGEST_BATCH: Final = 256
SAMPLED: Final = 17
"""No divisor of a batch, so that handing over is measured as often as it happens."""
_LEVEL: Final = 1
_NO_MARKS: Final = ("", "")
OWN_MARKS: Final = frozenset(MARKS)

HEAD, EVENT, CYCLE, DECIDED, REFUSED, REBUILT, GAP = "head", "e", "c", "d", "r", "b", "gap"


class Limits(NamedTuple):
    limit_bytes: int = LIMIT_BYTES
    segment_bytes: int = SEGMENT_BYTES


DEFAULT_LIMITS: Final = Limits()


class Cost:
    """CPU time of a recorder. On the scheduler's thread one call in `SAMPLED` is measured, for all of them."""

    def __init__(self) -> None:
        self.calls = 0
        self.on_hot_path_ns = 0
        self.of_thread_ns = 0
        """Of its own thread, once that has ended."""

    def begin(self) -> int:
        self.calls += 1
        return time.thread_time_ns() if self.calls % SAMPLED == 0 else 0

    def end(self, begun_ns: int) -> None:
        if begun_ns:
            self.on_hot_path_ns += SAMPLED * (time.thread_time_ns() - begun_ns)

    def text(self) -> str:
        hot_s, own_s = self.on_hot_path_ns / 1e9, self.of_thread_ns / 1e9
        return f"recorder: {self.calls} calls, {hot_s:.4f} s of CPU in them, {own_s:.4f} s in its own thread"


class Recorder:
    """Called by the scheduler; all that takes time happens in the thread."""

    def __init__(self, directory: Path, config: Config, names: frozenset[str], limits: Limits = DEFAULT_LIMITS) -> None:
        """Raises `OSError` if the directory cannot be written."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(directory.glob("*.jsonl.gz")):
            raise FileExistsError(17, "holds a recording already", str(directory))
        head = {"version": __version__, "config": render(config), "names": sorted(names)}
        self._lines: SimpleQueue[list[tuple[Any, ...]] | None] = SimpleQueue()
        self._batch: list[tuple[Any, ...]] = []
        """Lines that are not handed over yet: waking the thread for each would cost more than all the rest."""
        self.cost = Cost()
        self._files = _Files(directory, head, limits)
        self._ended = False
        self._thread = threading.Thread(target=self._write, name="recorder", daemon=True)
        self._thread.start()

    def observed(self, event: WatchEvent, marks_of: Callable[[str], tuple[str, str]]) -> None:
        """`marks_of`: by UID, the decision and the commit mark of a bound pod that count (S2)."""
        begun_ns = self.cost.begin()
        marked = event.kind == "Pod" and event.type != "DELETED"
        self._put((EVENT, event.type, event.kind, event.obj, marks_of(uid_of(event.obj)) if marked else _NO_MARKS))
        self.cost.end(begun_ns)

    def cycle(self, now_ns: int) -> None:
        self._put((CYCLE, now_ns))

    def rebuilt(self) -> None:
        """The state is rebuilt: every object follows again."""
        self._put((REBUILT,))

    def decided(self, decisions: Sequence[Decision], at_rest: bool) -> None:
        """`at_rest`: nothing is under way; a segment may be cut here."""
        begun_ns = self.cost.begin()
        if decisions or (at_rest and self._files.is_full):
            self._put((DECIDED, list(decisions), at_rest))
        if self._batch and (at_rest or len(self._batch) >= BATCH):
            self._hand_over()
        self.cost.end(begun_ns)

    def refused(self, decision: Decision, write: Write | None) -> None:
        uid = write.uid if isinstance(write, BindPod | EvictPod | Patch) else ""
        node = write.node if isinstance(write, BindPod) else ""
        kind = decision.kind if isinstance(decision, SetAside) else None
        annotations = write.patch["metadata"]["annotations"] if kind and isinstance(write, Patch) else None
        record = decision.record if isinstance(decision, SetAside) else None
        self._put((REFUSED, type(decision).__name__, decision.gang, kind, uid, node, annotations, record))

    def _put(self, line: tuple[Any, ...]) -> None:
        if self._ended:
            return
        self._batch.append(line)
        if len(self._batch) >= LARGEST_BATCH:
            self._hand_over()

    def _hand_over(self) -> None:
        if self._lines.qsize() * BATCH >= MOST_QUEUED:
            log.error("the recording cannot keep up and ends here")
            self._ended = True
            self._batch = [(GAP,)]
        self._lines.put(self._batch)
        self._batch = []

    @property
    def is_behind(self) -> bool:
        """Whether lines wait for the thread."""
        return not self._lines.empty()

    def close(self) -> None:
        """Writes what is left."""
        self._ended = True
        self._lines.put(self._batch)
        self._lines.put(None)
        self._thread.join()
        log.info("%s", self.cost.text())

    def _write(self) -> None:
        try:
            while (batch := self._lines.get()) is not None:
                for line in batch:
                    self._files.write(line)
            self._files.close()
        except OSError as why:
            log.error("the recording ends here: %s", why)
            self._ended = True
        self.cost.of_thread_ns = time.thread_time_ns()


class _Files:
    """The files of a recording; used by the thread alone, but for `is_full`."""

    def __init__(self, directory: Path, head: dict[str, Any], limits: Limits) -> None:
        self._directory = directory
        self._head = head
        self._limits = limits
        self._number = 0
        self._encode = msgspec.json.Encoder(enc_hook=str).encode
        self.is_full = False
        """Whether the segment has reached its size."""
        self._open()

    def _open(self) -> None:
        self._number += 1
        path = self._directory / f"segment-{self._number:06d}.jsonl.gz"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._raw = os.fdopen(file, "wb")
        self._out = gzip.GzipFile(fileobj=self._raw, mode="wb", compresslevel=_LEVEL, mtime=0, filename="")
        self._lines: list[bytes] = []
        self._unflushed = 0
        self.is_full = False
        self._append([HEAD, self._head])

    def write(self, line: tuple[Any, ...]) -> None:
        if line[0] == EVENT:
            _, type_, kind, obj, marks = line
            self._append([EVENT, type_, kind, _kept(obj, marks)])
            return
        if line[0] != DECIDED:
            self._append(list(line))
            return
        _, decisions, at_rest = line
        self._append([DECIDED, [[type(one).__name__, one] for one in decisions]])
        if at_rest and self.is_full:
            self.close()
            self._open()
            self._fold()

    def _append(self, line: list[Any]) -> None:
        data: bytes = self._encode(line)
        self._lines.append(data)
        self._unflushed += len(data) + 1
        if self._unflushed >= FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._write_lines()
        self._out.flush()  # a reader after a crash finds all up to here
        self._raw.flush()
        self._unflushed = 0
        self.is_full = self._raw.tell() >= self._limits.segment_bytes

    def _write_lines(self) -> None:
        """Compressed in one go: line by line costs more."""
        if self._lines:
            self._out.write(b"\n".join(self._lines) + b"\n")
            self._lines.clear()

    def _fold(self) -> None:
        """Folds the oldest segments into the base while the files exceed the limit."""
        segments = sorted(self._directory.glob(SEGMENT))
        while len(segments) > 1 and self._size() > self._limits.limit_bytes:
            base = self._directory / BASE
            objects: dict[str, tuple[str, Obj]] = {}
            for path in (base, segments[0]) if base.exists() else (segments[0],):
                for line in read_lines(path):
                    if line[0] == EVENT:
                        _, type_, kind, obj = line
                        objects.pop(f"{kind} {uid_of(obj)}", None)
                        if type_ != "DELETED":
                            objects[f"{kind} {uid_of(obj)}"] = (kind, obj)
            self._write_base(base, objects)
            segments.pop(0).unlink()

    def _write_base(self, base: Path, objects: dict[str, tuple[str, Obj]]) -> None:
        made = base.with_suffix(".new")
        with (
            os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as raw,
            gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=_LEVEL, mtime=0, filename="") as out,
        ):
            out.write(self._encode([HEAD, self._head]) + b"\n")
            for kind, obj in objects.values():
                out.write(self._encode([EVENT, "ADDED", kind, obj]) + b"\n")
        made.replace(base)

    def _size(self) -> int:
        return sum(path.stat().st_size for path in self._directory.glob("*.jsonl.gz"))

    def close(self) -> None:
        self._write_lines()
        self._out.close()
        self._raw.close()


def _kept(obj: Obj, marks: tuple[str, str]) -> Obj:
    """Without secrets, and with the marks that count in place of those that it carries."""
    kept = without_secrets(obj)
    if not OWN_MARKS.isdisjoint(annotations_of(kept)) or any(marks):
        annotations = {key: text for key, text in annotations_of(kept).items() if key not in OWN_MARKS}
        annotations |= {key: text for key, text in zip((DECISION, COMMITTED), marks, strict=True) if text}
        kept["metadata"]["annotations"] = annotations
    return kept


def read_lines(path: Path) -> Iterator[list[Any]]:
    """The lines of a file; of one that was cut off, those that are whole."""
    decode = msgspec.json.Decoder().decode
    with gzip.open(path) as file:
        try:
            for line in file:
                if line.endswith(b"\n"):
                    yield decode(line)
        except (EOFError, gzip.BadGzipFile):
            return
