"""What came of a decision's writes, reported back to the engine. The one door for refusals."""

from __future__ import annotations

from enbloc.api.writes import BindPod, EvictPod, Patch, Write
from enbloc.engine.decisions import Bind, Decision, Evict, SetAside, TimeOut
from enbloc.engine.engine import Engine


def report_refused(engine: Engine, decision: Decision, write: Write | None) -> None:
    """A write of a decision was refused or held back; `None`: it had no object to write on. What the engine assumed
    when it decided is undone."""
    match decision:
        case SetAside():
            engine.refused(decision)
        case Evict() if isinstance(write, EvictPod):
            engine.evictions.stays(write.uid)
        case Bind() if isinstance(write, BindPod):
            task = engine.state.tasks.get(write.uid)
            if task is not None and task.node == write.node:
                engine.state.unplace(write.uid)
        case TimeOut() if isinstance(write, Patch) and write.uid in engine.state.tasks:
            engine.state.unplace(write.uid)
