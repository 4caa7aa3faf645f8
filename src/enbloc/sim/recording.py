"""Runs the engine over a recording of `enbloc run --record` (see `runtime.recorder`), and compares its decisions.

On the same version and config they are the same, byte for byte. With another config, or on another version, the
recorded events stay as they are: what is compared is what this engine decides in each situation that the other one was
in. Decisions of a cycle that both took are left out of a difference.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from enbloc.api.meta import Ref
from enbloc.api.writes import BindPod, EvictPod, Patch, WatchEvent, Write
from enbloc.config import Config, parse
from enbloc.engine.decisions import Bind, Decision, Evict, RecordLapses, RecordUsage, SetAside, TimeOut
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.lapse_records import LapseRecord
from enbloc.gangs.model import GangKey
from enbloc.gangs.record_digests import TRUSTING
from enbloc.gangs.usage_records import UsageRecord
from enbloc.runtime.own_records import TrustedRecords
from enbloc.runtime.recorder import BASE, HEAD, SEGMENT, read_lines
from enbloc.runtime.translate import Translator
from enbloc.runtime.write_plans import WritePlan

SHOWN: Final = 50
"""Cycles with differences that are kept."""


class BadRecording(Exception):
    """The directory holds no recording that can be read; the message says why."""


class Difference(msgspec.Struct, frozen=True):
    """A cycle in which other decisions were taken."""

    at_ns: int
    cycle: int
    recorded: list[Any]
    """Decisions that only the recorded engine took."""
    replayed: list[Any]
    """Decisions that only this one takes."""


class Replayed(msgspec.Struct):
    """What came of a replay."""

    version: str
    """That made the recording."""
    began_ns: int | None = None
    ended_ns: int | None = None
    events: int = 0
    cycles: int = 0
    decisions: int = 0
    differing_cycles: int = 0
    differences: list[Difference] = []
    from_base: bool = False
    """Whether the beginning was dropped: the recorder keeps a bounded amount."""
    has_gap: bool = False
    """Whether the recorder fell behind and ended."""


def replay_recording(directory: Path, config: Config | None = None, until_ns: int | None = None) -> Replayed:
    """`config`: in place of the recorded one; `until_ns`: since the first cycle. Raises `BadRecording`, and
    `ConfigError` for a recorded config that this version cannot read."""
    lines = _lines(directory)
    head = next(lines, None)
    if head is None or head[0] != HEAD:
        raise BadRecording(f"{directory}: its first line is not that of a recording")
    if not isinstance(head[1], dict) or not {"config", "names", "version"} <= head[1].keys():
        raise BadRecording(f"{directory}: its first line is damaged")
    try:
        used = config if config is not None else parse(yaml.safe_load(head[1]["config"]))
    except (yaml.YAMLError, AttributeError, RecursionError) as why:
        raise BadRecording(f"{directory}: its config cannot be read: {why}") from None
    return _Replay(head[1], used, (directory / BASE).exists()).run(lines, until_ns)


def _lines(directory: Path) -> Iterator[list[Any]]:
    paths = [path for path in (directory / BASE,) if path.exists()] + sorted(directory.glob(SEGMENT))
    if not paths:
        raise BadRecording(f"{directory}: holds no recording")
    for path in paths:
        try:
            for number, line in enumerate(read_lines(path), 1):
                if not _is_whole(line):
                    raise BadRecording(f"{path}: line {number} is damaged")
                yield line
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, zlib.error) as why:
            raise BadRecording(f"{path}: {why}") from None


def _is_whole(line: Any) -> bool:
    if not isinstance(line, list) or not line or not isinstance(line[0], str):
        return False
    return len(line) >= {HEAD: 2, "e": 4, "c": 2, "d": 2, "r": 7}.get(line[0], 1)


class _Replay:
    def __init__(self, head: dict[str, Any], config: Config, from_base: bool) -> None:
        self._translator = Translator(config, frozenset(head["names"]), TRUSTING, records=TrustedRecords(TRUSTING))
        self._encode = msgspec.json.Encoder(enc_hook=str).encode
        self._decided: list[bytes] = []
        """Of the last cycle, as lines of a recording have them."""
        self._recorded: list[bytes] = []
        self._at_ns = 0
        self._found = Replayed(head["version"], from_base=from_base)

    def run(self, lines: Iterator[list[Any]], until_ns: int | None) -> Replayed:
        found = self._found
        for line in lines:
            match line[0]:
                case "e":
                    self._translator.observe(WatchEvent(line[1], line[2], line[3]))
                    found.events += 1
                case "c":
                    self._compare()
                    if found.began_ns is None:
                        found.began_ns = line[1]
                    if until_ns is not None and line[1] > found.began_ns + until_ns:
                        return found
                    self._cycle(line[1])
                case "d":
                    self._recorded += [msgspec.json.encode(one) for one in line[1]]
                case "r":
                    self._refuse(*line[1:])
                case "b":
                    self._translator = self._translator.anew()
                case "gap":
                    found.has_gap = True
        self._compare()
        return found

    def _cycle(self, now_ns: int) -> None:
        self._at_ns = self._found.ended_ns = now_ns
        self._found.cycles += 1
        for _ in self._translator.cycle(now_ns):
            pass
        plain = msgspec.json.Decoder().decode
        decided = ([type(one).__name__, one] for one in self._translator.decided)
        self._decided = [msgspec.json.encode(plain(self._encode(one))) for one in decided]

    def _compare(self) -> None:
        """The decisions of the cycle that has ended."""
        recorded, decided = self._recorded, self._decided
        self._recorded, self._decided = [], []
        self._found.decisions += len(recorded)
        if recorded == decided:
            return
        self._found.differing_cycles += 1
        if len(self._found.differences) < SHOWN:
            mine, theirs = set(decided), set(recorded)
            self._found.differences.append(
                Difference(
                    self._at_ns,
                    self._found.cycles,
                    [msgspec.json.decode(one) for one in recorded if one not in mine],
                    [msgspec.json.decode(one) for one in decided if one not in theirs],
                )
            )

    def _refuse(
        self,
        name: str,
        gang: list[str],
        kind: str | None,
        uid: str,
        node: str,
        annotations: dict[str, Any] | None,
        record: Any = None,
    ) -> None:
        key = GangKey(*gang)
        write: Write | None = None
        if node:
            write = BindPod(key.namespace, "", uid, node)
        elif annotations is not None:
            write = Patch(Ref("", key.namespace, ""), {"metadata": {"annotations": annotations}}, uid=uid)
        elif uid:
            write = EvictPod(key.namespace, "", uid, "", "")
        decision = _decision(name, key, kind, msgspec.convert(record, Record) if record is not None else None)
        if decision is not None:
            self._translator.refused(WritePlan(decision, (key,), ()), write)


def _decision(name: str, gang: GangKey, kind: str | None, record: Record | None) -> Decision | None:
    """As much of a decision as a refusal needs."""
    match name:
        case "SetAside":
            return SetAside(gang, ClaimKind(kind or ""), record, "", "")
        case "Evict":
            return Evict(gang, "", "", "", "", "")
        case "Bind":
            return Bind(gang, "", (), "", commits=False)
        case "RecordUsage":
            return RecordUsage(gang.name, UsageRecord({}))
        case "RecordLapses":
            return RecordLapses(gang.name, LapseRecord({}))
        case "TimeOut":
            return TimeOut(gang, ())
        case _:
            return None
