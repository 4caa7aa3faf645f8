"""S2: keyed digests of records."""

from __future__ import annotations

import base64
import hmac

import pytest

from enbloc.gangs.record_digests import (
    MOST_KEYS,
    SIMULATED,
    TRUSTING,
    Keyring,
    names_known_key,
    new_keyring,
    read_keys,
    sign,
    verify,
    write_keys,
)

PARTS = ("claim", "uid-1", "reserve", "{}")


def test_s2_a_digest_verifies_for_its_own_parts_alone() -> None:
    keyring = new_keyring()
    digest = sign(keyring, PARTS)
    assert verify(keyring, digest, PARTS)
    for at in range(len(PARTS)):
        other = [*PARTS]
        other[at] += "x"
        assert not verify(keyring, digest, other)


@pytest.mark.parametrize("size", [16, 32, 64, 65, 200])
def test_s2_a_digest_is_an_hmac_sha256(size: int) -> None:
    key = bytes(range(size))
    expected = hmac.digest(key, "\0".join(PARTS).encode(), "sha256").hex()[:32]
    assert sign(Keyring({"key-1": key}), PARTS) == f"key-1:{expected}"


def test_s2_parts_cannot_be_moved_into_each_other() -> None:
    keyring = new_keyring()
    digest = sign(keyring, ("ab", "c"))
    for parts in (("a", "bc"), ("abc",), ("ab", "c", ""), ("2:ab1:c",), ("ab\0c",), ("ab", "\0c")):
        assert not verify(keyring, digest, parts)


@pytest.mark.parametrize(
    "forged",
    ["", ":", "key-1", "key-1:", "key-9:" + "0" * 32, "key-1:" + "0" * 32, "key-1:" + "é" * 32, "x" * 10**6],
)
def test_s2_what_is_no_digest_of_ours_does_not_verify(forged: str) -> None:
    assert not verify(new_keyring(), forged, PARTS)


def test_s2_a_digest_of_another_key_does_not_verify() -> None:
    assert not verify(new_keyring(), sign(new_keyring(), PARTS), PARTS)


def test_s2_the_newest_key_signs_and_older_ones_verify_until_removed() -> None:
    old = new_keyring()
    both = Keyring({**old.keys, "key-2": b"2" * 32, "key-10": b"10" * 16})
    assert sign(both, PARTS).startswith("key-10:")
    assert verify(both, sign(old, PARTS), PARTS)
    assert not verify(Keyring({"key-2": b"2" * 32}), sign(old, PARTS), PARTS)


def test_s2_a_trusting_keyring_takes_every_record_and_signs_its_own() -> None:
    assert verify(TRUSTING, "", PARTS)
    assert verify(SIMULATED, sign(TRUSTING, PARTS), PARTS)


def test_s2_a_digest_that_names_a_key_of_ours_can_be_told_from_one_of_a_lost_key() -> None:
    assert names_known_key(SIMULATED, "key-1:0")
    assert not names_known_key(SIMULATED, "key-2:0")
    assert not names_known_key(SIMULATED, "")


def test_s2_keys_survive_their_secret() -> None:
    keyring = Keyring({"key-1": b"1" * 32, "key-2": b"2" * 32})
    assert read_keys(write_keys(keyring)) == keyring


def test_s2_what_is_no_key_in_the_secret_does_not_count() -> None:
    good = base64.b64encode(b"k" * 32).decode()
    short = base64.b64encode(b"k" * 8).decode()
    data = {"key-1": good, "key-2": short, "key-3": "!", "key-0": good, "key-x": good, "other": good, "key-²": good}
    assert read_keys(data) == Keyring({"key-1": b"k" * 32})
    assert read_keys({"key-2": short}) is None
    assert read_keys({}) is None


def test_s2_of_too_many_keys_the_newest_count() -> None:
    found = read_keys({f"key-{n}": base64.b64encode(b"k" * 32).decode() for n in range(1, MOST_KEYS + 9)})
    assert found is not None
    assert len(found.keys) == MOST_KEYS
    assert found.signing_id == f"key-{MOST_KEYS + 8}"
