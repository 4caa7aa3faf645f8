"""Manifests with the fields of Volcano's own examples, under `--compat volcano` in lint, sim, up and run alike (N5).

They are our own: each uses the fields of one kind of example. The comment that opens a file tells what `lint` is to say
(ok, warns, refused), which words are used, and whether its pods run (`refused`: by a cluster only, which knows what
exists). What `lint` warns of in an object and what the API warns of are the same texts.
"""

from __future__ import annotations

import json
import re
import time
import urllib.error
from pathlib import Path
from typing import Any

import pytest
import yaml

from enbloc.admission.settings import settings_of
from enbloc.api.kinds import KINDS, kind_id
from enbloc.config import parse
from enbloc.sim.linting import written_warnings
from support import manifests as m
from support.simulation import documents as documents_of
from support.simulation import lint, simulate
from up.test_up import Up, run_elsewhere, up

EXAMPLES = sorted((Path(__file__).parent / "volcano_examples").glob("*.yaml"))
COMPAT = {"compat": ["volcano"]}
ROOM = "cpu=16,memory=64Gi,nvidia.com/gpu=2,ephemeral-storage=100Gi"


def node(name: str) -> dict[str, Any]:
    extra = {"nvidia.com/gpu": 2, "ephemeral-storage": "100Gi"}
    return m.node(name, 16, "64Gi", labels={"kubernetes.io/os": "linux"}, extra=extra)


def read(path: Path, with_ends: bool = True) -> tuple[dict[str, str], list[dict[str, Any]]]:
    head, _, body = path.read_text().partition("\n\n")
    body = body if with_ends else re.sub(r"sim.enbloc.dev/run-time: \w+", "", body)
    return dict(re.findall(r"^# (lint|says|runs): (.+)$", head, re.MULTILINE)), list(yaml.safe_load_all(body))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_n5_lint_and_sim_say_the_same(path: Path) -> None:
    asked, documents = read(path)
    linted = lint(documents, config=COMPAT)
    answer = simulate(node("n1"), node("n2"), node("n3"), documents, config=COMPAT, until="60s")
    said = " ".join(map(str, linted.faults or linted.warnings))
    assert bool(linted.faults) == (asked["lint"] == "refused")
    assert bool(linted.warnings) == (asked["lint"] == "warns")
    if asked["runs"] == "refused":
        [rejected] = answer.lines("rejected")
        assert asked["says"] in rejected["message"]
        return
    assert asked.get("says", "") in said
    assert bool(answer.lines("rejected")) == (asked["lint"] == "refused")
    assert bool(answer.lines("bound")) == (asked["runs"] == "yes")
    assert not answer.data["pending"]
    if asked["lint"] == "warns":
        found = json.dumps([answer.data["without_effect"], answer.lines("warning")])
        written = written_warnings(documents_of(documents), settings_of(parse(COMPAT), alone=True))
        assert asked["says"].partition(":")[0].replace("'", "") in f"{found} {written}".replace("'", "")


def refusal_of(cluster: Up, document: dict[str, Any]) -> str:
    """Creates an object as kubectl does; what the server says against it."""
    kind = KINDS.get(kind_id(document))
    if kind is None:
        return f"no matches for kind {document['kind']}"
    base = f"/apis/{document['apiVersion']}" if "/" in document["apiVersion"] else f"/api/{document['apiVersion']}"
    space = "/namespaces/default" if kind.namespaced else ""
    try:
        cluster.ask(f"{base}{space}/{kind.plural}", document)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return str(json.load(refusal)["message"]) if refusal.code != 404 else f"no matches for {document['kind']}"
    return ""


def pods_in_simulations(examples: list[Path]) -> tuple[int, int]:
    """How many pods are created, and how many bound."""
    created = bound = 0
    for path in examples:
        answer = simulate(node("n1"), node("n2"), node("n3"), read(path)[1], config=COMPAT, until="60s")
        created += len(answer.lines("created", kind="Pod"))
        bound += len(answer.lines("bound"))
    return created, bound


def lint_warnings(documents: list[dict[str, Any]], document: dict[str, Any]) -> list[str]:
    """What `lint` warns of in one of the documents, as far as an API server can: not of kinds that it does not serve,
    nor of what would be refused under another name."""
    name = document["metadata"].get("name")
    found = [one for one in lint(documents, config=COMPAT).warnings if (one.kind, one.name) == (document["kind"], name)]
    texts = [": ".join(filter(None, (one.field, one.message))) for one in found if "refused once" not in one.message]
    return [text for text in texts if not text.startswith("has no effect")]


def said_by(headers: list[str]) -> list[str]:
    """The texts of `Warning` headers."""
    return [re.sub(r'^299 \S+ "(.*)"$', r"\1", one).replace('\\"', '"').replace("\\\\", "\\") for one in headers]


def assert_all_run(cluster: Up, examples: list[Path] = EXAMPLES) -> None:
    """Every pod of every example is bound, as in the simulations; what is refused is refused with the words of lint."""
    for path in examples:
        asked, documents = read(path, with_ends=False)  # on a slow machine no pod ends before the last one starts
        said = []
        for document in documents:
            said.append(refusal_of(cluster, document))
            if not said[-1]:
                assert said_by(cluster.warnings) == [text[:250] for text in lint_warnings(documents, document)], (
                    path.stem
                )
        if "refused" in (asked["lint"], asked["runs"]):
            assert asked["says"] in said[0]
        else:
            assert all(not text or "no matches for" in text for text in said), said
    (created, expected), end_s = pods_in_simulations(examples), time.monotonic() + 60
    while True:
        pods = cluster.ask("/api/v1/pods")["items"]
        bound = [pod for pod in pods if pod["spec"].get("nodeName")]
        if (len(pods) >= created and len(bound) >= expected) or time.monotonic() > end_s:
            break
        time.sleep(0.2)
    assert (len(pods), len(bound)) == (created, expected)


def test_n5_all_run_in_up(tmp_path: Path) -> None:
    with up(tmp_path, "--compat", "volcano", "--nodes", "4", "--node-resources", ROOM) as (cluster, _):
        assert_all_run(cluster)
        cluster.stop()


def test_n5_all_run_under_run(tmp_path: Path) -> None:
    """Without the Deployment and the plain Job: their pods are made by the cluster's own controllers, which
    `--no-scheduler` leaves out."""
    examples = [path for path in EXAMPLES if path.stem not in ("queue-by-annotation", "templates-of-others")]
    options = ("--no-scheduler", "--compat", "volcano", "--nodes", "4", "--node-resources", ROOM)
    with up(tmp_path, *options) as (cluster, lines):
        with run_elsewhere(tmp_path, lines[-1].partition("=")[2], "--compat", "volcano"):
            assert_all_run(cluster, examples)
        cluster.stop()
