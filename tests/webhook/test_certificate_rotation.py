"""The Secret that replicas share, and the configurations that name whom to trust."""

from __future__ import annotations

import asyncio
import base64

import pytest

from enbloc.api.meta import Ref
from enbloc.api.writes import Create, Patch, Refused, Write
from enbloc.units import SECOND
from enbloc.webhook import certificates
from enbloc.webhook.certificate_rotation import MUTATING, VALIDATING, CertificateRotation
from support.webhook_api import NAMESPACE, START, FakeApi

NAMES = ("enbloc-webhook.enbloc-system.svc",)
SECRET = Ref("Secret", NAMESPACE, "enbloc-webhook-certificates")
DAY = 24 * 3600 * SECOND


def rotation(api: FakeApi) -> CertificateRotation:
    return CertificateRotation(api, NAMESPACE, SECRET.name, NAMES, "enbloc")


def secret(api: FakeApi) -> dict[str, str]:
    found = api.store.get(*SECRET)
    assert found is not None
    data: dict[str, str] = found["data"]
    return data


def empty_secret(api: FakeApi) -> None:
    metadata = {"name": SECRET.name, "namespace": NAMESPACE}
    api.store.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"})


@pytest.mark.parametrize("prepared", [True, False])
def test_the_first_look_makes_certificates_and_has_them_trusted(prepared: bool) -> None:
    api = FakeApi()
    api.install()
    if prepared:
        empty_secret(api)
    content = asyncio.run(rotation(api).renew(START))
    assert secret(api) == certificates.secret_data(content)
    bundle = base64.b64encode(certificates.bundle_pem(content)).decode()
    assert api.bundle(MUTATING) == api.bundle(VALIDATING) == bundle
    found = api.store.get(MUTATING, "", "enbloc")
    assert found is not None
    assert found["webhooks"][0]["clientConfig"]["service"]["name"] == "enbloc-webhook", "nothing else changed"
    writes = [call for call in api.calls if call[0] == "write"]
    assert len(writes) == 3
    api.calls.clear()
    assert certificates.secret_data(asyncio.run(rotation(api).renew(START + DAY))) == secret(api)
    assert not [call for call in api.calls if call[0] == "write"]


@pytest.mark.parametrize("prepared", [True, False])
def test_of_two_replicas_one_makes_them_and_the_other_takes_them(prepared: bool) -> None:
    """The other one writes between our look and our write."""
    api = FakeApi()
    api.install()
    if prepared:
        empty_secret(api)
    others = []

    def other_replica(write: Write) -> None:
        if isinstance(write, Create) or (isinstance(write, Patch) and write.ref.kind == "Secret"):
            api.before_write = lambda write: None
            others.append(write)
            made = certificates.renewed(certificates.Content(), certificates.Renewal(True, True, ()), NAMES, START)
            data = certificates.secret_data(made)
            if prepared:
                api.store.patch(SECRET, {"data": data})
            else:
                metadata = {"name": SECRET.name, "namespace": NAMESPACE}
                api.store.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

    api.before_write = other_replica
    content = asyncio.run(rotation(api).renew(START))
    assert others, "the other one was faster"
    assert secret(api) == certificates.secret_data(content)
    assert api.bundle() == base64.b64encode(certificates.bundle_pem(content)).decode()


def test_a_configuration_that_changes_meanwhile_keeps_its_change() -> None:
    api = FakeApi()
    api.install()

    def other_writer(write: Write) -> None:
        if isinstance(write, Patch) and write.ref.kind == MUTATING:
            api.before_write = lambda write: None
            found = api.store.get(MUTATING, "", "enbloc")
            assert found is not None
            hooks = [hook | {"timeoutSeconds": 3} for hook in found["webhooks"]]
            api.store.patch(Ref(MUTATING, "", "enbloc"), {"webhooks": hooks})

    api.before_write = other_writer
    asyncio.run(rotation(api).renew(START))
    found = api.store.get(MUTATING, "", "enbloc")
    assert found is not None
    assert found["webhooks"][0]["timeoutSeconds"] == 3
    assert api.bundle()


def test_a_bundle_that_was_removed_is_put_back() -> None:
    api = FakeApi()
    api.install()
    asyncio.run(rotation(api).renew(START))
    wanted = api.bundle()
    found = api.store.get(MUTATING, "", "enbloc")
    assert found is not None
    hooks = [hook | {"clientConfig": {"service": hook["clientConfig"]["service"]}} for hook in found["webhooks"]]
    api.store.patch(Ref(MUTATING, "", "enbloc"), {"webhooks": hooks})
    assert api.bundle() == ""
    asyncio.run(rotation(api).renew(START))
    assert api.bundle() == wanted


def test_without_configurations_there_are_certificates_all_the_same() -> None:
    api = FakeApi()
    assert asyncio.run(rotation(api).renew(START)).serving is not None


def test_a_conflict_that_does_not_end_is_given_up() -> None:
    api = FakeApi()

    def busy(write: Write) -> None:
        raise Refused(409, "Conflict", "another writer again")

    api.before_write = busy
    with pytest.raises(Refused):
        asyncio.run(rotation(api).renew(START))


def test_what_the_api_forbids_is_reported() -> None:
    api = FakeApi()

    def forbidden(write: Write) -> None:
        raise Refused(403, "Forbidden", "secrets is forbidden")

    api.before_write = forbidden
    with pytest.raises(Refused) as why:
        asyncio.run(rotation(api).renew(START))
    assert why.value.code == 403
