"""The definitions: of the right form, and good for every object that we know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from enbloc.admission.job import MAX_ROLES
from enbloc.admission.review import REVIEWED
from enbloc.api.field_descriptions import description_of
from enbloc.api.kinds import KINDS, kind_id
from enbloc.api.meta import Obj
from enbloc.api.topology import TREE_KINDS
from enbloc.config import parse
from enbloc.install.definitions import DEFINED, definitions
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.linting import lint
from enbloc.sim.simulation import Simulation
from support.schema_check import problems, structural_faults

ROOT = Path(__file__).parent.parent.parent
FILES = sorted([*(ROOT / "examples").glob("*.yaml"), *(ROOT / "tests" / "scenarios").glob("*.yaml")])


def by_kind() -> dict[str, Obj]:
    return dict(zip(DEFINED, definitions({}), strict=True))


def schema_of(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = by_kind()[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def test_every_kind_that_is_not_the_clusters_own_is_defined() -> None:
    groups = ("", "apps", "autoscaling", "batch", "policy")
    own = {kind.id for kind in KINDS.values() if kind.group in groups or kind.group.endswith(".k8s.io")}
    foreign = ("arbitrator.incubator.k8s.io", "scheduling.sigs.k8s.io", "scheduling.x-k8s.io")
    left_to_others = TREE_KINDS  # they are read where the project that owns them is installed
    defined = {kind for kind in KINDS if kind not in own or KINDS[kind].group in foreign}
    assert set(DEFINED) == defined - left_to_others
    assert set(REVIEWED) <= set(DEFINED)


@pytest.mark.parametrize("kind", DEFINED)
def test_definitions_are_well_formed(kind: str) -> None:
    definition, known = by_kind()[kind], KINDS[kind]
    assert definition["metadata"]["name"] == f"{known.plural}.{known.group}"
    assert definition["spec"]["names"].get("shortNames", []) == list(known.short_names)
    (version,) = definition["spec"]["versions"]
    assert version["storage"] is True
    assert ("subresources" in version) == known.has_status
    assert list(structural_faults(version["schema"]["openAPIV3Schema"])) == []
    names = [column["name"] for column in version["additionalPrinterColumns"]]
    assert "Age" in names
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", DEFINED)
def test_columns_that_name_a_path_of_ours_name_one_that_exists(kind: str) -> None:
    written_by_controllers = {
        "inqueue", "pending", "running", "completed", "unknown", "scheduled", "succeeded", "failed", "kind", "name",
    }  # fmt: skip
    schema = schema_of(kind)
    for column in by_kind()[kind]["spec"]["versions"][0]["additionalPrinterColumns"]:
        if column["jsonPath"].startswith(".metadata.") or "[?" in column["jsonPath"]:
            continue
        place = schema
        for step in column["jsonPath"].split(".")[1:]:
            if step not in place.get("properties", {}) and step in written_by_controllers:
                break
            place = place["properties"][step]


def test_groups_of_kubernetes_are_marked_as_not_approved() -> None:
    marked = {kind for kind, one in by_kind().items() if "annotations" in one["metadata"]}
    assert marked == {kind for kind in DEFINED if KINDS[kind].group.endswith(".k8s.io")}
    for kind in marked:
        note = by_kind()[kind]["metadata"]["annotations"]["api-approved.kubernetes.io"]
        assert note.startswith("unapproved")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_manifest_we_ship_fits_its_schema(file: Path) -> None:
    """As it is written, and as admission makes it."""
    documents = read_documents([str(file)])
    written = [arrival.obj for arrival in read_scenario(documents).arrivals]
    checked = 0
    for obj in [*written, *lint(documents).objects]:
        if kind_id(obj) in DEFINED:
            assert list(problems(schema_of(kind_id(obj)), obj)) == [], obj["metadata"]
            checked += 1
    assert checked >= sum(kind_id(obj) in DEFINED for obj in written)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_status_that_we_write_fits_its_schema(file: Path) -> None:
    result = Simulation(read_scenario(read_documents([str(file)])), parse(None)).run()
    for obj in result.objects:
        if kind_id(obj) in DEFINED:
            assert list(problems(schema_of(kind_id(obj)), obj)) == [], obj["metadata"]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"tasks": 3}, ".spec.tasks"),
        ({"minAvailable": "2"}, ".spec.minAvailable"),
        ({"minAvailable": -1}, ".spec.minAvailable"),
        ({"tasks": [{"replicas": 1}]}, ".spec.tasks[0].template"),
        ({"tasks": [{"template": {"spec": {}}}]}, ".spec.tasks[0].template.spec.containers"),
        ({"tasks": [{"template": {"spec": {"containers": []}}}] * (MAX_ROLES + 1)}, ".spec.tasks"),
        ({"policies": [{"event": "PodSneezed"}]}, ".spec.policies[0].event"),
        ({"plugins": {"ssh": "yes"}}, ".spec.plugins.ssh"),
    ],
)
def test_jobs_that_a_schema_refuses(change: dict[str, Any], where: str) -> None:
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "x"}, "spec": change}
    (problem,) = problems(schema_of("Job.batch.volcano.sh"), job)
    assert problem.startswith(f"{where}:")


def test_what_a_schema_does_not_know_is_kept() -> None:
    template = {"spec": {"containers": [{"name": "c", "someday": {"a": [1]}}], "runtimeClassName": "x"}, "new": 1}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "x"}}
    spec = {"networkTopology": {"mode": "hard"}, "tasks": [{"template": template, "partitionPolicy": {}}]}
    status = {"taskStatusCount": {"a": {"phase": {"Running": 1}}}}
    assert list(problems(schema_of("Job.batch.volcano.sh"), job | {"spec": spec, "status": status, "extra": 1})) == []


def _undescribed(schema: dict[str, Any], path: str) -> Iterator[str]:
    if not schema.get("description"):
        yield path
    for name, child in (schema.get("properties") or {}).items():
        yield from _undescribed(child, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        for name, child in (schema["items"].get("properties") or {}).items():
            yield from _undescribed(child, f"{path}[].{name}")


@pytest.mark.parametrize("definition", definitions({}), ids=lambda one: one["metadata"]["name"])
def test_every_field_has_a_description_for_kubectl_explain(definition: dict[str, Any]) -> None:
    for version in definition["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        assert schema["properties"].pop("metadata", {"type": "object"}) == {"type": "object"}  # all that is allowed
        assert list(_undescribed(schema, definition["spec"]["names"]["kind"])) == []


def test_the_longest_path_describes_a_field() -> None:
    assert description_of(("Queue", "spec", "priority")) == "Queues of higher priority are served first."
    of_pods = description_of(("Job", "spec", "tasks[]", "template", "spec", "priority"))
    assert of_pods.startswith("The priority as a number")
    assert description_of(("Job", "spec", "no-such-field")) == ""
