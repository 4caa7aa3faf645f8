"""A real Kubernetes control plane on loopback: etcd, API server, controllers, and kwok for the nodes and their pods.

    with ControlPlane(programs, folder) as plane:
        plane.kubectl("get", "nodes")
        plane.apiserver.kill()
        plane.apiserver.restart()

Each part is a `Part`, with a log in the folder. There is no kube-scheduler: pods wait until somebody binds them. Of
the controller manager only what a scheduler's world needs is on (`CONTROLLERS`): without `garbage-collector` owner
references are not followed, without `namespace` a deleted namespace stays, without `node-lifecycle` and
`taint-eviction` a node that is NotReady keeps its pods, and a new one keeps the taint that the API server gives it.
Service accounts are not put into pods.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import secrets
import socket
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from e2e import stages
from e2e.api import Api, Json
from e2e.certificates import LOOPBACK, Authority
from e2e.parts import Part, Warden, always

CONTROLLERS = (
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
    "taint-eviction-controller",
)
FEATURES = ("GenericWorkload=true", "GangScheduling=true")
APIS = ("scheduling.k8s.io/v1alpha2=true",)
# Below the ports that systems hand out for outgoing connections, so that none of those is in the way.
PORTS = range(20_000, 32_000)
# Of the range that is kept for examples: nobody is there.
NODE_ADDRESS = "192.0.2.1"
# Of the Service `kubernetes`: the first of --service-cluster-ip-range.
SERVICE_ADDRESS = "10.96.0.1"


def free_port() -> int:
    """A port on loopback on which nobody listens."""
    for port in random.sample(PORTS, 200):
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
                return port
            except OSError:
                continue
    raise RuntimeError("found no free port on loopback")


class ControlPlane:
    """Starts on entry and stops on exit. `programs` are the paths that `binaries.ensure()` gives."""

    def __init__(
        self,
        programs: Mapping[str, Path],
        folder: Path,
        *,
        durable: bool = False,
        controllers: Sequence[str] = CONTROLLERS,
        apiserver_flags: Iterable[str] = (),
        etcd_flags: Iterable[str] = (),
        controller_flags: Iterable[str] = (),
        features: Iterable[str] = FEATURES,
        apis: Iterable[str] = APIS,
        real_nodes_at: str | None = None,
    ) -> None:
        """`durable` lets etcd sync every write to the disk, as a real one does: slower, and right for tests that pull
        the plug. No `controllers`, no controller manager. `real_nodes_at`: the address at which kubelets and their pods
        reach the API server; kwok plays no nodes, and service accounts are put into pods."""
        self.folder = folder
        self._programs = programs
        folder.mkdir(parents=True, exist_ok=True)
        self.authority = Authority(folder / "pki")
        self.token = secrets.token_hex(16)
        self._real_nodes_at = real_nodes_at
        self._address = real_nodes_at or LOOPBACK
        self.url = f"https://{self._address}:{free_port()}"
        self.api = Api(self.url, self.authority.certificate, self.token)
        self.kubeconfig = self.write_kubeconfig("admin", self.url, {"token": self.token})
        self._warden: Warden | None = None
        self._flags = (tuple(etcd_flags), tuple(apiserver_flags), tuple(controller_flags))
        self._features, self._apis = ",".join(features), ",".join(apis)
        self._durable = durable
        self._controllers = tuple(controllers)
        self.etcd: Part
        self.apiserver: Part
        self.kwok: Part
        self.controller_manager: Part | None = None
        self._launched: list[Part] = []

    # -- starting and stopping

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Everything answers when this returns; nothing is left behind if it raises."""
        atexit.register(self.stop)
        self._warden = Warden()
        try:
            self._assemble(self._warden)
            self.etcd.start()
            self.etcd.wait_ready()
            self.apiserver.start()
            self.apiserver.wait_ready()
            for part in self.parts[2:]:
                part.start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends every part; may be called again."""
        for part in reversed(self.parts):
            part.kill()  # nothing of it is needed any more, and SIGTERM takes an API server seconds
        if self._warden is not None:
            self._warden.dismiss()
            self._warden = None
        atexit.unregister(self.stop)

    @property
    def parts(self) -> list[Part]:
        """In the order in which they are started."""
        named = (getattr(self, name, None) for name in ("etcd", "apiserver", "controller_manager", "kwok"))
        return [*(part for part in named if part is not None), *self._launched]

    def story(self) -> str:
        """The end of every log, for a test that failed."""
        return "\n".join(f"--- {part.name} ({part.log})\n{part.tail(4_000)}" for part in self.parts)

    # -- using it

    def impatient_api(self, timeout_s: float) -> Api:
        """`api`, with a bound on how long it waits for an answer."""
        return Api(self.url, self.authority.certificate, self.token, timeout_s)

    def kubectl(
        self, *arguments: str, stdin: str = "", check: bool = True, timeout_s: float = 60, with_errors: bool = False
    ) -> str:
        """What `kubectl` prints, `with_errors` on stderr too; `check` makes a refusal an error of the test."""
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.folder)}
        done = subprocess.run(
            [str(self._programs["kubectl"]), *arguments],
            input=stdin,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        assert not check or done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout + (done.stderr if with_errors else "")

    def apply(self, *objects: Json) -> None:
        """`kubectl apply` of the objects, server-side."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(listed))

    def add_node(self, name: str, labels: Mapping[str, str] | None = None, **capacity: str) -> None:
        """A node that kwok plays, Ready and free of taints when this returns. Resources with a slash go into a dict:
        `add_node("n1", cpu="4", **{"nvidia.com/gpu": "2"})`."""
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", **capacity}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "status": {"capacity": amounts, "allocatable": amounts},
        }
        self.api.create("/api/v1/nodes", node)
        self.api.wait(f"/api/v1/nodes/{name}", _is_usable if self._controllers else _is_ready)

    def launch(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        ready: Callable[[], bool] = always,
        env: Mapping[str, str] | None = None,
        within_s: float = 60,
    ) -> Part:
        """Starts what is tested as one more part: with a log, ended with the others, told of in the story."""
        assert self._warden is not None, "the control plane does not run"
        part = Part(name, command, self.folder / f"{name}.log", self._warden, ready=ready, env=env)
        self._launched.append(part)
        part.start()
        part.wait_ready(within_s)
        return part

    def forget(self, part: Part) -> None:
        """Ends a part that was launched; it is in no story any more."""
        part.kill()
        self._launched.remove(part)

    def account_token(self, namespace: str, name: str) -> str:
        """A token of a service account that exists."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token: str = self.api.create(path, request)["status"]["token"]
        return token

    def kubeconfig_for(self, user: str, groups: Iterable[str] = ()) -> Path:
        """The credentials of somebody with no rights but those that RBAC gives; known by a client certificate."""
        pair = self.authority.user(user, groups)
        return self.write_kubeconfig(
            user.replace(":", "-"),
            self.url,
            {"client-certificate": str(pair.certificate), "client-key": str(pair.key)},
        )

    def write_kubeconfig(self, name: str, url: str, user: Mapping[str, str]) -> Path:
        """A kubeconfig for `url`, which may be a proxy's with a certificate of our authority."""
        path = self.folder / f"{name}.kubeconfig"
        config: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "e2e",
            "clusters": [
                {"name": "e2e", "cluster": {"server": url, "certificate-authority": str(self.authority.certificate)}}
            ],
            "users": [{"name": name, "user": dict(user)}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": name}}],
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1))
        return path

    # -- the parts

    def _assemble(self, warden: Warden) -> None:
        etcd_flags, apiserver_flags, controller_flags = self._flags
        etcd_url, peer_url = (f"http://{LOOPBACK}:{free_port()}" for _ in range(2))
        self.etcd = self._part(
            warden,
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={etcd_url}",
            f"--advertise-client-urls={etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            *(() if self._durable else ("--unsafe-no-fsync",)),
            *etcd_flags,
            ready=lambda: _listens(etcd_url),
        )
        self.apiserver = self._part(
            warden, "kube-apiserver", *self._apiserver_flags(etcd_url), *apiserver_flags, ready=self.api.is_up
        )
        if self._controllers:
            self.controller_manager = self._part(
                warden,
                "kube-controller-manager",
                f"--kubeconfig={self.kubeconfig}",
                f"--controllers={','.join(self._controllers)}",
                "--leader-elect=false",
                "--secure-port=0",
                "--node-monitor-period=1s",
                *controller_flags,
            )
        if self._real_nodes_at is None:
            self._play_nodes(warden)

    def _play_nodes(self, warden: Warden) -> None:
        config = self.folder / "kwok.yaml"
        stages.write(config)
        self.kwok = self._part(
            warden,
            "kwok",
            f"--kubeconfig={self.kubeconfig}",
            f"--config={config}",
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=0",  # a node that is made anew under its name is played at once
            "--cidr=10.128.0.1/9",
            f"--node-ip={NODE_ADDRESS}",
        )

    def _apiserver_flags(self, etcd_url: str) -> list[str]:
        tokens = self.folder / "pki" / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n')
        hosts = ["kubernetes", "kubernetes.default.svc"]
        pods = ["--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount"]
        if self._real_nodes_at is not None:
            hosts += [self._real_nodes_at, SERVICE_ADDRESS]
            pods = []
        served = self.authority.server("apiserver", hosts)
        accounts = self.authority.signing_key("service-accounts")
        return [
            f"--etcd-servers={etcd_url}",
            f"--bind-address={self._address}",
            f"--advertise-address={self._address}",
            f"--secure-port={self.url.rpartition(':')[2]}",
            f"--cert-dir={self.folder / 'pki'}",
            f"--tls-cert-file={served.certificate}",
            f"--tls-private-key-file={served.key}",
            f"--client-ca-file={self.authority.certificate}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={accounts.certificate}",
            f"--service-account-signing-key-file={accounts.key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            *pods,
            f"--feature-gates={self._features}",
            f"--runtime-config={self._apis}",
        ]

    def _part(self, warden: Warden, name: str, *flags: str, **more: Any) -> Part:
        """Programs that keep settings at home find a home in the folder."""
        home = {"HOME": str(self.folder), "KUBECONFIG": ""}
        return Part(name, [self._programs[name], *flags], self.folder / f"{name}.log", warden, env=home, **more)


def _listens(url: str) -> bool:
    host, _, port = url.rpartition("/")[2].partition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


def _is_ready(node: Json) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _is_usable(node: Json) -> bool:
    return _is_ready(node) and not node.get("spec", {}).get("taints")
