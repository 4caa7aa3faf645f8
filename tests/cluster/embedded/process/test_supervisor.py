"""Nothing is left behind, whichever process is killed; and no foreign process is hit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.embedded.process.running import World, is_running, pod_of, python, shell, state_of
from enbloc.cluster.embedded.process.orphans import end_orphans, record_supervisor
from enbloc.cluster.embedded.process.supervisor import start_time

ESCAPES = """
import os, sys, time
told, tell = os.pipe()
def daemon():
    if os.fork(): return os.read(told, 1)
    os.setsid()
    if os.fork(): os._exit(0)
    os.setpgid(0, 0)
    print('daemon', os.getpid(), flush=True)
    os.write(tell, b'.')
    time.sleep(300)
    os._exit(0)
daemon()
os.system('sleep 301 &')
print('up', flush=True)
"""
"""Leaves a daemon in a session of its own, without a parent, and a child in the background."""

CHILD = Path(__file__).with_name("cluster_process.py")


def until(holds: Callable[[], object], patience_s: float = 15.0) -> None:
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def daemon_of(world: World, name: str = "p") -> int:
    world.said("daemon", name)
    world.said("up", name)
    return int(world.log(name).partition("daemon ")[2].split()[0])


def test_when_a_command_ends_whatever_it_started_ends() -> None:
    with World() as world:
        world.run(pod_of(python(ESCAPES)))
        pod = world.ended()
        assert pod["status"]["phase"] == "Succeeded"
        assert not is_running(daemon_of(world))


def test_when_a_pod_is_deleted_whatever_it_started_ends() -> None:
    with World() as world:
        world.run(pod_of(python(ESCAPES + "time.sleep(300)")))
        pid = daemon_of(world)
        assert is_running(pid)
        world.delete()
        world.until(lambda: world.phase() == "gone")
        assert not is_running(pid)


def test_when_the_cluster_stops_whatever_it_started_ends() -> None:
    with World() as world:
        world.run(pod_of(python(ESCAPES + "time.sleep(300)")))
        pid = daemon_of(world)
        assert is_running(pid)
    assert not is_running(pid)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_when_a_warden_is_killed_its_container_ends_and_no_other() -> None:
    with World() as world:
        world.run(pod_of(python(ESCAPES + "time.sleep(300)")), pod_of(shell("echo up; sleep 60"), name="q"))
        stray = daemon_of(world)
        world.said("up", "q")
        pids = [int(state_of(world.running(name))["containerID"].removeprefix("process://")) for name in ("p", "q")]
        os.kill(parent_of(pids[0]), signal.SIGKILL)
        pod = world.ended()
        assert state_of(pod)["state"]["terminated"]["exitCode"] == 137
        world.until(lambda: not is_running(stray) and not is_running(pids[0]))
        assert is_running(pids[1])
        assert world.phase("q") == "Running"


def test_when_the_supervisor_is_killed_all_end_and_a_new_one_is_made() -> None:
    with World() as world:
        world.run(pod_of(python(ESCAPES + "time.sleep(300)"), restartPolicy="Always"))
        stray = daemon_of(world)
        pid = int(state_of(world.running())["containerID"].removeprefix("process://"))
        os.kill(parent_of(parent_of(pid)), signal.SIGKILL)
        world.until(lambda: state_of(world.get())["restartCount"] == 1 and world.phase() == "Running")
        world.until(lambda: not is_running(pid) and not is_running(stray))
        world.said("up")


def started(directory: Path, code: str, *more: str) -> tuple[subprocess.Popen[bytes], int, list[int]]:
    """A process that runs a cluster with one such pod; its supervisor, and the pids that the pod printed."""
    cluster = subprocess.Popen([sys.executable, CHILD, directory, code, *more], stdout=subprocess.PIPE)
    assert cluster.stdout is not None
    words = cluster.stdout.readline().split()
    cluster.stdout.close()
    return cluster, int(words[0]), [int(word) for word in words[1:]]


def tree(root: int) -> list[int]:
    """A process and everything below it."""
    found = [root]
    for pid in found:
        for name in os.listdir("/proc"):
            if name.isdecimal() and int(name) not in found:
                try:
                    if parent_of(int(name)) == pid:
                        found.append(int(name))
                except OSError:
                    continue
    return found


def test_when_the_cluster_is_killed_all_end_by_themselves(tmp_path: Path) -> None:
    cluster, supervisor, pids = started(tmp_path, ESCAPES + "time.sleep(300)")
    assert all(is_running(pid) for pid in pids)
    cluster.kill()
    cluster.wait(10)
    until(lambda: not any(is_running(pid) for pid in (supervisor, *pids)))


def test_a_temporary_directory_goes_even_if_the_cluster_is_killed() -> None:
    cluster, supervisor, _ = started(Path("-"), ESCAPES + "time.sleep(300)")
    directory = Path(Path(f"/proc/{supervisor}/cmdline").read_bytes().split(b"\0")[-2].decode())
    assert directory.is_dir()
    cluster.kill()
    cluster.wait(10)
    until(lambda: not directory.exists())


def test_when_all_are_killed_at_one_blow_the_next_start_ends_the_rest(tmp_path: Path) -> None:
    cluster, supervisor, pids = started(tmp_path, ESCAPES + "time.sleep(300)")
    for pid in (cluster.pid, supervisor):  # stopped first, so that no process can react
        os.kill(pid, signal.SIGSTOP)
    wardens = [pid for pid in tree(supervisor)[1:] if parent_of(pid) == supervisor]
    for pid in wardens:
        os.kill(pid, signal.SIGSTOP)
    for pid in (*wardens, supervisor, cluster.pid):
        os.kill(pid, signal.SIGKILL)
    cluster.wait(10)
    until(lambda: not is_running(supervisor))
    left = [pid for pid in pids if is_running(pid)]
    assert left  # the daemon: only the command itself is killed by the kernel
    with World(tmp_path) as world:
        assert world.nodes.ended_orphans >= 1
        assert not any(is_running(pid) for pid in pids)


def test_a_stranger_with_a_recorded_number_is_never_hit(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        record_supervisor(tmp_path, stranger.pid)
        start = start_time(stranger.pid)
        for folder, record in (
            ("a", f"{stranger.pid} {start + 1} {'0' * 32}\n"),
            ("b", f"{stranger.pid} {start - 100} {'1' * 32}\n"),
            ("c", f"{stranger.pid}"),
            ("d", "nonsense"),
            ("e", ""),
        ):
            (tmp_path / "pods" / folder / "main").mkdir(parents=True)
            (tmp_path / "pods" / folder / "main" / "process").write_text(record)
        (tmp_path / "supervisor").write_text(f"{stranger.pid} {start + 1} -\n")
        assert end_orphans(tmp_path) == 0
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_records_of_another_boot_name_no_process(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        record_supervisor(tmp_path, process.pid)
        (tmp_path / "boot").write_text("another boot")
        (tmp_path / "pods" / "a" / "main").mkdir(parents=True)
        record = f"{process.pid} {start_time(process.pid)} {'0' * 32}\n"
        (tmp_path / "pods" / "a" / "main" / "process").write_text(record)
        assert end_orphans(tmp_path) == 0
        assert process.poll() is None
        record_supervisor(tmp_path, 1)
        (tmp_path / "supervisor").unlink()
        assert end_orphans(tmp_path) == 1
        assert process.wait(10) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()


def test_ctrl_c_is_not_for_the_containers(tmp_path: Path) -> None:
    with World() as world:
        world.run(pod_of(shell("echo up; sleep 60")))
        world.said("up")
        pid = int(state_of(world.running())["containerID"].removeprefix("process://"))
        for one in (pid, parent_of(pid)):
            assert os.getsid(one) != os.getsid(0)


@pytest.mark.soak
def test_killed_at_any_instant_nothing_is_left(tmp_path: Path) -> None:
    for round_ in range(50):
        cluster, supervisor, pids = started(tmp_path, ESCAPES + "time.sleep(300)")
        time.sleep(round_ / 1000)
        cluster.kill()
        cluster.wait(10)
        until(lambda known=(supervisor, *pids): not any(is_running(pid) for pid in known))
