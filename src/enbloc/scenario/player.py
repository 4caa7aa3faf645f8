"""What a scenario does to a cluster, when its time comes: whoever owns the clock lets it happen.

Objects come and go, Steps are performed. What the API refuses is told to the stage and stops nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref, uid_of
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.store import Store
from enbloc.scenario.scenario import Arrival, Happening, Scenario, Step


class Stage(Protocol):
    """Who hears of what could not be done, and who can start the scheduler anew."""

    def refused(self, obj: Obj, why: Refused) -> None: ...

    def warned(self, obj: Obj, message: str) -> None: ...

    def restart_scheduler(self) -> None: ...


class Breakable(Protocol):
    """Nodes and pods that can be made to fail."""

    def fail_pod(self, namespace: str, name: str, exit_code: int = 1) -> None: ...

    def fail_node(self, name: str) -> None: ...

    def recover_node(self, name: str) -> None: ...


class _Departure(msgspec.Struct, frozen=True):
    """The end of one object that came with its own."""

    ref: Ref
    uid: str


class Player:
    """The happenings of a scenario that are still to come. Times are since its start."""

    def __init__(self, scenario: Scenario, store: Store, nodes: Breakable, stage: Stage) -> None:
        self._store = store
        self._nodes = nodes
        self._stage = stage
        self._coming: list[tuple[int, int, Happening | _Departure]] = [
            (happening.at, happening.order, happening) for happening in scenario.happenings
        ]
        self.total = len(self._coming)

    @property
    def done(self) -> int:
        return self.total - len(self._coming)

    def due(self) -> int | None:
        """When something happens next; `None`: never again."""
        return self._coming[0][0] if self._coming else None

    def happen(self, elapsed: int) -> Iterator[int]:
        """Lets everything happen that is due by then, in order; tells after each how many that were."""
        done = 0
        while self._coming and self._coming[0][0] <= elapsed:
            _, order, happening = heapq.heappop(self._coming)
            if isinstance(happening, Arrival):
                self._arrive(happening, order)
            elif isinstance(happening, Step):
                self._perform(happening)
            else:
                self._depart(happening)
            done += 1
            yield done

    def _arrive(self, arrival: Arrival, order: int) -> None:
        obj = arrival.obj
        try:
            made = self._store.create(obj)
        except Refused as why:
            self._stage.refused(obj, why)
            return
        if arrival.delete_at is not None:
            departure = _Departure(ref_of(made), uid_of(made))
            heapq.heappush(self._coming, (arrival.delete_at, order, departure))
            self.total += 1

    def _depart(self, departure: _Departure) -> None:
        """Deletes what an annotation said would go; if it went before, nobody minds."""
        try:
            self._store.delete(departure.ref, uid=departure.uid)
        except Refused as why:
            if why.code not in (404, 409):
                self._stage.refused(_named(departure.ref), why)

    def _perform(self, step: Step) -> None:
        if step.target is None:
            self._stage.restart_scheduler()
            return
        try:
            self._act(step, step.target)
        except Refused as why:
            if why.code == 404:
                self._warn(step, f"{step.do}: {step.target} does not exist")
            elif step.do in ("patch", "delete"):
                self._stage.refused(_named(step.target), why)
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
            case "fail-node":
                self._nodes.fail_node(target.name)
            case "recover-node":
                self._nodes.recover_node(target.name)

    def _patch(self, target: Ref, patch: dict[str, Any]) -> None:
        """A user's patch may touch both halves of an object; the API takes them one at a time."""
        rest = {key: value for key, value in patch.items() if key != "status"}
        if "status" not in patch or not self._store.discovery.has_status(target.kind):
            self._store.patch(target, patch)
            return
        if rest:
            self._store.patch(target, rest)
        self._store.patch(target, {"status": patch["status"]}, subresource="status")

    def _warn(self, step: Step, message: str) -> None:
        named = _named(step.target) if step.target is not None else {"metadata": {"name": step.do}}
        self._stage.warned({**named, "kind": "Step"}, message)


def _named(ref: Ref) -> Obj:
    """As much of an object as a line of the timeline needs."""
    return {"kind": ref.kind.partition(".")[0], "metadata": {"namespace": ref.namespace, "name": ref.name}}
