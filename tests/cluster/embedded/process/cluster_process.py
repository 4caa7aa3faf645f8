"""A process that runs a cluster with one pod until it is killed: `cluster_process.py DIRECTORY|- CODE`.

Once the pod's command has named its daemon, one line on stdout: the pids of the supervisor, the command, the daemon.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from cluster.embedded.process.running import World, pod_of, python, state_of


def main(directory: str, code: str) -> None:
    world = World(None if directory == "-" else Path(directory))
    world.run(pod_of(python(code)))
    world.said("up")
    world.said("daemon")
    session = world.nodes._processes._session
    assert session is not None
    pid = state_of(world.running())["containerID"].removeprefix("process://")
    print(session.process.pid, pid, world.log().partition("daemon ")[2].split()[0], flush=True)
    while True:
        world.step()
        time.sleep(0.01)


if __name__ == "__main__":
    main(*sys.argv[1:])
