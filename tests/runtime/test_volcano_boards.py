"""Volcano's Grafana boards light up: a real Prometheus scrapes `enbloc up` and answers what their panels ask.

The queries are those of the boards that Volcano's chart brings, and of its benchmark, in their order; those of
`kube_*` are kube-state-metrics' matter. Needs Debian's package `prometheus`.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAST = "[1m]"
GPU = '{resource="nvidia.com/gpu"}'
QUERIES = (
    f"increase(volcano_e2e_job_scheduling_latency_milliseconds_bucket{PAST})",
    "avg(volcano_e2e_job_scheduling_duration) by (queue)",
    "avg(volcano_e2e_job_scheduling_duration) by (job_namespace)",
    'volcano_e2e_job_scheduling_duration{queue="default"}',
    'volcano_e2e_job_scheduling_duration{job_namespace="default"}',
    "stddev(volcano_e2e_job_scheduling_duration) / avg(volcano_e2e_job_scheduling_duration)",
    f"histogram_quantile(0.95, sum(rate(volcano_e2e_scheduling_latency_milliseconds_bucket{PAST})) by (le))",
    f"histogram_quantile(0.95, sum(rate(volcano_action_scheduling_latency_milliseconds_bucket{PAST})) by (le, action))",
    "histogram_quantile(0.95, "
    f"sum(rate(volcano_plugin_scheduling_latency_milliseconds_bucket{PAST})) by (le, plugin, OnSession))",
    f"histogram_quantile(0.95, sum(rate(volcano_open_session_duration_milliseconds_bucket{PAST})) by (le))",
    f"histogram_quantile(0.95, sum(rate(volcano_task_scheduling_latency_milliseconds_bucket{PAST})) by (le, stage))",
    f"rate(volcano_total_preemption_attempts{PAST})",
    "volcano_pod_preemption_victims",
    "volcano_unschedule_job_count",
    "volcano_unschedule_task_count",
    f"rate(volcano_schedule_attempts_total{PAST})",
    "volcano_queue_share",
    *(
        f"volcano_queue_{word}_{unit}"
        for word in ("request", "allocated", "deserved", "real_capacity")
        for unit in ("milli_cpu", "memory_bytes", f"scalar_resources{GPU}")
    ),
    "volcano_queue_capacity_milli_cpu",
    "volcano_queue_capacity_memory_bytes",
)
LOAD = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: runs, namespace: default}
spec:
  tasks:
    - name: w
      replicas: 2
      template:
        spec: {containers: [{name: a, image: b, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}]}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: waits, namespace: default}
spec:
  tasks:
    - name: w
      replicas: 6
      template:
        spec: {containers: [{name: a, image: b, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}]}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: comes
  namespace: default
  annotations: {sim.enbloc.dev/at: 6s}
spec:
  tasks:
    - {name: w, replicas: 1, template: {spec: {containers: [{name: a, image: b, resources: {requests: {cpu: 1}}}]}}}
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[str]:
    """The address of a Prometheus that scrapes an `enbloc up` every second."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("Prometheus is not installed (Debian's package `prometheus`)")
    (tmp_path / "load.yaml").write_text(LOAD)
    (tmp_path / "enbloc.yaml").write_text("metrics: {compat: volcano}\n")
    ours, theirs = _free_port(), _free_port()
    scrapes = {"job_name": "enbloc", "static_configs": [{"targets": [f"127.0.0.1:{ours}"]}]}
    (tmp_path / "prometheus.yml").write_text(
        json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [scrapes]})
    )
    up = [sys.executable, "-c", "from enbloc.cli.main import main; main()", "up", "--nodes", "2", "--port", str(ours)]
    up += ["--node-resources", "cpu=8,memory=8Gi,nvidia.com/gpu=2", "--load", str(tmp_path / "load.yaml")]
    up += ["--config", str(tmp_path / "enbloc.yaml")]
    asked = [program, f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    asked += [f"--web.listen-address=127.0.0.1:{theirs}"]
    with (tmp_path / "log").open("wb") as log:
        started = [subprocess.Popen(each, stdout=log, stderr=subprocess.STDOUT) for each in (up, asked)]
        try:
            yield f"http://127.0.0.1:{theirs}"
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait(20)


def _answer(address: str, query: str) -> list[object]:
    url = f"{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            found: list[object] = json.load(answer)["data"]["result"]
            return found
    except OSError:  # it does not listen yet
        return []


@pytest.mark.soak
def test_every_panel_of_volcanos_boards_has_data(prometheus: str) -> None:
    until = time.monotonic() + 120
    empty = list(QUERIES)
    while empty:
        empty = [query for query in empty if not _answer(prometheus, query)]
        assert time.monotonic() < until, empty
        time.sleep(1)
