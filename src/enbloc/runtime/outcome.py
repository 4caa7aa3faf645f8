"""What came of a decision's writes, as the engine's `report` takes it."""

from __future__ import annotations

from enbloc.api.writes import BindPod, EvictPod, Patch, Write
from enbloc.engine.decisions import Decision
from enbloc.engine.engine import Engine


def report_refused(engine: Engine, decision: Decision, write: Write | None) -> None:
    """A write of a decision was refused or held back; `None`: it had no object to write on."""
    uid = write.uid if isinstance(write, BindPod | EvictPod | Patch) else ""
    engine.report(decision, uid, write.node if isinstance(write, BindPod) else "")
