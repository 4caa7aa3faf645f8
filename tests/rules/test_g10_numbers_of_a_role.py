"""G10: where roles make up a total, the numbers are those of the role that is named."""

from __future__ import annotations

from enbloc.advice.explanation import explain
from enbloc.config import parse
from enbloc.inspect.overview import Explanation
from enbloc.inspect.tables import explanation_lines
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from support.manifests import native_podgroup, native_pods, node, pod, podgroup
from support.simulation import Documents, documents, simulate


def member(name: str, role: str) -> dict[str, object]:
    return pod(name, cpu=1, annotations={"scheduling.k8s.io/group-name": "ray", "volcano.sh/task-spec": role})


def test_g10_one_of_two_workers_does_not_fit() -> None:
    """KubeRay's group: a total, pods with roles, no minimum for any role."""
    pods = [member("head-0", "head"), member("worker-0", "worker"), member("worker-1", "worker")]
    answer = simulate(node("n1", cpu=2), podgroup("ray", 3), *pods)
    assert answer.why("default/ray").startswith("1 of 2 pods of role worker does not fit: ")


def explained(gang: str, *values: Documents) -> Explanation:
    simulation = Simulation(read_scenario(documents(*values)), parse(None))
    found = explain(simulation.run().objects, simulation.begin_ns, parse(None), gang)
    assert found is not None
    return found


def test_g10_the_only_role_of_a_native_podgroup_has_its_minimum() -> None:
    group = native_podgroup("g", {"gang": {"minCount": 2}})
    said = explained("default/g", node("n1", cpu=1), group, native_pods("g", 3))
    [figures] = said.numbers["roles"].values()
    assert figures["minimum"] == 2
    assert any("pods: 3 wait, minimum 2" in line for line in explanation_lines(said, 0))


def test_g10_a_minimum_of_all_roles_is_of_no_single_one() -> None:
    pods = [member("head-0", "head"), member("worker-0", "worker"), member("worker-1", "worker")]
    said = explained("default/ray", node("n1", cpu=2), podgroup("ray", 3), *pods)
    assert {role: figures["minimum"] for role, figures in said.numbers["roles"].items()} == {"head": 0, "worker": 0}
    assert not any("minimum 0" in line for line in explanation_lines(said, 0))
