"""Bodies in Kubernetes' protobuf: each kind that is served is known, and none is read as an empty object."""

from __future__ import annotations

import subprocess
import sys

import pytest

from enbloc.api.kinds import KINDS
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.http.protobuf import decode_protobuf

OF_KUBERNETES = ("", "apps", "batch", "autoscaling", "policy")
"""Groups of Kubernetes without a dot in their names; the others end with `.k8s.io`."""
NOT_IN_PROTOBUF = ("apiextensions.k8s.io", "scheduling.k8s.io")
"""Definitions are messages of another module; of the kinds of `scheduling.k8s.io` only PriorityClass is stable."""


def _field(number: int, data: bytes) -> bytes:
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def _body(api_version: str, kind: str, message: bytes) -> bytes:
    about = _field(1, api_version.encode()) + _field(2, kind.encode())
    return b"k8s\x00" + _field(1, about) + _field(2, message)


SERVED = sorted(
    (f"{kind.group}/{kind.versions[0]}".lstrip("/"), kind.name)
    for kind in KINDS.values()
    if (kind.group in OF_KUBERNETES or kind.group.endswith(".k8s.io")) and kind.group not in NOT_IN_PROTOBUF
    if not any(word in kind.group for word in ("x-k8s", "sigs", "incubator"))
)


@pytest.mark.parametrize(("api_version", "kind"), [*SERVED, ("scheduling.k8s.io/v1", "PriorityClass")])
def test_each_kind_that_is_served_is_read(api_version: str, kind: str) -> None:
    metadata = _field(1, _field(1, b"web"))
    assert decode_protobuf(_body(api_version, kind, metadata)) == {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "web"},
    }


def test_an_autoscaler_as_kubectl_1_32_sends_it() -> None:
    """`kubectl autoscale` writes autoscaling/v1, whose spec has other fields than v2's."""
    target = _field(1, b"Deployment") + _field(2, b"web") + _field(3, b"apps/v1")
    spec = _field(1, target) + b"\x10\x01\x18\x03\x20\x50"
    message = _field(1, _field(1, b"web")) + _field(2, spec)
    assert decode_protobuf(_body("autoscaling/v1", "HorizontalPodAutoscaler", message))["spec"] == {
        "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
        "minReplicas": 1,
        "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 80,
    }


@pytest.mark.parametrize("api_version", ["autoscaling/v2beta1", "apps/v1beta1", "example.com/v1", "v1"])
def test_a_kind_that_is_not_known_is_refused(api_version: str) -> None:
    with pytest.raises(Refused) as refused:
        decode_protobuf(_body(api_version, "HorizontalPodAutoscaler", b""))
    assert refused.value.code == 415


def test_the_table_is_read_when_it_is_first_asked_for() -> None:
    code = (
        "from enbloc.cluster.embedded.http import facade, protobuf\n"
        "from enbloc.api.messages import messages\n"
        "assert not messages.cache_info().currsize\n"
        "assert 'Pod' in messages()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def varint(value: int) -> bytes:
    digits = []
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


@pytest.mark.parametrize(
    "nanos, shown",
    [(469_390_000, "469390"), (469_391_000, "469391"), (1_000, "000001"), (500_000_000, "500000"), (0, "000000")],
)
def test_the_time_of_a_lease_has_six_digits(nanos: int, shown: str) -> None:
    """Go reads a MicroTime in no other form: an operator whose Lease was renewed at .469390 s, which `up` gave back as
    .46939, could not read it any more, and nor could any that was started later."""
    moment = b"\x08" + varint(1_780_000_000) + (b"\x10" + varint(nanos) if nanos else b"")
    spec = _field(1, b"me") + _field(4, moment)
    message = _field(1, _field(1, b"web")) + _field(2, spec)
    found = decode_protobuf(_body("coordination.k8s.io/v1", "Lease", message))
    assert found["spec"] == {"holderIdentity": "me", "renewTime": f"2026-05-28T20:26:40.{shown}Z"}
