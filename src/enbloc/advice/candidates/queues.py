"""Changes of queues, and of the queue that a gang names."""

from __future__ import annotations

import difflib
from typing import Any

from enbloc.advice.candidates.pods import NEAR
from enbloc.advice.case import Case, requests_of
from enbloc.advice.change import Candidates, Change, StepDoc, create, patch
from enbloc.advice.sources import recreated
from enbloc.api import volcano
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, annotations_of, labels_of, name_of
from enbloc.api.volcano import CLOSED, QUEUE_KEYS, ROOT_QUEUE, parent_of, state_of
from enbloc.units import format_quantity, parse_quantity

MOST_QUEUES = 3


def known_queue(case: Case) -> Candidates:
    """A queue that does not exist is a misspelling of one that does; else it is created."""
    name = case.gang.spec.queue
    names = [name_of(queue) for queue in case.queues]
    if name in names:
        return
    for near in difflib.get_close_matches(name, names, n=1, cutoff=NEAR):
        yield _moved(case, near)


def new_queue(case: Case) -> Candidates:
    name = case.gang.spec.queue
    if name not in [name_of(queue) for queue in case.queues]:
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {}}
        yield Change(f"create queue {name}", (create(queue),))


def opened(case: Case) -> Candidates:
    """Its queue and the closed ones above it are opened."""
    closed = [queue for queue in _path(case) if state_of(queue) in CLOSED]
    if closed:
        text = f"open queue {' and '.join(name_of(queue) for queue in closed)}"
        yield Change(text, tuple(patch(queue, {"status": {"state": "Open"}}) for queue in reversed(closed)))


def raised(case: Case) -> Candidates:
    """The capability of its queue and of those above it, raised to what they use and it needs."""
    needed = _needed(case)
    steps: list[StepDoc] = []
    texts = []
    for queue in _path(case):
        state = case.engine.state.queues.get(name_of(queue))
        body: dict[str, str] = {}
        for name, limit in sorted(((queue.get("spec") or {}).get("capability") or {}).items()):
            column = case.engine.state.resources.column(name)
            unit = 10**6 if name == "cpu" else 10**9
            used = (int(state.used[column]) if column < len(state.used) else 0) * unit
            if used + needed.get(name, 0) > parse_quantity(limit).nanos and needed.get(name):
                body[name] = format_quantity(used + needed[name])
                texts.append(f"capability.{name} of queue {name_of(queue)} from {limit} to {body[name]}")
        if body:
            steps.append(patch(queue, {"spec": {"capability": body}}))
    if steps:
        yield Change(f"raise {' and '.join(texts)}", tuple(reversed(steps)))


def _needed(case: Case) -> dict[str, int]:
    """What its minimum still requests, in nano-units."""
    total: dict[str, int] = {}
    missing = case.gang.minima.by_role or {"": case.gang.minima.total}
    for role, spec in case.roles.items():
        count = missing.get(role, case.gang.minima.total) - case.gang.occupied.get(role, 0)
        for name, nanos in requests_of(spec).items():
            total[name] = total.get(name, 0) + max(count, 0) * nanos
    return total


def _path(case: Case) -> list[Obj]:
    """Its queue and the queues above it."""
    by_name = {name_of(queue): queue for queue in case.queues}
    found: list[Obj] = []
    name = case.gang.spec.queue
    while name in by_name and by_name[name] not in found:
        found.append(by_name[name])
        name = parent_of(by_name[name])
    return found


def not_fifo(case: Case) -> Candidates:
    for queue in _path(case)[:1]:
        known = case.engine.state.queues.get(name_of(queue))
        if known.facts.fifo:
            text = f"set dequeueStrategy: traverse in queue {name_of(queue)}"
            yield Change(text, (patch(queue, {"spec": {"dequeueStrategy": "traverse"}}),))


def another_queue(case: Case) -> Candidates:
    """Other queues that are open and have no queue below them."""
    parents = {parent_of(queue) for queue in case.queues}
    own = case.gang.spec.queue
    found = [
        name_of(queue)
        for queue in case.queues
        if name_of(queue) not in (own, ROOT_QUEUE, *parents) and state_of(queue) not in CLOSED
    ]
    for name in found[:MOST_QUEUES]:
        yield _moved(case, name)


def _moved(case: Case, queue: str) -> Change:
    text = f"use queue {queue} instead of {case.gang.spec.queue}"
    if case.job is not None:
        return Change(text, recreated(case.job, lambda made: _set_queue(made, queue)))
    if case.own is not None and kind_id(case.own) == volcano.POD_GROUP:
        return Change(text, (patch(case.own, {"spec": {"queue": queue}}),))
    steps: list[StepDoc] = []
    for source in [*case.sources, *([case.own] if case.own is not None else [])]:
        steps += recreated(source, lambda made: _annotate(made, queue))
    return Change(text, tuple(steps))


def _set_queue(made: Obj, queue: str) -> None:
    made["spec"]["queue"] = queue


def _annotate(made: Obj, queue: str) -> None:
    """Names the queue where the object names it now, else by an annotation."""
    metadata: dict[str, Any] = made["metadata"]
    for field, where in (("annotations", annotations_of(made)), ("labels", labels_of(made))):
        for key in QUEUE_KEYS:
            if key in where:
                metadata[field] = {**where, key: queue}
                return
    metadata["annotations"] = {**annotations_of(made), QUEUE_KEYS[0]: queue}
