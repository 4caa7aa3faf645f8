"""N2: fields that are not known are warned of with the nearest name, refused with --strict; pods are validated; a
finding has its line, and a wrong type hides no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from enbloc.admission.settings import DEFAULTS
from enbloc.scenario.documents import BadInput, read_documents
from enbloc.sim import linting
from support import manifests as m
from support.simulation import documents, lint, simulate

Obj = dict[str, Any]
NO_IMAGE = {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}


def with_field(obj: Obj, *path: str | int, value: Any = 2) -> Obj:
    target: Any = obj
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    return obj


def job() -> Obj:
    return m.job("j", m.role("w", 2))


TEMPLATE = ("spec", "tasks", 0, "template")


def replica_set() -> Obj:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "x"}, "spec": spec}


def batch_job(**fields: Any) -> Obj:
    template = {"metadata": {}, "spec": {**m.pod_spec(1), "restartPolicy": "Never"}}
    spec = {"template": template, **fields}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "b"}, "spec": spec}


@pytest.mark.parametrize(
    ("obj", "field", "words"),
    [
        (with_field(job(), "spec", "minAvalable"), "spec.minAvalable", "did you mean minAvailable?"),
        (with_field(job(), "spec", "tasks", 0, "replica"), "spec.tasks[0].replica", "did you mean replicas?"),
        (with_field(m.queue("q"), "spec", "wieght"), "spec.wieght", "did you mean weight?"),
        (with_field(m.podgroup("g", 1), "spec", "minMembers"), "spec.minMembers", "did you mean minMember?"),
        (with_field(m.sigs_podgroup("g", 1), "spec", "minMembr"), "spec.minMembr", "did you mean minMember?"),
        (
            with_field(m.native_podgroup("g", {"gang": {"minCount": 1}}), "spec", "priorityClass"),
            "spec.priorityClass",
            "did you mean priorityClassName?",
        ),
        (with_field(m.queue_job("q", m.role("w", 1)), "spec", "taskSpec"), "spec.taskSpec", "did you mean taskSpecs?"),
        (with_field(job(), "kind", value="Jobb"), "kind", "did you mean Job?"),
        (
            with_field(job(), *TEMPLATE, "spec", "containers", 0, "resorces"),
            "spec.tasks[0].template.spec.containers[0].resorces",
            "did you mean resources?",
        ),
        (
            with_field(job(), *TEMPLATE, "spec", "containers", 0, "env", value=[{"nme": "A"}]),
            "spec.tasks[0].template.spec.containers[0].env[0].nme",
            "did you mean name?",
        ),
        (
            with_field(job(), *TEMPLATE, "spec", "volumes", value=[{"name": "v", "emptydir": {}}]),
            "spec.tasks[0].template.spec.volumes[0].emptydir",
            "did you mean emptyDir?",
        ),
        (
            with_field(job(), *TEMPLATE, "metadata", value={"label": {"a": "b"}}),
            "spec.tasks[0].template.metadata.label",
            "did you mean labels?",
        ),
        (
            with_field(m.queue_job("q", m.role("w", 1)), "spec", "taskSpecs", 0, "template", "spec", "tolerance"),
            "spec.taskSpecs[0].template.spec.tolerance",
            "is not known",
        ),
        (
            with_field(replica_set(), "spec", "template", "spec", value={"containers": [{"name": "c", "imag": "i"}]}),
            "spec.template.spec.containers[0].imag",
            "did you mean image?",
        ),
        (with_field(m.pod("p"), "spec", "priorityClass"), "spec.priorityClass", "did you mean priorityClassName?"),
        (with_field(job(), "metadata", "lables", value={}), "metadata.lables", "did you mean labels?"),
        (
            with_field(job(), "spec", "networkTopology", value={"mode": "hard", "highestTierAlowed": 2}),
            "spec.networkTopology.highestTierAlowed",
            "did you mean highestTierAllowed?",
        ),
        (
            with_field(m.podgroup("g", 1), "spec", "subGroupPolicy", value=[{"name": "a", "subGroupSze": 2}]),
            "spec.subGroupPolicy[0].subGroupSze",
            "did you mean subGroupSize?",
        ),
        (
            with_field(job(), "spec", "volumes", value=[{"mountPath": "/v", "volumeClaim": {"accesModes": []}}]),
            "spec.volumes[0].volumeClaim.accesModes",
            "did you mean accessModes?",
        ),
        (with_field(replica_set(), "spec", "replica"), "spec.replica", "did you mean replicas?"),
        (with_field(m.node("n"), "spec", value={"unschedulabel": True}), "spec.unschedulabel", "unschedulable?"),
        (with_field(m.node("n"), "status", "allocateable", value={}), "status.allocateable", "allocatable?"),
        (batch_job(paralelism=3), "spec.paralelism", "did you mean parallelism?"),
        (
            m.pod("p", annotations={"scheduling.k8s.io/groupname": "g"}),
            "metadata.annotations[scheduling.k8s.io/groupname]",
            "did you mean scheduling.k8s.io/group-name?",
        ),
    ],
)
def test_n2_an_unknown_field_is_warned_of_and_refused_with_strict(obj: Obj, field: str, words: str) -> None:
    found = {one.field: one.message for one in lint(obj).warnings}
    assert words in found[field]
    assert field not in {one.field for one in lint(obj).faults}
    strict = linting.lint(documents(obj), DEFAULTS, strict=True)
    assert field in {one.field for one in strict.faults}
    assert not strict.warnings


def test_n2_every_field_that_we_or_the_peer_know_is_known() -> None:
    full = m.job("j", m.role("w", 2, minimum=1), networkTopology={"mode": "soft"}, maxRetry=3, queue="default")
    full["spec"]["tasks"][0] |= {
        "partitionPolicy": {},
        "topologyPolicy": "none",
        "policies": [{"action": "RestartJob"}],
    }
    group = m.podgroup("g", 1, subGroupPolicy=[], networkTopology={})
    queue = m.queue("q", affinity={}, extendClusters=[], type="", dequeueStrategy="fifo", deserved={"cpu": "1"})
    volumes = [{"name": "a", "rbd": {"monitors": ["x"], "image": "y"}}, {"name": "b", "gitRepo": {"repository": "r"}}]
    pod = m.pod("p", volumes=volumes, workloadRef={"name": "w", "podGroup": "g"}, serviceAccount="s")
    volume = {"capacity": {"storage": "1Gi"}, "iscsi": {"targetPortal": "t", "iqn": "q", "lun": 0}}
    disk = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": volume}
    grouped = batch_job(scheduling={})
    for obj in (full, group, queue, pod, disk, grouped):
        assert not [one for one in lint(obj).warnings if "is not known" in one.message]


def test_n2_a_pod_is_validated_as_an_api_server_does() -> None:
    bad = m.pod("p", restartPolicy="Sometimes")
    assert [one.field for one in lint(bad).faults] == ["spec.restartPolicy"]
    assert "restartPolicy" in simulate(m.node("n"), bad).rejected("p")


MANIFEST = """# the first line
apiVersion: v1
kind: Node
metadata: {name: n}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: X_bad
spec:
  minAvalable: 2
  tasks:
  - name: w
    replicas: "3"
    template:
      spec:
        containers:
        - name: c
          image: x
          resources:
            limits:
              nvidia.com/gpu: 2x
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartPolicy: Sometimes
  containers: [{name: c, image: x}]
"""


def test_a_finding_has_its_line_and_a_wrong_type_hides_no_other(tmp_path: Path) -> None:
    file = tmp_path / "in.yaml"
    file.write_text(MANIFEST)
    linted = linting.lint(read_documents([str(file)]))
    assert [(one.line, one.field.rpartition(".")[2]) for one in linted.faults] == [
        (14, "replicas"),
        (22, "com/gpu"),
        (9, "name"),
        (28, "restartPolicy"),
    ]
    assert (11, "spec.minAvalable") in [(one.line, one.field) for one in linted.warnings if one.kind == "Job"]
    assert str(linted.faults[0]).startswith(f"{file}:14 Job X_bad: spec.tasks[0].replicas: ")


def test_the_line_of_an_item_of_a_list(tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    file.write_text(
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: p}\n"
        "  spec:\n    restartPolicy: Sometimes\n    containers: [{name: c, image: x}]\n"
    )
    [fault] = linting.lint(read_documents([str(file)])).faults
    assert (fault.line, fault.field) == (8, "items[0].spec.restartPolicy")


def test_n2_a_queue_with_a_wrong_value_exists_all_the_same() -> None:
    """Its fault hides neither the misspelt queue of the job nor the job's other faults."""
    queue = m.queue("research", capability={"cpu": "4cores"})
    faults = lint(queue, m.job("j", m.role("w", 2), queue="reserch")).faults
    assert [one.field for one in faults] == ["spec.capability.cpu", "spec.queue"]
    assert faults[1].message.endswith("did you mean research?")


def test_n2_a_bad_annotation_of_a_simulation_hides_no_warning() -> None:
    annotated = m.job(
        "j", m.role("w", 2), annotations={"sim.enbloc.dev/at": "soon", "enbloc.dev/expected-duraton": "5m"}
    )
    linted = lint(annotated)
    assert [one.field for one in linted.faults] == ["metadata.annotations[sim.enbloc.dev/at]"]
    assert [one.field for one in linted.warnings] == ["metadata.annotations[enbloc.dev/expected-duraton]"]


def test_n2_a_required_field_of_a_wrong_type_is_not_missing_too() -> None:
    pod = with_field(m.pod("p"), "spec", "containers", value=3)
    pod["spec"]["tolerations"] = 4
    assert sorted((one.field, one.message) for one in lint(pod).faults) == [
        ("spec.containers", "expected `array`, got `int`"),
        ("spec.tolerations", "expected `array | null`, got `int`"),
    ]


def test_n2_a_job_of_the_wrong_group_is_told_the_right_one() -> None:
    wrong = {**m.job("j", m.role("w", 2)), "apiVersion": "batch/v1"}
    [fault] = lint(wrong).faults
    assert fault.message == "is missing; a Job with `tasks` is of batch.volcano.sh/v1alpha1"


def test_n2_a_tab_is_called_a_tab(tmp_path: Path) -> None:
    path = tmp_path / "in.yaml"
    path.write_text("apiVersion: v1\nkind: Pod\nmetadata:\n\tname: x\n")
    with pytest.raises(BadInput, match="line 4, column 1: a tab: YAML is indented with spaces"):
        read_documents([str(path)])


def test_n2_ports_are_in_range() -> None:
    found = m.pod("p")
    found["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 99_999}, {"protocol": "tcp"}, {}]
    assert [one.field for one in lint(found).faults] == [
        "spec.containers[0].ports[0].hostPort",
        "spec.containers[0].ports[1].protocol",
    ]
    assert simulate(m.node("n"), found).rejected("p")


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (with_field(m.pod("x"), "spec", value=NO_IMAGE), "spec"),
        (with_field(job(), "spec", "tasks", 0, "template", "spec", value=NO_IMAGE), "spec.tasks[0].template.spec"),
        (
            with_field(m.queue_job("x", m.role("w", 1)), "spec", "taskSpecs", 0, "template", "spec", value=NO_IMAGE),
            "spec.taskSpecs[0].template.spec",
        ),
        (with_field(replica_set(), "spec", "template", "spec", value=NO_IMAGE), "spec.template.spec"),
    ],
)
def test_n2_what_files_leave_out_and_an_api_server_demands_is_warned_of(obj: Obj, path: str) -> None:
    fields = [one.field for one in lint(obj).warnings]
    first = f"{path}.containers[0]"
    assert fields == [f"{first}.image", f"{first}.resources.limits.nvidia.com/gpu"]
    assert [one.field for one in linting.written_warnings(documents(obj), DEFAULTS)] == fields


def test_n2_n5_sim_warns_of_the_fields_as_they_are_read() -> None:
    """`Specs` is read as `spec` (A3): it is known, by `sim` as by `lint`."""
    queue_job = m.queue_job("q", m.role("w", 1))
    queue_job["Specs"] = queue_job.pop("spec")
    assert not linting.written_warnings(documents(queue_job), DEFAULTS)
    assert not lint(queue_job).warnings


def test_n2_what_is_missing_hides_no_misspelling() -> None:
    """Perhaps of the very same field."""
    job = batch_job(paralelism=3)
    claim = {"name": "v", "persistentVolumeClaim": {"claimname": "c"}}
    job["spec"]["template"]["spec"]["volumes"] = [claim]
    linted = lint(job)
    place = "spec.template.spec.volumes[0].persistentVolumeClaim"
    assert [one.field for one in linted.faults] == [f"{place}.claimName"]
    assert {one.field for one in linted.warnings} == {"spec.paralelism", f"{place}.claimname"}
