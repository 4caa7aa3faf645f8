"""S2: the keys of records are in one Secret that all replicas share."""

from __future__ import annotations

import asyncio

import pytest

from enbloc.api.writes import Create, Refused, Write
from enbloc.gangs.record_digests import Keyring, new_keyring, read_keys, sign, verify, write_keys
from enbloc.runtime.record_keys import SECRET, shared_keyring
from support.webhook_api import NAMESPACE, FakeApi


def keyring(api: FakeApi) -> Keyring:
    return asyncio.run(shared_keyring(api, NAMESPACE))


def empty_secret(api: FakeApi) -> None:
    metadata = {"name": SECRET, "namespace": NAMESPACE}
    api.store.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"})


@pytest.mark.parametrize("installed", [True, False], ids=["empty", "missing"])
def test_s2_the_first_replica_writes_the_key_and_the_others_read_it(installed: bool) -> None:
    api = FakeApi()
    if installed:
        empty_secret(api)
    first = keyring(api)
    assert keyring(api) == first
    secret = api.store.get("Secret", NAMESPACE, SECRET)
    assert secret is not None
    assert read_keys(secret["data"]) == first


@pytest.mark.parametrize("installed", [True, False], ids=["empty", "missing"])
def test_s2_of_two_replicas_that_write_at_once_both_use_the_key_of_the_first(installed: bool) -> None:
    api = FakeApi()
    if installed:
        empty_secret(api)
    other: list[Keyring] = []

    def write_first(write: Write) -> None:
        if not other:
            other.append(new_keyring())
            if isinstance(write, Create):
                metadata = {"name": SECRET, "namespace": NAMESPACE}
                secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": write_keys(other[0])}
                api.store.create(secret)
            else:
                secret = dict(api.store.get("Secret", NAMESPACE, SECRET) or {})
                api.store.replace({**secret, "data": write_keys(other[0])})

    api.before_write = write_first
    assert keyring(api) == other[0]


def test_s2_a_key_that_is_added_signs_and_the_old_one_verifies() -> None:
    api = FakeApi()
    before = keyring(api)
    secret = dict(api.store.get("Secret", NAMESPACE, SECRET) or {})
    added = write_keys(Keyring({"key-2": b"2" * 32}))
    api.store.replace({**secret, "data": {**secret["data"], **added}})
    after = keyring(api)
    assert sign(after, ["x"]).startswith("key-2:")
    assert verify(after, sign(before, ["x"]), ["x"])


@pytest.mark.parametrize("code", [403, 404])
def test_s2_without_the_right_to_the_secret_a_key_of_its_own_is_used(code: int) -> None:
    api = FakeApi()

    def refuse(write: Write) -> None:
        raise Refused(code, "No", "no")

    api.before_write = refuse
    assert keyring(api) != keyring(api)


def test_s2_an_api_that_does_not_answer_is_asked_again() -> None:
    api = FakeApi()
    api.is_down = True
    with pytest.raises(Refused):
        keyring(api)
