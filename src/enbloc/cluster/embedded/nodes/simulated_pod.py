"""A pod on its node, as its simulation goes on."""

from __future__ import annotations

from typing import Literal

import msgspec

from enbloc.api.meta import Obj, name_of, namespace_of, uid_of
from enbloc.api.pod_amounts import Amounts
from enbloc.cluster.embedded.api.pods import node_of
from enbloc.cluster.embedded.nodes.pod_script import PodScript, read_script
from enbloc.units import SECOND

FIRST_DELAY_NS = 10 * SECOND
MOST_DELAY_NS = 300 * SECOND
FORGIVEN_AFTER_NS = 600 * SECOND
"""A container that ran this long starts again without delay."""

Key = tuple[str, str]
"""Namespace and name of a pod."""
Stage = Literal["assigned", "starting", "running", "backing off", "stopping", "ended"]


class SimulatedPod(msgspec.Struct, eq=False):
    """One pod (one UID) on its node."""

    key: Key
    uid: str
    node: str
    script: PodScript
    stage: Stage = "assigned"
    turn: int = 0  # steps planned in an earlier turn are stale
    admitted_ns: int | None = None
    amounts: Amounts = {}
    started_ns: int = 0
    restarts: int = 0
    backoff_ns: int = 0
    last_end: tuple[str, str, int] | None = None
    deadline_ns: int | None = None

    @classmethod
    def of(cls, pod: Obj, speed: float) -> SimulatedPod:
        return cls((namespace_of(pod), name_of(pod)), uid_of(pod), node_of(pod), read_script(pod).at_speed(speed))

    def restart_delay_ns(self, ran_ns: int) -> int:
        """How long the kubelet waits before it restarts the containers after a run of `ran_ns`: not at all the first
        time, then longer each time."""
        planned_ns = self.backoff_ns if ran_ns < FORGIVEN_AFTER_NS else 0
        self.backoff_ns = min(2 * planned_ns, MOST_DELAY_NS) if planned_ns else FIRST_DELAY_NS
        return planned_ns
