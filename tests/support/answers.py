"""What `enbloc sim -o json` printed, and questions about it; what conditions of an object say.

One reader for the whole suite. It knows the JSON and the API, and nothing of what is inside Enbloc.
"""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]


class Answer:
    """A finished run: its timeline, the objects at its end, the gangs that are pending."""

    def __init__(self, data: Obj) -> None:
        self.data = data
        self.timeline: list[Obj] = data["timeline"]
        self.objects: list[Obj] = data["objects"]

    # ---- the timeline

    def lines(self, what: str | None = None, name: str = "", kind: str = "") -> list[Obj]:
        return [
            line
            for line in self.timeline
            if what in (None, line["what"]) and name in ("", line["name"]) and kind in ("", line["kind"])
        ]

    def bindings(self, prefix: str = "", *, by: float | None = None) -> list[Obj]:
        """The lines that bind pods, in their order, perhaps only up to some time."""
        return [
            line for line in self.lines("bound") if line["name"].startswith(prefix) and (by is None or line["t"] <= by)
        ]

    def bound(self, prefix: str = "", *, by: float | None = None) -> dict[str, tuple[float, str]]:
        """When and where each pod was bound last, perhaps only up to some time."""
        return {line["name"]: (line["t"], line["node"]) for line in self.bindings(prefix, by=by)}

    def first_bound(self, prefix: str = "", *, by: float | None = None) -> dict[str, float]:
        """When each pod, of whatever UID, was bound for the first time."""
        found: dict[str, float] = {}
        for line in self.bindings(prefix, by=by):
            found.setdefault(line["name"], line["t"])
        return found

    def nodes(self, prefix: str = "") -> dict[str, str]:
        """Where each pod was bound last."""
        return {name: where for name, (_, where) in self.bound(prefix).items()}

    def times(self, prefix: str = "") -> list[float]:
        """When pods were bound, one entry a binding."""
        return [line["t"] for line in self.bindings(prefix)]

    def order(self, prefix: str = "") -> list[str]:
        """Pods in the order in which they were bound."""
        return [line["name"] for line in self.bindings(prefix)]

    def at(self, name: str, what: str = "bound") -> float | None:
        """When something happened to an object for the first time; None if it did not."""
        found = self.lines(what, name)
        return found[0]["t"] if found else None

    def evicted(self, prefix: str = "") -> list[tuple[float, str]]:
        return [(line["t"], line["name"]) for line in self.lines("evicted") if line["name"].startswith(prefix)]

    def created(self, pod: str) -> list[float]:
        """When a pod of this name was created."""
        return [line["t"] for line in self.lines("created", pod, "Pod")]

    def phases(self, job: str) -> list[tuple[float, str]]:
        return [(line["t"], line["to"]) for line in self.lines("phase", job, "Job")]

    def warnings(self, kind: str = "") -> list[str]:
        return [line["message"] for line in self.lines("warning", kind=kind)]

    def rejected(self, name: str) -> str:
        """Why an object was rejected."""
        lines = self.lines("rejected", name)
        assert lines, f"{name} was not rejected: {self.timeline}"
        message: str = lines[0]["message"]
        return message

    # ---- the objects at the end

    def obj(self, kind: str, name: str, namespace: str = "default") -> Obj:
        for one in self.objects:
            metadata = one["metadata"]
            if one["kind"] == kind and metadata["name"] == name and metadata.get("namespace", namespace) == namespace:
                return one
        raise AssertionError(f"there is no {kind} {namespace}/{name} at the end")

    def all(self, kind: str, prefix: str = "") -> list[Obj]:
        return [one for one in self.objects if one["kind"] == kind and one["metadata"]["name"].startswith(prefix)]

    def pods(self, prefix: str = "") -> list[str]:
        return sorted(one["metadata"]["name"] for one in self.all("Pod", prefix))

    def phase(self, job: str) -> str:
        found: str = self.obj("Job", job)["status"]["state"]["phase"]
        return found

    def group_of(self, job: str) -> Obj:
        """The PodGroup of a job."""
        return self.obj("PodGroup", f"{job}-{self.obj('Job', job)['metadata']['uid']}")

    # ---- gangs that are pending at the end

    def waiting(self) -> list[str]:
        return [one["gang"] for one in self.data["pending"]]

    def waits(self, gang: str) -> bool:
        return gang in self.waiting()

    def pending(self, gang: str) -> Obj:
        """The entry of a gang that waits."""
        for one in self.data["pending"]:
            if one["gang"] == gang:
                found: Obj = one
                return found
        raise AssertionError(f"{gang} is not pending; pending: {self.waiting()}")

    def why(self, gang: str) -> str:
        """Why a gang waits; an empty text if it does not."""
        return str(self.pending(gang)["message"]) if self.waits(gang) else ""


def condition(obj: Obj, kind: str) -> Obj | None:
    found = [one for one in (obj.get("status") or {}).get("conditions") or () if one["type"] == kind]
    assert len(found) < 2, f"two conditions {kind}: {found}"
    return found[0] if found else None


def waits_because(obj: Obj) -> str:
    """Why a pod or a PodGroup waits by its own condition; an empty text if it does not."""
    kind, waits = ("PodScheduled", "False") if obj["kind"] == "Pod" else ("Unschedulable", "True")
    found = condition(obj, kind)
    return found["message"] if found is not None and found["status"] == waits else ""
