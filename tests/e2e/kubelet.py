"""What a kubelet does before it starts a pod, and kwok does not: it looks whether there is room, and refuses if not.

Whoever comes first has the room. Give pods a start delay, so that kwok has not started them when they are refused.
"""

from __future__ import annotations

import threading
from types import TracebackType

from e2e.api import MERGE_PATCH, Json
from e2e.control_plane import ControlPlane
from e2e.history import ENDED, History, cpu_milli


class Kubelets:
    """The kubelets of all nodes. A context manager; goes by the pods that a history tells of."""

    def __init__(self, plane: ControlPlane, history: History) -> None:
        self._plane = plane
        self._history = history
        self.refused: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelets", daemon=True)

    def __enter__(self) -> Kubelets:
        self._room = {
            node["metadata"]["name"]: cpu_milli(node["status"]["allocatable"]["cpu"])
            for node in self._plane.api.items("/api/v1/nodes")
        }
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        with self._history.changed:
            self._history.changed.notify_all()
        self._thread.join(10)

    def _run(self) -> None:
        reported = 0
        admitted: dict[str, tuple[str, int]] = {}
        while not self._stop.is_set():
            with self._history.changed:
                if len(self._history.events) == reported:
                    self._history.changed.wait(1)
                news = self._history.events[reported:]
            reported += len(news)
            for event in news:
                node = event.pod["spec"].get("nodeName")
                if event.type == "DELETED" or event.pod["status"].get("phase") in ENDED:
                    admitted.pop(event.uid, None)
                elif node and event.uid not in admitted:
                    taken = sum(cpu for other, cpu in admitted.values() if other == node)
                    wanted = cpu_milli_of(event.pod)
                    if taken + wanted <= self._room.get(node, 0):
                        admitted[event.uid] = (node, wanted)
                    else:
                        self._refuse(event.pod)

    def _refuse(self, pod: Json) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        status = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}
        patch = {"metadata": {"uid": metadata["uid"]}, "status": {**status, "containerStatuses": None}}
        if self._plane.api.request("PATCH", path, patch, MERGE_PATCH).status == 200:
            self.refused.append(metadata["name"])


def cpu_milli_of(pod: Json) -> int:
    requests = (one.get("resources", {}).get("requests", {}) for one in pod["spec"]["containers"])
    return sum(cpu_milli(one.get("cpu", "0")) for one in requests)
