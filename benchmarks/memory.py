"""The memory of `enbloc run` on a large cluster: `python -m benchmarks.memory --nodes 10000 --pods 200000`.

No API server holds such a cluster on two cores, so this process answers as one would: discovery, pages of lists, and
watches in which nothing happens. Pods are bound and run; each has its own name, UID, addresses, environment, token
volume and times, as pods that a kubelet reports have. Prints JSON: the peak of resident memory, the time until all is
watched, and CPU seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiohttp import web

from benchmarks.scheduler_process import SchedulerProcess, enbloc_run

PAGE = 500
GANG = 20
BEGAN_S = 1_780_000_000
RESTS_S = 10.0
"""How long it runs after everything is watched, before it is measured."""


def stamp(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BEGAN_S + second))


def metadata(name: str, number: int, **more: Any) -> dict[str, Any]:
    uid = f"{number:08x}-0000-4000-8000-{len(name):012x}"
    fields = {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:containers": {}, "f:nodeName": {}}}
    managed = [{"manager": "kubelet", "operation": "Update", "time": stamp(number % 9999), "fieldsV1": fields}]
    version = {"resourceVersion": str(number + 1), "creationTimestamp": stamp(number // 10)}
    return {"name": name, "uid": uid, **version, "managedFields": managed, **more}


def node(number: int) -> dict[str, Any]:
    name = f"node-{number:05d}"
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "250", "ephemeral-storage": "900Gi"}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": stamp(number), "lastTransitionTime": stamp(number)}
    images = [{"names": [f"registry.example/image-{one}:1"], "sizeBytes": 10**8} for one in range(20)]
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready], "images": images}
    labels = {"kubernetes.io/hostname": name, "zone": f"z{number % 4}"}
    return {"metadata": metadata(name, number, labels=labels), "spec": {}, "status": status}


def group(number: int) -> dict[str, Any]:
    status = {"phase": "Running", "running": GANG, "conditions": []}
    return {
        "metadata": metadata(f"gang-{number:06d}", number, namespace="work"),
        "spec": {"minMember": GANG},
        "status": status,
    }


def pod(number: int, nodes: int) -> dict[str, Any]:
    gang, token = f"gang-{number // GANG:06d}", f"kube-api-access-{number:05x}"
    container = {
        "name": "main",
        "image": "registry.example/train:1",
        "command": ["train", f"--rank={number % GANG}"],
        "env": [{"name": "RANK", "value": str(number % GANG)}, {"name": "GANG", "value": gang}],
        "resources": {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi"}},
        "volumeMounts": [{"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }
    token_volume = {"name": token, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    spec = {
        "nodeName": f"node-{number % nodes:05d}",
        "schedulerName": "enbloc",
        "nodeSelector": {"pool": "batch"},
        "tolerations": [{"key": "batch", "operator": "Exists"}],
        "containers": [container],
        "volumes": [token_volume],
        "serviceAccountName": "default",
        "restartPolicy": "Never",
        "priority": 0,
    }
    began = stamp(number // 7)
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    state = {"running": {"startedAt": began}}
    main = {
        "name": "main",
        "ready": True,
        "restartCount": 0,
        "state": state,
        "containerID": f"containerd://{number:064x}",
    }
    status = {
        "phase": "Running",
        "startTime": began,
        "podIP": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
        "conditions": [{"type": one, "status": "True", "lastTransitionTime": began} for one in kinds],
        "containerStatuses": [main],
    }
    notes = {"scheduling.k8s.io/group-name": gang, "volcano.sh/task-spec": "worker"}
    more = {"namespace": "work", "labels": {"app": "train", "gang": gang}, "annotations": notes}
    return {"metadata": metadata(f"{gang}-worker-{number % GANG}", number, **more), "spec": spec, "status": status}


class Server:
    """Answers lists and watches of a cluster that does not change."""

    def __init__(self, nodes: int, pods: int) -> None:
        queue = {"metadata": metadata("default", 1), "spec": {"weight": 1}, "status": {"state": "Open"}}
        root = {"metadata": metadata("root", 2), "spec": {"weight": 1}, "status": {"state": "Open"}}
        self._lists = {
            "/api/v1/nodes": (nodes, node),
            "/api/v1/pods": (pods, lambda number: pod(number, nodes)),
            "/apis/scheduling.volcano.sh/v1beta1/podgroups": (-(-pods // GANG), group),
            "/apis/scheduling.volcano.sh/v1beta1/queues": (2, lambda number: (queue, root)[number]),
        }
        self.all_watched = asyncio.Event()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/apis":
            version = {"groupVersion": "scheduling.volcano.sh/v1beta1", "version": "v1beta1"}
            return web.json_response({"groups": [{"name": "scheduling.volcano.sh", "versions": [version]}]})
        if request.path == "/api/v1":
            return web.json_response({"resources": [_served("nodes", "Node"), _served("pods", "Pod", inside=True)]})
        if request.path == "/apis/scheduling.volcano.sh/v1beta1":
            served = [_served("podgroups", "PodGroup", inside=True), _served("queues", "Queue")]
            return web.json_response({"resources": served})
        if request.path not in self._lists:
            return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)
        if "watch" in request.query:
            return await self._watch(request)
        return web.Response(body=b"".join(self._page(request)), content_type="application/json")

    def _page(self, request: web.BaseRequest) -> Iterator[bytes]:
        count, make = self._lists[request.path]
        first = int(request.query.get("continue") or 0)
        last = min(first + int(request.query.get("limit") or count), count)
        more = str(last) if last < count else ""
        yield b'{"metadata":{"resourceVersion":"900000000","continue":"%s"},"items":[' % more.encode()
        yield b",".join(json.dumps(make(number)).encode() for number in range(first, last))
        yield b"]}"

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if request.path.endswith("/pods"):
            self.all_watched.set()
        await asyncio.sleep(3600)
        return response


def _served(plural: str, kind: str, *, inside: bool = False) -> dict[str, Any]:
    return {"name": plural, "kind": kind, "namespaced": inside}


async def measure(nodes: int, pods: int) -> dict[str, Any]:
    server = Server(nodes, pods)
    runner = web.ServerRunner(web.Server(server.answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, shutdown_timeout=1)
    await site.start()
    port = runner.addresses[0][1]
    with tempfile.TemporaryDirectory(prefix="enbloc-memory-") as name:
        folder = Path(name)
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
        context = {"name": "c", "context": {"cluster": "c", "user": ""}}
        (folder / "kubeconfig").write_text(
            json.dumps({"current-context": "c", "contexts": [context], "clusters": [cluster], "users": []})
        )
        (folder / "config.yaml").write_text("{}")
        command = enbloc_run(str(folder / "kubeconfig"), None, "default", folder / "config.yaml")
        process = SchedulerProcess(command, folder / "log")
        process.start()
        while not server.all_watched.is_set():
            why = process.failure()
            if why is not None:
                raise SystemExit(why)
            await asyncio.sleep(0.2)
        watched_s = time.monotonic() - process.started_s
        await asyncio.sleep(RESTS_S)
        used = await process.stop()
    await runner.cleanup()
    return {
        "nodes": nodes,
        "pods": pods,
        "peak_memory_mb": used.peak_mb,
        "watched_s": round(watched_s, 1),
        "cpu_s": used.cpu_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=200_000)
    chosen = parser.parse_args()
    print(json.dumps(asyncio.run(measure(chosen.nodes, chosen.pods))))


if __name__ == "__main__":
    main()
