"""How far behind the API the pages are, on a large cluster that changes all the time.

Pods are written at a steady rate while the dashboard's JSON is asked for, again and again. How old an answer is when it
is received is measured against the time of the last write that it shows. The reference is to read everything anew for
each answer; what is compared is this process's CPU time.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final, cast

import msgspec
from aiohttp import web

from enbloc.api.meta import Obj, Ref
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.cluster import make_store, provide_queues
from enbloc.config import parse
from enbloc.inspect.dashboard import dashboard_model
from enbloc.inspect.gangs import Reading
from enbloc.inspect.overview import KINDS, overview_of
from enbloc.units import format_timestamp
from enbloc.web.pages import Pages

GANG_SIZE: Final = 20
ROUNDS: Final = 5
_MARK: Final = "enbloc.dev/written-at"
_GROUP: Final = "scheduling.k8s.io/group-name"


def run(nodes: int, pods: int, writes_per_s: int, seconds: float) -> dict[str, Any]:
    store = make_store(time.time_ns, parse(None))
    provide_queues(store, ())
    _fill(store, nodes, pods)
    anew_s, updated_s, model_s = _cost(store, pods)
    ages = sorted(asyncio.run(_follow(store, pods, writes_per_s, seconds, "/api/overview")))
    drawn = sorted(asyncio.run(_follow(store, pods, writes_per_s, seconds, "/api/model")))
    return {
        "nodes": nodes,
        "pods": pods,
        "writes_per_s": writes_per_s,
        "answers": len(ages),
        "age_median_s": round(ages[len(ages) // 2], 3),
        "age_worst_s": round(ages[-1], 3),
        "model_answers": len(drawn),
        "model_age_median_s": round(drawn[len(drawn) // 2], 3),
        "model_age_worst_s": round(drawn[-1], 3),
        "read_anew_cpu_s": round(anew_s, 3),
        "read_changes_cpu_s": round(updated_s, 3),
        "model_cpu_s": round(model_s, 3),
        "ratio": round(anew_s / updated_s, 1),
    }


def _fill(store: Store, nodes: int, pods: int) -> None:
    stated = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    for number in range(nodes):
        metadata = {"name": f"node-{number}"}
        store.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": stated}})
    started = format_timestamp(time.time_ns() // 10**9 * 10**9)
    for gang in range(-(-pods // GANG_SIZE)):
        group = {"name": f"gang-{gang}", "namespace": "default"}
        spec = {"minMember": GANG_SIZE, "queue": "default"}
        store.create(
            {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": group, "spec": spec}
        )
    for number in range(pods):
        store.create(_pod(number, f"node-{number % nodes}", started))


def _pod(number: int, node: str, started: str) -> Obj:
    container = {"name": "c", "image": "train", "resources": {"requests": {"cpu": "1", "memory": "4Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "annotations": {_GROUP: f"gang-{number // GANG_SIZE}"},
        },
        "spec": {"schedulerName": "enbloc", "nodeName": node, "containers": [container]},
        "status": {"phase": "Running", "startTime": started},
    }


def _listed(store: Store) -> dict[str, list[Obj]]:
    return {kind: store.list(kind)[0] for kind in KINDS}


def _cost(store: Store, pods: int) -> tuple[float, float, float]:
    """CPU seconds of an overview: everything read anew, and after a hundred writes only those. Then of the dashboard's
    model of it."""
    reading = Reading(_listed(store))
    overview_of(reading)
    anew, updated, drawn = [], [], []
    for turn in range(ROUNDS):
        for number in range(min(100, pods)):
            _write(store, (turn * 100 + number) % pods)
        objects = _listed(store)
        begin_s = time.process_time()
        reading.update(objects)
        overview = overview_of(reading)
        updated.append(time.process_time() - begin_s)
        begin_s = time.process_time()
        msgspec.json.encode(dashboard_model(reading, overview, 0.0, {}))
        drawn.append(time.process_time() - begin_s)
        begin_s = time.process_time()
        overview_of(Reading(objects))
        anew.append(time.process_time() - begin_s)
    middle = ROUNDS // 2
    return sorted(anew)[middle], sorted(updated)[middle], sorted(drawn)[middle]


def _write(store: Store, number: int) -> None:
    mark = {"metadata": {"annotations": {_MARK: repr(time.time())}}}
    store.patch(Ref("Pod", "default", f"pod-{number}"), mark)


async def _follow(store: Store, pods: int, writes_per_s: int, seconds: float, path: str) -> list[float]:
    """The age of each answer: from the oldest write that it does not show to its arrival."""
    pages = Pages(lambda: _listed(store), dict)
    handle = pages.handlers()[path]
    written: list[float] = []
    stop = asyncio.Event()

    async def write() -> None:
        number = 0
        begin_s = time.monotonic()
        while not stop.is_set():
            while number < (time.monotonic() - begin_s) * writes_per_s:
                _write(store, number % pods)
                written.append(time.time())
                number += 1
            await asyncio.sleep(0.01)

    writer = asyncio.create_task(write())
    ages = []
    end_s = time.monotonic() + seconds
    await pages.overview()
    while time.monotonic() < end_s:
        answer = await handle(cast(web.BaseRequest, _Request(path)))
        assert isinstance(answer, web.Response)
        assert isinstance(answer.body, bytes)
        as_of_s = msgspec.json.decode(answer.body)["asOf"]
        unseen = next((at_s for at_s in written if at_s > as_of_s), None)
        ages.append(time.time() - unseen if unseen is not None else 0.0)
        await asyncio.sleep(0.1)
    stop.set()
    await writer
    return ages


class _Request:
    """As much of a request as the pages read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.query: dict[str, str] = {}
        self.headers: dict[str, str] = {}
