"""An unmodified kubectl, against the façade."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.embedded.http.serving import served_in_background
from e2e import binaries
from enbloc.api.meta import Ref
from enbloc.api.writes import BindPod, Patch
from enbloc.cluster.embedded.api.store import Store


def find_kubectl() -> str | None:
    """The one that was built for the end-to-end tests, else whatever the machine has."""
    built = next(binaries.path(program) for program in binaries.PROGRAMS if program.name == "kubectl")
    return os.environ.get("ENBLOC_KUBECTL") or (str(built) if built.exists() else shutil.which("kubectl"))


KUBECTL = find_kubectl()
pytestmark = pytest.mark.skipif(
    KUBECTL is None and not os.environ.get("CI"), reason="there is no kubectl; `make e2e` builds one"
)

QUICKSTART = Path(__file__).parents[4] / "examples" / "quickstart.yaml"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: main, image: "nginx:1", resources: {requests: {cpu: 100m}}, env: [{name: A, value: "1"}]}
  - {name: side, image: busybox}
"""


class Kubectl:
    def __init__(self, kubeconfig: Path, home: Path, store: Store) -> None:
        self.environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(home), "PATH": os.environ["PATH"]}
        self.store = store

    def run(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        assert KUBECTL is not None, "CI needs a kubectl"
        return subprocess.run(
            [KUBECTL, *arguments], env=self.environment, input=given, capture_output=True, text=True, timeout=60
        )

    def __call__(self, *arguments: str, given: str = "") -> str:
        done = self.run(*arguments, given=given)
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr.lower(), done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    with served_in_background(tmp_path) as (kubeconfig, store):
        yield Kubectl(kubeconfig, tmp_path, store)


def test_apply_and_apply_again(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", given=POD) == "pod/web created\n"
    assert kubectl("apply", "-f", "-", given=POD) == "pod/web unchanged\n"
    changed = POD.replace("nginx:1", "nginx:2").replace("app: web", "app: web, tier: front")
    assert kubectl("apply", "-f", "-", given=changed) == "pod/web configured\n"
    pod = kubectl.json("get", "pod", "web")
    assert [one["image"] for one in pod["spec"]["containers"]] == ["nginx:2", "busybox"]
    assert pod["metadata"]["labels"] == {"app": "web", "tier": "front"}
    assert kubectl("apply", "-f", "-", given=POD.replace("nginx:1", "nginx:2")) == "pod/web configured\n"
    assert kubectl.json("get", "pod", "web")["metadata"]["labels"] == {"app": "web"}
    done = kubectl.run("diff", "-f", "-", given=POD.replace("nginx:1", "nginx:3"))
    assert done.returncode == 1, done.stderr
    assert "nginx:3" in done.stdout


def test_apply_server_side(kubectl: Kubectl) -> None:
    config_map = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: "1", b: "2"}\n'
    assert kubectl("apply", "--server-side", "-f", "-", given=config_map) == "configmap/c serverside-applied\n"
    kubectl("apply", "--server-side", "-f", "-", given=config_map.replace(', b: "2"', ""))
    assert kubectl.json("get", "cm", "c")["data"] == {"a": "1"}
    other = ["apply", "--server-side", "--field-manager", "other", "-f", "-"]
    done = kubectl.run(*other, given=config_map.replace('"1"', '"9"'))
    assert done.returncode == 1
    assert "conflict" in done.stderr
    kubectl(*other, "--force-conflicts", given=config_map.replace('"1"', '"9"'))
    assert kubectl.json("get", "cm", "c")["data"] == {"a": "9", "b": "2"}


TEAM = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: teams.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Team, plural: teams, singular: team}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              members:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, properties: {name: {type: string}, role: {type: string}}}
"""


def test_apply_server_side_merges_lists_of_a_custom_kind_by_key(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=TEAM)
    kubectl("wait", "--for=condition=established", "crd/teams.example.com", "--timeout=5s")
    team = "apiVersion: example.com/v1\nkind: Team\nmetadata: {name: t}\nspec: {members: [{name: %s, role: %s}]}\n"
    one, two = (["apply", "--server-side", "--field-manager", manager, "-f", "-"] for manager in ("one", "two"))
    kubectl(*one, given=team % ("ann", "x"))
    kubectl(*two, given=team % ("bob", "y"))
    assert [member["name"] for member in kubectl.json("get", "team", "t")["spec"]["members"]] == ["ann", "bob"]
    done = kubectl.run(*two, given=team % ("ann", "z"))
    assert 'conflict with "one": .spec.members[{"name":"ann"}].role' in done.stderr.replace(chr(92), "")
    kubectl(*one, given=team % ("cid", "x"))
    assert [member["name"] for member in kubectl.json("get", "team", "t")["spec"]["members"]] == ["bob", "cid"]


def test_events_of_both_groups_are_the_same(kubectl: Kubectl) -> None:
    event = """
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: e}
regarding: {apiVersion: v1, kind: Pod, name: p, namespace: default}
note: all pods started
reason: Started
action: Starting
type: Normal
eventTime: "2026-01-01T00:00:00.000000Z"
reportingController: example.com/robot
reportingInstance: robot-1
"""
    kubectl("apply", "-f", "-", given=event)
    for resource in ("events", "events.events.k8s.io"):
        assert "all pods started" in kubectl("get", resource)
    assert kubectl.json("get", "events.events.k8s.io", "e")["note"] == "all pods started"
    assert "all pods started" in kubectl("events", "--for", "pod/p")


def test_the_quickstart_looks_right(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", str(QUICKSTART))
    shown = kubectl("get", "vcjob,podgroup,pods,nodes,queues", "-A")
    assert "job.batch.volcano.sh/resnet" in shown
    assert "node/node-1" in shown
    assert "queue.scheduling.volcano.sh/default" in shown
    assert kubectl("get", "vcjob").splitlines()[0].split() == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    wide = kubectl("get", "nodes", "-o", "wide")
    assert "INTERNAL-IP" in wide
    assert kubectl.json("get", "vcjob", "bert")["spec"]["minAvailable"] == 3
    assert "resnet" in kubectl("describe", "vcjob", "resnet")
    assert "Name:" in kubectl("describe", "node", "node-1")


def test_faults_are_reported_by_field(kubectl: Kubectl) -> None:
    bad = QUICKSTART.read_text().replace("minAvailable: 3", "minAvailable: 9")
    done = kubectl.run("apply", "-f", "-", given=bad)
    assert done.returncode == 1
    assert "minAvailable" in done.stderr
    assert "is invalid" in done.stderr
    assert 'namespaces "nowhere" not found' in kubectl.run("create", "-n", "nowhere", "configmap", "c").stderr


def test_k3_what_is_read_as_something_else_is_warned_of(kubectl: Kubectl) -> None:
    notes = '{gang.scheduling.koordinator.sh/name: g, gang.scheduling.koordinator.sh/min-available: "1"'
    bad = POD.replace(
        "metadata: {", "metadata: {annotations: " + notes + ', gang.scheduling.koordinator.sh/mode: "a\\"b"}, '
    )
    assert "annotations" in bad
    done = kubectl.run("apply", "-f", "-", given=bad)
    assert (done.returncode, done.stdout) == (0, "pod/web created\n")
    assert done.stderr.startswith("Warning: ")
    assert 'a"b' in done.stderr
    assert "Strict" in done.stderr
    assert kubectl.run("delete", "pod", "web").stderr == ""


def test_create_label_patch_scale_edit_delete(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "team")
    kubectl("create", "configmap", "c", "-n", "team", "--from-literal", "a=1")
    kubectl("label", "configmap", "c", "-n", "team", "x=y")
    kubectl("annotate", "configmap", "c", "-n", "team", "k=v")
    kubectl("patch", "configmap", "c", "-n", "team", "-p", '{"data":{"b":"2"}}')
    kubectl("patch", "configmap", "c", "-n", "team", "--type=json", "-p", '[{"op":"remove","path":"/data/a"}]')
    kubectl("patch", "configmap", "c", "-n", "team", "--type=merge", "-p", '{"data":{"d":"4"}}')
    assert kubectl.json("get", "configmap", "c", "-n", "team")["data"] == {"b": "2", "d": "4"}
    assert kubectl("get", "configmap", "-n", "team", "-l", "x=y", "-o", "name") == "configmap/c\n"
    assert kubectl("auth", "can-i", "delete", "pods") == "yes\n"
    assert kubectl("create", "configmap", "dry", "--dry-run=server").strip().endswith("(server dry run)")
    kubectl("delete", "configmap", "c", "-n", "team", "--wait=false")
    assert kubectl.run("get", "configmap", "c", "-n", "team").returncode == 1
    kubectl("replace", "-f", "-", given=json.dumps(_replaced(kubectl)))


def _replaced(kubectl: Kubectl) -> Any:
    kubectl("create", "configmap", "r", "--from-literal", "a=1")
    return {**kubectl.json("get", "configmap", "r"), "data": {"a": "2"}}


def test_explain_and_api_resources(kubectl: Kubectl) -> None:
    assert "minAvailable" in kubectl("explain", "vcjob.spec")
    assert "containers" in kubectl("explain", "pod.spec")
    assert "How many pods must be able to run together" in kubectl("explain", "vcjob.spec.minAvailable")
    assert "The most that the queue" in kubectl("explain", "queue.spec.capability")
    assert "roles of pods" not in kubectl("explain", "job.spec")  # of batch/v1
    assert "vcjob" in kubectl("api-resources")
    assert "batch.volcano.sh/v1alpha1" in kubectl("api-versions")
    assert "Server Version" in kubectl.run("version").stdout  # an older one warns of the skew


def test_a_watch_shows_changes_and_a_wait_ends(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=POD)
    assert KUBECTL is not None
    watching = subprocess.Popen(
        [KUBECTL, "get", "pods", "-w"], env=kubectl.environment, stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout is not None
    try:
        assert watching.stdout.readline().split()[0] == "NAME"
        assert watching.stdout.readline().split()[:3] == ["web", "0/2", "Pending"]
        threading.Timer(0.5, lambda: kubectl("delete", "pod", "web", "--wait=false")).start()
        assert watching.stdout.readline().split()[0] == "web"
    finally:
        watching.terminate()
        watching.wait(5)
        watching.stdout.close()
    begin = time.monotonic()
    kubectl("wait", "--for=delete", "pod/web", "--timeout=10s")
    assert time.monotonic() - begin < 10


def test_a_definition_is_established_and_its_kind_served(kubectl: Kubectl) -> None:
    definition = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: farms.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Farm, plural: farms, singular: farm, shortNames: [fm]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {cows: {type: integer}}}}}}
    subresources: {scale: {specReplicasPath: .spec.cows, statusReplicasPath: .status.cows}}
"""
    kubectl("apply", "-f", "-", given=definition)
    kubectl("wait", "--for=condition=established", "crd/farms.example.com", "--timeout=5s")
    farm = "apiVersion: example.com/v1\nkind: Farm\nmetadata: {name: f}\nspec: {cows: 3}\n"
    kubectl("apply", "-f", "-", given=farm)
    assert kubectl("get", "fm", "-o", "name") == "farm.example.com/f\n"
    assert "cows" in kubectl("explain", "farm.spec")
    kubectl("scale", "farm", "f", "--replicas=7")
    assert kubectl.json("get", "farm", "f")["spec"]["cows"] == 7


JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  schedulerName: enbloc
  minAvailable: 1
  tasks: [%s]
"""
ROLE = "{name: %s, replicas: 2, minAvailable: 1, template: {spec: {containers: [{name: c, image: i}]}}}"


def test_a_job_of_one_role_is_scaled_and_one_of_several_says_why_not(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=JOB % ("one", ROLE % "worker"))
    kubectl("scale", "vcjob", "one", "--replicas=5")
    assert [task["replicas"] for task in kubectl.json("get", "vcjob", "one")["spec"]["tasks"]] == [5]
    done = kubectl.run("scale", "vcjob", "one", "--replicas=0")
    assert "minAvailable" in done.stderr
    assert kubectl.json("get", "vcjob", "one")["spec"]["tasks"][0]["replicas"] == 5
    two = JOB.replace("minAvailable: 1", "minAvailable: 2") % ("two", f"{ROLE % 'ps'}, {ROLE % 'worker'}")
    kubectl("apply", "-f", "-", given=two)
    done = kubectl.run("scale", "vcjob", "two", "--replicas=5")
    assert done.returncode == 1
    assert "this one has 2 (ps, worker): change spec.tasks[].replicas of a role" in done.stderr
    assert [task["replicas"] for task in kubectl.json("get", "vcjob", "two")["spec"]["tasks"]] == [2, 2]


def test_small_kinds_that_kubectl_makes_itself(kubectl: Kubectl) -> None:
    """Newer kubectls send these in protobuf."""
    kubectl("create", "secret", "generic", "s", "--from-literal", "a=b")
    assert kubectl.json("get", "secret", "s")["data"] == {"a": "Yg=="}
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "quota", "q", "--hard", "pods=3,requests.cpu=4")
    assert kubectl.json("get", "quota", "q")["spec"]["hard"] == {"pods": "3", "requests.cpu": "4"}
    kubectl("create", "priorityclass", "high", "--value", "1000")
    assert kubectl.json("get", "priorityclass", "high")["value"] == 1000
    kubectl("create", "pdb", "b", "--selector", "a=b", "--min-available", "1")
    assert kubectl.json("get", "pdb", "b")["spec"] == {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
    kubectl("create", "service", "clusterip", "web", "--tcp", "80:8080")
    assert kubectl.json("get", "service", "web")["spec"]["ports"][0]["targetPort"] == 8080


def test_a_node_is_drained(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", str(QUICKSTART))
    kubectl("run", "p", "--image", "x", "--restart", "Never", "--labels", "app=a")
    kubectl.store.bind("default", "p", "", "node-1")
    assert kubectl.json("get", "pods", "--field-selector", "spec.nodeName=node-1")["items"]
    done = kubectl.run("drain", "node-1", "--force", "--timeout", "2s")
    assert "evicting pod default/p" in done.stderr + done.stdout
    assert kubectl.json("get", "pod", "p")["metadata"]["deletionTimestamp"]
    assert kubectl("get", "nodes").splitlines()[1].split()[1] == "Ready,SchedulingDisabled"
    kubectl("uncordon", "node-1")
    kubectl("taint", "node", "node-1", "a=b:NoSchedule")
    assert kubectl.json("get", "node", "node-1")["spec"]["taints"] == [
        {"key": "a", "value": "b", "effect": "NoSchedule"}
    ]


def test_top_shows_requests(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=POD.replace("{cpu: 100m}", "{cpu: 100m, memory: 64Mi}"))
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}}}
    kubectl.store.create({"apiVersion": "v1", "kind": "Node", **node})
    kubectl.store.execute(
        BindPod("default", "web", kubectl.store.get("Pod", "default", "web")["metadata"]["uid"], "n", {})
    )
    kubectl.store.execute(Patch(Ref("Pod", "default", "web"), {"status": {"phase": "Running"}}, "status"))
    assert kubectl("top", "pod").splitlines()[1].split() == ["web", "100m", "64Mi"]
    assert kubectl("top", "pod", "-A", "-l", "app=other", "--no-headers") == ""
    shown = kubectl("top", "pod", "web", "--containers", "--no-headers").splitlines()
    assert [line.split() for line in shown] == [["web", "main", "100m", "64Mi"], ["web", "side", "0m", "0Mi"]]
    assert kubectl("top", "node").splitlines()[1].split() == ["n", "100m", "10%", "64Mi", "6%"]
    assert "web" in kubectl("get", "pods")


ELSEWHERE = "real containers run on a Kubernetes cluster, such as one of kind"


def test_the_log_of_a_simulated_container_is_one_line_that_says_so(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=POD)
    line = f"default/web/main is simulated and has no output: {ELSEWHERE}\n"
    for options in ((), ("-f",), ("--previous",), ("--tail=5", "--timestamps")):
        assert kubectl("logs", "web", "-c", "main", *options) == line
    assert "container other is not valid for pod web" in kubectl.run("logs", "web", "-c", "other").stderr
    assert 'pods "none" not found' in kubectl.run("logs", "none").stderr


@pytest.mark.parametrize(
    "words",
    [
        ("exec", "web", "--", "true"),
        ("exec", "-it", "web", "-c", "main", "--", "sh"),
        ("attach", "web", "-c", "main"),
        ("port-forward", "pod/web", ":80"),
        ("cp", "/etc/hostname", "web:/tmp/there"),
        ("cp", "web:/etc/hostname", "there"),
    ],
)
def test_what_needs_a_process_is_refused_for_it_is_simulated(kubectl: Kubectl, words: tuple[str, ...]) -> None:
    kubectl("apply", "-f", "-", given=POD)
    kubectl.store.execute(
        BindPod("default", "web", kubectl.store.get("Pod", "default", "web")["metadata"]["uid"], "n", {})
    )
    kubectl.store.execute(Patch(Ref("Pod", "default", "web"), {"status": {"phase": "Running"}}, "status"))
    done = kubectl.run(*words)
    assert done.returncode == 1
    assert f"pod web is simulated and runs no process: {ELSEWHERE}" in done.stderr


def test_a_list_is_applied(kubectl: Kubectl) -> None:
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("a", "b")]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    assert kubectl("apply", "-f", "-", given=given) == "configmap/a created\nconfigmap/b created\n"
