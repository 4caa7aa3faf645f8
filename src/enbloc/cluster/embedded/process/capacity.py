"""This machine's capacity as a Node object."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from enbloc.api.meta import Obj

PODS: Final = 110


def local_node(name: str, parts: int = 1) -> Obj:
    """A node with this machine's CPUs and memory, or with 1/`parts` of them. It has no conditions, which counts as
    Ready."""
    room = {
        "cpu": f"{cpus() * 1000 // parts}m",
        "memory": f"{memory_bytes() // parts // 1024}Ki",
        "ephemeral-storage": f"{shutil.disk_usage('/').total // parts // 1024}Ki",
        "pods": str(PODS),
    }
    system = os.uname()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(system.machine, system.machine)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": system.sysname.lower(),
        "kubernetes.io/arch": machine,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": room, "allocatable": room},
    }


def cpus() -> int:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """The machine's memory, or our control group's limit if that is less."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [installed]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits)
