import hmac
from dataclasses import replace
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from mcphost.audit.ports import PayloadCipher, UnreadablePayloadError
from mcphost.vault import selectors
from mcphost.vault.models import TenantSecret
from mcphost.vault.payloads import VaultPayloadCipher, commitment
from mcphost.vault.services import ensure_tenant

pytestmark = pytest.mark.django_db(transaction=True)

cipher = VaultPayloadCipher()
PLAIN = b'{"arguments":{"text":"hello"}}'


def test_the_vaults_cipher_fits_audits_port() -> None:
    port: PayloadCipher = cipher
    assert port is cipher


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(plaintext=st.binary(max_size=2000))
def test_a_payload_opens_again_and_its_commitment_can_be_proved(plaintext: bytes) -> None:
    tenant = uuid4()
    sealed = cipher.commit_and_seal(tenant, plaintext)
    assert cipher.open(tenant, sealed.key_id, sealed.ciphertext) == plaintext
    salt, opened = cipher.open_with_salt(tenant, sealed.key_id, sealed.ciphertext)
    assert opened == plaintext
    assert commitment(salt, plaintext) == sealed.commitment
    assert hmac.new(salt, plaintext, "sha256").digest() == sealed.commitment


def test_a_payload_is_verified_against_its_commitment() -> None:
    tenant = uuid4()
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


def test_a_payload_of_damaged_keys_is_unreadable() -> None:
    tenant = uuid4()
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


def test_the_same_payload_looks_different_every_time() -> None:
    tenant = uuid4()
    made = [cipher.commit_and_seal(tenant, PLAIN) for _ in range(10)]
    assert len({sealed.ciphertext for sealed in made}) == 10
    assert len({sealed.commitment for sealed in made}) == 10


def test_neither_payload_nor_salt_can_be_read_off_what_is_stored() -> None:
    tenant = uuid4()
    sealed = cipher.commit_and_seal(tenant, PLAIN)
    salt, _ = cipher.open_with_salt(tenant, sealed.key_id, sealed.ciphertext)
    assert PLAIN not in sealed.ciphertext
    assert salt not in sealed.ciphertext


def test_another_tenants_payload_is_unreadable_even_under_the_same_key_id() -> None:
    tenant, other = uuid4(), uuid4()
    sealed = cipher.commit_and_seal(tenant, PLAIN)
    ensure_tenant(other)
    TenantSecret.objects.filter(tenant=other).update(payload_key_id=sealed.key_id)
    selectors.forget_everything()
    with pytest.raises(UnreadablePayloadError, match="another tenant"):
        cipher.open(other, sealed.key_id, sealed.ciphertext)


def test_every_changed_byte_of_a_payload_is_noticed() -> None:
    tenant = uuid4()
    sealed = cipher.commit_and_seal(tenant, PLAIN)
    for place in range(len(sealed.ciphertext)):
        changed = bytearray(sealed.ciphertext)
        changed[place] ^= 1
        with pytest.raises(UnreadablePayloadError):
            cipher.open(tenant, sealed.key_id, bytes(changed))


@pytest.mark.parametrize("length", [0, 5, 12, 20])
def test_a_payload_cut_short_is_unreadable(length: int) -> None:
    tenant = uuid4()
    sealed = cipher.commit_and_seal(tenant, PLAIN)
    with pytest.raises(UnreadablePayloadError):
        cipher.open(tenant, sealed.key_id, sealed.ciphertext[:length])


def test_a_payload_of_a_key_that_is_gone_says_so() -> None:
    tenant = uuid4()
    sealed = cipher.commit_and_seal(tenant, PLAIN)
    with pytest.raises(UnreadablePayloadError, match="0ld no longer exists"):
        cipher.open(tenant, "0ld", sealed.ciphertext)
    with pytest.raises(UnreadablePayloadError, match="no keys"):
        cipher.open(uuid4(), sealed.key_id, sealed.ciphertext)


def test_the_key_id_is_bound_to_the_payload() -> None:
    tenant = uuid4()
    sealed = cipher.commit_and_seal(tenant, PLAIN)
    TenantSecret.objects.update(payload_key_id="renamed")
    selectors.forget_everything()
    with pytest.raises(UnreadablePayloadError, match="modified"):
        cipher.open(tenant, "renamed", sealed.ciphertext)


def test_payloads_cost_no_query_once_the_tenant_is_warm(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    tenant = uuid4()
    ensure_tenant(tenant)
    with django_assert_num_queries(0):
        sealed = cipher.commit_and_seal(tenant, PLAIN)
        cipher.open(tenant, sealed.key_id, sealed.ciphertext)
