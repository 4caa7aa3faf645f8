"""What is proved by the nodes themselves, whatever runs on them: a pod larger than every node, a label or a resource
that no node has, nodes that take no pods. Added to what a gang says of itself (G10).

Equal gangs share a diagnosis; this depends on each gang's own pods, so it is found for each gang, and kept until a node
changes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Final

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.reasons import PendingReason
from enbloc.api.requests import pod_requests
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.resources import PODS, Request
from enbloc.engine.core.tables.tasks import GangState, pending_tasks
from enbloc.engine.core.why.diagnosis import shown
from enbloc.listing import listed

CONCERNED: Final = frozenset({PendingReason.UNSCHEDULABLE, PendingReason.NOT_ENOUGH_RESOURCES})
NEVER: Final = "It can never start here"
NEAR: Final = 0.75
"""How like a known name a word must be to count as a misspelling of it."""

Selector = tuple[tuple[str, str], ...]
Needs = tuple[Request, Selector, Selector]
"""The request of a pod, its own node selector, and that of its SchedulingSpec (A2)."""


class Impossibilities:
    def __init__(self, state: State) -> None:
        self._state = state
        self._of_needs: dict[Needs, str] = {}
        self._known_at = (-1, -1)

    def of(self, gang: GangState, reason: PendingReason) -> str:
        """One sentence or two; empty if nothing is proved."""
        if reason not in CONCERNED:
            return ""
        nodes = self._state.nodes
        now = (nodes.static_version, nodes.moves)
        if now != self._known_at:
            self._of_needs.clear()
            self._known_at = now
        found = dict.fromkeys(self._sentence(needs) for needs in _needs(self._state, gang))
        return " ".join(sentence for sentence in found if sentence)

    def _sentence(self, needs: Needs) -> str:
        known = self._of_needs.get(needs)
        if known is None:
            known = self._of_needs[needs] = (
                self._too_large(needs[0]) or self._unlabelled(needs[1], needs[2]) or self._closed()
            )
        return known

    def _too_large(self, request: Request) -> str:
        nodes, names = self._state.nodes, self._state.resources.names
        for column, amount in request:
            most = _largest(self._state, column)
            if amount <= most or column == PODS or not nodes.rows:
                continue
            name = names[column]
            if most:
                needed = f"one pod needs {shown(name, amount)} {name}, the largest node has {shown(name, most)}"
                return f"{NEVER}: {needed}."
            most_of = nodes.allocatable[: len(names), : nodes.count].max(axis=1, initial=0).tolist()
            known = [other for other, most in zip(names, most_of, strict=False) if most]
            near = difflib.get_close_matches(name, known, n=1, cutoff=NEAR)
            return f"No node has {name}{f': did you mean {near[0]}?' if near else '.'}"
        return ""

    def _unlabelled(self, own: Selector, of_gang: Selector) -> str:
        nodes = [facts for facts in self._state.nodes.facts if facts is not None]
        for key, value in sorted({*own, *of_gang}):
            values = {facts.labels[key] for facts in nodes if key in facts.labels}
            if value not in values and nodes:
                owner = ", which its SchedulingSpec selects" if (key, value) not in own else ""
                some = f"; they have {listed(sorted(values), 3)}" if values else ""
                return f"No node has label {key}={value}{owner}{some}."
        for key, value in own:
            other = dict(of_gang).get(key, value)
            if other != value:
                both = f"its pods select {key}={value}, its SchedulingSpec {key}={other}"
                return f"The node selectors contradict each other: {both}."
        return ""

    def _closed(self) -> str:
        """Nodes that take no pods at all, if no others are left."""
        nodes = [facts for facts in self._state.nodes.facts if facts is not None]
        cordoned = sum(facts.unschedulable for facts in nodes)
        unready = sum(not facts.ready and not facts.unschedulable for facts in nodes)
        if not nodes:
            return "There are no nodes."
        if cordoned + unready < len(nodes):
            return ""
        parts = [f"{cordoned} cordoned"] * bool(cordoned) + [f"{unready} not ready"] * bool(unready)
        return f"No node takes pods: {' and '.join(parts)}."


def _largest(state: State, column: int) -> int:
    """The most that one node has of a resource, cordoned and unready nodes included."""
    nodes = state.nodes
    if column >= len(nodes.allocatable):  # of a template: no pod has requested it yet
        return 0
    return int(nodes.allocatable[column, : nodes.count].max(initial=0))


def _needs(state: State, gang: GangState) -> Iterable[Needs]:
    """What each kind of pod of a gang needs: its pods that wait, or the templates of pods that do not exist yet."""
    waiting, of_gang = pending_tasks(gang), _selector(gang.spec.node_selector)
    if waiting:
        return dict.fromkeys((task.cls.request, _selector(task.spec.get("nodeSelector")), of_gang) for task in waiting)
    found: dict[Needs, None] = {}
    for template in gang.spec.first_wave.values():
        spec = view(template.pod_spec, core.PodSpec)
        found[state.resources.request(pod_requests(spec)), _selector(spec.node_selector), of_gang] = None
    return found


def _selector(selector: Mapping[str, str] | None) -> Selector:
    return tuple(sorted((selector or {}).items()))
