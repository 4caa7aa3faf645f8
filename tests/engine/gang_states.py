"""Gangs and tasks as values: counts as a test gives them, no engine around them."""

from __future__ import annotations

from typing import Any

from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.classes import ClassTable, TaskClass
from enbloc.engine.core.tables.resources import Resources
from enbloc.engine.core.tables.tasks import GangState, PodFacts, Task, TaskStatus
from enbloc.gangs.model import GangKey, GangSpec
from support import manifests as m
from support import racks as r
from support.direct_scheduler import knowing


def gang(minimum: int = 3, minima: dict[str, int] | None = None, **fields: Any) -> GangState:
    """Counts (`pending`, `occupied`, `held`), waves (`ran`, `behind`) and `covered` are the state's, others the
    spec's."""
    own = ("pending", "occupied", "held", "ran", "behind", "covered", "satisfied")
    counts = {name: fields.pop(name) for name in own if name in fields}
    made = GangState(GangSpec(GangKey("t", "ns", "g"), "ns/g", 0, minimum, minima or {}, **fields))
    for name, value in counts.items():
        setattr(made, name, frozenset(value) if name in ("ran", "behind") else value)
    return made


def racks(**sizes: int | list[int]) -> State:
    """Nodes of these racks, all in block x of the tree dc."""
    return knowing(r.topology("dc", r.BLOCK, r.RACK), *r.nodes(sizes, "x")).engine.state


def members(state: State, of: GangState, *cpus: int, role: str = "", **fields: Any) -> list[Task]:
    """Pending tasks of the gang with this many cpu each, of classes of the state, numbered from 0."""
    first = len(of.tasks)
    return [
        task(of, f"{role}{first + n}", n, role, state.classes.of("default", m.pod_spec(cpu)), **fields)
        for n, cpu in enumerate(cpus)
    ]


def task(
    of: GangState, name: str, number: int | None = None, role: str = "", cls: TaskClass | None = None, **fields: Any
) -> Task:
    """A pending task of the gang; the gang's counts are given by the test."""
    facts = PodFacts(
        **{
            "uid": f"u-{name}", "namespace": "ns", "name": name, "labels": {}, "spec": {}, "created_ns": 0,
            "priority": 0, "node": "", "status": TaskStatus.PENDING, "ours": True, **fields,
        }
    )  # fmt: skip
    made = Task(facts, cls or ClassTable(Resources()).of("ns", {}), of, role, number)
    of.tasks[made.uid] = made
    return made
