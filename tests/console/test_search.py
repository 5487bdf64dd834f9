"""Tests of the search: what each role finds, and that foreign data looks like missing data."""

import re
from uuid import UUID

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from psycopg.errors import QueryCanceled

from mcphost.audit.models import Entry
from mcphost.audit.records import ROUND_FINISHED, new_id
from mcphost.catalogue import services as catalogue
from mcphost.console import search
from mcphost.identity.oauth.connections import end
from tests.cast import Cast
from tests.console.conftest import Browser
from tests.console.tenant_data import ACTOR, Things, recorded, tool_fields
from tests.oauth import connect, connection_of, make_client

SEARCH = "/admin/search/"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def found(client: Client, text: str, **more: str) -> dict[str, list[str]]:
    """Return the titles of the hits, by group."""
    response = client.get(SEARCH, {"q": text, **more})
    assert response.status_code == 200
    groups = response.context["groups"]
    return {group.name: [hit.title for hit in group.hits] for group in groups}


def urls(client: Client, text: str) -> list[str]:
    groups = client.get(SEARCH, {"q": text}).context["groups"]
    return [hit.url for group in groups for hit in group.hits]


@pytest.fixture
def call(acme: Things) -> UUID:
    """A call as the server numbers it."""
    number = new_id()
    recorded(acme.tenant, number, target="canary-acme-tool")
    return number


@pytest.mark.parametrize(
    ("who", "groups"),
    [
        ("owner", {"Tenants", "Tools, prompts and resources", "Tokens", "Connected apps"}),
        ("operator", {"Tenants", "Tools, prompts and resources"}),
        ("auditor", {"Tenants", "Tools, prompts and resources"}),
        ("staff", {"Tenants", "Tools, prompts and resources", "Tokens", "Connected apps"}),
        ("stranger", set()),
    ],
)
def test_search_results_contain_only_data_that_the_role_may_see(
    cast: Cast, browse: Browser, who: str, groups: set[str]
):
    assert set(found(browse(getattr(cast, who)), "canary-acme")) == groups


@pytest.mark.parametrize("who", ["operator", "staff"])
def test_a_call_is_found_by_a_prefix_of_its_id(cast, browse, call, who):
    client = browse(getattr(cast, who))
    recorded(cast.acme.id, call, target="canary-acme-tool")  # a second entry is no second hit
    for text in (str(call), call.hex[:8], f" {str(call)[:13].upper()} "):
        assert found(client, text)["Calls"] == [str(call)]
    assert f"/admin/t/acme/calls/{call}/" in urls(client, str(call))
    assert "Calls" not in found(client, call.hex[:7])
    assert "Calls" not in found(client, f"{call.hex}0")


def test_tokens_are_found_by_name_and_public_id_and_link_to_their_row(owner, operator, acme):
    assert found(owner, "canary-acme-tok")["Tokens"] == ["canary-acme-token"]
    assert found(owner, acme.token[:6])["Tokens"] == ["canary-acme-token"]
    assert found(operator, "operator's client")["Tokens"] == ["operator's client"]
    assert "Tokens" not in found(operator, "owner's client")
    for client, text in ((owner, "canary-acme-tok"), (operator, "operator's client")):
        (url,) = (each for each in urls(client, text) if "#token-" in each)
        path, row = url.split("#")
        assert path.partition("?")[0] == "/admin/you/"  # both are the user's own
        assert f'<tr id="{row}"' in client.get(path).content.decode()


def test_connected_apps_are_found_by_name_and_link_to_their_row(cast, owner, staff, browse, acme):
    pages = ((owner, "/admin/you/"), (staff, "/admin/t/acme/connected-apps/"))
    for client, page in pages:
        (url,) = (each for each in urls(client, "canary-acme-app") if "#connection-" in each)
        path, row = url.split("#")
        assert path.partition("?")[0] == page
        assert f'<tr id="{row}"' in client.get(path).content.decode()
    connect(make_client(name="laptop"), cast.operator)
    assert found(browse(cast.operator), "lapt")["Connected apps"] == ["laptop"]
    assert "Connected apps" not in found(browse(cast.auditor), "lapt")
    end(acme.tenant, connection_of(cast.operator), actor=ACTOR)
    assert "Connected apps" not in found(browse(cast.operator), "lapt")


def test_users_are_found_only_by_users_who_manage_them(cast: Cast, browse: Browser) -> None:
    assert found(browse(cast.owner), "audit")["People"] == ["auditor"]
    assert "People" not in found(browse(cast.owner), "stranger")
    assert "People" not in found(browse(cast.operator), "auditor")
    assert found(browse(cast.staff), "stranger")["People"] == ["stranger"]


def test_searches_for_foreign_and_unknown_data_get_the_same_response(cast, browse, acme, call):
    stranger = browse(cast.stranger)
    fresh = new_id()
    pairs = [
        (str(call), str(fresh)),
        (acme.token, "x" * len(acme.token)),
        ("canary-acme-tool", "canary-xxxx-tool"),
        ("auditor", "nobodyy"),
        ("Acme", "Xxxx"),
    ]
    stranger.get(SEARCH, {"q": "warm"})
    for known, unknown in pairs:
        answers, asked = [], []
        for text in (known, unknown):
            for more in ({}, {"part": "1"}, {"t": "acme"}, {"t": "none"}):
                with CaptureQueriesContext(connection) as queries:
                    page = stranger.get(SEARCH, {"q": text, **more})
                answers.append(plain(page.content.decode().replace(text, "…")))
                asked.append([re.sub("'[^']*'", "…", each["sql"]) for each in queries])
        half = len(answers) // 2
        assert answers[:half] == answers[half:]
        assert list(map(len, asked[:half])) == list(map(len, asked[half:]))
        assert answers[2] == answers[3].replace("none", "acme")


def plain(page: str) -> str:
    """The page without the token of its forms, which differs in each response."""
    return re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", page)


def test_a_hostile_name_is_escaped_in_search_results(owner: Client, acme: Things) -> None:
    Entry.objects.create(
        id=new_id(),
        at=timezone.now(),
        tenant=acme.tenant,
        call=(number := new_id()),
        action=ROUND_FINISHED,
        actor_kind="token",
        target="<script>alert(1)</script>\u202e",
    )
    for more in ({}, {"part": "1"}):
        page = owner.get(SEARCH, {"q": str(number), **more}).content.decode()
        assert "<script>alert" not in page
        assert "\u202e" not in page
    typed = "<script>alert(2)</script>"
    assert typed not in owner.get(SEARCH, {"q": typed}).content.decode()


def test_the_number_of_search_queries_does_not_grow_with_the_data(staff, acme, globex):
    staff.get(SEARCH, {"q": "canary"})
    with CaptureQueriesContext(connection) as before:
        staff.get(SEARCH, {"q": "canary", "part": "1"})
    for number in range(10):
        catalogue.create(acme.tenant, tool_fields(f"canary_{number}"), ACTOR)
    with CaptureQueriesContext(connection) as after:
        staff.get(SEARCH, {"q": "canary", "part": "1"})
    assert len(after) == len(before) <= 20


def test_a_search_that_times_out_is_reported(owner: Client, monkeypatch: pytest.MonkeyPatch):
    def late(asked: search.Search) -> search.Hits:
        raise OperationalError("canceling statement due to statement timeout") from QueryCanceled

    monkeypatch.setattr(search, "_primitives", late)
    page = owner.get(SEARCH, {"q": "canary-acme"})
    assert "The search took too long" in page.content.decode()
    assert found(owner, "tok").keys() == {"Pages"}


@pytest.mark.postgresql
def test_the_database_cancels_a_search_that_takes_too_long(owner, monkeypatch):
    def late(asked: search.Search) -> search.Hits:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(60)")
        return "Late", []

    monkeypatch.setattr(search, "SECONDS", 0.05)
    monkeypatch.setattr(search, "_primitives", late)
    assert "The search took too long" in owner.get(SEARCH, {"q": "tok"}).content.decode()


def test_calls_are_found_without_reading_all_tenants(staff: Client, call: UUID) -> None:
    with CaptureQueriesContext(connection) as queries:
        page = staff.get(SEARCH, {"q": str(call), "part": "1"})
    assert f"/admin/t/acme/calls/{call}/" in page.content.decode()
    assert not [
        each["sql"]
        for each in queries
        if 'FROM "audit_entry"' in each["sql"] and '"tenant" IN' in each["sql"]
    ]
