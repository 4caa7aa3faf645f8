"""What becomes of one example in `lint`, `sim` and `up`: it works, it is said why not, or something is wrong.

Wrong is: an error that is not the user's, a refusal without a reason, an object or a pod of which nothing is said, and
answers that differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import yaml
from click.testing import CliRunner, Result

from enbloc.cli.main import cli
from operators.examples import Example

Json = dict[str, Any]
NODES = ("--nodes", "8", "--node-resources", "cpu=64,memory=512Gi,nvidia.com/gpu=8,google.com/tpu=8")
LASTS = ("--default-run-time", "60s", "--until", "1h")


class Verdict(NamedTuple):
    what: Literal["works", "says why not", "wrong"]
    why: str = ""


def judge(example: Example) -> Verdict:
    """By `lint` and `sim`."""
    linted = _run("lint", str(example.path), "-o", "json")
    played = _run("sim", str(example.path), *NODES, *LASTS, "-o", "json")
    for name, done in (("lint", linted), ("sim", played)):
        if (crash := _crash(done)) is not None:
            return Verdict("wrong", f"{name}: {crash}")
    if (linted.exit_code == 0) != (played.exit_code == 0):
        return Verdict("wrong", f"lint exits with {linted.exit_code}, sim with {played.exit_code}")
    if played.exit_code:
        return Verdict("says why not", played.stderr.splitlines()[0].rpartition("/")[2])
    answer = json.loads(played.stdout)
    silent = list(_silent(example, answer))
    if silent:
        return Verdict("wrong", f"nothing is said of {', '.join(silent[:3])}")
    reasons = [f"{one['gang']}: {one['message']}" for one in answer["pending"]]
    reasons += [f"{one['name']}: {one['message']}" for one in answer["timeline"] if one["what"] == "rejected"]
    reasons += [f"{one['kind']} {one['name']}: {one['reason']}" for one in answer["without_effect"]]
    return Verdict("says why not", reasons[0]) if reasons else Verdict("works")


def documents(example: Example) -> list[Json]:
    """The objects of a file; none if it cannot be read as such."""
    try:
        found = list(yaml.load_all(example.path.read_text(), yaml.CSafeLoader))
    except yaml.YAMLError:
        return []
    return [one for one in found if isinstance(one, dict) and one.get("apiVersion") and one.get("kind")]


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def _crash(done: Result) -> str | None:
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return repr(done.exception)
    if done.exit_code not in (0, 1, 2):
        return f"exit code {done.exit_code}"
    if done.exit_code == 2 and not done.stderr.strip():
        return "exit code 2 without a reason"
    return None


def _silent(example: Example, answer: Json) -> Iterator[str]:
    """Objects that are neither there at the end nor spoken of, and pods that wait without a reason."""
    there = {(one["kind"], one["metadata"]["name"]) for one in answer["objects"]}
    spoken = {(one["kind"], one["name"]) for one in answer["without_effect"]}
    spoken |= {(one["kind"], one["name"]) for one in answer["timeline"] if one["what"] in ("rejected", "deleted")}
    for one in documents(example):
        name = one.get("metadata", {}).get("name")
        if name is not None and (one["kind"], name) not in there | spoken and one["kind"] != "List":
            yield f"{one['kind']} {name}"
    for one in answer["objects"]:
        if one["kind"] == "Pod" and not is_spoken_of(one) and ("Pod", one["metadata"]["name"]) not in spoken:
            yield f"Pod {one['metadata']['name']}"


def is_spoken_of(pod: Json) -> bool:
    """Whether it is on a node, or says why it is not."""
    if pod["spec"].get("nodeName") or pod["spec"].get("schedulingGates"):
        return True
    conditions = pod.get("status", {}).get("conditions") or []
    return any(one["type"] == "PodScheduled" and one.get("message") for one in conditions)
