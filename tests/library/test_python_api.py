"""`import enbloc`: simulate, replay, a cluster in this process, plugins as Python objects."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import enbloc
from enbloc.cli import replay, sim
from enbloc.engine.core.filters.filter import Check

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart.yaml"


def _node(name: str, cpu: str = "2") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def _job(name: str, replicas: int, run_time: str = "10s", queue: str = "default") -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"annotations": {"sim.enbloc.dev/run-time": run_time}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    task = {"name": "worker", "replicas": replicas, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"schedulerName": "enbloc", "queue": queue, "tasks": [task]},
    }


def test_simulate_answers_what_sim_prints() -> None:
    printed = json.loads(CliRunner().invoke(sim.command, [str(QUICKSTART), "-o", "json"]).stdout)
    result = enbloc.simulate(QUICKSTART)
    assert result.gangs == printed["gangs"]
    assert result.timeline == printed["timeline"]
    assert result.pending == printed["pending"]
    assert result.summary == printed["summary"]
    assert (result.end, result.ended) == (printed["end"], printed["ended"])


def test_objects_and_paths_may_be_mixed(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(_job("a", 2)))
    result = enbloc.simulate([_node("n1"), tmp_path])
    assert result.gang("default/a")["nodes"] == ["n1"]
    assert result.gang("default/a")["ended"] == 10.0
    with pytest.raises(KeyError, match="there are default/a"):
        result.gang("default/b")


def test_nodes_run_times_and_the_end_are_arguments() -> None:
    job = _job("a", 3)
    del job["spec"]["tasks"][0]["template"]["metadata"]
    result = enbloc.simulate(job, nodes=3, node_resources={"cpu": 1}, default_run_time="7s")
    assert result.gang("default/a")["ended"] == 7.0
    cut = enbloc.simulate(job, nodes=3, node_resources={"cpu": 1}, default_run_time="7s", until=5)
    assert (cut.ended, cut.gang("default/a")["outcome"]) == ("until", "running")
    with pytest.raises(ValueError, match="negative"):
        enbloc.simulate(job, until=-1)


def test_a_fault_names_the_object_and_field() -> None:
    broken = _job("a", 1)
    broken["metadata"]["annotations"] = {"sim.enbloc.dev/at": "soon"}
    with pytest.raises(enbloc.BadInput, match=r"objects:1 Job .*sim\.enbloc\.dev/at"):
        enbloc.simulate([broken])
    with pytest.raises(enbloc.ConfigError, match="actions"):
        enbloc.simulate(QUICKSTART, config={"actions": "alocate"})
    with pytest.raises(ValueError, match="'esy' is neither a file nor one of default, fifo"):
        enbloc.simulate(QUICKSTART, config="esy")


def test_a_policy_by_name_is_a_config() -> None:
    """`a-runs` leaves one of four CPUs; `c-small` passes the gang that waits, unless the queue is strict."""
    jobs = [_job("a-runs", 3), _job("b-head", 4), _job("c-small", 1)]
    nodes = [_node("n1"), _node("n2")]
    assert enbloc.simulate([*nodes, *jobs], config="fifo-skip").gang("default/c-small")["started"] == 0.0
    assert enbloc.simulate([*nodes, *jobs], config="fifo").gang("default/c-small")["started"] == 20.0


def _smallest_last(gang: Any) -> tuple[int, ...]:
    return (-gang.spec.minimum,)


class LastNodeOnly:
    """A filter: no pod runs on the first row."""

    def mask(self, cls: Any, nodes: Any) -> Check:
        return Check("node(s) were closed by a test", lambda rows: np.arange(len(nodes.names))[rows] > 0)


def test_a_function_orders_gangs() -> None:
    jobs = [_job("a-small", 1), _job("b-large", 2)]
    plain = enbloc.simulate([_node("n1"), *jobs])
    ordered = enbloc.simulate([_node("n1"), *jobs], plugins=[_smallest_last])
    assert plain.gang("default/a-small")["started"] == ordered.gang("default/b-large")["started"] == 0.0
    assert plain.gang("default/b-large")["started"] == ordered.gang("default/a-small")["started"] == 10.0


def test_an_object_filters_nodes() -> None:
    assert enbloc.simulate([_node("n1"), _node("n2"), _job("a", 1)]).gang("default/a")["nodes"] == ["n1"]
    result = enbloc.simulate([_node("n1"), _node("n2"), _job("a", 3)], plugins=[LastNodeOnly()])
    assert "closed by a test" in result.pending[0]["message"]


def test_the_gantt_chart_has_a_wait_and_a_run_for_each_gang(tmp_path: Path) -> None:
    result = enbloc.simulate([_node("n1"), _job("a", 2), _job("b", 2), _job("never", 9)])
    picture = result.plot()
    picture.save(tmp_path / "gantt.svg")
    svg = (tmp_path / "gantt.svg").read_text()
    assert "default/a runs from 0 s to 10 s: succeeded" in svg
    assert "default/b waits 10 s" in svg
    assert "default/never waits 20 s" in svg
    assert "default/never runs" not in svg
    assert picture._repr_svg_() == svg == result.plot().svg


def test_names_are_escaped_in_pictures_and_tables() -> None:
    from enbloc.library.plot import Bar, gantt

    assert "<b>" not in gantt([Bar("<b>", 0, 1, 2, "<i>")], 2).svg
    result = enbloc.simulate(QUICKSTART)
    result.gangs[0]["why"] = "<script>"
    assert "<script>" not in result._repr_html_()


def test_pandas_gets_a_row_a_gang_and_a_row_a_line() -> None:
    pytest.importorskip("pandas")
    result = enbloc.simulate(QUICKSTART)
    assert list(result.to_pandas()["gang"]) == [gang["gang"] for gang in result.gangs]
    assert len(result.to_pandas("timeline")) == len(result.timeline)


def test_without_pandas_to_pandas_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_pandas needs pandas, which is not installed: pip install pandas"):
        enbloc.simulate(QUICKSTART).to_pandas()


def test_replay_answers_what_the_command_prints(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("t,d,n\n0,100,3\n1,50,4\n2,90,1\n3,200,1\n")
    columns = "submit=t,duration=d,cpus=n"
    arguments = [str(trace), "--map", columns, "--nodes", "4", "--estimates", "exact", "--fast", "-o", "json"]
    printed = json.loads(CliRunner().invoke(replay.command, [*arguments, "--policy", "fifo"]).stdout)
    replays = enbloc.replay(trace, "fifo", columns=columns, nodes=4, estimates="exact")
    assert list(replays.policies.values()) == printed["policies"]
    assert [start["start"] for start in replays.policies["fifo"]["starts"]] == [0, 100, 150, 150]
    assert "mean wait" in repr(replays)
    assert "runs from" in replays.plot().svg
    with pytest.raises(enbloc.BadTrace, match="No such file"):
        enbloc.replay(tmp_path / "none.csv")


def test_replay_takes_an_order_written_in_python(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("t,d,n\n0,10,4\n1,10,2\n2,10,4\n")
    replays = enbloc.replay(
        trace,
        {"as they come": "fifo-skip", "again": "fifo-skip"},
        columns="submit=t,duration=d,cpus=n",
        nodes=4,
        plugins=[_smallest_last],
    )
    for policy in replays.policies.values():
        assert [start["start"] for start in policy["starts"]] == [0, 20, 10]


@pytest.mark.enbloc_cluster(nodes=1, node_resources={"cpu": 2})
def test_the_fixture_serves_a_cluster(enbloc_cluster: enbloc.Cluster) -> None:
    with urllib.request.urlopen(f"{enbloc_cluster.address}healthz", timeout=10) as answer:
        assert answer.status == 200
    kubeconfig = yaml.safe_load(enbloc_cluster.kubeconfig.read_text())
    assert enbloc_cluster.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert kubeconfig["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
    assert [node["metadata"]["name"] for node in enbloc_cluster.objects("Node")] == ["node-1"]


def test_a_cluster_in_this_process_runs_a_job_and_is_gone_after() -> None:
    with enbloc.Cluster(_job("a", 2, "1s"), nodes=1, speed=100) as cluster:
        kubeconfig = cluster.kubeconfig
        _wait_for(lambda: _phase(cluster) == "Completed")
        cluster.delete("Job", "a", api_version="batch.volcano.sh/v1alpha1", namespace="default")
        _wait_for(lambda: not cluster.objects("Pod"))
        cluster.create(_job("b", 1))
        assert cluster.refused == []
    assert not kubeconfig.exists()


def test_a_refused_manifest_says_why() -> None:
    with enbloc.Cluster(_job("a", -1), nodes=1) as cluster:
        _wait_for(lambda: bool(cluster.refused))
    ((name, message),) = cluster.refused
    assert name == "default/a"
    assert "replicas" in message


def _phase(cluster: enbloc.Cluster) -> str:
    (job,) = cluster.objects("Job", "batch.volcano.sh/v1alpha1")
    return str(job.get("status", {}).get("state", {}).get("phase"))


def _wait_for(condition: Any) -> None:
    import time

    for _ in range(3_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("never came true")


def test_importing_enbloc_imports_nothing_else() -> None:
    script = "import enbloc, sys; print(sorted(name for name in sys.modules if name.startswith(('enbloc', 'numpy'))))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.strip() == "['enbloc', 'enbloc.version']"


def test_every_name_can_be_imported() -> None:
    for name in enbloc.__all__:
        assert getattr(enbloc, name).__name__ == name
    assert set(dir(enbloc)) == {*enbloc.__all__, "__version__"}
    with pytest.raises(AttributeError, match="simulat"):
        enbloc.simulat  # noqa: B018


def test_the_version_is_that_of_the_package() -> None:
    assert enbloc.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_explain_answers_what_the_command_prints() -> None:
    from enbloc.cli import explain as explain_cli

    printed = CliRunner().invoke(explain_cli.command, ["default/giant", "--from", str(QUICKSTART), "-o", "json"])
    explained = enbloc.explain("default/giant", QUICKSTART)
    assert explained == json.loads(printed.stdout)
    assert explained["sentence"]
    with pytest.raises(KeyError, match="there is no gang 'default/none'"):
        enbloc.explain("default/none", QUICKSTART)


def test_explain_tells_the_story_in_the_order_of_its_instants() -> None:
    late = _node("n2")
    late["metadata"]["annotations"] = {"sim.enbloc.dev/at": "1468ms"}
    step: dict[str, Any] = {"apiVersion": "sim.enbloc.dev/v1", "kind": "Step", "at": "1460ms", "do": "patch"}
    step |= {"target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}, "patch": {"spec": {"unschedulable": True}}}
    story = enbloc.explain("default/j", [_node("n1", "1"), _job("j", 2), step, late], until="5s")["story"]
    assert [event["at"][17:] for event in story] == ["00Z", "01.46Z", *["01.468Z"] * 4]


def test_explain_speaks_of_a_time_and_of_a_running_cluster() -> None:
    objects = [_node("n1"), _job("first", 2), _job("second", 2)]
    assert enbloc.explain("default/second", objects, until="5s")["state"] == "Waiting"
    with enbloc.Cluster([_node("n1", "1"), _job("large", 2)]) as cluster:
        explained = enbloc.explain("default/large", cluster)
    assert explained["gang"] == "default/large"
    assert "cpu" in explained["sentence"]


def test_a_policy_may_be_a_python_callable(tmp_path: Path) -> None:
    """A function from a gang to its key is a policy of its own."""

    def longest_first(gang: Any) -> tuple[int, ...]:
        return (-(gang.run_time_ns or 0),)

    trace = tmp_path / "jobs.csv"
    trace.write_text("submit,duration,cpus\n0,10,1\n1,5,1\n2,50,1\n")
    replays = enbloc.replay(trace, {"longest": longest_first, "sjf": "sjf"}, estimates="exact")
    assert [one["start"] for one in replays.policies["longest"]["starts"]] == [0.0, 60.0, 10.0]
    assert [one["start"] for one in replays.policies["sjf"]["starts"]] == [0.0, 10.0, 15.0]
    assert replays.comparison[0]["sooner"] == 1


def test_a_synthetic_trace_is_replayed_by_its_name_and_a_key_need_not_be_a_tuple() -> None:
    found = enbloc.replay("synthetic:20:1", {"small first": lambda gang: gang.spec.minimum, "fair": "fair"}, nodes=16)
    assert {len(policy["starts"]) for policy in found.policies.values()} == {20}
    with pytest.raises(ValueError, match="is not synthetic:JOBS"):
        enbloc.replay("synthetic:many")
