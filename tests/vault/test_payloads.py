import hmac
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcphost.audit.ports import PayloadCipher, UnreadablePayloadError
from mcphost.vault import selectors
from mcphost.vault.models import TenantSecret
from mcphost.vault.payloads import VaultPayloadCipher, commitment
from mcphost.vault.services import ensure_tenant

pytestmark = pytest.mark.django_db

cipher = VaultPayloadCipher()
PLAIN = b'{"arguments":{"text":"hello"}}'


@pytest.fixture
def tenant() -> UUID:
    return uuid4()


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plaintext=st.binary(max_size=2000))
def test_a_payload_opens_unchanged_and_its_commitment_can_be_verified(
    tenant: UUID, plaintext: bytes
):
    port: PayloadCipher = cipher
    sealed = port.commit_and_seal(tenant, plaintext)
    assert port.open(tenant, sealed.key_id, sealed.ciphertext) == plaintext
    salt, opened = cipher.open_with_salt(tenant, sealed.key_id, sealed.ciphertext)
    assert opened == plaintext
    assert commitment(salt, plaintext) == sealed.commitment
    assert hmac.new(salt, plaintext, "sha256").digest() == sealed.commitment


def test_a_payload_is_verified_against_its_commitment(tenant: UUID) -> None:
    sealed, other = (cipher.commit_and_seal(tenant, PLAIN) for _ in range(2))
    cipher.verify(tenant, sealed)
    for wrong in (
        replace(sealed, commitment=other.commitment),
        replace(sealed, ciphertext=other.ciphertext),
        replace(sealed, ciphertext=sealed.ciphertext[:-1]),
        replace(sealed, ciphertext=b""),
        replace(sealed, key_id="gone"),
    ):
        with pytest.raises(UnreadablePayloadError):
            cipher.verify(tenant, wrong)


def test_a_payload_sealed_under_damaged_keys_is_unreadable(tenant: UUID) -> None:
    sealed = cipher.commit_and_seal(tenant, PLAIN)
    other = uuid4()
    cipher.commit_and_seal(other, PLAIN)
    wrapped = TenantSecret.objects.get(tenant=other).wrapped_payload_key
    TenantSecret.objects.filter(tenant=tenant).update(wrapped_payload_key=wrapped)
    selectors.forget_tenant(tenant)
    with pytest.raises(UnreadablePayloadError, match="damaged"):
        cipher.verify(tenant, sealed)
    with pytest.raises(UnreadablePayloadError, match="damaged"):
        cipher.open(tenant, sealed.key_id, sealed.ciphertext)


def test_another_tenants_payload_is_unreadable_even_with_the_same_key_id(tenant: UUID) -> None:
    other = uuid4()
    sealed = cipher.commit_and_seal(tenant, PLAIN)
    ensure_tenant(other)
    TenantSecret.objects.filter(tenant=other).update(payload_key_id=sealed.key_id)
    TenantSecret.objects.filter(tenant=tenant).update(payload_key_id="renamed")
    selectors.forget_everything()
    with pytest.raises(UnreadablePayloadError, match="another tenant"):
        cipher.open(other, sealed.key_id, sealed.ciphertext)
    with pytest.raises(UnreadablePayloadError, match="modified"):
        cipher.open(tenant, "renamed", sealed.ciphertext)  # the id is bound to the payload


def test_every_changed_or_missing_byte_of_a_payload_is_detected(tenant: UUID) -> None:
    sealed = cipher.commit_and_seal(tenant, PLAIN)
    spoilt = [sealed.ciphertext[:length] for length in (0, 5, 12, 20)]
    for place in range(len(sealed.ciphertext)):
        changed = bytearray(sealed.ciphertext)
        changed[place] ^= 1
        spoilt.append(bytes(changed))
    for ciphertext in spoilt:
        with pytest.raises(UnreadablePayloadError):
            cipher.open(tenant, sealed.key_id, ciphertext)
