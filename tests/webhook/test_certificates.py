"""Certificates: what is done when, in the life of a Secret, with clocks that jump."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from enbloc.units import SECOND
from enbloc.webhook import certificates
from enbloc.webhook.certificates import AUTHORITY_DAYS, OVERLAP, SERVING_DAYS, Content, due, read, renewed, secret_data
from support.webhook_api import START

NAMES = ("enbloc-webhook.enbloc-system.svc", "enbloc-webhook.enbloc-system")
HOUR = 3600 * SECOND
DAY = 24 * HOUR


def step(content: Content, now: int, names: tuple[str, ...] = NAMES) -> Content:
    """One look of one replica, through the Secret."""
    work = due(content, names, now)
    return content if work.is_nothing(content) else read(secret_data(renewed(content, work, names, now)))


def fresh(now: int = START) -> Content:
    return step(Content(), now)


def is_trusted(content: Content, bundle: tuple[x509.Certificate, ...], now: int) -> bool:
    """Whether a client that trusts `bundle` takes what is served."""
    assert content.serving is not None
    moment = certificates._moment(now)
    return certificates._is_valid(content.serving.certificate, moment) and any(
        certificates._signed(content.serving.certificate, one) and certificates._is_valid(one, moment) for one in bundle
    )


def test_an_empty_secret_is_filled_once() -> None:
    content = fresh()
    assert is_trusted(content, content.trusted, START)
    assert len(content.trusted) == 1
    assert due(content, NAMES, START).is_nothing(content)
    assert secret_data(read(secret_data(content))) == secret_data(content)


def test_the_serving_certificate_is_for_its_names_and_no_authority() -> None:
    serving = fresh().serving
    assert serving is not None
    names = serving.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert tuple(names.get_values_for_type(x509.DNSName)) == NAMES
    assert serving.certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False


@pytest.mark.parametrize(
    ("after_days", "new_authority", "new_serving"),
    [
        (0, False, False),
        (SERVING_DAYS * 0.6, False, False),
        (SERVING_DAYS * 0.7, False, True),
        (SERVING_DAYS * 1.1, False, True),
    ],
)
def test_a_serving_certificate_is_renewed_in_its_last_third(
    after_days: float, new_authority: bool, new_serving: bool
) -> None:
    content = fresh()
    work = due(content, NAMES, START + int(after_days * DAY))
    assert (work.new_authority, work.new_serving) == (new_authority, new_serving)


def test_a_new_authority_is_trusted_before_it_signs() -> None:
    content = fresh()
    now = START
    while now < START + int(AUTHORITY_DAYS * DAY * 0.7):  # the authority's last third begins here
        now += 10 * DAY
        before, content = content, step(content, now)
        if content.trusted != before.trusted:
            break
    assert len(content.trusted) == 2
    assert content.trusted[1:] == before.trusted, "the old one is still trusted"
    assert content.authority is not None
    assert content.authority.certificate == content.trusted[0]
    assert secret_data(content)["tls.crt"] == secret_data(before)["tls.crt"], "no client has to know of it yet"
    assert step(content, now + HOUR // 2) is content
    later = step(content, now + HOUR + int(OVERLAP / timedelta(seconds=1)) * SECOND)
    assert later.trusted == content.trusted
    assert secret_data(later)["tls.crt"] != secret_data(content)["tls.crt"]
    assert is_trusted(later, content.trusted, now + 3 * HOUR)


def test_no_connection_is_broken_in_four_years() -> None:
    """API servers learn of a bundle an hour late, and another replica serves what was there at its last look."""
    content, now = fresh(), START
    bundles = [content.trusted] * 2
    renewals = 0
    while now < START + 1460 * DAY:
        now += 12 * HOUR
        before, content = content, step(content, now)
        assert is_trusted(content, bundles[-1], now), "the server is ahead of its clients"
        assert is_trusted(before, content.trusted, now), "another replica is behind"
        renewals += secret_data(content)["tls.crt"] != secret_data(before)["tls.crt"]
        bundles.append(content.trusted)
        assert len(content.trusted) <= 2
    assert renewals > 1460 / SERVING_DAYS


@pytest.mark.parametrize("jump_days", [-3650, -1, 400, 3650])
def test_a_clock_that_jumps_and_comes_back_leaves_what_is_valid(jump_days: int) -> None:
    content = step(fresh(), START + jump_days * DAY)
    assert is_trusted(content, content.trusted, START + jump_days * DAY)
    content = step(content, START)
    assert is_trusted(content, content.trusted, START)
    assert due(content, NAMES, START).is_nothing(content)


@settings(max_examples=25)
@given(st.lists(st.integers(-4000, 4000), max_size=8))
def test_whatever_the_clock_does_each_look_leaves_what_is_valid(days: list[int]) -> None:
    content = Content()
    for day in days:
        now = START + day * DAY
        content = step(content, now)
        assert is_trusted(content, content.trusted, now)
        assert 1 <= len(content.trusted) <= certificates.MAX_AUTHORITIES
        content = step(content, now)  # an authority is renewed after what it signed
        assert due(content, NAMES, now).is_nothing(content), "twice is enough"


def test_other_names_need_another_certificate_of_the_same_authority() -> None:
    content = fresh()
    other = step(content, START, ("moved.elsewhere.svc",))
    assert other.trusted == content.trusted
    assert secret_data(other)["tls.crt"] != secret_data(content)["tls.crt"]


@pytest.mark.parametrize("key", [certificates.BUNDLE, certificates.AUTHORITY_KEY, certificates.SERVING, "tls.key"])
@pytest.mark.parametrize("bad", [None, "", "?", base64.b64encode(b"nonsense").decode(), "swapped"])
def test_what_was_damaged_is_made_anew(key: str, bad: str | None) -> None:
    content = fresh()
    data: dict[str, str] = secret_data(content)
    if bad is None:
        del data[key]
    else:
        data[key] = secret_data(fresh())[key] if bad == "swapped" else bad
    mended = step(read(data), START)
    assert is_trusted(mended, mended.trusted, START)
    assert due(mended, NAMES, START).is_nothing(mended)
    if key == certificates.AUTHORITY_KEY:
        assert secret_data(mended)["tls.crt"] == secret_data(content)["tls.crt"], "what is served was good and stays"


def test_a_key_of_another_kind_is_not_ours() -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    key = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    data = secret_data(fresh()) | {certificates.SERVING_KEY: base64.b64encode(key).decode()}
    assert read(data).serving is None
