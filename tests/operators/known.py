"""How each operator is started: its flags and config, with the gang scheduling that it offers switched on; of those
named `alone` it is off, and their pods are grouped by their owner."""

from __future__ import annotations

from pathlib import Path

from e2e.api import Json
from operators.installation import CERTIFICATES, Operator, Ports

LOOPBACK = "127.0.0.1"


def _kuberay_alone(ports: Ports, folder: Path) -> list[str]:
    return [
        "--enable-leader-election=false",
        f"--metrics-addr={LOOPBACK}:{ports.metrics}",
        f"--health-probe-bind-address={LOOPBACK}:{ports.health}",
    ]


def _kuberay(ports: Ports, folder: Path) -> list[str]:
    return ["--batch-scheduler=volcano", *_kuberay_alone(ports, folder)]


def _training_alone(ports: Ports, folder: Path) -> list[str]:
    return [
        f"--metrics-bind-address={LOOPBACK}:{ports.metrics}",
        f"--health-probe-bind-address={LOOPBACK}:{ports.health}",
        f"--webhook-server-port={ports.webhook}",
    ]


def _training(ports: Ports, folder: Path) -> list[str]:
    return ["--gang-scheduler-name=volcano", *_training_alone(ports, folder)]


def _mpi_alone(ports: Ports, folder: Path) -> list[str]:
    return [f"--kubeConfig={folder / 'kubeconfig'}"]


def _mpi(ports: Ports, folder: Path) -> list[str]:
    return ["--gang-scheduling=volcano", *_mpi_alone(ports, folder)]


def _manager_config(group: str, ports: Ports, version: str = "v1alpha1", **more: object) -> Json:
    return {
        "apiVersion": f"config.{group}/{version}",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{ports.health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": ports.webhook, "host": LOOPBACK},
        "leaderElection": {"leaderElect": False},
        **more,
    }


def _jobset(ports: Ports, folder: Path) -> Json:
    return _manager_config("jobset.x-k8s.io", ports, internalCertManagement={"enable": False})


def _lws_alone(ports: Ports, folder: Path) -> Json:
    off = {"enable": False}
    return _manager_config("lws.x-k8s.io", ports, webhook=_webhook(ports, folder), internalCertManagement=off)


def _lws(ports: Ports, folder: Path) -> Json:
    return _lws_alone(ports, folder) | {"gangSchedulingManagement": {"schedulerProvider": "volcano"}}


def _webhook(ports: Ports, folder: Path) -> Json:
    """For those that look for the certificate in one place, whatever the folder for temporary files."""
    return {"port": ports.webhook, "host": LOOPBACK, "certDir": str(folder / CERTIFICATES)}


def _trainer(ports: Ports, folder: Path) -> Json:
    return _manager_config("trainer.kubeflow.org", ports, certManagement={"enable": False})


def _kueue(ports: Ports, folder: Path) -> Json:
    frameworks = ["batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"]
    return _manager_config(
        "kueue.x-k8s.io",
        ports,
        "v1beta2",
        webhook=_webhook(ports, folder),
        internalCertManagement={"enable": True},  # without it Kueue reads files below /etc
        integrations={"frameworks": frameworks},
        featureGates={"VisibilityOnDemand": False},
    )


def _nothing(ports: Ports, folder: Path) -> list[str]:
    return []


_KUBERAY = Operator("kuberay", ("config/default",), "ray-system", _kuberay)
_TRAINING = Operator(
    "training-operator",
    ("manifests/overlays/standalone",),
    "kubeflow",
    _training,
    service="training-operator",
    makes_certificate=True,
    fixed_certificates=Path("/tmp/k8s-webhook-server/serving-certs"),
)
_MPI = Operator(
    "mpi-operator", ("manifests/overlays/standalone",), "mpi-operator", _mpi, health="/healthz", health_port=8080
)
_LWS = Operator("lws", ("config/default",), "lws-system", _nothing, _lws, service="lws-webhook-service")

OPERATORS = {
    one.name: one
    for one in (
        _KUBERAY,
        _KUBERAY._replace(name="kuberay-alone", of="kuberay", arguments=_kuberay_alone),
        _TRAINING,
        _TRAINING._replace(name="training-operator-alone", of="training-operator", arguments=_training_alone),
        _MPI,
        _MPI._replace(name="mpi-operator-alone", of="mpi-operator", arguments=_mpi_alone),
        _LWS,
        _LWS._replace(name="lws-alone", of="lws", config=_lws_alone),
        Operator("jobset", ("config/default",), "jobset-system", _nothing, _jobset, service="jobset-webhook-service"),
        Operator(
            "trainer",
            ("manifests/base/crds", "manifests/base/webhook"),
            "kubeflow-system",
            _nothing,
            _trainer,
            service="kubeflow-trainer-controller-manager",
        ),
        Operator(
            "kueue",
            ("config/default",),
            "kueue-system",
            _nothing,
            _kueue,
            service="kueue-webhook-service",
            makes_certificate=True,
        ),
    )
}
