"""Which clients there are: rows and pins; metadata documents are read for people who signed in."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.identity.models import CLIENT_ID_LENGTH, OAuthClient
from mcphost.identity.oauth import clients, redirects
from mcphost.identity.oauth.client_metadata import PINS, Pin
from mcphost.identity.oauth.errors import OAuthError, OAuthErrorCode
from mcphost.identity.oauth.grants import answer_revocation, answer_token
from mcphost.tenants.models import Tenant
from mcphost.tenants.services import update_tenant
from tests.cast import ACTOR, Cast
from tests.identity.oauth.hosts import DocumentHost
from tests.oauth import CHALLENGE, ISSUER, VERIFIER

PERSON = 7

pytestmark = pytest.mark.django_db

CLAUDE_CODE = "https://claude.ai/oauth/claude-code-client-metadata"


def test_a_stored_client_is_found_by_its_id_alone() -> None:
    stored = OAuthClient.objects.create(id="dcr-known", name="Known", redirect_uris=[])
    assert clients.find("dcr-known") == stored
    assert clients.find("dcr-unknown") is None
    assert clients.find("DCR-KNOWN") is None


@pytest.mark.parametrize(
    "client_id",
    ["", "\0", "dcr-\0", "\ud800", "x" * (CLIENT_ID_LENGTH + 1), "https://app.example/client.json"],
)
def test_an_id_of_no_client_is_none_whatever_is_in_it(client_id: str) -> None:
    assert clients.find(client_id) is None


def test_a_pinned_client_is_found_without_a_row_and_makes_none() -> None:
    client = clients.find(CLAUDE_CODE)
    assert client is not None
    assert (client.name, tuple(client.redirect_uris)) == PINS[CLAUDE_CODE][1:]
    assert not OAuthClient.objects.exists()


@pytest.mark.parametrize(
    ("client_id", "name", "redirect_uri"),
    [
        ("https://chatgpt.com/oauth/aB3_-x/client.json", "ChatGPT", "https://chatgpt.com/connector/oauth/aB3_-x"),
        ("https://chatgpt.com/oauth/codex/aB3_-x/client.json", "Codex", "http://127.0.0.1/callback/aB3_-x"),
    ],
)  # fmt: skip
def test_the_documents_of_single_connections_of_chatgpt_and_codex_are_pinned(
    client_id: str, name: str, redirect_uri: str
) -> None:
    client = clients.find(client_id)
    assert client is not None
    assert (client.name, client.redirect_uris) == (name, [redirect_uri])
    assert redirects.problem(redirect_uri) is None
    assert redirects.is_loopback(redirect_uri) == (name == "Codex")


@pytest.mark.parametrize(
    "client_id",
    [
        "https://chatgpt.com/oauth/client.json/client.json",
        "https://chatgpt.com/oauth/a/b/client.json",
        "https://chatgpt.com/oauth/%2e%2e/client.json",
        "https://chatgpt.com/oauth//client.json",
        "https://chatgpt.com/oauth/codex/a/client.json?x",
        "https://chatgpt.com.evil.example/oauth/a/client.json",
        "http://chatgpt.com/oauth/a/client.json",
        f"https://chatgpt.com/oauth/{'a' * 65}/client.json",
    ],
)
def test_what_only_resembles_such_a_document_is_not_pinned(client_id: str) -> None:
    assert clients.find(client_id) is None


def test_a_row_comes_before_its_pin() -> None:
    OAuthClient.objects.create(id=CLAUDE_CODE, name="As read", redirect_uris=["http://localhost/x"])
    with CaptureQueriesContext(connection) as queries:
        client = clients.find(CLAUDE_CODE)
    assert client is not None
    assert client.name == "As read"
    assert len(queries) == 1


# A person who is signed in


def stored(url: str, **values: Any) -> OAuthClient:
    """Store a document that was read a moment ago, and is not fresh any more."""
    now = timezone.now()
    columns = {"name": "Stored", "redirect_uris": ["https://old.example/cb"], "read_at": now}
    return OAuthClient.objects.create(id=url, **{**columns, "fresh_until": now, **values})


def make_stale(client: OAuthClient, **values: Any) -> None:
    OAuthClient.objects.filter(pk=client.pk).update(fresh_until=timezone.now(), **values)


def refusal(client_id: str) -> str:
    with pytest.raises(OAuthError) as caught:
        clients.resolve(client_id, PERSON)
    assert caught.value.code is OAuthErrorCode.INVALID_CLIENT
    return caught.value.description


def test_the_document_of_a_new_client_is_read_and_stored(host: DocumentHost) -> None:
    host.headers = {"Cache-Control": "max-age=3600"}
    client = clients.resolve(host.url, PERSON)
    row = OAuthClient.objects.get(pk=host.url)
    assert client == row
    assert (row.name, row.redirect_uris) == ("Reader", ["http://127.0.0.1/cb"])
    assert row.read_at is not None
    assert row.fresh_until == row.read_at + timedelta(hours=1)


def test_a_fresh_document_is_not_read_again_and_a_stale_one_is(host: DocumentHost) -> None:
    client = clients.resolve(host.url, PERSON)
    host.publish(client_name="Renamed", redirect_uris=["https://new.example/cb"])
    assert clients.resolve(host.url, PERSON).name == "Reader"
    assert len(host.requests) == 1
    make_stale(client)
    assert clients.resolve(host.url, PERSON).name == "Renamed"
    assert OAuthClient.objects.get(pk=host.url).redirect_uris == ["https://new.example/cb"]


def test_nothing_is_fetched_where_nobody_is_signed_in(host: DocumentHost) -> None:
    """The token endpoint, which anybody reaches, uses `find`."""
    assert clients.find(host.url) is None
    stored(host.url)
    assert clients.find(host.url) is not None
    assert host.requests == []


def test_no_request_without_a_session_makes_the_server_fetch_a_document(
    host: DocumentHost, cast: Cast
) -> None:
    browser = Client(headers={"accept": "text/html"})
    query = {
        "response_type": "code",
        "client_id": host.url,
        "redirect_uri": "http://127.0.0.1/cb",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    }
    for ask in (browser.get, browser.post):
        assert ask(f"/authorize?{urlencode(query)}").status_code == 302
    for document in (host.url, CLAUDE_CODE):
        form = {"client_id": document, "token": "a", "refresh_token": "a"}
        for grant in ("authorization_code", "refresh_token"):
            redemption = {**form, "grant_type": grant, "code": "a", "code_verifier": VERIFIER}
            assert answer_token(urlencode(redemption), f"{ISSUER}/token", ISSUER).status >= 400
        answer_revocation(urlencode(form), f"{ISSUER}/revoke", ISSUER)
    assert host.requests == []
    browser.force_login(cast.member.user)
    assert "Connect Reader?" in browser.get(f"/authorize?{urlencode(query)}").content.decode()
    assert len(host.requests) == 1


def test_a_registered_client_is_not_fetched(host: DocumentHost) -> None:
    OAuthClient.objects.create(id="dcr-x", name="Registered", redirect_uris=[])
    assert clients.resolve("dcr-x", PERSON).name == "Registered"
    for client_id in ("dcr-y", "", "\0", host.url.replace("https", "http")):
        assert "No client is registered with this id" in refusal(client_id)
    assert host.requests == []


FAILURES: Final = (
    {"status": 403},
    {"status": 404},
    {"status": 302, "headers": {"Location": "/elsewhere"}},
    {"body": b"not JSON"},
    {"body": b"a" * 6000},
    {"body": b'{"client_id": "https://other.example/", "redirect_uris": ["https://b.example/"]}'},
)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_document_that_cannot_be_read_is_refused_in_words(
    host: DocumentHost, failure: dict[str, Any]
) -> None:
    for name, value in failure.items():
        setattr(host, name, value)
    words = refusal(host.url)
    assert words.startswith("The client's metadata document cannot be used. ")
    assert words.endswith(".")
    assert not OAuthClient.objects.exists()


@pytest.mark.parametrize("failure", FAILURES)
def test_a_stored_document_serves_for_seven_days_while_it_cannot_be_read(
    host: DocumentHost, failure: dict[str, Any]
) -> None:
    for name, value in failure.items():
        setattr(host, name, value)
    now = timezone.now()
    client = stored(host.url, read_at=now - timedelta(days=6, hours=23))
    assert clients.resolve(host.url, PERSON).redirect_uris == client.redirect_uris
    assert clients.resolve(host.url, PERSON).name == "Stored"
    assert len(host.requests) == 1, "the next try is some minutes away"
    assert OAuthClient.objects.get().read_at == client.read_at
    make_stale(client, read_at=now - timedelta(days=7))
    assert "cannot be used" in refusal(host.url)


def test_a_host_that_is_back_is_believed(host: DocumentHost) -> None:
    client = stored(host.url)
    host.status = 503
    clients.resolve(host.url, PERSON)
    make_stale(client)
    host.publish()
    assert clients.resolve(host.url, PERSON).name == "Reader"


@pytest.fixture
def pinned(host: DocumentHost, monkeypatch: pytest.MonkeyPatch) -> Pin:
    """A pin whose document the host has."""
    pin = Pin(host.url, "Pinned", ("https://pinned.example/cb",))
    monkeypatch.setitem(PINS, pin.id, pin)
    return pin


def test_a_pin_becomes_a_row_when_its_document_cannot_be_read(
    host: DocumentHost, pinned: Pin
) -> None:
    host.status = 403
    client = clients.resolve(pinned.id, PERSON)
    row = OAuthClient.objects.get()
    assert (client, row.name, row.redirect_uris) == (row, "Pinned", ["https://pinned.example/cb"])
    assert row.read_at is None
    assert clients.resolve(pinned.id, PERSON) == row
    assert len(host.requests) == 1, "the next try is some minutes away"


def test_a_document_that_was_read_replaces_its_pin(host: DocumentHost, pinned: Pin) -> None:
    host.status = 403
    client = clients.resolve(pinned.id, PERSON)
    make_stale(client)
    host.publish()
    assert clients.resolve(pinned.id, PERSON).name == "Reader"
    host.status = 403
    make_stale(client)
    assert clients.resolve(pinned.id, PERSON).name == "Reader"
    make_stale(client, read_at=timezone.now() - timedelta(days=7))
    assert clients.resolve(pinned.id, PERSON).name == "Pinned"


def test_a_newer_pin_replaces_the_row_of_an_older_one(
    host: DocumentHost, pinned: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.status = 403
    client = clients.resolve(pinned.id, PERSON)
    monkeypatch.setitem(PINS, pinned.id, pinned._replace(name="Newer"))
    make_stale(client)
    assert clients.resolve(pinned.id, PERSON).name == "Newer"


# A tenant's switch


def test_a_tenant_may_refuse_clients_that_registered_themselves(
    cast: Cast, host: DocumentHost
) -> None:
    registered = OAuthClient.objects.create(id="dcr-x", name="Registered", redirect_uris=[])
    documented = clients.resolve(host.url, PERSON)
    tenant = Tenant.objects.get(pk=cast.acme.id)
    assert clients.allowed_in(registered, tenant) is None
    update_tenant(tenant.pk, replace(cast.acme.fields, metadata_documents_only=True), actor=ACTOR)
    tenant.refresh_from_db()
    words = clients.allowed_in(registered, tenant)
    assert words is not None
    assert "Registered has registered itself" in words
    assert clients.allowed_in(documented, tenant) is None
    assert clients.allowed_in(registered, Tenant.objects.get(pk=cast.globex.id)) is None
    entry = Entry.objects.filter(action="tenant.updated").latest("at")
    assert entry.facts == {"changed": ["metadata_documents_only"], "metadata_documents_only": True}


@pytest.mark.django_db(transaction=True)
def test_a_person_makes_the_server_read_a_limited_number_of_documents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "MAX_DOCUMENTS", 2)
    for number in range(3):
        with pytest.raises(OAuthError) as refused:
            clients.resolve(f"https://127.0.0.1/client-{number}", PERSON)
        assert ("too many" in refused.value.description) == (number == 2)
    with pytest.raises(OAuthError) as refused:
        clients.resolve("https://127.0.0.1/client-3", PERSON + 1)
    assert "too many" not in refused.value.description
