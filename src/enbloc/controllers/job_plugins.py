"""Job plugins (V3): what frameworks such as PyTorch, MPI or Ray expect in their pods."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import msgspec

from enbloc.api import volcano
from enbloc.api.meta import Obj
from enbloc.controllers.job_plugin import Flags, Plugin, PodPatch, env_name, host_of, hosts_of, owned
from enbloc.controllers.job_roles import JobPlan, Role

KeyPair = Callable[[str], tuple[str, str]]
"""A job's UID → its private key (PEM) and its public key (as in `authorized_keys`)."""


def plugins_of(plan: JobPlan, key_pair: KeyPair) -> dict[str, Plugin]:
    """The job's plugins, in the order in which they patch pods."""
    return {name: _plugin(name, Flags(arguments), key_pair) for name, arguments in plan.plugins.items()}


def _plugin(name: str, flags: Flags, key_pair: KeyPair) -> Plugin:
    match name:
        case "env":
            return Env()
        case "svc":
            return Svc(flags)
        case "ssh":
            return Ssh(flags, key_pair)
        case "pytorch":
            return Pytorch(flags)
        case "tensorflow":
            return Tensorflow(flags)
        case "mpi":
            return Mpi(flags)
        case "ray":
            return Ray(flags)
    raise AssertionError(f"no plugin {name!r} among those that exist")


class Env(Plugin):
    """`env`: the index of a pod within its role, as environment variables."""

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        patch.set_env("VK_TASK_INDEX", str(index))
        patch.set_env("VC_TASK_INDEX", str(index))


HOSTS_PATH: Final = "/etc/volcano"


def config_map_name(plan: JobPlan) -> str:
    return f"{plan.name}-svc"


def hosts_data(plan: JobPlan) -> dict[str, str]:
    """The hosts of every role, one a line for a hosts file and with commas for the environment."""
    data: dict[str, str] = {}
    for role in plan.roles:
        hosts = hosts_of(plan, role)
        data[f"{role.name}.host"] = "\n".join(hosts)
        data[f"VC_{env_name(role.name)}_HOSTS"] = ",".join(hosts)
        data[f"VC_{env_name(role.name)}_NUM"] = str(len(hosts))
    return data


class Svc(Plugin):
    """`svc`: stable host names: a headless Service, and the hosts of every role in a ConfigMap and the environment."""

    def __init__(self, flags: Flags) -> None:
        self._publish_not_ready = flags.on("publish-not-ready-addresses")
        self._network_policy = not flags.on("disable-network-policy")

    def objects(self, plan: JobPlan) -> list[Obj]:
        pods = {volcano.JOB_NAME: plan.name, volcano.JOB_NAMESPACE: plan.namespace}
        service: dict[str, Any] = {
            "clusterIP": "None",
            "selector": pods,
            "ports": [{"name": "placeholder-volcano", "port": 1, "protocol": "TCP", "targetPort": 1}],
        }
        if self._publish_not_ready:
            service["publishNotReadyAddresses"] = True
        made = [
            owned(plan, "v1", "ConfigMap", config_map_name(plan), data=hosts_data(plan)),
            owned(plan, "v1", "Service", plan.name, spec=service),
        ]
        if self._network_policy:
            policy = {
                "podSelector": {"matchLabels": pods},
                "ingress": [{"from": [{"podSelector": {"matchLabels": pods}}]}],
                "policyTypes": ["Ingress"],
            }
            made.append(owned(plan, "networking.k8s.io/v1", "NetworkPolicy", plan.name, spec=policy))
        return made

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        patch.fields["hostname"] = f"{plan.name}-{role.name}-{index}"
        patch.fields["subdomain"] = plan.name
        name = config_map_name(plan)
        for other in plan.roles:
            patch.set_env_from(f"VC_{env_name(other.name)}_HOSTS", name)
            patch.set_env_from(f"VC_{env_name(other.name)}_NUM", name)
        items = [{"key": f"{other.name}.host", "path": f"{other.name}.host"} for other in plan.roles]
        patch.volume({"name": name, "configMap": {"name": name, "items": items}}, HOSTS_PATH)


FILE_MODE: Final = 0o600
_FILES: Final = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")


def rsa_key_pair(uid: str) -> tuple[str, str]:
    """A real key pair, new at each call."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode() + "\n"


def simulated_key_pair(uid: str) -> tuple[str, str]:
    """A placeholder text, the same at each call: simulations need no key."""
    return f"SIMULATED, NOT A KEY: private half of job {uid}\n", f"SIMULATED, NOT A KEY: public half of job {uid}\n"


class Ssh(Plugin):
    """`ssh`: one key pair a job, so that its pods reach each other without a password.

    The caller chooses the key: a cluster gets a real one, a simulation a placeholder text.
    """

    def __init__(self, flags: Flags, key_pair: KeyPair) -> None:
        self._path = flags.text("ssh-key-file-path", "/root/.ssh")
        self._given = (flags.text("ssh-private-key", ""), flags.text("ssh-public-key", ""))
        self._key_pair = key_pair

    def objects(self, plan: JobPlan) -> list[Obj]:
        private, public = self._given if all(self._given) else self._key_pair(plan.uid)
        texts = (private, public, public, _client_config(plan))
        data = {name: base64.b64encode(text.encode()).decode() for name, text in zip(_FILES, texts, strict=True)}
        return [owned(plan, "v1", "Secret", f"{plan.name}-ssh", data=data)]

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        name = f"{plan.name}-ssh"
        items = [{"key": file, "path": file} for file in _FILES]
        secret = {"secretName": name, "items": items, "defaultMode": FILE_MODE}
        patch.volume({"name": name, "secret": secret}, self._path)


def _client_config(plan: JobPlan) -> str:
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for role in plan.roles:
        for index in range(role.replicas):
            lines += [f"Host {plan.name}-{role.name}-{index}", f"  HostName {host_of(plan, role, index)}"]
    return "\n".join(lines) + "\n"


class Pytorch(Plugin):
    """`pytorch`: the environment of torch.distributed: where the master is, how many there are, which one this is."""

    def __init__(self, flags: Flags) -> None:
        self._master = flags.text("master", "master")
        self._worker = flags.text("worker", "worker")
        self._port = flags.number("port", 23456)

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        if role.name not in (self._master, self._worker):
            return
        master, worker = plan.role(self._master), plan.role(self._worker)
        masters = master.replicas if master else 0
        first = master or worker
        if first is None:
            return
        patch.set_env("MASTER_ADDR", host_of(plan, first, 0))
        patch.set_env("MASTER_PORT", str(self._port))
        patch.set_env("WORLD_SIZE", str(masters + (worker.replicas if worker else 0)))
        patch.set_env("RANK", str(index if role.name == self._master else masters + index))
        patch.port("pytorchjob-port", self._port)


class Tensorflow(Plugin):
    """`tensorflow`: TF_CONFIG, which names every host of the cluster and this pod's place in it."""

    def __init__(self, flags: Flags) -> None:
        self._role_of = {part: flags.text(part, part) for part in ("ps", "worker", "chief", "evaluator")}
        self._port = flags.number("port", 2222)

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        part = next((part for part, name in self._role_of.items() if name == role.name), None)
        if part is None:
            return
        cluster = {
            part: [f"{host}:{self._port}" for host in hosts]
            for part, name in self._role_of.items()
            if (hosts := hosts_of(plan, plan.role(name)))
        }
        config = {"cluster": cluster, "task": {"type": part, "index": index}}
        patch.set_env("TF_CONFIG", msgspec.json.encode(config).decode())
        patch.port("tfjob-port", self._port)


class Mpi(Plugin):
    """`mpi`: the hosts of the workers, in the environment of the master; they are reached by ssh."""

    def __init__(self, flags: Flags) -> None:
        self._master = flags.text("master", "master")
        self._worker = flags.text("worker", "worker")
        self._port = flags.number("port", 22)

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        if role.name == self._master:
            patch.set_env("MPI_HOST", ",".join(hosts_of(plan, plan.role(self._worker))))
        if role.name in (self._master, self._worker):
            patch.port("mpijob-port", self._port)


class Ray(Plugin):
    """`ray`: a head that listens, workers that join it, and a Service in front of the head.

    A container that brings a command of its own keeps it; it then finds the head in RAY_ADDRESS.
    """

    def __init__(self, flags: Flags) -> None:
        self._head = flags.text("head", "head")
        self._worker = flags.text("worker", "worker")
        self._ports = {
            "gcs": flags.number("port", 6379),
            "dashboard": flags.number("dashboardPort", 8265),
            "client": flags.number("clientPort", 10001),
        }

    def objects(self, plan: JobPlan) -> list[Obj]:
        head = {volcano.JOB_NAME: plan.name, volcano.JOB_NAMESPACE: plan.namespace, volcano.TASK_SPEC: self._head}
        ports = [
            {"name": name, "port": number, "protocol": "TCP", "targetPort": number}
            for name, number in self._ports.items()
        ]
        return [owned(plan, "v1", "Service", f"{plan.name}-head-svc", spec={"selector": head, "ports": ports})]

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        head = plan.role(self._head)
        if head is None or role.name not in (self._head, self._worker):
            return
        address = f"{host_of(plan, head, 0)}:{self._ports['gcs']}"
        patch.set_env("RAY_ADDRESS", address)
        if role.name == self._head:
            for name, number in self._ports.items():
                patch.port(name, number)
            start = (
                f"ray start --head --block --dashboard-host=0.0.0.0 --port={self._ports['gcs']} "
                f"--dashboard-port={self._ports['dashboard']} --ray-client-server-port={self._ports['client']}"
            )
        else:
            start = f"ray start --block --address={address}"
        patch.command = ["sh", "-c", start]
