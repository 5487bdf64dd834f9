"""Replacing the master key: at every step, each configured key opens every secret."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from pytest_django import Settings

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.sealing.tokens import Purpose
from mcphost.tenants.models import Tenant
from mcphost.vault import rewrapping, sealer, selectors
from mcphost.vault.errors import DamagedSecretError, MasterKeyMismatchError
from mcphost.vault.lifecycle import destroy_salt, rotate
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.rewrapping import Rewrapped, rewrap, wrapping
from mcphost.vault.services import ensure_ring, ensure_tenant, verify_master_key
from mcphost.vault.states import KeyState
from mcphost.vault.wrapping import kek_id, wrappers
from tests.vault.rings import add_key

pytestmark = pytest.mark.django_db(transaction=True)

OLGA = Actor.system("olga")
OLD, NEW, STRANGE = (bytes([n]) * 32 for n in (1, 2, 3))
TENANTS = [UUID(int=n) for n in range(1, 8)]

Give = Callable[..., None]


@pytest.fixture
def give(settings: Settings) -> Give:
    """`give(master)` or `give(master, new)`: restart with these master keys and empty caches."""

    def put(master: bytes, new: bytes = b"") -> None:
        settings.MCPHOST_MASTER_KEY = lambda: master
        settings.MCPHOST_NEW_MASTER_KEY = lambda: new
        selectors.forget_everything()

    return put


@pytest.fixture
def tokens(give: Give, monkeypatch: pytest.MonkeyPatch) -> dict[UUID, str]:
    """Tokens sealed for tenants while there was only the old master key."""
    monkeypatch.setattr(rewrapping, "ROWS_AT_ONCE", 3)
    give(OLD)
    ensure_ring()
    add_key("retiring", KeyState.RETIRING)
    add_key("destroyed", KeyState.DESTROYED)
    return {tenant: sealer.seal(Purpose.STATE, tenant, tenant.bytes) for tenant in TENANTS}


def all_open(tokens: dict[UUID, str]) -> bool:
    verify_master_key()
    selectors.forget_everything()
    return all(
        sealer.unseal(Purpose.STATE, tenant, token) == tenant.bytes
        for tenant, token in tokens.items()
    )


def every_wrapping() -> set[frozenset[str]]:
    """The sets of master keys that wrap secrets, over all secrets."""
    found = set(RingKey.objects.exclude(wrapped="").values_list("wrapped", flat=True))
    for name in ("wrapped_salt", "wrapped_payload_key"):
        found |= set(TenantSecret.objects.exclude(**{name: ""}).values_list(name, flat=True))
    return {wrappers(each) for each in found}


def by(*keys: bytes) -> set[frozenset[str]]:
    return {frozenset(map(kek_id, keys))}


def test_processes_with_either_master_key_open_everything_at_every_step(tokens, give):
    give(OLD, NEW)
    assert all_open(tokens)
    assert rewrap(OLGA) == Rewrapped(2, len(TENANTS), ())
    assert every_wrapping() == by(OLD, NEW)
    for given in [(OLD,), (OLD, NEW), (NEW,), (NEW, OLD)]:
        give(*given)
        assert all_open(tokens), given
    give(NEW)
    assert rewrap(OLGA) == Rewrapped(2, len(TENANTS), ())
    assert every_wrapping() == by(NEW)
    assert all_open(tokens)
    for given in [(NEW, OLD), (OLD, NEW)]:
        give(*given)
        assert all_open(tokens), given
    give(OLD)
    with pytest.raises(MasterKeyMismatchError, match=kek_id(NEW)):
        verify_master_key()


@pytest.mark.parametrize("after", range(4))
def test_an_interrupted_rewrap_leaves_everything_readable_and_the_next_run_completes_it(
    tokens, give, monkeypatch, after
):
    write = rewrapping._write_fields
    written = 0

    def interrupted(anew: Any) -> int:
        nonlocal written
        if written == after:
            raise KeyboardInterrupt
        written += 1
        return write(anew)

    give(OLD, NEW)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(rewrapping, "_write_fields", interrupted)
        rewrap(OLGA)
    for given in [(OLD,), (OLD, NEW)]:
        give(*given)
        assert all_open(tokens), given
    give(OLD, NEW)
    assert bool(wrapping().rows_to_rewrap)
    rewrap(OLGA)
    assert every_wrapping() == by(OLD, NEW)
    assert wrapping().rows_to_rewrap == 0
    assert Entry.objects.filter(action="key.rewrapped").count() == 1
    give(NEW)
    assert all_open(tokens)


def test_a_process_that_switches_to_the_new_master_key_too_early_refuses_to_start(tokens, give):
    give(OLD, NEW)
    rewrap(OLGA)
    give(OLD)
    ensure_tenant(uuid4())
    give(NEW)
    with pytest.raises(MasterKeyMismatchError, match="MCPHOST_NEW_MASTER_KEY"):
        verify_master_key()
    with pytest.raises(MasterKeyMismatchError):
        rewrap(OLGA)


@pytest.mark.parametrize("given", [(STRANGE,), (STRANGE, NEW), (NEW,)])
def test_wrong_master_keys_change_nothing(tokens, give, given):
    give(*given)
    for work in (lambda: rewrap(OLGA), verify_master_key):
        with pytest.raises(MasterKeyMismatchError):
            work()
    assert every_wrapping() == by(OLD)
    assert not Entry.objects.filter(action="key.rewrapped").exists()


def test_a_salt_destroyed_during_a_rewrap_stays_destroyed(tokens, give, monkeypatch):
    write = rewrapping._write_fields

    def late(anew: Any) -> int:
        destroy_salt(TENANTS[0], OLGA)
        return write(anew)

    Tenant.objects.create(id=TENANTS[0], slug="acme", title="Acme")
    give(OLD, NEW)
    with monkeypatch.context() as patch:
        patch.setattr(rewrapping, "_write_fields", late)
        rewrap(OLGA)
    row = TenantSecret.objects.get(tenant=TENANTS[0])
    assert row.wrapped_salt == ""
    assert wrappers(row.wrapped_payload_key) == frozenset({kek_id(OLD), kek_id(NEW)})


def test_a_damaged_secret_is_reported_and_all_others_are_rewrapped(tokens, give, spoil):
    row = TenantSecret.objects.get(tenant=TENANTS[4])
    bad = spoil(row.wrapped_salt)
    TenantSecret.objects.filter(pk=row.pk).update(wrapped_salt=bad)
    give(OLD, NEW)
    done = rewrap(OLGA)
    (said,) = done.damaged
    assert str(TENANTS[4]) in said
    assert done.tenants == len(TENANTS)
    row.refresh_from_db()
    assert row.wrapped_salt == bad
    assert wrapping().rows_to_rewrap == 1


def test_a_damaged_ring_key_stops_a_rewrap_before_anything_is_changed(tokens, give, spoil):
    row = RingKey.objects.get(pk="retiring")
    RingKey.objects.filter(pk="retiring").update(wrapped=spoil(row.wrapped))
    give(OLD, NEW)
    with pytest.raises(DamagedSecretError, match="retiring"):
        rewrap(OLGA)
    assert every_wrapping() == by(OLD)


def test_a_process_without_one_of_the_rings_master_keys_cannot_rotate(tokens, give):
    give(OLD, NEW)
    rewrap(OLGA)
    before = list(RingKey.objects.values())
    for given, missing in [(OLD, NEW), (NEW, OLD)]:
        give(given)
        for compromised in (False, True):
            with pytest.raises(MasterKeyMismatchError, match=kek_id(missing)):
                rotate(OLGA, compromised=compromised)
    assert list(RingKey.objects.values()) == before
