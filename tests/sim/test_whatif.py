"""What a change would do, from a snapshot: the cluster is simulated without it and with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from enbloc.api.redaction import without_secrets
from enbloc.cli.main import cli
from enbloc.sim.snapshot import snapshot
from enbloc.units import parse_timestamp
from support.manifests import job, node, queue, role
from support.simulation import simulate

Obj = dict[str, Any]
EXPECTED = "enbloc.dev/expected-duration"


@pytest.fixture
def now(tmp_path: Path) -> Path:
    """A minute after the start: `first` has 4 of the 8 cpu for another minute, `second` waits for all 8."""
    answer = simulate(
        [node("n1", cpu=4), node("n2", cpu=4)],
        job("first", role("task", 1, cpu=4, run_time="2m")),
        job("second", role("task", 2, cpu=4, run_time="1m"), at="10s"),
        until="60s",
    )
    return write_snapshot(tmp_path / "now.json", answer.objects, "2026-01-01T00:01:00Z")


def write_snapshot(path: Path, objects: list[Obj], at: str | None) -> Path:
    taken = [{"apiVersion": "sim.enbloc.dev/v1", "kind": "Snapshot", "at": at}] if at else []
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*taken, *objects]}))
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, arguments)))


def ask(now: Path, *change: str | Path) -> dict[str, Any]:
    done = run("whatif", "--from", now, "-o", "json", *change)
    assert done.exit_code == 0, done.output
    return {one["gang"]: one for one in json.loads(done.output)["changes"]}


def test_sim_goes_on_where_the_snapshot_was_taken(now: Path) -> None:
    answer = json.loads(run("sim", now, "-o", "json").output)
    gangs = {gang["gang"]: gang for gang in answer["gangs"]}
    assert (gangs["default/first"]["started"], gangs["default/first"]["ended"]) == (-60.0, 60.0)
    assert (gangs["default/second"]["came"], gangs["default/second"]["started"]) == (-50.0, 60.0)
    assert answer["summary"]["gangs"] == {"pending": 0, "started": 1}
    created = [line for line in answer["timeline"] if line["what"] == "created" and line["name"] == "first-task-0"]
    assert created == []  # it exists


def test_sim_reads_what_kubectl_get_prints(now: Path, tmp_path: Path) -> None:
    """Without a Snapshot document virtual time begins at the latest time that the objects mention."""
    items = json.loads(now.read_text())["items"][1:]
    for obj in items:
        obj["metadata"]["managedFields"] = [{"manager": "kubectl", "time": "2026-01-01T00:00:00Z"}]
    kept = [obj for obj in items if obj["kind"] in ("Node", "Queue", "PodGroup", "Job", "Pod")]
    answer = json.loads(run("sim", write_snapshot(tmp_path / "get.json", kept, None), "-o", "json").output)
    gangs = {gang["gang"]: gang for gang in answer["gangs"]}
    first = gangs["default/first"]
    assert first["started"] < 0
    assert first["ended"] - first["started"] == 120.0
    assert gangs["default/second"]["started"] == first["ended"]


def test_pods_whose_owners_and_namespaces_were_not_read_are_kept(now: Path, tmp_path: Path) -> None:
    items = [obj for obj in json.loads(now.read_text())["items"] if obj["kind"] in ("Node", "Pod", "PodGroup")]
    answer = json.loads(run("sim", write_snapshot(tmp_path / "pods.json", items, None), "-o", "json").output)
    assert [line for line in answer["timeline"] if line["what"] == "deleted" and line["t"] == 0.0] == []


def test_submitted_job_starts_and_nothing_else_changes(now: Path, tmp_path: Path) -> None:
    new = job("new", role("task", 1, cpu=2), annotations={EXPECTED: "90s"})
    file = tmp_path / "new.json"
    file.write_text(json.dumps(new))
    changes = ask(now, "submit", file)
    assert changes["default/new"]["change"] == "new"
    assert (changes["default/new"]["after"]["started"], changes["default/new"]["after"]["ended"]) == (0.0, 90.0)
    assert changes["default/second"]["change"] == "starts later"
    assert changes["default/second"]["after"]["started"] == 90.0


def test_drained_node(now: Path) -> None:
    first = ask(now, "drain", "n1") | ask(now, "drain", "n2")
    gang = first["default/first"]
    assert gang["change"] == "evicted"
    assert gang["after"]["evicted"] == 0.0
    assert gang["after"]["evicted_pods"] == 1
    assert gang["after"]["restarted"] == 0.0  # on the other node


def test_added_nodes(now: Path) -> None:
    second = ask(now, "add-nodes", "1", "--like", "n2")["default/second"]
    assert second["change"] == "starts sooner"
    assert second["after"]["started"] == 0.0
    assert "n2-added-1" in second["after"]["nodes"]


def test_queue_that_is_set(now: Path) -> None:
    second = ask(now, "set", "queue/default", "capability.cpu=6", "weight=2")["default/second"]
    assert second["change"] == "does not start"
    assert second["after"]["outcome"] == "waiting"
    assert "capability" in second["after"]["why"]


def test_other_config(now: Path, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("unsupported: warn\n")
    assert ask(now, "config", file) == {}


def test_table(now: Path) -> None:
    done = run("whatif", "--from", now, "add-nodes", "1", "--like", "n1")
    lines = done.output.splitlines()
    assert lines[0].endswith("now.json as of 2026-01-01T00:01:00Z, with 1 node like n1 added:")
    assert lines[2].split() == ["GANG", "QUEUE", "CHANGE", "BEFORE", "AFTER"]
    assert lines[3].startswith("default/second  default  starts 1m sooner  starts in 1m, ends in 2m")
    assert "1 gang would change, 1 would not." in lines


def test_endless_gangs_are_named(tmp_path: Path) -> None:
    objects = simulate(node("n1", cpu=4), job("server", role("task", 1)), until="60s").objects
    now = write_snapshot(tmp_path / "now.json", objects, None)
    done = run("whatif", "--from", now, "drain", "n1")
    assert "Assumed to run for ever" in done.output
    assert "default/server" in done.output
    timed = run("whatif", "--from", now, "--default-run-time", "5m", "drain", "n1")
    assert "Assumed to run for ever" not in timed.output


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("drain", "n3"), "there is no node 'n3'"),
        (("add-nodes", "2", "--like", "n22"), "did you mean n2?"),
        (("set", "queue/defalt", "weight=2"), "there is no queue 'defalt'; did you mean default?"),
        (("set", "queue/default", "capability.cpu=4x"), "'4x' is not a quantity"),
        (("set", "queue/default", "capability.cpu=-1"), "is negative"),
        (("set", "queue/default", "wieght=2"), "wieght: is none of weight"),
        (("set", "queue/default", "weight=two"), "'two' is not a whole number"),
        (("set", "queue/default", "weight"), "FIELD=VALUE is expected"),
        (("set", "node/n1", "weight=1"), "queue/NAME is expected"),
        (("submit", "no-such-file.yaml"), "cannot be read"),
        (("config", "no-such-file.yaml"), "cannot be read"),
    ],
)
def test_mistakes_are_one_line(now: Path, change: tuple[str, ...], says: str) -> None:
    done = run("whatif", "--from", now, *change)
    assert done.exit_code == 2
    assert says in done.output
    assert done.output.count("\n") == 1


def test_bad_time_of_a_snapshot(tmp_path: Path) -> None:
    done = run("sim", write_snapshot(tmp_path / "bad.json", [node("n1")], "yesterday"))
    assert done.exit_code == 2
    assert "at: 'yesterday' is not a time" in done.output


def test_snapshot_has_no_secrets() -> None:
    container = {
        "name": "c",
        "image": "i",
        "command": ["sh", "-c", "login --password hunter2"],
        "args": ["hunter2"],
        "env": [{"name": "TOKEN", "value": "hunter2"}, {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s"}}}],
        "resources": {"requests": {"cpu": "1"}},
        "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "hunter2"}]}},
    }
    obj = job("train", role("task", 1))
    obj["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "keep": "me"}
    obj["metadata"]["managedFields"] = [{"manager": "hunter2"}]
    obj["spec"]["tasks"][0]["template"]["spec"]["containers"] = [container]
    obj["spec"]["tasks"][0]["template"]["spec"]["initContainers"] = [container]
    kept = without_secrets(obj)
    assert "hunter2" not in json.dumps(kept)
    assert kept["metadata"]["annotations"] == {"keep": "me"}
    (one,) = kept["spec"]["tasks"][0]["template"]["spec"]["containers"]
    assert one == {
        "name": "c",
        "image": "i",
        "resources": {"requests": {"cpu": "1"}},
        "env": [{"name": "TOKEN"}, {"name": "KEY"}],
    }


def test_snapshot_begins_with_its_time() -> None:
    documents = snapshot({"Node": [node("n1")], "Queue.scheduling.volcano.sh": [queue("q")], "Secret": [{}]}, 10**9)
    taken = {"at": "1970-01-01T00:00:01Z", "records": "not verified"}
    assert documents[0] == {"apiVersion": "sim.enbloc.dev/v1", "kind": "Snapshot", **taken}
    assert parse_timestamp(documents[0]["at"]) == 10**9
    assert sorted(one["kind"] for one in documents[1:]) == ["Node", "Queue"]
