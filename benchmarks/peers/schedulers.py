"""The schedulers that are compared: how each is started, and which gangs it reads.

Client limits (QPS, burst) are raised so far that they do not count; everything else is each scheduler's default.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from enbloc.bench.scheduler_process import enbloc_run

QPS: Final = 10_000
GATES: Final = "GenericWorkload=true,GangScheduling=true"

Command = Callable[[str, Path], Sequence[str]]
"""From the namespace, whose name the pods give as their scheduler's, and a folder for files."""


class Scheduler(NamedTuple):
    name: str
    dialect: str
    command: Callable[[Path], Command]
    """From the kubeconfig."""
    version: str = ""


def enbloc(dialect: str) -> Scheduler:
    def of(kubeconfig: Path) -> Command:
        def command(namespace: str, folder: Path) -> list[str]:
            config = folder / "config.yaml"
            config.write_text(json.dumps({"schedulerNames": [namespace]}))
            return enbloc_run(str(kubeconfig), None, namespace, config)

        return command

    return Scheduler("Enbloc", dialect, of)


def kube_scheduler(program: Path, version: str) -> Scheduler:
    def of(kubeconfig: Path) -> Command:
        def command(namespace: str, folder: Path) -> list[str]:
            config = {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"kubeconfig": str(kubeconfig), "qps": QPS, "burst": QPS},
                "leaderElection": {"leaderElect": False},
                "profiles": [{"schedulerName": namespace}],
            }
            path = folder / "config.yaml"
            path.write_text(json.dumps(config))
            return [str(program), f"--config={path}", "--secure-port=0", f"--feature-gates={GATES}"]

        return command

    return Scheduler("kube-scheduler", "native", of, version)


def volcano(program: Path) -> Scheduler:
    def of(kubeconfig: Path) -> Command:
        def command(namespace: str, folder: Path) -> list[str]:
            limits = [f"--kube-api-qps={QPS}", f"--kube-api-burst={QPS}"]
            names = [f"--scheduler-name={namespace}", f"--kubeconfig={kubeconfig}"]
            return [str(program), *names, *limits, "--leader-elect=false", "--enable-metrics=false", "--logtostderr"]

        return command

    return Scheduler("Volcano", "volcano", of, "as given")


def other(name: str, program: Path) -> Scheduler:
    """A scheduler of which only its kubeconfig is known: it must read Koordinator's annotations, and its pods are those
    that name the namespace of the bench as their scheduler."""

    def of(kubeconfig: Path) -> Command:
        return lambda namespace, folder: [str(program), f"--kubeconfig={kubeconfig}", f"--scheduler-name={namespace}"]

    return Scheduler(name, "koordinator", of, "as given")


GIVEN: Final[Mapping[str, Callable[[Path], Scheduler]]] = {"volcano": volcano}

NOT_RUN: Final = {
    "Volcano 1.15.1": "not served as a Go module; give its binary: `--peer volcano=PATH`",
    "scheduler-plugins 0.33.5": "no build of it is pinned here yet, for want of CPU: it needs all of its requirements "
    "and 33 replacements; give its binary with `--peer`",
    "Koordinator 1.8.0": "no build of it is pinned here yet: there was no CPU left for Go builds",
    "KAI 0.12.0": "no build of it is pinned here yet; it schedules only pods that its own pod-grouper has marked",
    "YuniKorn 1.8.0": "no build of it is pinned here yet; its gangs need placeholder pods",
}
"""Peers that this script does not run, and why."""


def python_version() -> str:
    return ".".join(map(str, sys.version_info[:3]))
