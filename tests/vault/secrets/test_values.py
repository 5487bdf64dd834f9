"""A value is bound to its row: moved, changed or under other keys, it does not open. In use it shows its name only."""

import copy
import json
import pickle
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from pydantic import TypeAdapter

from mcphost.vault import selectors as keys
from mcphost.vault.errors import DamagedSecretError
from mcphost.vault.lifecycle import destroy_salt
from mcphost.vault.models import StoredSecret, TenantSecret
from mcphost.vault.payloads import VaultPayloadCipher
from mcphost.vault.secrets import selectors
from mcphost.vault.secrets.selectors import load_secret
from mcphost.vault.secrets.services import rotate_secret
from mcphost.vault.secrets.values import UsableSecret, bound, open_value, seal_value
from mcphost.vault.services import ensure_ring, ensure_tenant
from tests.cast import Cast
from tests.vault.secrets.tenant_secret import NAME, OLGA, OTHER, VALUE, stored

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def acme(cast: Cast) -> UUID:
    ensure_ring()
    return cast.acme.id


def value_of(tenant: UUID, name: str = NAME) -> str:
    """Read the value as a process does that has just started."""
    selectors.forget_everything()
    keys.forget_everything()
    found = load_secret(tenant, name)
    return found.reveal()


@pytest.mark.parametrize("column", ["id", "tenant", "name", "version", "sealed"])
def test_a_value_opens_only_in_its_own_row(acme: UUID, column: str) -> None:
    stored(acme)
    row = StoredSecret.objects.get()
    tenant, name = acme, NAME
    match column:
        case "id":
            row.delete()
            row.id = uuid4()
        case "tenant":
            row.tenant = tenant = uuid4()
            ensure_tenant(tenant)
        case "name":
            row.name = name = "other_key"
        case "version":
            row.version += 1
        case "sealed":
            row.sealed = bytes(row.sealed)[:-1] + bytes([bytes(row.sealed)[-1] ^ 1])
    row.save()
    with pytest.raises(DamagedSecretError) as refused:
        value_of(tenant, name)
    assert VALUE not in str(refused.value)
    assert refused.value.__suppress_context__


def test_the_binding_differs_in_each_part_and_the_same_value_never_encrypts_equally():
    tenant, row = uuid4(), uuid4()
    key, place = ensure_tenant(tenant).payload_key, bound(tenant, row, 1, NAME)
    sealed = [seal_value(VALUE, place, key) for _ in range(10)]
    assert len(set(sealed)) == 10
    assert open_value(sealed[0], place, key) == VALUE
    for other in (
        bound(uuid4(), row, 1, NAME),
        bound(tenant, uuid4(), 1, NAME),
        bound(tenant, row, 2, NAME),
        bound(tenant, row, 1, NAME + "s"),
        b"",
    ):
        with pytest.raises(DamagedSecretError):
            open_value(sealed[0], other, key)


def test_older_values_truncated_values_and_payloads_do_not_open_as_a_secret(acme: UUID) -> None:
    key, cipher = ensure_tenant(acme).payload_key, VaultPayloadCipher()
    secret = stored(acme)
    older = bytes(StoredSecret.objects.get().sealed)
    rotate_secret(acme, secret, OTHER, actor=OLGA)
    payload = cipher.commit_and_seal(acme, b"what a person answered")
    for sealed in (older, payload.ciphertext, b"", b"short", bytes(12), bytes(28)):
        StoredSecret.objects.update(sealed=sealed)
        with pytest.raises(DamagedSecretError):
            value_of(acme)
    sealed = seal_value(VALUE, bound(acme, uuid4(), 1, NAME), key)
    with pytest.raises(Exception, match="modified"):
        cipher.open(acme, key.id, sealed)


def test_values_survive_destroying_the_salt_but_not_the_payload_key(acme: UUID) -> None:
    stored(acme)
    sealed = VaultPayloadCipher().commit_and_seal(acme, b"payload")
    destroy_salt(acme, OLGA)
    assert value_of(acme) == VALUE
    assert VaultPayloadCipher().open(acme, sealed.key_id, sealed.ciphertext) == b"payload"
    TenantSecret.objects.filter(tenant=acme).delete()
    ensure_ring()
    keys.forget_everything()
    ensure_tenant(acme)
    with pytest.raises(DamagedSecretError):
        value_of(acme)


@pytest.fixture
def secret() -> UsableSecret:
    hosts = frozenset({"api.example.com", "other.example.com:8443"})
    return UsableSecret(NAME, hosts, frozenset({"header"}), lambda: VALUE)


def test_a_secret_shows_only_its_name(secret: UsableSecret) -> None:
    assert secret.reveal() == VALUE
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r:>40}", "%s" % secret):  # noqa: UP031
        assert VALUE not in shown
        assert NAME in shown


@pytest.mark.parametrize(
    "give_away",
    [
        pickle.dumps,
        copy.copy,
        copy.deepcopy,
        json.dumps,
        orjson.dumps,
        vars,
        dict,
        list,
        bytes,
        TypeAdapter(Any).dump_json,
    ],
)
def test_a_secret_cannot_be_copied_or_serialized(secret, give_away):
    with pytest.raises(Exception) as refused:
        give_away(secret)
    assert VALUE not in str(refused.value)


def test_a_secret_cannot_be_changed(secret: UsableSecret) -> None:
    with pytest.raises(AttributeError):
        secret.hosts = frozenset({"evil.example.com"})
    with pytest.raises(AttributeError):
        secret.anything = 1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        del secret.places
    assert secret.places == {"header"}
