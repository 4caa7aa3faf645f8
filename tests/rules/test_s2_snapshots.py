"""S2: a snapshot stores the verdict on the scheduler's records, and `whatif` trusts it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj
from enbloc.gangs.own_annotations import OWN_ANNOTATIONS
from enbloc.gangs.record_digests import SIMULATED, Keyring, new_keyring
from enbloc.sim.snapshot import UNVERIFIED, VERIFIED, snapshot
from support import manifests as m
from support.simulation import simulate

RESERVE = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 1, "reservedNodePercent": 100}}
CONFIG = {"actions": ["enqueue", "allocate", RESERVE]}
CLAIM = "enbloc.dev/claim-reserve"


def cluster() -> list[Obj]:
    """A running gang with its marks, and a starving one with its reservation."""
    running, starving = m.gang("run", 2, cpu=1), m.gang("starving", 1, cpu=8, at="1s")
    return simulate(m.node("n", 8), running, starving, config=CONFIG, until="10s").objects


def taken(objects: Sequence[Obj], keyring: Keyring | None) -> tuple[str, dict[str, dict[str, str]]]:
    """The verdict, and the scheduler's annotations on each object of a snapshot."""
    lists: dict[str, list[Obj]] = {}
    for obj in objects:
        lists.setdefault(kind_id(obj), []).append(obj)
    first, *rest = snapshot(lists, 10**9, keyring)
    own: dict[str, dict[str, str]] = {}
    for obj in rest:
        found: dict[str, Any] = obj["metadata"].get("annotations") or {}
        own[f"{obj['kind']}/{obj['metadata']['name']}"] = {k: v for k, v in found.items() if k in OWN_ANNOTATIONS}
    return str(first["records"]), {name: found for name, found in own.items() if found}


def test_s2_a_snapshot_keeps_the_records_that_verify() -> None:
    verdict, own = taken(cluster(), SIMULATED)
    assert verdict == VERIFIED
    assert own == taken(cluster(), None)[1]
    assert CLAIM in own["PodGroup/starving"]
    assert {"Pod/run-0", "Pod/run-1"} <= own.keys()


def test_s2_a_snapshot_leaves_out_what_was_forged() -> None:
    """Records of another key, and a claim that was copied to another gang."""
    objects = cluster()
    (starving,) = (obj for obj in objects if obj["kind"] == "PodGroup" and obj["metadata"]["name"] == "starving")
    (other,) = (obj for obj in objects if obj["kind"] == "PodGroup" and obj["metadata"]["name"] == "run")
    copied = starving["metadata"]["annotations"][CLAIM]
    other["metadata"].setdefault("annotations", {})[CLAIM] = copied
    _, own = taken(objects, SIMULATED)
    assert CLAIM in own["PodGroup/starving"]
    assert CLAIM not in own.get("PodGroup/run", {})
    assert taken(objects, new_keyring()) == (VERIFIED, {})


def test_s2_without_the_key_a_snapshot_says_that_nothing_was_verified() -> None:
    verdict, own = taken(cluster(), None)
    assert verdict == UNVERIFIED
    assert own
    assert json.dumps(own)
