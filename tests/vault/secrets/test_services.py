"""Storing, rotating, changing and deleting secrets: one entry each, and never a value in it."""

import json
from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

import pytest

from mcphost.audit.models import Entry
from mcphost.catalogue import selectors as catalogue
from mcphost.feed.models import Change
from mcphost.tenants.errors import InvalidError, UnknownTenantError
from mcphost.tenants.services import close_tenant
from mcphost.vault.models import StoredSecret
from mcphost.vault.secrets import services
from mcphost.vault.secrets.fields import VALUE_NEEDED
from mcphost.vault.secrets.ports import set_published_uses
from mcphost.vault.secrets.selectors import load_secret, tenant_secret, tenant_secrets
from mcphost.vault.secrets.services import (
    change_secret,
    create_secret,
    delete_secret,
    rotate_secret,
)
from tests.cast import Cast
from tests.vault.secrets.tenant_secret import NAME, OLGA, OTHER, VALUE, stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme(cast: Cast) -> UUID:
    return cast.acme.id


def entries() -> list[tuple[str, dict[str, object]]]:
    found = Entry.objects.filter(action__startswith="secret.").order_by("id")
    return [(entry.action, entry.facts) for entry in found]


def value_of(tenant: UUID, name: str = NAME) -> str:
    found = load_secret(tenant, name)
    return found.reveal()


def test_a_stored_secret_can_be_read_only_by_its_tenant(acme: UUID, cast: Cast) -> None:
    stored(acme, hosts=["API.example.com:443", "b.example.com:8080"], places=["query", "header"])
    (row,) = tenant_secrets(acme)
    assert (row.name, row.version, row.created_by) == (NAME, 1, "olga")
    assert (row.rotated_at, row.rotated_by, row.last_used_at) == (None, "", None)
    assert row.rules.hosts == ("api.example.com", "b.example.com:8080")
    assert row.rules.places == ("header", "query")
    assert value_of(acme) == VALUE
    assert tenant_secrets(cast.globex.id) == ()
    assert load_secret(cast.globex.id, NAME) is None
    assert tenant_secret(cast.globex.id, row.id) is None


def test_a_secret_name_is_unique_in_its_tenant_until_the_secret_is_deleted(
    acme: UUID, cast: Cast
) -> None:
    secret = stored(acme)
    stored(cast.globex.id, value=OTHER)
    with pytest.raises(InvalidError) as refused:
        stored(acme, value=OTHER)
    assert list(refused.value.problems) == ["name"]
    assert (value_of(acme), value_of(cast.globex.id)) == (VALUE, OTHER)
    assert delete_secret(acme, secret, actor=OLGA)
    stored(acme, value=OTHER)
    assert value_of(acme) == OTHER


def test_a_refused_secret_is_neither_stored_nor_recorded(
    acme: UUID, cast: Cast, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(InvalidError) as refused:
        create_secret(acme, "No", VALUE + "\n", hosts=[], places=[], actor=OLGA)
    assert VALUE not in str(refused.value)
    assert not StoredSecret.objects.exists()
    assert entries() == []
    monkeypatch.setattr(services, "MAX_SECRETS", 2)
    for name in "ab":
        stored(acme, name)
    with pytest.raises(InvalidError, match="at most 2"):
        stored(acme, "c")
    stored(cast.globex.id, "c")


def test_a_rotation_replaces_the_value_and_stores_its_time_and_actor(acme: UUID) -> None:
    secret = stored(acme)
    sealed = bytes(StoredSecret.objects.get().sealed)
    assert rotate_secret(acme, secret, OTHER, actor=OLGA)
    (row,) = tenant_secrets(acme)
    assert (row.version, row.rotated_by) == (2, "olga")
    assert row.rotated_at is not None
    assert bytes(StoredSecret.objects.get().sealed) != sealed
    assert value_of(acme) == OTHER
    with pytest.raises(InvalidError):
        rotate_secret(acme, secret, "short", actor=OLGA)
    assert value_of(acme) == OTHER


WIDER = [
    {"hosts": ["api.example.com", "theirs.example"], "places": ["header"]},
    {"hosts": ["theirs.example"], "places": ["header"]},
    {"hosts": ["api.example.com:8443"], "places": ["header"]},
    {"hosts": ["api.example.com"], "places": ["header", "query"]},
    {"hosts": ["api.example.com"], "places": ["body"]},
]


@pytest.mark.parametrize("rules", WIDER)
def test_adding_a_host_or_place_requires_a_new_value(acme, rules):
    secret = stored(acme)
    with pytest.raises(InvalidError) as refused:
        change_secret(acme, secret, **rules, actor=OLGA)
    assert refused.value.problems == {"value": [VALUE_NEEDED]}
    with pytest.raises(InvalidError, match="Use 8 to"):
        change_secret(acme, secret, **rules, actor=OLGA, value="short")
    (row,) = tenant_secrets(acme)
    assert (row.rules.hosts, row.rules.places, row.version) == (
        ("api.example.com",),
        ("header",),
        1,
    )
    assert [action for action, _ in entries()] == ["secret.created"]
    assert change_secret(acme, secret, **rules, actor=OLGA, value=OTHER)
    (row,) = tenant_secrets(acme)
    assert {"hosts": list(row.rules.hosts), "places": list(row.rules.places)} == rules
    assert (row.version, row.rotated_by) == (2, "olga")
    assert value_of(acme) == OTHER, "the value that was stored before is not sent to the new host"


def test_rules_can_be_changed_with_the_value_or_narrowed_without_it(acme: UUID) -> None:
    rules = {"hosts": ["a.example.com", "b.example.com"], "places": ["header", "body"]}
    secret = stored(acme)
    assert change_secret(acme, secret, **rules, actor=OLGA, value=VALUE)
    found = load_secret(acme, NAME)
    assert (found.hosts, found.places) == (set(rules["hosts"]), set(rules["places"]))
    assert found.reveal() == VALUE
    with pytest.raises(InvalidError):
        change_secret(acme, secret, hosts=["no host"], places=["body"], actor=OLGA)
    assert change_secret(acme, secret, hosts=["b.example.com"], places=["body"], actor=OLGA)
    (row,) = tenant_secrets(acme)
    assert (row.rules.hosts, row.rules.places, row.version) == (("b.example.com",), ("body",), 2)
    assert value_of(acme) == VALUE
    with pytest.raises(InvalidError):  # what was removed is not added again without it
        change_secret(acme, secret, **rules, actor=OLGA)


def test_each_change_writes_one_record_and_one_change_log_entry_and_no_change_none(
    acme: UUID,
) -> None:
    secret = stored(acme)
    rules = {"hosts": ["api.example.com"], "places": ["header"]}
    other = {"hosts": ["b.example.com"], "places": ["body"]}
    assert change_secret(acme, secret, **rules, actor=OLGA)
    change_secret(acme, secret, **other, actor=OLGA, value=VALUE)
    rotate_secret(acme, secret, OTHER, actor=OLGA)
    delete_secret(acme, secret, actor=OLGA)
    named = {"name": NAME}
    assert entries() == [
        ("secret.created", {**named, **rules}),
        ("secret.changed", {**named, **other, "before": rules}),
        ("secret.rotated", {**named, "version": 2}),
        ("secret.rotated", {**named, "version": 3}),
        ("secret.deleted", named),
    ]
    news = Change.objects.filter(name="secret").values_list("tenant", "object_id")
    assert list(news) == [(acme, NAME)] * 5
    for entry in Entry.objects.filter(tenant=acme, action__startswith="secret."):
        assert (entry.target, entry.actor_label) == (str(secret), "olga")


def test_records_do_not_depend_on_the_value_or_its_length(acme: UUID) -> None:
    for name, value in (("one_key", "v" * 8), ("two_key", "w" * 4000)):
        secret = stored(acme, name, value)
        rotate_secret(acme, secret, value, actor=OLGA)
    told = [json.dumps([action, facts]).replace("two", "one") for action, facts in entries()]
    assert told[:2] == told[2:]


def test_secrets_of_other_tenants_and_unknown_secrets_cannot_be_changed(
    acme: UUID, cast: Cast
) -> None:
    secret, other = stored(acme), cast.globex.id
    rules = {"hosts": ["b.example.com"], "places": ["body"]}
    for tenant, wanted in ((other, secret), (acme, uuid4())):
        assert not rotate_secret(tenant, wanted, OTHER, actor=OLGA)
        assert not change_secret(tenant, wanted, **rules, actor=OLGA)
        assert not delete_secret(tenant, wanted, actor=OLGA)
    assert value_of(acme) == VALUE
    assert [action for action, _ in entries()] == ["secret.created"]


def test_secrets_of_a_closed_tenant_cannot_be_changed(acme: UUID) -> None:
    secret = stored(acme)
    close_tenant(acme, actor=OLGA)
    verbs: list[Callable[[], object]] = [
        lambda: stored(acme, "other_key"),
        lambda: rotate_secret(acme, secret, OTHER, actor=OLGA),
        lambda: change_secret(acme, secret, hosts=["b.example"], places=["body"], actor=OLGA),
        lambda: delete_secret(acme, secret, actor=OLGA),
    ]
    for verb in verbs:
        with pytest.raises(UnknownTenantError):
            verb()
    assert len(tenant_secrets(acme)) == 1


@pytest.fixture
def used() -> Iterator[list[str]]:
    """The names of the published tools that use NAME, instead of the catalogue's answer."""
    names: list[str] = []
    set_published_uses(lambda tenant, name: names if name == NAME else ())
    yield names
    set_published_uses(catalogue.published_uses)


def test_a_secret_used_by_a_published_definition_cannot_be_deleted(acme: UUID, used: list[str]):
    secret, other = stored(acme), stored(acme, "other_key")
    used += ["forecast", "history"]
    with pytest.raises(InvalidError) as refused:
        delete_secret(acme, secret, actor=OLGA)
    assert "forecast, history" in refused.value.problems["name"][0]
    assert value_of(acme) == VALUE
    assert delete_secret(acme, other, actor=OLGA)
    used.clear()
    assert delete_secret(acme, secret, actor=OLGA)
    assert load_secret(acme, NAME) is None
