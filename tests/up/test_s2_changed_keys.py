"""S2: `enbloc up --data` is started again with other keys: no running gang is evicted, old keys verify, and records of
keys that are gone are dropped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from enbloc.gangs.own_annotations import DIGEST
from enbloc.gangs.record_digests import new_keyring, write_keys
from enbloc.up.cluster import RECORD_KEYS_FILE
from support import manifests as m
from up.test_s_attacks_live import CLAIM, PATHS, create
from up.test_up import Up, up

RESERVE = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 1, "reservedNodePercent": 100}}
CONFIG = {"actions": ["enqueue", "allocate", RESERVE], "partialGangTimeout": "1s"}


def _eventually(holds: Callable[[], object]) -> bool:
    """Whether it comes to hold within 30 s."""
    end_s = time.monotonic() + 30
    while not holds():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.1)
    return True


def _add_a_key(file: Path) -> None:
    keys = json.loads(file.read_text())
    (made,) = write_keys(new_keyring()).values()
    file.write_text(json.dumps({**keys, "key-2": made}))


@pytest.mark.parametrize("change", ["rotated", "lost"])
def test_s2_a_process_starts_again_with_other_keys(tmp_path: Path, change: str) -> None:
    config, data = tmp_path / "config.json", tmp_path / "data"
    config.write_text(json.dumps(CONFIG))
    arguments = ("--data", str(data), "--nodes", "1", "--node-resources", "cpu=4", "--config", str(config))
    pods, groups = PATHS["Pod"].format("default"), PATHS[m.SCHEDULING].format("default")

    def claim(cluster: Up) -> str | None:
        found: dict[str, str] = cluster.ask(f"{groups}/starving")["metadata"].get("annotations") or {}
        return found.get(CLAIM)

    with up(tmp_path, *arguments) as (cluster, _):
        create(cluster, *m.gang("run", 2, cpu=1))
        before = {one["metadata"]["uid"] for one in cluster.wait_for(f"{pods}?fieldSelector=status.phase%3DRunning", 2)}
        create(cluster, *m.gang("starving", 1, cpu=4))
        cluster.wait_for(f"{pods}?fieldSelector=status.phase%3DPending", 1)
        assert _eventually(lambda: claim(cluster))
        kept = claim(cluster)
    keys = data / RECORD_KEYS_FILE
    if change == "rotated":
        _add_a_key(keys)
    else:
        keys.unlink()
    with up(tmp_path, *arguments) as (cluster, _):
        create(cluster, m.pod("probe", "0", run_time="0s"))  # BestEffort: a cycle has run when it has
        cluster.wait_for(f"{pods}?fieldSelector=status.phase%3DSucceeded", 1)
        running = cluster.wait_for(f"{pods}?fieldSelector=status.phase%3DRunning", 2)
        assert {one["metadata"]["uid"] for one in running} == before
        if change == "rotated":
            assert claim(cluster) == kept
            digests = [one["metadata"]["annotations"][DIGEST] for one in running]
            assert all(one.startswith("key-1:") for one in digests), "pods are not rewritten for a new key"
        else:  # it was dropped, and made anew with the new key
            assert _eventually(lambda: claim(cluster) not in (kept, None))
        assert not [one for one in _events(cluster) if one["reason"] == "PartialGang"]


def _events(cluster: Up) -> list[Any]:
    found: list[Any] = cluster.ask("/api/v1/namespaces/default/events")["items"]
    return found
