"""R1: claims of a gang of 5,000 pods with long names are recorded and survive a restart, whatever their kind. A claim
that no object could hold is not made, and the gang's object says so."""

from __future__ import annotations

import random

import pytest

from enbloc.engine.claims.claim import Claim, Slot
from enbloc.engine.claims.placeholders import make_placeholders
from enbloc.engine.decisions import Complain
from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.model import GangKey, Template
from engine.claims.scenes import SECOND_NS, Scene, small
from engine.claims.test_waves import expect_wave
from support import manifests as m

PODS = 5_000
_DRAW = random.Random(1)


def long_name() -> str:
    """200 characters of which nothing can be left out: compression does not help."""
    return "".join(_DRAW.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=200))


NODES = [long_name() for _ in range(500)]
POD_NAMES = [long_name() for _ in range(PODS)]
LATER = Template(PODS, m.pod_spec(1))


def large() -> Scene:
    """A NonStrict gang, so that it can hold as well as reserve."""
    pods = m.koordinator_gang("g", PODS, cpu=1, mode=m.NON_STRICT)
    for name, pod in zip(POD_NAMES, pods, strict=True):
        pod["metadata"]["name"] = name
    return Scene([m.node(name, 40) for name in NODES], pods)


def claim_of(scene: Scene, kind: ClaimKind) -> Claim:
    gang = scene.gang()
    if kind is ClaimKind.WAVE:
        expect_wave(scene, LATER)
        tasks = make_placeholders(scene.state, gang, "late", LATER, 0, PODS)
    else:
        tasks = list(gang.tasks.values())
    slots = [Slot(task.name, NODES[index % len(NODES)], task) for index, task in enumerate(tasks)]
    claim = Claim(gang, kind, slots, 60 * SECOND_NS if kind is ClaimKind.WAVE else 0)
    if kind is ClaimKind.HOLD:
        claim.clock_ns, claim.held = SECOND_NS, True
    if kind is ClaimKind.RESERVE:
        claim.clock_ns = SECOND_NS
    return claim


@pytest.mark.parametrize("kind", [kind for kind in ClaimKind if kind.sets_room_aside])
def test_r1_a_claim_for_5000_pods_with_long_names_survives_a_restart(kind: ClaimKind) -> None:
    scene = large()
    claim = claim_of(scene, kind)
    assert scene.claims.make(claim, "Made", "for a test")
    (written,) = scene.decided
    assert written.record is not None
    text = claim_records.write(written.record)
    assert len(text) < claim_records.RECORDS_BYTES
    places = claim.places
    assert len(places) == PODS

    scene.claims.end(scene.gang(), kind, "Ended", "the scheduler stops")
    scene.restart_registry()
    scene.gang().assume(claims={kind: claim_records.read(text)})
    scene.state.touch(scene.gang())
    assert scene.begin(2) == [], "it is adopted as it was written"
    adopted = scene.claims.of(scene.gang(), kind)
    assert adopted is not None
    assert sorted(adopted.places.values()) == sorted(places.values())
    if kind.names_pods:
        assert adopted.places == places


def test_p3_the_gangs_that_were_evicted_last_survive_a_restart() -> None:
    scene = small()
    victims = [GangKey("volcano", "n" * 63, f"{index:04}" + "v" * 249) for index in range(5_000)]
    assert all(scene.claims.evicted.add(scene.gang(), victims[index : index + 100]) for index in range(0, 5_000, 100))
    record = scene.decided[-1].record
    text = claim_records.write(record)
    assert len(text) < 11 * 1024

    scene.restart_registry()
    scene.gang().assume(claims={ClaimKind.EVICTED: claim_records.read(text)})
    scene.state.touch(scene.gang())
    assert scene.begin(2) == [], "it is adopted as it was written"
    known = [scene.claims.evicted.has(scene.gang(), victim) for victim in victims]
    assert known == [False] * (5_000 - claim_records.EVICTED_GANGS) + [True] * claim_records.EVICTED_GANGS


def test_r1_a_claim_that_no_object_could_hold_is_not_made_and_the_gang_says_so_once() -> None:
    scene = small()
    claim = scene.claim(ClaimKind.RESERVE, g_0="n")
    claim.slots |= {str(index): Slot(str(index), "n", None) for index in range(claim_records.SLOTS)}
    for _ in range(2):
        assert not scene.claims.make(claim, "Made", "for a test")
        assert not scene.claims.extend(claim, "Made", "for a test")
    assert not scene.claims.has(ClaimKind.RESERVE)
    (complaint,) = scene.complaints
    assert complaint == Complain(
        scene.gang().key,
        "no room is set aside for its 50,001 pods (reserve): the record is too large, all annotations of an object may "
        "have 256 KiB; use gangs of fewer pods or fewer annotations",
    )
    assert scene.make(ClaimKind.RESERVE, g_0="n")
    assert not scene.claims.make(claim, "Made", "for a test")
    assert scene.complaints == [complaint] * 2, "again, since one was recorded meanwhile"


def test_r1_claims_of_all_kinds_fit_on_one_object_together_or_the_last_is_not_made() -> None:
    """Each kind alone would fit: the API server counts all annotations of the object."""
    scene = large()
    made = [kind for kind in ClaimKind if _is_made(scene, kind)]
    assert made == list(ClaimKind)
    for kind in made:
        scene.claims.end(scene.gang(), kind, "Ended", "for a test")
    scene.gang().assume(records_bytes=claim_records.room_beside({"notes": "x" * (160 * 1024)}))
    made = [kind for kind in (ClaimKind.HOLD, ClaimKind.RESERVE, ClaimKind.PREEMPT) if _is_made(scene, kind)]
    assert made == [ClaimKind.HOLD, ClaimKind.RESERVE]
    records = scene.gang().status.claims
    assert records.keys() == set(made)
    size = sum(len(kind.annotation) + len(claim_records.write(record)) for kind, record in records.items())
    assert size <= claim_records.RECORDS_BYTES
    (complaint,) = scene.complaints
    assert complaint.message.startswith("no room is set aside for its 5,000 pods (preempt): the record is too large")


def _is_made(scene: Scene, kind: ClaimKind) -> bool:
    return scene.claims.make(claim_of(scene, kind), "Made", "for a test")


def test_r1_other_annotations_of_the_object_leave_less_for_records() -> None:
    scene = large()
    scene.gang().assume(records_bytes=claim_records.room_beside({"notes": "x" * (230 * 1024)}))
    assert not _is_made(scene, ClaimKind.RESERVE)
    assert not scene.gang().status.claims
    scene.gang().assume(records_bytes=claim_records.room_beside({"notes": "x" * (100 * 1024)}))
    assert _is_made(scene, ClaimKind.RESERVE)
