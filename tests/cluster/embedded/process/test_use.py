"""What containers use, as `kubectl top` shows it."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import pytest

from cluster.embedded.process.running import World, pod_of, python, shell
from enbloc.cluster.embedded.http.usage import usage
from enbloc.cluster.embedded.nodes.runtime import Use
from enbloc.cluster.embedded.process.use import LEAST_WINDOW_NS, UseMeter
from enbloc.units import SECOND

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="use is read from /proc")
MIB = 1 << 20


def top(world: World, *steps: str) -> Any:
    return usage(world.store, steps, {}, world.nodes.measure)


def test_memory_is_that_of_all_processes_of_the_container() -> None:
    # The second process has left the group, the session and its parent: it is the container's all the same.
    child = "import time; kept = bytearray(b'x') * (40 << 20); print('held', flush=True); time.sleep(99)"
    with World() as world:
        world.run(pod_of(shell(f'setsid {sys.executable} -c "{child}" & wait')))
        world.said("held")
        (found,) = top(world, "namespaces", "default", "pods")["items"]
        (container,) = found["containers"]
        assert int(container["usage"]["memory"].removesuffix("Ki")) * 1024 >= 40 * MIB
        (node,) = top(world, "nodes")["items"]
        assert int(node["usage"]["memory"].removesuffix("Ki")) * 1024 >= 40 * MIB


def test_cpu_is_the_growth_since_the_measurement_before() -> None:
    now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 60 * SECOND  # long after the start
    meter = UseMeter(lambda: now_ns)
    with World() as world:
        world.run(pod_of(python("while True: pass")))
        pid = int(world.running()["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2])
        before = meter.measure([pid])[pid]
        spent_ns = _cpu_ns(pid)
        world.until(lambda: _cpu_ns(pid) >= spent_ns + SECOND // 5)
        now_ns += 10 * SECOND  # by this clock a fifth of a second in ten, and what it took while the test waited
        after = meter.measure([pid])[pid]
        assert after.window_ns == 10 * SECOND
        assert SECOND // 50 <= after.cpu_nanocores <= SECOND
        assert after.memory_bytes > MIB
        assert before.window_ns > 50 * SECOND, "a container that was not measured before: since its start"
        now_ns += LEAST_WINDOW_NS // 2  # too soon: compared with the measurement before the last
        assert meter.measure([pid])[pid].window_ns == 10 * SECOND + LEAST_WINDOW_NS // 2
    assert meter.measure([pid]) == {}


def test_a_pod_without_a_process_uses_nothing() -> None:
    with World() as world:
        world.run(pod_of(shell("sleep 99")))
        world.running()
        world.delete(grace_s=0)
        world.until(lambda: world.phase() == "gone" and not world.nodes.measure())
        assert top(world, "pods")["items"] == []
        (node,) = top(world, "nodes")["items"]
        assert node["usage"] == {"cpu": "0n", "memory": "0Ki"}


def test_use_is_shown_in_nanocores_and_kibibytes() -> None:
    with World() as world:
        world.run(pod_of(shell("sleep 99")))
        world.running()
        measured = {("default", "p"): {"main": Use(250_000_000, 64 * MIB, 2 * SECOND)}}
        (found,) = usage(world.store, ["pods"], {}, lambda: measured)["items"]
        assert found["containers"] == [{"name": "main", "usage": {"cpu": "250000000n", "memory": "65536Ki"}}]
        assert found["window"] == "2.000s"


def _cpu_ns(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) * SECOND // os.sysconf("SC_CLK_TCK")
