"""Pods as processes: how they start, end, restart and are stopped."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from cluster.embedded.process.running import World, is_running, pod_of, python, shell, state_of
from enbloc.api.meta import Ref, condition_of
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes.backoff import Backoff
from enbloc.cluster.embedded.nodes.runtime import NodeRuntime
from enbloc.cluster.embedded.process import ProcessNodes, local_node
from enbloc.units import SECOND
from support.embedded_store import node

IGNORES_TERM = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def test_it_is_a_node_runtime() -> None:
    with World() as world:
        runtime: NodeRuntime = world.nodes
        assert runtime.due() is None


@pytest.mark.parametrize(
    "code, exit_code, phase, reason",
    [
        ("exit 0", 0, "Succeeded", "Completed"),
        ("exit 3", 3, "Failed", "Error"),
        ("kill -TERM $$$$", 143, "Failed", "Error"),
        ("kill -KILL $$$$", 137, "Failed", "Error"),
    ],
)
def test_exit_codes_and_signals_are_reported(code: str, exit_code: int, phase: str, reason: str) -> None:
    with World() as world:
        world.run(pod_of(shell(code)))
        pod = world.ended()
        assert pod["status"]["phase"] == phase
        finished = state_of(pod)["state"]["terminated"]
        assert (finished["exitCode"], finished["reason"]) == (exit_code, reason)
        ready = condition_of(pod, "Ready")
        assert ready is not None
        assert ready["status"] == "False"


def test_a_running_pod_is_ready_and_has_an_address() -> None:
    with World() as world:
        world.run(pod_of(shell("sleep 60")), pod_of(shell("sleep 60"), name="q"))
        pods = [world.running("p"), world.running("q")]
        for pod in pods:
            ready = condition_of(pod, "Ready")
            assert ready is not None
            assert ready["status"] == "True"
            assert state_of(pod)["started"]
        addresses = {pod["status"]["podIP"] for pod in pods}
        assert len(addresses) == 2
        assert all(address.startswith("127.") for address in addresses)


def test_a_container_without_a_command_fails_with_a_word_on_it() -> None:
    with World() as world:
        world.run(pod_of({"name": "main", "image": "nginx", "args": ["-g"]}))
        status = world.ended()["status"]
        assert status["reason"] == "NoCommand"
        assert "--runtime sim" in status["message"]
        with pytest.raises(Refused, match=r'"main" in pod .* did not start: NoCommand: .*--runtime sim'):
            world.log()


@pytest.mark.parametrize(
    "command, code", [(["no-such-command-anywhere"], 127), (["/etc/passwd"], 126), (["./nothing/here"], 127)]
)
def test_a_command_that_cannot_be_started_says_why(command: list[str], code: int) -> None:
    with World() as world:
        world.run(pod_of({"name": "main", "image": "", "command": command}))
        finished = state_of(world.ended())["state"]["terminated"]
        assert (finished["exitCode"], finished["reason"]) == (code, "StartError")
        assert command[0] in finished["message"]
        assert any("cannot be started" in event["message"] for event in world.store.list("Event")[0])


@pytest.mark.parametrize("name", ["", "../x", "A b", "."])
def test_a_name_that_could_be_a_path_is_refused(name: str) -> None:
    with World() as world:
        world.run(pod_of(shell("true", name=name)))
        assert world.ended()["status"]["reason"] == "InvalidPod"


def test_a_uid_is_no_path(tmp_path: Path) -> None:
    with World(tmp_path / "state") as world:
        made = pod_of(shell("true"))
        made["metadata"]["uid"] = "../../../evil"
        world.run(made)
        assert world.ended()["status"]["phase"] == "Succeeded"
        world.delete()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state"]


def test_a_pod_that_does_not_fit_is_refused() -> None:
    with World() as world:
        big = shell("true", resources={"requests": {"cpu": "65"}})
        world.run(pod_of(big))
        assert world.ended()["status"]["reason"] == "OutOfcpu"


def test_room_is_free_again_when_the_processes_are_gone() -> None:
    with World() as world:
        half = {"requests": {"cpu": "40"}}
        world.run(pod_of(shell("true", resources=half)))
        world.ended()
        world.run(pod_of(shell("true", resources=half), name="q"))
        assert world.ended("q")["status"]["phase"] == "Succeeded"


# -- restarts


def test_on_failure_it_is_restarted_until_it_succeeds() -> None:
    code = "import pathlib; p = pathlib.Path('n'); n = len(p.read_text()) if p.exists() else 0\n"
    code += "p.write_text('x' * (n + 1)); print('attempt', n); raise SystemExit(n < 3)"
    with World() as world:
        world.run(pod_of(python(code), restartPolicy="OnFailure"))
        pod = world.ended()
        assert pod["status"]["phase"] == "Succeeded"
        status = state_of(pod)
        assert status["restartCount"] == 3
        assert status["lastState"]["terminated"]["exitCode"] == 1
        assert world.log() == "attempt 3\n"
        assert world.log(previous=True) == "attempt 2\n"


def test_restarts_are_backed_off_and_always_goes_on_after_success() -> None:
    backoff = Backoff(first_ns=30 * SECOND, max_ns=60 * SECOND)
    with World(backoff=backoff) as world:
        world.run(pod_of(shell("echo once; exit 0"), restartPolicy="Always"))
        world.until(lambda: "waiting" in state_of(world.get())["state"] if world.phase() == "Running" else False)
        status = state_of(world.get())
        assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert status["restartCount"] == 1  # the first time at once
        due = world.nodes.due()
        assert due is not None
        assert 25 * SECOND < due - world.store.now() <= 30 * SECOND
        assert world.log() == "once\n"
        assert world.log(previous=True) == "once\n"


def test_containers_are_restarted_one_by_one() -> None:
    with World() as world:
        world.run(pod_of(shell("exit 0", "good"), shell("test -e x && exit 0; touch x; exit 1", "bad")))
        pod = world.ended()
        assert pod["status"]["phase"] == "Failed"
        again = pod_of(shell("exit 0", "good"), shell("test -e x && exit 0; touch x; exit 1", "bad"), name="q")
        again["spec"]["restartPolicy"] = "OnFailure"
        world.run(again)
        pod = world.ended("q")
        assert pod["status"]["phase"] == "Succeeded"
        assert [state_of(pod, name)["restartCount"] for name in ("good", "bad")] == [0, 1]


# -- init containers and sidecars


def test_init_containers_run_in_order_before_the_rest() -> None:
    volume: dict[str, Any] = {"volumes": [{"name": "v", "emptyDir": {}}]}
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/data"}]}
    inits = [shell(f"echo {name} >> data/order", name, **mounts) for name in ("first", "second")]
    with World() as world:
        world.run(pod_of(shell("echo main >> data/order; cat data/order", **mounts), initContainers=inits, **volume))
        pod = world.ended()
        assert pod["status"]["phase"] == "Succeeded"
        assert world.log() == "first\nsecond\nmain\n"
        assert world.log(container="first") == ""
        assert [each["state"]["terminated"]["exitCode"] for each in pod["status"]["initContainerStatuses"]] == [0, 0]


def test_an_init_container_that_fails_ends_the_pod_if_it_is_never_restarted() -> None:
    with World() as world:
        world.run(pod_of(shell("true"), initContainers=[shell("exit 4", "init")]))
        pod = world.ended()
        assert pod["status"]["phase"] == "Failed"
        assert state_of(pod, "init")["state"]["terminated"]["exitCode"] == 4
        assert "waiting" in state_of(pod)["state"]


def test_a_sidecar_starts_before_and_ends_after_and_does_not_keep_the_pod(tmp_path: Path) -> None:
    up = tmp_path / "up"
    code = f"trap 'echo bye; exit 0' TERM; echo up; touch {up}; while :; do sleep 0.02; done"
    work = f"while ! [ -e {up} ]; do sleep 0.02; done; echo work"
    with World() as world:
        world.run(pod_of(shell(work), initContainers=[shell(code, "side", restartPolicy="Always")]))
        pod = world.ended()
        assert pod["status"]["phase"] == "Succeeded"
        said = world.log(container="side").split("\n")  # the shell may say that its `sleep` was ended
        assert (said[0], said[-2]) == ("up", "bye")
        assert "terminated" in state_of(pod, "side")["state"]


def test_a_sidecar_that_ends_is_restarted_even_if_the_pod_never_is() -> None:
    with World() as world:
        side = shell("exit 1", "side", restartPolicy="Always")
        world.run(pod_of(shell("sleep 60"), initContainers=[side]))
        world.running()
        world.until(lambda: state_of(world.get(), "side")["restartCount"] >= 2)
        assert world.phase() == "Running"


# -- deadlines and deletion


def test_active_deadline_ends_a_pod_with_its_reason() -> None:
    with World() as world:
        world.run(pod_of(shell("sleep 60"), activeDeadlineSeconds=1))
        begun = time.monotonic()
        pod = world.ended()
        assert 0.9 <= time.monotonic() - begun < 5
        assert pod["status"]["reason"] == "DeadlineExceeded"
        assert state_of(pod)["state"]["terminated"]["exitCode"] == 143


def test_deletion_asks_first() -> None:
    code = "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    with World() as world:
        world.run(pod_of(shell(code)))
        world.said("up")
        watch = world.store.watch(["Pod"], world.store.version)
        world.delete()
        assert world.phase() == "Running"
        begun = time.monotonic()
        world.until(lambda: world.phase() == "gone")
        assert time.monotonic() - begun < 5
        assert watch.drain()[-1].type == "DELETED"


def test_who_does_not_listen_is_killed_when_the_grace_is_over() -> None:
    with World() as world:
        world.run(pod_of(python(IGNORES_TERM), terminationGracePeriodSeconds=1))
        world.said("up")
        pid = int(state_of(world.get())["containerID"].removeprefix("process://"))
        begun = time.monotonic()
        world.delete()
        world.until(lambda: world.phase() == "gone")
        assert 0.9 <= time.monotonic() - begun < 5
        assert not is_running(pid)


def test_a_later_deletion_may_shorten_the_grace() -> None:
    with World() as world:
        world.run(pod_of(python(IGNORES_TERM), terminationGracePeriodSeconds=60))
        world.said("up")
        world.delete()
        time.sleep(0.1)
        assert world.phase() == "Running"
        begun = time.monotonic()
        world.delete(grace_s=1)
        world.until(lambda: world.phase() == "gone")
        assert time.monotonic() - begun < 5


def test_forced_deletion_kills_at_once_and_the_name_is_free() -> None:
    with World() as world:
        world.run(pod_of(python(IGNORES_TERM)))
        world.said("up")
        pid = int(state_of(world.get())["containerID"].removeprefix("process://"))
        world.delete(grace_s=0)
        assert world.phase() == "gone"
        world.run(pod_of(shell("echo new")))
        world.ended()
        assert world.log() == "new\n"
        world.until(lambda: not is_running(pid))


def test_finalizers_keep_the_object_but_not_the_processes() -> None:
    with World() as world:
        made = pod_of(shell("sleep 60"))
        made["metadata"]["finalizers"] = ["example.com/keep"]
        world.run(made)
        world.running()
        world.delete()
        pod = world.ended()
        assert pod["status"]["phase"] == "Failed"
        world.store.patch(Ref("Pod", "default", "p"), {"metadata": {"finalizers": None}})
        world.until(lambda: world.phase() == "gone")


def test_pods_of_a_node_that_goes_are_killed() -> None:
    with World() as world:
        world.run(pod_of(shell("sleep 60")))
        pid = int(state_of(world.running())["containerID"].removeprefix("process://"))
        world.store.delete(Ref("Node", "", "n1"))
        world.until(lambda: world.phase() == "gone" and not is_running(pid))


def test_a_pod_waits_for_a_node_that_is_not_ready() -> None:
    with World() as world:
        not_ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        world.store.patch(Ref("Node", "", "n1"), not_ready, "status")
        world.run(pod_of(shell("true")))
        assert world.phase() == "Pending"
        world.store.patch(Ref("Node", "", "n1"), {"status": {"conditions": None}}, "status")
        assert world.ended()["status"]["phase"] == "Succeeded"


# -- missing things


def test_a_container_waits_for_the_config_that_it_needs() -> None:
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "a"}}}]
    with World() as world:
        world.run(pod_of(shell("echo got $A", env=env)))
        world.until(lambda: "containerStatuses" in world.get()["status"])
        waiting = state_of(world.get())["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        assert waiting["message"] == 'configmap "cm" not found'
        with pytest.raises(Refused, match="waiting to start: CreateContainerConfigError"):
            world.log()
        world.store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"a": "1"}})
        world.ended()
        assert world.log() == "got 1\n"


def test_the_last_words_of_a_container_are_its_message() -> None:
    with World() as world:
        world.run(pod_of(shell('echo because > "$ENBLOC_TERMINATION_LOG"; exit 1')))
        assert state_of(world.ended())["state"]["terminated"]["message"] == "because\n"
        talks = shell("echo in the log; exit 1", terminationMessagePolicy="FallbackToLogsOnError")
        world.run(pod_of(talks, name="q"))
        assert state_of(world.ended("q"))["state"]["terminated"]["message"] == "in the log\n"


# -- over restarts of the cluster


def test_after_a_restart_what_ran_is_restarted_or_has_failed(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.run(
            pod_of(shell("echo first; sleep 60")),
            pod_of(shell("echo first; sleep 60"), name="again", restartPolicy="Always"),
            pod_of(shell("echo done"), name="done"),
        )
        for name in ("p", "again"):
            world.said("first", name)
        world.ended("done")
        store = world.store
    assert store.get("Pod", "default", "p")["status"]["phase"] == "Running"  # type: ignore[index]
    with World(tmp_path, store=store) as world:
        pod = world.ended()
        finished = state_of(pod)["state"]["terminated"]
        assert (pod["status"]["phase"], finished["exitCode"]) == ("Failed", 137)
        assert "stopped while the container ran" in finished["message"]
        assert world.log() == "first\n"
        assert world.log("done") == "done\n"
        world.until(lambda: state_of(world.get("again"))["restartCount"] == 1)
        world.said("first", "again")
        assert world.log("again", previous=True) == "first\n"


def test_directories_go_with_their_pods(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.run(pod_of(shell("true")), pod_of(shell("true"), name="q"))
        world.ended()
        world.ended("q")
        assert len(list((tmp_path / "pods").iterdir())) == 2
        world.delete()
        world.until(lambda: len(list((tmp_path / "pods").iterdir())) == 1)
        store = world.store
    store.delete(Ref("Pod", "default", "q"))
    with World(tmp_path, store=store) as world:
        world.until(lambda: not list((tmp_path / "pods").iterdir()))


def test_a_temporary_directory_goes_in_the_end() -> None:
    with World() as world:
        world.run(pod_of(shell("echo $ENBLOC_ROOT; sleep 60")))
        world.said("/")
        root = Path(world.log().strip())
        assert root.is_dir()
    assert not root.exists()
    assert not root.parents[3].exists()


# -- the machine


def test_a_local_node_has_what_the_machine_has() -> None:
    store = Store(time.time_ns)
    made = store.create(local_node("here"))
    assert made["status"]["allocatable"]["cpu"] == f"{len(os.sched_getaffinity(0)) * 1000}m"
    half = local_node("half", parts=2)["status"]["allocatable"]
    assert (
        int(half["memory"].removesuffix("Ki")) == int(made["status"]["allocatable"]["memory"].removesuffix("Ki")) // 2
    )


def test_many_pods_at_once() -> None:
    with World() as world:
        names = [f"p{number}" for number in range(40)]
        world.run(*(pod_of(shell(f"echo {name}"), name=name) for name in names))
        for name in names:
            assert world.ended(name)["status"]["phase"] == "Succeeded"
            assert world.log(name) == f"{name}\n"


def test_closing_is_quick_even_if_no_client_reads() -> None:
    with World() as world:
        world.run(*(pod_of(python(IGNORES_TERM), name=f"p{number}") for number in range(3)))
        pids = []
        for number in range(3):
            world.said("up", f"p{number}")
            pids.append(int(state_of(world.get(f"p{number}"))["containerID"].removeprefix("process://")))
        begun = time.monotonic()
    assert time.monotonic() - begun < 2
    assert not any(is_running(pid) for pid in pids)


def test_closing_twice_or_with_nothing_running_is_fine() -> None:
    store = Store(time.time_ns, auto_namespaces=True)
    store.create(node())
    nodes = ProcessNodes(store)
    nodes.close()
    nodes.close()
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL  # ours is left alone


def test_what_had_ended_before_a_restart_is_not_run_again(tmp_path: Path) -> None:
    pod = pod_of(shell("echo once", "done"), shell("echo on; sleep 60", "on"), restartPolicy="OnFailure")
    pod["spec"]["initContainers"] = [shell("echo init", "init")]
    pod["spec"]["activeDeadlineSeconds"] = 600
    with World(tmp_path) as world:
        world.run(pod)
        world.said("on", container="on")
        world.until(lambda: "terminated" in state_of(world.get(), "done")["state"])
        begun = world.get()["status"]["startTime"]
        store = world.store
    with World(tmp_path, store=store) as world:
        world.until(lambda: state_of(world.get(), "on")["restartCount"] == 1)
        world.said("on", container="on")
        for name in ("init", "done"):
            status = state_of(world.get(), name)
            assert (status["restartCount"], status["state"]["terminated"]["exitCode"]) == (0, 0)
        assert world.get()["status"]["startTime"] == begun


def test_a_pod_may_come_back_under_the_uid_of_one_that_went(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        for number in range(5):
            made = pod_of(shell(f"test ! -e x && touch x && echo {number}"))
            made["metadata"]["uid"] = "the-same"
            world.run(made)
            assert world.ended()["status"]["phase"] == "Succeeded"
            assert world.log() == f"{number}\n"
            world.delete()
