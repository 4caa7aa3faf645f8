"""G6: host ports, as kube-scheduler defines them: no two pods on a node use the same protocol, port and address. An
address that is not given is every address."""

from __future__ import annotations

from typing import Any

World = dict[str, Any]
Task = dict[str, Any]
Port = tuple[str, int, str]

ANY_ADDRESS = "0.0.0.0"


def ports_of(task: Task) -> list[Port]:
    """Those of its containers and sidecars; other init containers have ended when these run."""
    spec = task["pod"]["spec"]
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    return [
        (port.get("protocol") or "TCP", port["hostPort"], port.get("hostIP") or ANY_ADDRESS)
        for container in [*spec["containers"], *sidecars]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def conflict(one: Port, other: Port) -> bool:
    return one[:2] == other[:2] and (one[2] == other[2] or ANY_ADDRESS in (one[2], other[2]))


def g6_ports_are_free(world: World, trial: dict[str, Any], task: Task, node: str) -> bool:
    """Whether no pod there uses a port that the task asks for."""
    from oracle import affinity

    wanted = ports_of(task)
    if not wanted:
        return True
    there = [other for other, name in affinity.assigned(world, trial) if name == node and other["uid"] != task["uid"]]
    return not any(conflict(one, used) for one in wanted for other in there for used in ports_of(other))
