"""Makes the `Bind` decision: pods, nodes, commit mark, and the volumes to bind first (G2, G11)."""

from __future__ import annotations

from collections.abc import Sequence

from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.commit_marks import decision_id, mark_of
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.decisions import Bind, Placement


def binding(state: State, gangs: Sequence[GangState], placed: Sequence[Task], commits: bool) -> Bind:
    """Binds placed tasks of one gang or of gangs that start together. If it `commits`, the last Binding completes the
    minima of all of them and carries the mark of its gang (K7)."""
    gang = placed[-1].gang
    volume_claims, volumes = _volumes(state, placed)
    return Bind(
        gang.key,
        decision_id([task.uid for task in placed]),
        tuple([Placement(task.namespace, task.name, task.uid, task.node) for task in placed]),
        mark_of(gang.minima, gang.behind) if commits or gang.need.ready else gang.covered,
        commits,
        tuple(one.key for one in gangs if one is not gang),
        volume_claims,
        volumes,
    )


_Names = tuple[tuple[str, str, str], ...]


def _volumes(state: State, placed: Sequence[Task]) -> tuple[_Names, _Names]:
    """Claims that get their task's node: namespace, name, node. And volumes to bind first, each to its claim."""
    with_claims = [task for task in placed if not task.cls.plain and task.cls.spec.volumes]
    volumes = tuple(
        (volume, task.namespace, claim)
        for task in with_claims
        for claim, volume in state.stateful.volumes_to_bind(task.uid).items()
    )
    bound = {(namespace, claim) for _, namespace, claim in volumes}
    claims = tuple(
        (task.namespace, claim, task.node)
        for task in with_claims
        for claim in _volume_claims(state, task)
        if (task.namespace, claim) not in bound
    )
    return claims, volumes


def _volume_claims(state: State, task: Task) -> list[str]:
    """WaitForFirstConsumer claims that get the task's node; the claim of an ephemeral volume is named after the pod."""
    ephemeral = [f"{task.name}-{name}" for name in state.volumes.ephemeral_to_select(task.cls)]
    return [*state.volumes.claims_to_select(task.cls), *ephemeral]
