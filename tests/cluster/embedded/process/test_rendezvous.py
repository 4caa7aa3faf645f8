"""The example of a rendezvous runs: the whole control plane, and three processes that find each other as a gang."""

from __future__ import annotations

import time
from pathlib import Path

import yaml

from cluster.embedded.process.running import World
from enbloc.cluster.embedded.cluster import make_store, provide_queues
from enbloc.config import parse, scheduler_names
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.runtime.control_plane import ControlPlane

EXAMPLE = Path(__file__).parents[4] / "examples" / "rendezvous.yaml"


def test_three_processes_of_a_gang_do_a_rendezvous() -> None:
    config = parse(None)
    store = make_store(time.time_ns, config)
    provide_queues(store, ())
    for document in yaml.safe_load_all(EXAMPLE.read_text()):
        store.create(document)
    plane = ControlPlane(store, config, scheduler_names(config, alone=True), simulated_key_pair)
    with World(store=store) as world:

        def is_done() -> bool:
            version = -1
            while version != store.version:
                version = store.version
                store.collect_garbage()
                plane.reconcile(store.now())
                plane.schedule(store.now())
            job = store.get("Job.batch.volcano.sh", "default", "sum")
            return job is not None and job.get("status", {}).get("state", {}).get("phase") in ("Completed", "Failed")

        world.until(is_done)
        said = {name: world.log(name) for name in ("sum-master-0", "sum-worker-0", "sum-worker-1")}
    assert said == {
        "sum-master-0": "rank 0 of 3: the sum of all ranks is 3\n",
        "sum-worker-0": "rank 1 of 3: the sum of all ranks is 3\n",
        "sum-worker-1": "rank 2 of 3: the sum of all ranks is 3\n",
    }
    plane.close()
