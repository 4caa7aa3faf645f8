"""Slots of a brief record as few bytes: digest of a pod or role → digest of a node → number of tasks.

Digests look random, so only their order can be spared: they are sorted, and each is written as its distance from the
one before. Nodes are written once and referred to by number. Numbers are written as planes, first all highest bytes,
last all lowest: the high planes are mostly zeros, which zlib removes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from itertools import accumulate, chain, pairwise
from typing import Final

DIGEST_CHARS: Final = 7
"""42 bits, as characters of URL-safe base 64."""
_DIGEST_BYTES: Final = 6
_NUMBER_BYTES: Final = 3


def pack(slots: Mapping[str, Mapping[str, int]]) -> bytes:
    by_name = sorted((_value(name), places) for name, places in slots.items())
    nodes = sorted({node for places in slots.values() for node in places}, key=_value)
    numbers = {node: number for number, node in enumerate(nodes)}
    pairs = [sorted((numbers[node], count) for node, count in places.items()) for _, places in by_name]
    flat = list(chain.from_iterable(pairs))
    return b"".join(
        (
            _planes([len(by_name), len(nodes), len(flat)], _NUMBER_BYTES),
            _planes(_distances(value for value, _ in by_name), _DIGEST_BYTES),
            _planes(_distances(map(_value, nodes)), _DIGEST_BYTES),
            _planes(map(len, pairs), _NUMBER_BYTES),
            _planes((number for number, _ in flat), _NUMBER_BYTES),
            _planes((count for _, count in flat), _NUMBER_BYTES),
        )
    )


def unpack(data: bytes) -> dict[str, dict[str, int]]:
    """What `pack` wrote; `ValueError` for anything else."""
    sizes, data = _numbers(data, 3, _NUMBER_BYTES)
    names, data = _numbers(data, sizes[0], _DIGEST_BYTES)
    node_values, data = _numbers(data, sizes[1], _DIGEST_BYTES)
    lengths, data = _numbers(data, sizes[0], _NUMBER_BYTES)
    numbers, data = _numbers(data, sizes[2], _NUMBER_BYTES)
    counts, data = _numbers(data, sizes[2], _NUMBER_BYTES)
    if data or sum(lengths) != sizes[2] or max(numbers, default=-1) >= sizes[1]:
        raise ValueError("these are no packed slots")
    nodes = [_digest(value) for value in accumulate(node_values)]
    places = [(nodes[number], count) for number, count in zip(numbers, counts, strict=True)]
    ends = pairwise(accumulate(lengths, initial=0))
    return {_digest(name): dict(places[first:end]) for name, (first, end) in zip(accumulate(names), ends, strict=True)}


def bytes_at_most(slots: Mapping[str, Mapping[str, int]]) -> int:
    """A bound on what `pack` returns, without packing."""
    pairs = sum(map(len, slots.values()))
    per_name, per_pair = _DIGEST_BYTES + _NUMBER_BYTES, _DIGEST_BYTES + 2 * _NUMBER_BYTES
    return 3 * _NUMBER_BYTES + per_name * len(slots) + per_pair * pairs


def _value(digest: str) -> int:
    assert len(digest) == DIGEST_CHARS, digest
    return int.from_bytes(base64.urlsafe_b64decode(f"{digest}A"), "big") >> 6


def _digest(value: int) -> str:
    if value >= 1 << 42:
        raise ValueError("this is no digest")
    return base64.urlsafe_b64encode((value << 6).to_bytes(_DIGEST_BYTES, "big"))[:DIGEST_CHARS].decode()


def _distances(values: Iterable[int]) -> Iterable[int]:
    return (later - earlier for earlier, later in pairwise(chain([0], values)))


def _planes(values: Iterable[int], width: int) -> bytes:
    data = b"".join(value.to_bytes(width, "big") for value in values)
    return b"".join(data[plane::width] for plane in range(width))


def _numbers(data: bytes, count: int, width: int) -> tuple[list[int], bytes]:
    """The first `count` numbers, and the bytes after them."""
    end = count * width
    if len(data) < end:
        raise ValueError("packed slots end too soon")
    planes = [data[start : start + count] for start in range(0, end, count or 1)]
    return [int.from_bytes(one, "big") for one in zip(*planes, strict=True)], data[end:]
