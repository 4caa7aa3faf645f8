"""The schedulers that are compared: how each is started, and which gangs it reads.

Client limits (QPS, burst) are raised so far that they do not count, and leader election is off; everything else is each
scheduler's default, or the config that its project ships.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from benchmarks.live_load import QUEUE
from benchmarks.peers import choice
from benchmarks.peers.choice import QPS
from benchmarks.peers.programs import KUBE_SCHEDULER, PEERS
from benchmarks.scheduler_process import enbloc_run
from e2e import binaries
from operators.programs import source

GATES: Final = "GenericWorkload=true,GangScheduling=true"
_LIMITS: Final = (f"--qps={QPS}", f"--burst={QPS}")

Obj = dict[str, Any]
Commands = Callable[[str, Path], Sequence[Sequence[str]]]
"""One for each process, from the namespace, whose name the pods give as their scheduler's, and a folder for files."""


class Scheduler(NamedTuple):
    name: str
    dialect: str
    commands: Callable[[Path], Commands]
    """From the kubeconfig."""
    version: str = ""
    only_name: str = ""
    """The name that its pods must give as their scheduler's; none: any, so that of the namespace."""
    definitions: Path | None = None
    """A folder with the definitions of the kinds that it needs."""
    objects: Callable[[str], Sequence[Obj]] = lambda _namespace: ()
    """What must exist besides, from the namespace."""
    how: str = ""
    """What its flags do not show of how it is started."""


def enbloc(dialect: str) -> Scheduler:
    def of(kubeconfig: Path) -> Commands:
        def commands(namespace: str, folder: Path) -> list[list[str]]:
            config = folder / "config.yaml"
            names = [namespace, *(["yunikorn"] if dialect == "yunikorn" else [])]
            config.write_text(json.dumps({"schedulerNames": names}))
            return [enbloc_run(str(kubeconfig), None, namespace, config)]

        return commands

    return Scheduler("Enbloc", dialect, of, only_name="yunikorn" if dialect == "yunikorn" else "")


# ---- those with a KubeSchedulerConfiguration


def _configured(program: Path, config: Callable[[], Obj], *flags: str) -> Callable[[Path], Commands]:
    """A scheduler that is built on kube-scheduler's framework: its config, with what differs here."""

    def of(kubeconfig: Path) -> Commands:
        def commands(namespace: str, folder: Path) -> list[list[str]]:
            found = config()
            found["clientConnection"] = {"kubeconfig": str(kubeconfig), "qps": QPS, "burst": QPS}
            found["leaderElection"] = {"leaderElect": False}
            for profile in found["profiles"]:
                profile["schedulerName"] = namespace
            path = folder / "config.yaml"
            path.write_text(json.dumps(found))
            return [[str(program), f"--config={path}", "--secure-port=0", *flags]]

        return commands

    return of


def _plain() -> Obj:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{}],
    }


def kube_scheduler() -> Scheduler:
    program = binaries.ensure((KUBE_SCHEDULER,))["kube-scheduler"]
    commands = _configured(program, _plain, f"--feature-gates={GATES}")
    return Scheduler("kube-scheduler", "native", commands, binaries.version(KUBE_SCHEDULER))


def scheduler_plugins() -> Scheduler:
    program, archive, version = _built("scheduler-plugins")
    shipped = "manifests/coscheduling/scheduler-config.yaml"
    return Scheduler(
        "scheduler-plugins",
        "scheduler-plugins",
        _configured(program, lambda: yaml.safe_load((archive / shipped).read_text())),
        version,
        definitions=archive / "config/crd/bases",
        how=f"the config of its archive, `{shipped}`",
    )


def koordinator() -> Scheduler:
    program, archive, version = _built("koordinator")
    shipped, system = "config/manager/scheduler-config.yaml", "koordinator-system"

    def config() -> Obj:
        found: Obj = yaml.safe_load(yaml.safe_load((archive / shipped).read_text())["data"]["koord-scheduler-config"])
        return found

    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": system}}
    return Scheduler(
        "Koordinator",
        "koordinator",
        _configured(program, config),
        version,
        definitions=archive / "config/crd/bases",
        objects=lambda _: (namespace,),
        how=f"the config of its archive, `{shipped}`",
    )


# ---- the others


def kai() -> Scheduler:
    """Its scheduler writes BindRequests, and its binder makes Bindings of them. What its pod-grouper writes for a gang
    is there already: it would be a third process, and one more write for each pod."""
    scheduler, archive, version = _built("kai")
    binder = binaries.path(PEERS["kai"][1])

    def of(kubeconfig: Path) -> Commands:
        def commands(namespace: str, folder: Path) -> list[list[str]]:
            given = ["env", f"KUBECONFIG={kubeconfig}"]
            named = (f"--scheduler-name={namespace}", *_LIMITS)
            # Its plugin server has no port that can be chosen by the system: a port that is none turns it off.
            ports = ("--listen-address=127.0.0.1:0", "--plugin-server-port=-1")
            no_ports = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
            return [[*given, str(scheduler), *named, *ports], [*given, str(binder), *named, *no_ports]]

        return commands

    return Scheduler(
        "KAI",
        "kai",
        of,
        version,
        definitions=archive / "deployments/kai-scheduler/crds",
        objects=lambda _: (_kai_queue(f"{QUEUE}-parent"), _kai_queue(QUEUE, parentQueue=f"{QUEUE}-parent")),
        how="its scheduler and its binder, CPU and memory of both; PodGroups and annotations as its pod-grouper writes "
        "them, which does not run",
    )


def _kai_queue(name: str, **spec: str) -> Obj:
    """Without limits."""
    amounts = {resource: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for resource in ("cpu", "memory", "gpu")}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"resources": amounts, **spec},
    }


def yunikorn() -> Scheduler:
    program, _, version = _built("yunikorn")

    def of(kubeconfig: Path) -> Commands:
        return lambda namespace, _: [["env", f"KUBECONFIG={kubeconfig}", f"NAMESPACE={namespace}", str(program)]]

    def limits(namespace: str) -> list[Obj]:
        data = {"kubernetes.qps": str(QPS), "kubernetes.burst": str(QPS)}
        metadata = {"name": "yunikorn-configs", "namespace": namespace}
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}]

    return Scheduler(
        "YuniKorn",
        "yunikorn",
        of,
        version,
        only_name="yunikorn",
        objects=limits,
        how="client limits by its ConfigMap; its placeholder pods are not counted",
    )


def volcano(program: Path) -> Scheduler:
    def of(kubeconfig: Path) -> Commands:
        def commands(namespace: str, folder: Path) -> list[list[str]]:
            limits = [f"--kube-api-qps={QPS}", f"--kube-api-burst={QPS}"]
            names = [f"--scheduler-name={namespace}", f"--kubeconfig={kubeconfig}"]
            return [[str(program), *names, *limits, "--leader-elect=false", "--enable-metrics=false", "--logtostderr"]]

        return commands

    return Scheduler("Volcano", "volcano", of, "as given")


def other(name: str, program: Path) -> Scheduler:
    """A scheduler of which only its kubeconfig is known: it must read Koordinator's annotations, and its pods are those
    that name the namespace of the bench as their scheduler."""

    def of(kubeconfig: Path) -> Commands:
        return lambda namespace, _: [[str(program), f"--kubeconfig={kubeconfig}", f"--scheduler-name={namespace}"]]

    return Scheduler(name, "koordinator", of, "as given")


# ---- which


BUILD: Final[Mapping[str, Callable[[], Scheduler]]] = {
    "kube-scheduler": kube_scheduler,
    "scheduler-plugins": scheduler_plugins,
    "Koordinator": koordinator,
    "KAI": kai,
    "YuniKorn": yunikorn,
}
GIVEN: Final[Mapping[str, Callable[[Path], Scheduler]]] = {"volcano": volcano}


def given(words: Sequence[str]) -> list[Scheduler]:
    """Those of `--peer NAME=PATH`. Raises `BadArgument`."""
    found = choice.programs(words)
    return [GIVEN[name.lower()](path) if name.lower() in GIVEN else other(name, path) for name, path in found]


def _built(name: str) -> tuple[Path, Path, str]:
    """The first of its programs, its module's archive, its version. Raises `Unavailable`."""
    places = binaries.ensure(PEERS[name])
    program = PEERS[name][0]
    version = binaries.version(program)
    return places[program.name], source(program.versioned, f"v{version}"), version
