"""Plays a scenario file, unchanged, on a real API server, and writes down who was bound and who was not.

Time is scaled: a scenario of a minute takes some seconds. What happens at an instant waits, besides, until all that
came before it in the simulation has come about here too, so that a slow machine does not change the story. What comes
at the start is there before the scheduler is, as in a simulation.

A pod that a controller makes goes by its role: many are made at a time, and which of a role's equal pods is there
first, and is bound first, is chance.

What a simulation is lenient about is made good: containers get an image, nodes a capacity, objects the version that is
served, and owners the UID that the API server gave them. A node that fails loses its pods at once; Kubernetes would
take five minutes.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from e2e.api import MERGE_PATCH, Json
from e2e.control_plane import ControlPlane
from e2e.history import ENDED, History
from e2e.parts import Part
from enbloc.api.kinds import KINDS, kind_id
from enbloc.api.meta import Ref
from enbloc.scenario.scenario import PREFIX, Arrival, Scenario, ScenarioEvent, Step
from enbloc.sim.result import Result
from enbloc.units import SECOND, format_duration, parse_duration

DURATIONS = tuple(PREFIX + key for key in ("run-time", "start-delay", "stop-delay"))
CATCH_UP_S = 40.0
REST_S = 1.0
"""So long nobody else may be bound after the last one."""
LEFT_ALONE = ("root", "default")


class Outcome(NamedTuple):
    """What became of a scenario."""

    bound: list[list[tuple[str, int]]]
    """Who was bound, instant by instant: the pod (see `Names`), and for which time one of that name was bound."""
    waiting: list[str]
    """Pods without a node at the end."""


class Names:
    """By what name to call a pod: its own if the scenario gives it one, its role's if a controller does."""

    def __init__(self, scenario: Scenario) -> None:
        arrived = [one.obj for one in scenario.events if isinstance(one, Arrival)]
        self._given = {obj["metadata"].get("name") for obj in arrived if kind_id(obj) == "Pod"}

    def of(self, pod: str) -> str:
        role, _, index = pod.rpartition("-")
        return pod if pod in self._given or not index.isdigit() else role

    def count(self, pods: Iterable[str]) -> Counter[str]:
        return Counter(map(self.of, pods))

    def numbered(self, pods: Iterable[str]) -> Iterator[tuple[str, int]]:
        times: Counter[str] = Counter()
        for name in map(self.of, pods):
            times[name] += 1
            yield name, times[name]

    def waiting(self, pods: list[Json]) -> list[str]:
        """Those without a node."""
        return sorted(
            self.of(pod["metadata"]["name"])
            for pod in pods
            if not pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") not in ENDED
        )


def expected(scenario: Scenario, result: Result) -> Outcome:
    """What a simulation says."""
    names = Names(scenario)
    bindings = [line for line in result.timeline if line.what == "bound"]
    instants: dict[float, list[tuple[str, int]]] = {}
    for line, one in zip(bindings, names.numbered(line.name for line in bindings), strict=True):
        instants.setdefault(line.t, []).append(one)
    pods = [obj for obj in result.objects if kind_id(obj) == "Pod"]
    return Outcome([sorted(together) for together in instants.values()], names.waiting(pods))


class Player:
    """Plays one scenario. `scheduler` is started when what comes first is there, and stopped at the end."""

    def __init__(self, plane: ControlPlane, history: History, scheduler: Part, scenario: Scenario, result: Result):
        self._plane = plane
        self._history = history
        self._scheduler = scheduler
        self._scenario = scenario
        self._result = result
        self._names = Names(scenario)
        self._wanted = expected(scenario, result)
        self._before = len(history.bound)
        self._started_before = len(history.started)
        self._ended_before = len(history.ended)
        last = max((line.t for line in result.timeline if line.what == "bound"), default=0.0)
        last = max([last, *(event.at_ns / SECOND for event in scenario.events)])
        self._scale = min(0.3, max(0.08, 6 / last if last else 0.1))
        self._uids: dict[str, str] = {}
        self._made: list[str] = []
        """Paths of what is not in the default namespace, to be deleted."""

    def play(self) -> Outcome:
        coming = self._events()
        first = [what for at, what in coming if at == 0]
        for what in first:
            what()
        self._wait_for_nodes()
        self._scheduler.start()
        self._scheduler.wait_ready()
        began = time.monotonic()
        for at, together in groupby(coming[len(first) :], key=lambda one: one[0]):
            time.sleep(max(0.0, began + at / SECOND * self._scale - time.monotonic()))
            self._catch_up(at / SECOND)
            self._at_once([what for _, what in together])
        self._catch_up(float("inf"))
        until = time.monotonic() + CATCH_UP_S
        while self._waiting() != self._wanted.waiting and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(REST_S)
        return self._outcome()

    def _at_once(self, together: list[Callable[[], None]]) -> None:
        """What comes at one instant is seen at one instant: the scheduler stands still meanwhile."""
        still = len(together) > 1
        if still:
            self._scheduler.pause()
        for what in together:
            what()
        if still:
            self._wait_for_nodes()
            self._scheduler.resume()

    def _wait_for_nodes(self) -> None:
        for node in self._plane.api.items("/api/v1/nodes"):
            self._plane.api.wait(f"/api/v1/nodes/{node['metadata']['name']}", _has_come_up)

    def _waiting(self) -> list[str]:
        return self._names.waiting(self._plane.api.items("/api/v1/pods"))

    def _events(self) -> list[tuple[int, Callable[[], None]]]:
        found: list[tuple[int, int, Callable[[], None]]] = []

        def add(at: int, order: int, what: Callable[[Any], None], of: object) -> None:
            found.append((at, order, lambda: what(of)))

        for event in self._scenario.events:
            add(event.at_ns, event.order, self._happen, event)
            if isinstance(event, Arrival) and event.delete_at_ns is not None:
                add(event.delete_at_ns, event.order, self._depart, event.obj)
        return [(at, what) for at, _, what in sorted(found, key=lambda one: one[:2])]

    # -- what has come about

    def _catch_up(self, t: float) -> None:
        """Until all were bound, run and have ended who did before `t` in the simulation. Ends after the last Binding
        are not waited for, nor who runs then."""
        last = max((line.t for line in self._result.timeline if line.what == "bound"), default=0.0)
        lines = [line for line in self._result.timeline if line.t < t]
        count, history = self._names.count, self._history
        bound = count(line.name for line in lines if line.what == "bound")
        started = count(line.name for line in lines if line.what == "running" and line.t < last)
        ended = count(line.name for line in lines if line.what in ("succeeded", "failed") and line.t < last)

        def is_so() -> bool:
            return (
                count(one.name for one in history.bound[self._before :]) >= bound
                and count(history.started[self._started_before :]) >= started
                and count(history.ended[self._ended_before :]) >= ended
            )

        with self._history.changed:
            self._history.changed.wait_for(is_so, CATCH_UP_S)

    def _outcome(self) -> Outcome:
        """Bindings in the simulation's instants, as far as they came in that order."""
        order = list(self._names.numbered(one.name for one in self._history.bound[self._before :]))
        found, at = [], 0
        for instant in self._wanted.bound:
            found.append(sorted(order[at : at + len(instant)]))
            at += len(instant)
        if order[at:]:
            found.append(sorted(order[at:]))
        return Outcome(found, self._waiting())

    # -- what happens

    def _happen(self, event: ScenarioEvent) -> None:
        if isinstance(event, Arrival):
            self._arrive(event.obj)
        else:
            self._perform(event)

    def _arrive(self, obj: Json) -> None:
        obj = json.loads(_replaced(json.dumps(self._made_good(obj)), self._uids))
        reported = obj["metadata"].pop("uid", None)
        path = self._path(Ref(kind_id(obj), obj["metadata"].get("namespace", ""), ""))
        until = time.monotonic() + 20
        while (answer := self._plane.api.request("POST", path, obj)).status in (404, 500):  # not served yet
            assert time.monotonic() < until, answer
            time.sleep(0.1)
        made = answer.must()
        if reported:
            self._uids[reported] = made["metadata"]["uid"]
        self._made.append(f"{path}/{made['metadata']['name']}")

    def _depart(self, obj: Json) -> None:
        self._delete(self._path(Ref(kind_id(obj), obj["metadata"].get("namespace", ""), obj["metadata"]["name"])))

    def _delete(self, path: str) -> None:
        self._plane.api.request("DELETE", path, {"propagationPolicy": "Background"})

    def _perform(self, step: Step) -> None:
        if step.target is None:
            self._scheduler.kill()
            self._scheduler.start()
            self._scheduler.wait_ready()
            return
        api, path = self._plane.api, self._path(step.target)
        match step.do:
            case "patch":
                for part, where in (
                    ({key: value for key, value in step.patch.items() if key != "status"}, path),
                    ({key: value for key, value in step.patch.items() if key == "status"}, f"{path}/status"),
                ):
                    if part:
                        api.request("PATCH", where, part, MERGE_PATCH).must()
            case "delete":
                self._delete(path)
            case "fail-pod":
                notes = {PREFIX + "run-time": "0s", PREFIX + "exit-code": str(step.exit_code)}
                api.patch(path, {"metadata": {"annotations": notes}})
            case "fail-node":
                self._set_ready(path, "False")
                for pod in api.items("/api/v1/pods"):
                    if pod["spec"].get("nodeName") == step.target.name:
                        metadata = pod["metadata"]
                        self._delete(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}")
            case "recover-node":
                self._set_ready(path, "True")

    def _set_ready(self, path: str, status: str) -> None:
        conditions = self._plane.api.get(path).must()["status"]["conditions"]
        for one in conditions:
            if one["type"] == "Ready":
                one["status"] = status
        self._plane.api.patch(f"{path}/status", {"status": {"conditions": conditions}})

    def _made_good(self, obj: Json) -> Json:
        obj = _scaled(obj, self._scale)
        if kind_id(obj) == "Node":
            obj["status"] = {"capacity": obj["status"]["allocatable"], **obj["status"]}
        group, _, version = obj["apiVersion"].rpartition("/")
        if group:
            served = self._plane.api.get(f"/apis/{group}").body.get("versions") or []
            if served and version not in [one["version"] for one in served]:
                obj["apiVersion"] = served[0]["groupVersion"]
            if group == "scheduling.k8s.io" and obj["kind"] == "PodGroup":
                obj["apiVersion"] = _serving(self._plane, group, "podgroups") or obj["apiVersion"]
        return obj

    def _path(self, ref: Ref) -> str:
        kind, _, group = ref.kind.partition(".")
        known = KINDS.get(ref.kind)
        plural = known.plural if known is not None else kind.lower() + "s"
        root = "/api/v1"
        if group:
            found = _serving(self._plane, group, plural)
            root = f"/apis/{found or (known.api_version if known is not None else group + '/v1')}"
        within = f"/namespaces/{ref.namespace}" if ref.namespace else ""
        return f"{root}{within}/{plural}" + (f"/{ref.name}" if ref.name else "")

    def clear(self) -> None:
        """Takes everything away again."""
        self._scheduler.stop()
        api = self._plane.api
        for path in reversed(self._made):
            if not path.endswith(tuple(f"/queues/{name}" for name in LEFT_ALONE)):
                self._delete(path)
        for path in ("/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/resourcequotas"):
            api.delete(f"{path}?gracePeriodSeconds=0")
        for path in ("/api/v1/pods", "/api/v1/nodes"):
            api.wait(path, lambda listed: not listed["items"], 30)
        for path in self._made:
            if "/podgroups/" in path and api.get(path).status == 200:
                api.patch(
                    path, {"metadata": {"finalizers": None}}
                )  # Kubernetes' own are kept by a controller that is off
            api.wait_gone(path)


def _serving(plane: ControlPlane, group: str, plural: str) -> str:
    """The version of a group that serves a resource, if one does."""
    for one in plane.api.get(f"/apis/{group}").body.get("versions") or []:
        listed = plane.api.get(f"/apis/{one['groupVersion']}").body.get("resources") or []
        if any(resource["name"] == plural for resource in listed):
            return str(one["groupVersion"])
    return ""


def _replaced(text: str, words: dict[str, str]) -> str:
    for before, after in words.items():
        text = text.replace(before, after)
    return text


def _scaled(value: Any, scale: float) -> Any:
    """A copy with every duration shortened, and an image in every container."""
    if isinstance(value, list):
        return [_scaled(one, scale) for one in value]
    if not isinstance(value, dict):
        return value
    found = {
        key: format_duration(round(parse_duration(one) * scale)) if key in DURATIONS else _scaled(one, scale)
        for key, one in value.items()
    }
    for container in found.get("containers") or []:
        if isinstance(container, dict):
            container.setdefault("image", "none")
    return found


def _has_come_up(node: Json) -> bool:
    """Whether it is Ready, and nothing but what its file says keeps pods away."""
    conditions = node.get("status", {}).get("conditions", [])
    taints = [one["key"] for one in node["spec"].get("taints", [])]
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and "node.kubernetes.io/not-ready" not in taints
