"""What the tests of the process runtime share: a cluster with one node in real time, and pods that run commands."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes.backoff import Backoff
from enbloc.cluster.embedded.nodes.runtime import LogQuery
from enbloc.cluster.embedded.process import ProcessNodes
from enbloc.units import SECOND
from support.embedded_store import node

PATIENCE_S = 20.0
QUICK = Backoff(first_ns=SECOND // 20, max_ns=SECOND // 5)


class World:
    """A store and its nodes on the real clock. A context manager: nothing runs after it."""

    def __init__(self, directory: Path | None = None, *, store: Store | None = None, **options: Any) -> None:
        if store is None:
            store = Store(time.time_ns, auto_namespaces=True)
            store.create(node())
        self.store = store
        self._news = threading.Event()
        self.nodes = ProcessNodes(store, directory, wake=self._news.set, **{"backoff": QUICK, **options})

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.nodes.close()

    def run(self, *pods: Obj) -> None:
        for made in pods:
            self.store.create(made)
            self.store.bind("default", made["metadata"]["name"], "", "n1")
        self.step()

    def step(self) -> None:
        self._news.clear()
        self.nodes.run(self.store.now())

    def until(self, holds: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
        """Runs until something holds; returns it."""
        deadline = time.monotonic() + patience_s
        while True:
            self.step()
            found = holds()
            if found:
                return found
            assert time.monotonic() < deadline, [pod.get("status") for pod in self.store.list("Pod")[0]]
            due = self.nodes.due()
            wait_s = 0.02 if due is None else (due - self.store.now()) / SECOND
            self._news.wait(min(max(wait_s, 0), 0.02))

    def get(self, name: str = "p") -> Obj:
        found = self.store.get("Pod", "default", name)
        assert found is not None
        return found

    def phase(self, name: str = "p") -> str:
        found = self.store.get("Pod", "default", name)
        phase: str = "gone" if found is None else found["status"]["phase"]
        return phase

    def ended(self, name: str = "p") -> Obj:
        self.until(lambda: self.phase(name) in ("Succeeded", "Failed"))
        return self.get(name)

    def running(self, name: str = "p") -> Obj:
        self.until(lambda: self.phase(name) == "Running")
        return self.get(name)

    def log(self, name: str = "p", container: str = "", **query: Any) -> str:
        reader = self.nodes.logs("default", name, container, LogQuery(**query))
        out = b""
        while data := reader.read():
            out += data
        reader.close()
        return out.decode()

    def said(self, words: str, name: str = "p", container: str = "") -> None:
        """Until the container has written that, and the status says that it was started."""

        def has_said() -> bool:
            try:
                reported = words in self.log(name, container)
            except Refused:
                return False
            statuses = self.get(name)["status"].get("containerStatuses") or ()
            return reported and any(status["state"].keys() & {"running", "terminated"} for status in statuses)

        self.until(has_said)

    def delete(self, name: str = "p", grace_s: int | None = None) -> None:
        self.store.delete(Ref("Pod", "default", name), grace_s=grace_s)
        self.step()


def python(code: str, name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "none", "command": [sys.executable, "-c", code], **more}


def shell(code: str, name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "none", "command": ["/bin/sh", "-c", code], **more}


def pod_of(*containers: dict[str, Any], name: str = "p", **spec: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": list(containers), **spec},
    }


def state_of(pod: Obj, container: str = "main") -> dict[str, Any]:
    for field in ("containerStatuses", "initContainerStatuses"):
        for status in pod["status"].get(field) or ():
            if status["name"] == container:
                found: dict[str, Any] = status
                return found
    raise AssertionError(f"no container {container}")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
