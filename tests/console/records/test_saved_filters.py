"""Tests of saved filters: ownership, visibility and records."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from itertools import count
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.console.models import SavedFilter
from mcphost.console.records import filter_store
from mcphost.console.records.filter_store import FilterFields
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.models import Tenant
from tests.vault.parallel_threads import at_once

CALLS = "/admin/t/acme/calls/"
NEW = f"{CALLS}filters/new/"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def save(client: Client, name: str, query: str = "tool=echo", **fields: str) -> SavedFilter:
    response = client.post(f"{NEW}?{query}", {"name": name, **fields})
    assert response.status_code == 302, unescape(response.content.decode())
    return SavedFilter.objects.get(name=name)


def names(client: Client, path: str = CALLS) -> list[str]:
    return [each.name for each in client.get(path).context["saved"]]


def actions() -> list[str]:
    found = Entry.objects.filter(action__startswith="filter.").order_by("id")
    return list(found.values_list("action", flat=True))


def test_a_saved_filter_links_to_its_list(auditor: Client) -> None:
    page = auditor.get(f"{CALLS}?tool=echo&period=24h").content.decode()
    assert f'href="{NEW}?tool=echo&amp;period=24h"' in page
    response = auditor.post(f"{NEW}?tool=echo&period=24h&after=zzz", {"name": "Echo"})
    assert response.status_code == 200
    response = auditor.post(f"{NEW}?tool=echo&period=24h", {"name": " Echo\t today "})
    assert response["Location"] == f"{CALLS}?tool=echo&period=24h"
    saved = SavedFilter.objects.get(name="Echo today")
    listed = {each.name: each for each in auditor.get(response["Location"]).context["saved"]}
    assert listed["Echo today"].query == "tool=echo&period=24h"
    assert listed["Echo today"].current
    assert not saved.shared


def test_a_private_filter_is_visible_to_its_author_only_and_not_recorded(auditor, owner, staff):
    before = actions()
    saved = save(auditor, "Mine")
    assert names(auditor) == ["Mine", "canary-acme-filter"]
    assert names(owner) == ["canary-acme-filter"]
    for other in (owner, staff):
        assert other.get(f"{CALLS}filters/{saved.pk}/").status_code == 404
        assert other.post(f"{CALLS}filters/{saved.pk}/", {"_delete": "1"}).status_code == 404
    assert actions() == before


def test_a_shared_filter_is_visible_to_users_of_its_tenant_only(
    auditor, operator, cast, browse, acme, globex
):
    save(auditor, "Ours", shared="on")
    assert "Ours" in names(operator)
    assert names(browse(cast.stranger), "/admin/t/globex/calls/") == ["canary-globex-filter"]
    assert operator.get(f"{CALLS}?tool=echo").context["saved"][0].author == "auditor"
    entry = Entry.objects.get(action="filter.shared", target="Ours")
    assert (entry.tenant, entry.actor_label, entry.facts) == (
        acme.tenant,
        "auditor",
        {"query": "tool=echo"},
    )


def test_only_the_author_renames_shares_and_deletes_a_filter(auditor: Client, operator: Client):
    saved = save(auditor, "First")
    page = f"{CALLS}filters/{saved.pk}/"
    auditor.post(page, {"name": "Second", "shared": "on"})
    assert operator.get(page).status_code == 404
    auditor.post(page, {"name": "Third", "shared": "on"})
    auditor.post(page, {"name": "Third"})
    auditor.post(page, {"name": "Fourth"})
    auditor.post(page, {"name": "Fourth", "shared": "on"})
    auditor.post(page, {"_delete": "1"})
    assert not SavedFilter.objects.filter(pk=saved.pk).exists()
    assert actions()[1:] == [
        "filter.shared",
        "filter.renamed",
        "filter.unshared",
        "filter.shared",
        "filter.deleted",
    ]


def test_an_owner_can_delete_but_not_rename_a_shared_filter_of_another_user(auditor, owner):
    saved = save(auditor, "Ours", shared="on")
    page = f"{CALLS}filters/{saved.pk}/"
    owner.post(page, {"name": "Stolen", "shared": "on"})
    saved.refresh_from_db()
    assert saved.name == "Ours"
    owner.post(page, {"_delete": "1"})
    entry = Entry.objects.get(action="filter.deleted")
    assert (entry.actor_label, entry.facts["author"]) == ("owner", "auditor")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "This field is required."),
        ("x" * 61, "Give it a name of 1 to 60 characters."),
        ("a\u202eb", "The name has a character that cannot be seen."),
    ],
)
def test_an_invalid_filter_name_is_refused_at_its_field(auditor: Client, name: str, said: str):
    response = auditor.post(f"{NEW}?tool=echo", {"name": name})
    assert response.status_code == 200
    assert said in unescape(response.content.decode())
    assert SavedFilter.objects.count() == 1


def test_filter_names_are_unique_per_author(auditor: Client, operator: Client) -> None:
    save(auditor, "Echo")
    response = auditor.post(f"{NEW}?tool=other", {"name": "Echo"})
    assert "You have a filter of this name already." in unescape(response.content.decode())
    assert operator.post(f"{NEW}?tool=other", {"name": "Echo"}).status_code == 302


def test_platform_staff_have_filters_of_all_calls(staff: Client) -> None:
    new = "/admin/calls/filters/new/"
    assert staff.post(f"{new}?tenant=acme", {"name": "Acme", "shared": "on"}).status_code == 302
    again = staff.post(f"{new}?tenant=acme", {"name": "Acme"})
    assert "You have a filter of this name already." in unescape(again.content.decode())
    assert names(staff, "/admin/calls/") == ["Acme"]
    assert "Acme" not in names(staff)
    saved = SavedFilter.objects.get(name="Acme")
    assert staff.get(f"{CALLS}filters/{saved.pk}/").status_code == 404
    assert staff.get(f"/admin/calls/filters/{saved.pk}/").status_code == 200
    assert Entry.objects.get(action="filter.shared", target="Acme").tenant is None


@contextmanager
def elsewhere(verb: Callable[[], object]) -> Iterator[None]:
    """Another session does something between the look-up of a filter and what is done to it."""
    looks = count(1)

    def look(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("SELECT") and "console_saved_filter" in sql and next(looks) == 2:
            verb()
        return execute(sql, *rest)

    with connection.execute_wrapper(look):
        yield


@pytest.mark.parametrize("sent", [{"name": "Second", "shared": "on"}, {"_delete": "1"}])
def test_a_filter_deleted_in_the_meantime_is_not_found(auditor: Client, sent: dict[str, str]):
    saved = save(auditor, "First")
    with elsewhere(SavedFilter.objects.filter(pk=saved.pk).delete):
        assert auditor.post(f"{CALLS}filters/{saved.pk}/", sent).status_code == 404
    assert "Second" not in names(auditor)


@pytest.mark.django_db(transaction=True)
def test_concurrent_saves_stay_within_the_filter_limit(cast, monkeypatch):
    monkeypatch.setattr(filter_store, "MAX_OWN", 2)
    tenant, user, numbers = Tenant.objects.get(slug="acme"), cast.auditor.user, count()

    def save_another() -> bool:
        try:
            fields = FilterFields(f"Number {next(numbers)}", shared=False)
            return bool(filter_store.save(user, tenant, fields, "tool=echo"))
        except InvalidError:
            return False

    assert sorted(at_once(save_another, 4)) == [False, False, True, True]
    assert SavedFilter.objects.filter(author=user.pk).count() == 2


def test_filters_of_questions_are_saved_apart_from_those_of_calls(auditor: Client) -> None:
    questions = CALLS.replace("/calls/", "/input-requests/")
    page = auditor.get(f"{questions}?state=open&words=ignored").content.decode()
    new = f"{questions}filters/new/?state=open"
    assert f'href="{new}"' in page
    response = auditor.post(new, {"name": "Canary"})
    assert response["Location"] == f"{questions}?state=open"
    save(auditor, "Other")
    assert names(auditor, questions) == ["Canary"]
    assert "Canary" not in names(auditor)
    saved = SavedFilter.objects.get(name="Canary")
    assert auditor.get(f"{CALLS}filters/{saved.pk}/").status_code == 404
    assert auditor.get(f"{questions}filters/{saved.pk}/").status_code == 200
