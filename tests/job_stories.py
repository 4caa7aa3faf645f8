"""Words for stories about Volcano Jobs: policies, Commands, and what became of a job."""

from __future__ import annotations

from typing import Any

from stories import Answer, Obj

BUS = "bus.volcano.sh/v1alpha1"


def on(action: str, *events: str, **fields: Any) -> Obj:
    """`on("AbortJob", "PodFailed")`; `exitCode=`, `timeout=` as the policy needs."""
    found: Obj = {"action": action, **fields}
    if events:
        found |= {"event": events[0]} if len(events) == 1 else {"events": list(events)}
    return found


def command(name: str, action: str, at: str, target: str = "j", **fields: Any) -> Obj:
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": target, **fields}
    notes = {"sim.enbloc.dev/at": at}
    metadata = {"name": name, "namespace": "default", "annotations": notes}
    return {"apiVersion": BUS, "kind": "Command", "metadata": metadata, "action": action, "target": owner}


def phase(told: Answer, name: str = "j") -> str:
    found: str = told.obj("Job", name)["status"]["state"]["phase"]
    return found


def phases(told: Answer, name: str = "j") -> list[tuple[float, str]]:
    return [(line["t"], line["to"]) for line in told.lines("phase", name, "Job")]


def made(told: Answer, pod: str) -> list[float]:
    """When a pod of this name was created."""
    return [line["t"] for line in told.lines("created", pod, "Pod")]


def warnings(told: Answer, kind: str = "") -> list[str]:
    return [line["message"] for line in told.lines("warning", kind=kind)]
