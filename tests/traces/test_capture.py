"""enbloc capture: a cluster's job history as a trace, which replays on the cluster that it names."""

from __future__ import annotations

import io
from pathlib import Path

from click.testing import CliRunner
from tests.support import manifests as m
from tests.support.simulation import simulate

from enbloc import Cluster
from enbloc.api.meta import Obj
from enbloc.cli.capture import command as capture_command
from enbloc.cli.replay import command as replay_command
from enbloc.config import parse
from enbloc.traces.capture import KINDS, capture, write
from enbloc.traces.reading import read_trace
from enbloc.units import SECOND


def _history(*objects: Obj, until: str | None = None) -> dict[str, list[Obj]]:
    """What a cluster has after a simulation."""
    lists: dict[str, list[Obj]] = {}
    from enbloc.api.kinds import kind_id

    for obj in simulate(*objects, until=until).objects:
        lists.setdefault(kind_id(obj), []).append(obj)
    return {kind: found for kind, found in lists.items() if kind in KINDS}


def test_a_history_is_captured_and_replays(tmp_path: Path) -> None:
    jobs = [m.job(f"j{i}", m.role("w", 2, cpu=2, run_time=f"{10 + i}s"), at=f"{i}s") for i in range(3)]
    secret = m.job("late", m.role("w", 1, cpu=1, run_time="2h"))
    secret["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": "hunter2"}]
    captured = capture(_history(m.node("n1", 4), m.node("n2", 4), *jobs, secret, until="1h"), parse(None))
    assert [(job.id, (job.end_ns - job.start_ns) // SECOND) for job in captured.jobs] == [
        ("default/j0", 10),
        ("default/j1", 11),
        ("default/j2", 12),
    ]
    assert dict(captured.skipped) == {"still runs": 1}
    out = io.StringIO()
    assert write(captured, out) == 3
    assert "hunter2" not in out.getvalue()
    path = tmp_path / "trace.csv"
    path.write_text(out.getvalue())
    trace = read_trace(path)
    assert (trace.nodes, trace.node_resources) == (2, {"cpu": "4"})
    assert [(job.units, job.run_ns // SECOND, job.user, job.queue) for job in trace.jobs] == [
        (4, 10, "default", "default"),
        (4, 11, "default", "default"),
        (4, 12, "default", "default"),
    ]
    shown = CliRunner().invoke(replay_command, [str(path), "--fast", "--policy", "default", "--policy", "easy"])
    assert "3 jobs on 2 nodes of 4 cpu" in shown.output, shown.output


def test_the_command_reads_a_running_cluster(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    with Cluster(nodes=2, node_resources={"cpu": 4}) as cluster:
        result = CliRunner().invoke(capture_command, ["--kubeconfig", str(cluster.kubeconfig), "-o", str(path)])
    assert result.exit_code == 0, result.output
    assert "0 jobs written" in result.output
    assert path.read_text().startswith("# nodes: 2\n# node-resources: cpu=4\n")


def test_queues_and_users_are_captured_and_come_back(tmp_path: Path) -> None:
    job = m.job("j", m.role("w", 2, cpu=2, run_time="10s"), annotations={"enbloc.dev/user": "ann"})
    job["spec"]["queue"] = "research"
    captured = capture(_history(m.node("n1", 4), m.queue("research", 3), job), parse(None))
    path = tmp_path / "trace.csv"
    with path.open("w") as out:
        write(captured, out)
    assert '# queue: research {"parent": "root", "weight": 3}' in path.read_text().splitlines()
    trace = read_trace(path)
    assert trace.queues["research"] == 3
    assert [(one.user, one.queue) for one in trace.jobs] == [("default/ann", "research")]
    options = ["--fast", "--queues", "trace", "--policy", "fair", "-o", "json"]
    shown = CliRunner().invoke(replay_command, [str(path), *options])
    assert shown.exit_code == 0, shown.output


def test_a_head_that_was_edited_badly_counts_as_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text('# queue: a {"weight": "x"}\n# queue: b {\n# queue:\nsubmit,duration,gpus\n0,1,1\n')
    assert read_trace(path).queues == {"a": 1, "b": 1}
