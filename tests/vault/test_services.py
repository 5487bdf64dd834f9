from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.feed.models import Change
from mcphost.vault import selectors
from mcphost.vault.errors import DamagedSecretError, MasterKeyMismatchError
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.services import ensure_ring, ensure_tenant, verify_master_key
from mcphost.vault.states import KeyState
from tests.vault.parallel_threads import at_once

pytestmark = pytest.mark.django_db

STRANGE_KEY = bytes(range(32))


def test_the_first_key_is_created_recorded_and_announced_once() -> None:
    first = ensure_ring()
    assert ensure_ring() == first
    row = RingKey.objects.get()
    assert (row.id, row.state) == (first, KeyState.ACTIVE)
    assert str(row) == f"{first} (active)"
    entry = Entry.objects.get(action="key.created")
    assert (entry.target, entry.actor_kind, entry.tenant) == (first, "system", None)
    change = Change.objects.get(name="key")
    assert (change.object_id, change.tenant) == (first, None)


@pytest.mark.django_db(transaction=True)
def test_processes_that_start_concurrently_agree_on_one_first_key() -> None:
    assert len(set(at_once(ensure_ring))) == 1
    assert RingKey.objects.count() == 1
    assert Entry.objects.filter(action="key.created").count() == 1
    assert Change.objects.filter(name="key").count() == 1


def test_the_database_refuses_a_second_active_key_and_an_unknown_state() -> None:
    ensure_ring()
    times = dict.fromkeys(("created_at", "state_since"), timezone.now())
    for state in (KeyState.ACTIVE, "lost"):
        with pytest.raises(IntegrityError), transaction.atomic():
            RingKey.objects.create(id="k2", state=state, **times)
    RingKey.objects.create(id="k2", state=KeyState.STANDBY, **times)


@pytest.mark.django_db(transaction=True)
def test_the_secrets_of_a_tenant_are_created_once_and_are_its_own(django_assert_num_queries):
    tenant = uuid4()
    made = ensure_tenant(tenant)
    with django_assert_num_queries(0):
        ensure_tenant(tenant)
    selectors.forget_everything()
    assert ensure_tenant(tenant) == made
    assert len(made.salt) == len(made.payload_key.secret) == 32
    assert str(TenantSecret.objects.get()) == str(tenant)
    entry = Entry.objects.get(action="secrets.created")
    assert (entry.tenant, entry.target) == (tenant, made.payload_key.id)
    assert Change.objects.filter(name="key", tenant=tenant).count() == 1
    both = (made, ensure_tenant(uuid4()))
    assert len({each.salt for each in both} | {each.payload_key.secret for each in both}) == 4


@pytest.mark.django_db(transaction=True)
def test_processes_that_meet_a_new_tenant_concurrently_agree_on_its_secrets() -> None:
    tenant = uuid4()
    ensure_ring()
    made = at_once(lambda: ensure_tenant(tenant))
    selectors.forget_everything()
    assert {secrets.salt for secrets in made} == {selectors.salt(tenant)}
    assert Entry.objects.filter(action="secrets.created").count() == 1


def test_without_a_master_key_no_first_key_is_created(lose_master_key: Callable[[], None]) -> None:
    lose_master_key()
    verify_master_key()  # an empty database needs none
    with pytest.raises(MasterKeyMismatchError, match="set MCPHOST_MASTER_KEY"):
        ensure_ring()
    assert not RingKey.objects.exists()
    assert not Entry.objects.exists()


@pytest.mark.parametrize("existing", ["ring", "secrets"])
@pytest.mark.parametrize(
    ("wrong", "words"), [(False, "already has keys"), (True, "belongs to this database")]
)
def test_a_missing_or_wrong_master_key_is_refused_and_no_new_key_is_created(
    give_master_key: Callable[[bytes], None],
    lose_master_key: Callable[[], None],
    existing: str,
    wrong: bool,
    words: str,
) -> None:
    if existing == "ring":
        ensure_ring()
    else:
        ensure_tenant(uuid4())
        RingKey.objects.all().delete()
    verify_master_key()
    before = list(RingKey.objects.all()), list(TenantSecret.objects.all())
    selectors.forget_everything()
    if wrong:
        give_master_key(STRANGE_KEY)
    else:
        lose_master_key()
    with pytest.raises(MasterKeyMismatchError, match=words):
        verify_master_key()
    for make in (ensure_ring, lambda: ensure_tenant(uuid4())):
        with pytest.raises(MasterKeyMismatchError):
            make()
    assert (list(RingKey.objects.all()), list(TenantSecret.objects.all())) == before


@pytest.mark.parametrize("name", ["wrapped_salt", "wrapped_payload_key"])
def test_a_tenant_secret_under_another_master_key_is_detected(name: str) -> None:
    ensure_tenant(uuid4())
    stranger = uuid4()
    ensure_tenant(stranger)
    TenantSecret.objects.filter(tenant=stranger).update(**{name: "v1.000000000000.AAAA"})
    with pytest.raises(MasterKeyMismatchError, match="000000000000"):
        verify_master_key()


def test_a_damaged_ring_key_is_distinguished_from_a_wrong_master_key(spoil: Callable[[str], str]):
    ensure_ring()
    row = RingKey.objects.get()
    RingKey.objects.update(wrapped=spoil(row.wrapped))
    with pytest.raises(DamagedSecretError, match=f"vault.ringkey:wrapped:{row.id}"):
        verify_master_key()


def test_no_secret_is_stored_unencrypted_in_the_database() -> None:
    tenant = uuid4()
    made = ensure_tenant(tenant)
    key = selectors.ring().active
    with connection.cursor() as cursor:
        cursor.execute("SELECT wrapped FROM vault_ring_key")
        stored = repr(cursor.fetchall())
        cursor.execute("SELECT * FROM vault_tenant_secret")
        stored += repr(cursor.fetchall())
        cursor.execute("SELECT target, facts FROM audit_entry")
        stored += repr(cursor.fetchall())
    for secret in (key.secret, made.salt, made.payload_key.secret):
        assert secret.hex() not in stored
        assert repr(secret)[2:-1] not in stored
