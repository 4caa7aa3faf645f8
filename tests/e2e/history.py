"""All that happens to pods, written down as a watch tells it, and what may be read off it afterwards.

A thread of its own lists and watches. While nobody answers it asks again; what was missed shows as a difference.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NamedTuple
from urllib.parse import urlsplit

from e2e.api import Json
from e2e.control_plane import ControlPlane

PATH = "/api/v1/pods"
RUNNING = "Running"
ENDED = ("Succeeded", "Failed")


class Event(NamedTuple):
    at_s: float
    type: str
    pod: Json

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])


class Bound(NamedTuple):
    """A pod was seen with a node for the first time."""

    at_s: float
    namespace: str
    name: str
    uid: str
    node: str


class History:
    """A context manager; `events` grows while it is open."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.events: list[Event] = []
        self.bound: list[Bound] = []
        self.started: list[str] = []
        """Names of pods that ran, or have ended without being seen to."""
        self.ended: list[str] = []
        """Names of pods that succeeded or failed."""
        self.changed = threading.Condition()
        self._pods: dict[str, Json] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)
        self._listed = threading.Event()

    def __enter__(self) -> History:
        self._thread.start()
        assert self._listed.wait(20)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(10)

    @property
    def pods(self) -> dict[str, Json]:
        """By UID: those that exist, as they were told last."""
        with self.changed:
            return dict(self._pods)

    def wait_bound(self, count: int, within_s: float) -> bool:
        """Until so many pods were bound, in all."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.bound) >= count, within_s)

    # -- what may be read off it

    def overfull(self) -> dict[str, float]:
        """By node: for how many seconds more CPUs were taken there than it has. A pod that is deleted takes them until
        it is gone."""
        has = {
            node["metadata"]["name"]: cpu_milli(node["status"]["allocatable"]["cpu"])
            for node in self._plane.api.items("/api/v1/nodes")
        }
        taken: dict[str, dict[str, int]] = defaultdict(dict)
        since: dict[str, float] = {}
        found: dict[str, float] = defaultdict(float)
        for event in list(self.events):
            node = event.pod["spec"].get("nodeName")
            if not node or node not in has:
                continue
            if event.type == "DELETED" or event.pod["status"].get("phase") in ENDED:
                taken[node].pop(event.uid, None)
            else:
                taken[node][event.uid] = sum(
                    cpu_milli(one.get("resources", {}).get("requests", {}).get("cpu", "0"))
                    for one in event.pod["spec"]["containers"]
                )
            if sum(taken[node].values()) > has[node]:
                since.setdefault(node, event.at_s)
            elif node in since:
                found[node] += event.at_s - since.pop(node)
        for node, at_s in since.items():
            found[node] += time.monotonic() - at_s
        return dict(found)

    # -- inside

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except (OSError, ValueError, http.client.HTTPException):
                self._stop.wait(0.05)

    @contextmanager
    def _open(self, path: str, timeout_s: float) -> Iterator[http.client.HTTPResponse]:
        parts = urlsplit(self._plane.url)
        assert parts.hostname is not None
        context = ssl.create_default_context(cafile=str(self._plane.authority.certificate))
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=context)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._plane.token}"})
            with connection.getresponse() as response:
                if response.status != 200:
                    raise ValueError(response.status)
                yield response
        finally:
            connection.close()

    def _follow(self) -> None:
        with self._open(PATH, 10) as response:
            listed = json.loads(response.read())
        now = {pod["metadata"]["uid"]: pod for pod in listed["items"]}
        for uid in [uid for uid in self._pods if uid not in now]:
            self._tell("DELETED", self._pods[uid])
        for uid, pod in now.items():
            known = self._pods.get(uid)
            if known is None or known["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]:
                self._tell("MODIFIED" if known else "ADDED", pod)
        self._listed.set()
        version = listed["metadata"]["resourceVersion"]
        # A short time-out: a server that was killed and one that hangs are to be noticed, and so is the end.
        with self._open(f"{PATH}?watch=true&resourceVersion={version}&timeoutSeconds=2", 5) as response:
            while not self._stop.is_set():
                line = response.readline()
                if not line.endswith(b"\n"):
                    return
                reported = json.loads(line)
                if reported["type"] == "ERROR":
                    return
                self._tell(reported["type"], reported["object"])

    def _tell(self, type_: str, pod: Json) -> None:
        uid, now = pod["metadata"]["uid"], time.monotonic()
        with self.changed:
            before = self._pods.get(uid)
            node = pod["spec"].get("nodeName")
            if node and type_ != "DELETED" and not (before and before["spec"].get("nodeName")):
                self.bound.append(Bound(now, pod["metadata"]["namespace"], pod["metadata"]["name"], uid, node))
            phase, was = pod["status"].get("phase"), before["status"].get("phase") if before else None
            if phase in (RUNNING, *ENDED) and was not in (RUNNING, *ENDED):
                self.started.append(pod["metadata"]["name"])
            if phase in ENDED and was not in ENDED:
                self.ended.append(pod["metadata"]["name"])
            if type_ == "DELETED":
                self._pods.pop(uid, None)
            else:
                self._pods[uid] = pod
            self.events.append(Event(now, type_, pod))
            self.changed.notify_all()


def cpu_milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)
