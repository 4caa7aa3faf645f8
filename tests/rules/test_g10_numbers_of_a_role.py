"""G10: where roles make up a total, the numbers are those of the role that is named."""

from __future__ import annotations

from support.manifests import node, pod, podgroup
from support.simulation import simulate


def member(name: str, role: str) -> dict[str, object]:
    return pod(name, cpu=1, annotations={"scheduling.k8s.io/group-name": "ray", "volcano.sh/task-spec": role})


def test_g10_one_of_two_workers_does_not_fit() -> None:
    """KubeRay's group: a total, pods with roles, no minimum for any role."""
    pods = [member("head-0", "head"), member("worker-0", "worker"), member("worker-1", "worker")]
    answer = simulate(node("n1", cpu=2), podgroup("ray", 3), *pods)
    assert answer.why("default/ray").startswith("1 of 2 pods of role worker does not fit: ")
