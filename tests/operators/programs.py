"""The operators that are run: real programs, built from their Go modules as the control plane is, and their archives.

`go/NAME/go.mod` pins each. A module's archive has what the project ships besides code: definitions, webhooks, samples.
They are read there when a test runs; none is copied into this repository. `selection` says which tests need which.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from pathlib import Path

from e2e import binaries
from e2e.binaries import Program, Unavailable

MODULES = Path(__file__).parent / "go"
DOWNLOAD_S = 300

KUBERAY = "github.com/ray-project/kuberay/ray-operator"
TRAINING = "github.com/kubeflow/training-operator"
MPI = "github.com/kubeflow/mpi-operator"
TRAINER = "github.com/kubeflow/trainer/v2"
JOBSET = "sigs.k8s.io/jobset"
LWS = "sigs.k8s.io/lws"
KUEUE = "sigs.k8s.io/kueue"


def _operator(name: str, package: str, versioned: str, about: str, module: str = "") -> Program:
    return Program(name, module or name, package, versioned, about, MODULES)


PROGRAMS = (
    _operator("kuberay", KUBERAY, KUBERAY, "1 to 10 minutes"),
    _operator("training-operator", f"{TRAINING}/cmd/training-operator.v1", TRAINING, "2 to 10 minutes"),
    _operator("jobset", JOBSET, JOBSET, "2 to 20 minutes", "kueue"),
    _operator("lws", f"{LWS}/cmd", LWS, "1 to 5 minutes after JobSet", "kueue"),
    _operator("trainer", f"{TRAINER}/cmd/trainer-controller-manager", TRAINER, "1 to 5 minutes after JobSet", "kueue"),
    _operator("mpi-operator", f"{MPI}/cmd/mpi-operator", MPI, "1 to 10 minutes after JobSet", "kueue"),
    _operator("kueue", f"{KUEUE}/cmd/kueue", KUEUE, "2 to 15 minutes after JobSet", "kueue"),
)
"""Those that Kueue can queue share its module: it pins their types already, and what they have in common, nearly all of
Kubernetes' libraries, is compiled once. Their own libraries may be of an older patch."""
KUBERNETES = "k8s.io/kubernetes"
NEXT_API_SERVER = Program(
    "kube-apiserver", "kubernetes-1.37", f"{KUBERNETES}/cmd/kube-apiserver", KUBERNETES, "5 to 40 minutes", MODULES
)
"""Of the next release. The other programs stay: a controller manager may be one release behind its API server."""
BY_NAME = {program.name: program for program in PROGRAMS}

SOURCES = {
    "volcano.sh/apis": "v1.14.0",
    "github.com/koordinator-sh/koordinator": "v1.8.0",
    "github.com/NVIDIA/KAI-scheduler": "v0.12.0",
    "sigs.k8s.io/scheduler-plugins": "v0.33.5",
}
"""Archives that are read and not built. Volcano's own module is not served as one: its types are."""


def built(name: str) -> Path:
    """The operator's program; built if it is not there. Raises `Unavailable`."""
    return binaries.ensure([BY_NAME[name]])[name]


def version(name: str) -> str:
    return binaries.version(BY_NAME[name])


def archive(name: str) -> Path:
    """The unpacked archive of an operator's module, by the operator's name."""
    return source(BY_NAME[name].versioned, f"v{version(name)}")


@functools.cache
def source(module: str, version: str) -> Path:
    """The unpacked archive of a module; downloaded if it is not there. Raises `Unavailable`."""
    if shutil.which("go") is None:
        raise Unavailable("the archives of operators are read with Go: install Go 1.26 or newer")
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"{module}@{version}"],
        cwd=Path("/"),
        capture_output=True,
        text=True,
        timeout=DOWNLOAD_S,
    )
    answer = json.loads(done.stdout or "{}")
    if "Dir" not in answer:
        raise Unavailable(f"{module}@{version}: {answer.get('Error') or done.stderr.strip()}")
    return Path(answer["Dir"])
