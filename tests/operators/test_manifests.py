"""Every example that operators and other schedulers ship, as it is, in `lint`, `sim` and `up`: nothing is wrong."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from operators.examples import Example, examples, modules
from operators.judging import Verdict, documents, is_spoken_of, judge
from operators.table import write_block
from up.test_up import up

Json = dict[str, Any]
MAKES_PODS = ("Pod", "Job", "CronJob", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "PodGroup")
DECIDED_S = 60


class Api:
    """Plain requests to `enbloc up`, with the token of its kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        self._url = urlsplit(config["clusters"][0]["cluster"]["server"])
        self._token = config["users"][0]["user"]["token"]
        self._context = ssl._create_unverified_context()
        self._plurals: dict[str, dict[str, tuple[str, bool]]] = {}

    def request(self, method: str, path: str, body: Json | None = None) -> tuple[int, Json]:
        assert self._url.hostname is not None
        connection = http.client.HTTPSConnection(self._url.hostname, self._url.port, timeout=60, context=self._context)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        finally:
            connection.close()

    def path(self, obj: Json) -> str | None:
        """Where objects of this kind are created; `None` if the kind is not served."""
        version = obj["apiVersion"]
        if version not in self._plurals:
            root = f"/apis/{version}" if "/" in version else f"/api/{version}"
            listed = self.request("GET", root)[1].get("resources") or []
            self._plurals[version] = {
                one["kind"]: (f"{root}/{{}}{one['name']}", one["namespaced"])
                for one in listed
                if "/" not in one["name"]
            }
        known = self._plurals[version].get(obj["kind"])
        if known is None:
            return None
        return known[0].format(f"namespaces/{namespace_of(obj)}/" if known[1] else "")


def namespace_of(obj: Json) -> str:
    return str((obj.get("metadata") or {}).get("namespace") or "default")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    resources = "cpu=64,memory=512Gi,nvidia.com/gpu=8,google.com/tpu=8"
    arguments = ("--nodes", "8", "--node-resources", resources)
    with up(tmp_path_factory.mktemp("up"), *arguments) as (_, lines):
        yield Api(Path(lines[-1].partition("=")[2]))


def in_up(api: Api, example: Example) -> Verdict:
    """By `up`: every object is accepted or refused with a reason, every pod is bound or says why not."""
    made: list[str] = []
    refused = ""
    try:
        for obj in documents(example):
            path = api.path(obj)
            if path is None:
                refused = refused or f"{obj['kind']} is not served"
                continue
            if "/namespaces/" in path:
                api.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace_of(obj)}})
            status, answer = api.request("POST", path, obj)
            if status >= 500 or (status >= 400 and not answer.get("message")):
                return Verdict("wrong", f"{obj['kind']}: {status} {answer}")
            if status >= 400 and answer.get("reason") != "AlreadyExists":
                refused = refused or str(answer["message"])
            elif status < 400:
                made.append(f"{path}/{answer['metadata']['name']}")
        if any(obj["kind"] in MAKES_PODS for obj in documents(example)):
            silent = _wait_decided(api)
            if silent:
                return Verdict("wrong", f"nothing is said of pods {silent[:3]}")
    finally:
        for path in reversed(made):
            api.request("DELETE", path, {"propagationPolicy": "Background"})
    return Verdict("says why not", refused) if refused else Verdict("works")


def _wait_decided(api: Api) -> list[str]:
    """The pods of which nothing was said in time; it is enough if nothing was open twice."""
    end = time.monotonic() + DECIDED_S
    quiet = 0
    while True:
        time.sleep(0.3)
        pods = api.request("GET", "/api/v1/pods")[1]["items"]
        theirs = ("network-aware-scheduler", "topo-aware-scheduler")
        silent = [
            str(one["metadata"]["name"])
            for one in pods
            if not is_spoken_of(one) and one["spec"].get("schedulerName") not in theirs
        ]
        quiet = 0 if silent else quiet + 1
        if quiet == 3 or time.monotonic() > end:
            return silent


def test_no_example_is_handled_wrongly(api: Api) -> None:
    counts: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    reasons: dict[str, str] = {}
    for example in examples():
        row = counts.setdefault(example.project, Counter())
        for where, verdict in (("sim", judge(example)), ("up", in_up(api, example))):
            row[f"{where} {verdict.what}"] += 1
            if verdict.what == "wrong":
                wrong.append(f"{example.project} {example.name} in {where}: {verdict.why}")
            elif verdict.why:
                reasons.setdefault(f"{example.project}", verdict.why)
    versions = modules()
    head = "| project | examples | lint and sim: works | says why not | wrong | up: works | says why not | wrong |"
    keys = [f"{where} {what}" for where in ("sim", "up") for what in ("works", "says why not", "wrong")]
    rows = [
        f"| `{project}` {versions[project]} | {sum(row[key] for key in keys[:3])} | "
        + " | ".join(str(row[key]) for key in keys)
        + " |"
        for project, row in counts.items()
    ]
    write_block("manifests", [head, "|---|---|---|---|---|---|---|---|", *rows])
    assert sum(sum(row.values()) for row in counts.values()) > 300, "hardly any example was found"
    assert not wrong, "\n".join(wrong)
