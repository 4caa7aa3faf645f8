"""A real node in namespaces of its own: containerd, kubelet and kube-proxy beside a real control plane.

The tests run in new mount, network and process namespaces (`make e2e-node`), so that nothing of this machine's network
is seen or changed, no mount is left, and the end of the tests is the end of every process and container. The node's
address is that of the bridge to which its pods are connected. The kernel's settings that a kubelet changes, and the
groups of processes (cgroups) that it makes, are this machine's: both are put back at the end.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from e2e.api import Json
from e2e.control_plane import CONTROLLERS, ControlPlane, free_port
from node.images import PAUSE

ADDRESS = "10.244.0.1"
"""Of the bridge, inside the namespaces of the tests: no other machine has it here."""
SUBNET = "10.244.0.0/24"
BRIDGE = "enbloc0"
NAME = "real"
PLUGINS = Path("/usr/lib/cni")
CGROUPS = Path("/sys/fs/cgroup")
WEIGHT = 16 * 1024
"""Of all pods together, in shares of the CPU: that of sixteen processes."""
# What a kubelet sets for the whole kernel (its own defaults for them).
KERNEL_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
MORE_CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "endpointslice-controller",
    "root-ca-certificate-publisher-controller",
)


def in_own_namespaces() -> bool:
    """Are these processes the ones that `make e2e-node` put apart? There is then no interface but loopback, or ours."""
    return os.environ.get("ENBLOC_NODE_NAMESPACES") == "1" and {
        each.partition(":")[0].strip() for each in Path("/proc/net/dev").read_text().splitlines()[2:]
    } <= {"lo", BRIDGE, "sit0", "ip6tnl0", "tunl0", "erspan0", "gre0", "gretap0", "ip_vti0", "ip6_vti0"}


class Machine:
    """The node on its control plane. `programs` has all of `node.programs` and of `e2e.binaries`."""

    def __init__(self, programs: Mapping[str, Path], folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.programs = programs
        self._cgroup = f"enbloc-node-{os.getpid()}"
        self.plane = ControlPlane(
            programs,
            folder / "plane",
            real_nodes_at=ADDRESS,
            controllers=(*CONTROLLERS, *MORE_CONTROLLERS),
            apiserver_flags=self._apiserver_flags,
            controller_flags=(f"--root-ca-file={folder / 'plane' / 'pki' / 'ca.crt'}",),
        )
        self.plane.authority.user("apiserver", ["system:masters"])  # as which it calls the kubelet
        self.socket = folder / "containerd.sock"

    @contextmanager
    def running(self) -> Iterator[Machine]:
        before = {name: Path("/proc/sys", name).read_text() for name in KERNEL_SETTINGS}
        _hide_what_is_shared()
        _make_network()
        try:
            with self.plane:
                self._start_runtime()
                self._start_node()
                yield self
        finally:
            for name, value in before.items():
                Path("/proc/sys", name).write_text(value)
            self._remove_cgroups()

    def import_image(self, archive: Path) -> None:
        """Side-loads an image, as there is no registry."""
        self.ctr("images", "import", str(archive))

    def ctr(self, *words: str) -> str:
        command = ["ctr", "--address", str(self.socket), "--namespace", "k8s.io", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"ctr {' '.join(words)}: {done.stderr}{done.stdout}"
        return done.stdout

    # -- the parts

    @property
    def _apiserver_flags(self) -> list[str]:
        pki = self.folder / "plane" / "pki"
        return [
            "--authorization-mode=Node",
            "--enable-admission-plugins=NodeRestriction",
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-client-certificate={pki / 'user-apiserver.crt'}",
            f"--kubelet-client-key={pki / 'user-apiserver.key'}",
            f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        ]

    def _start_runtime(self) -> None:
        config = self.folder / "containerd.toml"
        cni = self.folder / "cni"
        cni.mkdir()
        (cni / "10-bridge.conflist").write_text(json.dumps(_bridge_network()))
        config.write_text(
            f"""version = 2
root = "{self.folder / "containerd"}"
state = "{self.folder / "containerd-state"}"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{self.socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true  # root here may not lower it: "write oom_score_adj: Permission denied"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{PLUGINS}"
    conf_dir = "{cni}"
"""
        )
        self.plane.launch("containerd", ["containerd", "--config", config], ready=self._runtime_answers)

    def _runtime_answers(self) -> bool:
        command = ["ctr", "--address", str(self.socket), "--connect-timeout", "1s", "version"]
        return self.socket.exists() and subprocess.run(command, capture_output=True, timeout=30).returncode == 0

    def _start_node(self) -> None:
        plane = self.plane
        kubelet = self.programs["kubelet"]
        for controller in CGROUPS.iterdir():
            if (controller / "cgroup.procs").exists():
                (controller / self._cgroup).mkdir(exist_ok=True)
        # A group has the weight of one process, however many are in it: on a busy machine no pod would ever start.
        with suppress(OSError):
            (CGROUPS / "cpu" / self._cgroup / "cpu.shares").write_text(str(WEIGHT))
        config = self.folder / "kubelet.yaml"
        config.write_text(yaml.safe_dump(self._kubelet_config()))
        account = plane.kubeconfig_for(f"system:node:{NAME}", ["system:nodes"])
        words: list[str | Path] = [
            kubelet,
            f"--config={config}",
            f"--kubeconfig={account}",
            f"--hostname-override={NAME}",
            f"--node-ip={ADDRESS}",
            f"--root-dir={self.folder / 'kubelet'}",
        ]
        plane.launch("kubelet", words)
        scheduler = plane.kubeconfig_for("system:kube-scheduler")
        plane.launch(
            "kube-scheduler",
            [
                self.programs["kube-scheduler"],
                f"--kubeconfig={scheduler}",
                "--leader-elect=false",
                "--secure-port=0",
            ],
        )
        proxy = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clientConnection": {"kubeconfig": str(plane.kubeconfig_for("system:kube-proxy"))},
            "hostnameOverride": NAME,
            "healthzBindAddress": f"127.0.0.1:{free_port()}",
            "metricsBindAddress": f"127.0.0.1:{free_port()}",
            "conntrack": {"maxPerCore": 0},  # a setting of the whole kernel's
        }
        written = self.folder / "kube-proxy.yaml"
        written.write_text(yaml.safe_dump(proxy))
        plane.launch("kube-proxy", [self.programs["kube-proxy"], f"--config={written}"])
        plane.api.wait(f"/api/v1/nodes/{NAME}", _is_usable, 180)

    def _kubelet_config(self) -> Json:
        served = self.plane.authority.server("kubelet", [ADDRESS, NAME])
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": ADDRESS,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self.plane.authority.certificate)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(served.certificate),
            "tlsPrivateKeyFile": str(served.key),
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._cgroup}",
            "failCgroupV1": False,  # this kernel has no other
            "failSwapOn": False,
            "healthzPort": free_port(),
            "podLogsDir": str(self.folder / "logs"),
            "volumePluginDir": str(self.folder / "volume-plugins"),
            "staticPodPath": "",
            # Room on the disk of a developer's machine is no matter of these tests.
            "evictionHard": {"memory.available": "100Mi"},
            "imageGCHighThresholdPercent": 100,
            "registerNode": True,
        }

    def _remove_cgroups(self) -> None:
        for controller in CGROUPS.iterdir():
            for folder, _, _ in os.walk(controller / self._cgroup, topdown=False):
                with suppress(OSError):  # a process that just ended may still be counted: an empty folder stays
                    os.rmdir(folder)


def _is_usable(node: Json) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not node.get("spec", {}).get("taints")


def _make_network() -> None:
    for words in (
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"addr add {ADDRESS}/24 dev {BRIDGE}",
        f"link set {BRIDGE} up",
        f"route add default dev {BRIDGE}",
    ):
        subprocess.run(["ip", *words.split()], check=True, timeout=30)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    # Else the answer of a pod that a Service stands for would not pass the Service on its way back over one bridge.
    Path("/proc/sys/net/bridge/bridge-nf-call-iptables").write_text("1")


def _hide_what_is_shared() -> None:
    """Folders in which containerd, its plugins, kube-proxy and the kubelet keep files under fixed names (sockets of
    device plugins, links to logs), and the name servers, which nothing here may ask. What is written goes with the
    namespace."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True, timeout=30)
    for shared in ("/var/lib", "/var/log"):
        layers = {"lowerdir": Path(shared)}
        for name in ("upperdir", "workdir"):
            layers[name] = Path("/run/hidden", shared.removeprefix("/"), name)
            layers[name].mkdir(parents=True)
        options = ",".join(f"{name}={path}" for name, path in layers.items())
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, shared], check=True, timeout=30)
    empty = Path("/run/resolv.conf")
    empty.touch()
    subprocess.run(["mount", "--bind", str(empty), "/etc/resolv.conf"], check=True, timeout=30)


def _bridge_network() -> Json:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": SUBNET, "rangeStart": "10.244.0.10"}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "hairpinMode": True, "ipam": addresses}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
