"""Which clients there are: rows and pins; metadata documents are read for people who signed in."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcphost.identity.models import CLIENT_ID_LENGTH, OAuthClient
from mcphost.identity.oauth import clients
from mcphost.identity.oauth.pins import PINS

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


def test_a_row_comes_before_its_pin() -> None:
    OAuthClient.objects.create(id=CLAUDE_CODE, name="As read", redirect_uris=["http://localhost/x"])
    with CaptureQueriesContext(connection) as queries:
        client = clients.find(CLAUDE_CODE)
    assert client is not None
    assert client.name == "As read"
    assert len(queries) == 1
