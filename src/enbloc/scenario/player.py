"""Plays a scenario on a cluster: creates and deletes objects and performs Steps when they are due.

The clock belongs to the caller. What the API refuses is reported to the caller and stops nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import msgspec

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref, uid_of
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes.node_player import NodePlayer
from enbloc.scenario.scenario import Arrival, Scenario, ScenarioEvent, Step


class Host(Protocol):
    """Receives what could not be done, and restarts the scheduler."""

    def refused(self, obj: Obj, why: Refused) -> None: ...

    def warned(self, obj: Obj, message: str) -> None: ...

    def restart_scheduler(self) -> None: ...


class _Deletion(msgspec.Struct, frozen=True):
    """The deletion of an object that was created with `delete-at`."""

    ref: Ref
    uid: str


class Player:
    """The events of a scenario that are still to come. Times are nanoseconds since its start."""

    def __init__(self, scenario: Scenario, store: Store, nodes: NodePlayer, host: Host) -> None:
        self._store = store
        self._nodes = nodes
        self._host = host
        self._upcoming: list[tuple[int, int, ScenarioEvent | _Deletion]] = [
            (event.at_ns, event.order, event) for event in scenario.events
        ]
        self.total = len(self._upcoming)

    @property
    def done(self) -> int:
        return self.total - len(self._upcoming)

    def replace_rest(self, events: Iterable[ScenarioEvent]) -> None:
        """These events are to come, instead of those that were."""
        self._upcoming = [(event.at_ns, event.order, event) for event in events]
        heapq.heapify(self._upcoming)
        self.total = len(self._upcoming)

    def due(self) -> int | None:
        """When the next event is due; `None` after the last."""
        return self._upcoming[0][0] if self._upcoming else None

    def run(self, elapsed_ns: int) -> Iterator[int]:
        """Plays all events that are due by then, in order; yields after each how many that were."""
        done = 0
        while self._upcoming and self._upcoming[0][0] <= elapsed_ns:
            _, order, event = heapq.heappop(self._upcoming)
            if isinstance(event, Arrival):
                self._create(event, order)
            elif isinstance(event, Step):
                self._perform(event)
            else:
                self._delete(event)
            done += 1
            yield done

    def _create(self, arrival: Arrival, order: int) -> None:
        obj = arrival.obj
        try:
            with self._store.as_user() as warnings:
                made = self._store.create(obj)
        except Refused as why:
            self._host.refused(obj, why)
            return
        for warning in warnings:
            self._host.warned(obj, warning)
        if arrival.delete_at_ns is not None:
            deletion = _Deletion(ref_of(made), uid_of(made))
            heapq.heappush(self._upcoming, (arrival.delete_at_ns, order, deletion))
            self.total += 1

    def _delete(self, deletion: _Deletion) -> None:
        """An object that is gone already is not missed."""
        try:
            self._store.delete(deletion.ref, uid=deletion.uid)
        except Refused as why:
            if why.code not in (404, 409):
                self._host.refused(_named(deletion.ref), why)

    def _perform(self, step: Step) -> None:
        if step.target is None:
            self._host.restart_scheduler()
            return
        try:
            self._act(step, step.target)
        except Refused as why:
            if why.code == 404:
                self._warn(step, f"{step.do}: {step.target} does not exist")
            elif step.do in ("patch", "delete"):
                self._host.refused(_named(step.target), why)
            else:
                self._warn(step, f"{step.do}: {why.message}")

    def _act(self, step: Step, target: Ref) -> None:
        match step.do:
            case "patch":
                self._patch(target, step.patch)
            case "delete":
                self._store.delete(target)
            case "fail-pod":
                self._nodes.fail_pod(target.namespace, target.name, step.exit_code)
            case "evict-pod":
                message = "evicted by a Step of the scenario"
                self._store.evict(target.namespace, target.name, "", "EvictionByEvictionAPI", message)
            case "fail-node":
                self._nodes.fail_node(target.name)
            case "recover-node":
                self._nodes.recover_node(target.name)

    def _patch(self, target: Ref, patch: dict[str, Any]) -> None:
        """A Step's patch may touch an object and its status; the API takes them one at a time."""
        with self._store.as_user():
            self._patch_parts(target, patch)

    def _patch_parts(self, target: Ref, patch: dict[str, Any]) -> None:
        rest = {key: value for key, value in patch.items() if key != "status"}
        if "status" not in patch or not self._store.discovery.has_status(target.kind):
            self._store.patch(target, patch)
            return
        if rest:
            self._store.patch(target, rest)
        self._store.patch(target, {"status": patch["status"]}, subresource="status")

    def _warn(self, step: Step, message: str) -> None:
        named = _named(step.target) if step.target is not None else {"metadata": {"name": step.do}}
        self._host.warned({**named, "kind": "Step"}, message)


def _named(ref: Ref) -> Obj:
    """The part of an object that a line of the timeline shows."""
    return {"kind": ref.kind.partition(".")[0], "metadata": {"namespace": ref.namespace, "name": ref.name}}
