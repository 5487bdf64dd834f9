"""An OAuth client for tests: PKCE, and the requests that a client sends to the endpoints."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.feed.services import announce
from mcphost.identity.models import OAuthClient, Token
from mcphost.identity.oauth.connections import Consent, consent, own_connection_page
from mcphost.identity.oauth.grants import OAuthAnswer, answer_token
from mcphost.tenants.models import Membership
from tests.cast import Person

ISSUER = "https://mcp.test"
REDIRECT = "http://127.0.0.1:41234/callback"
VERIFIER = "a-verifier-of-at-least-forty-three-characters"
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
)


class Pair(NamedTuple):
    """What the token endpoint issued."""

    access: str
    refresh: str
    scope: str


def make_client(client_id: str = "dcr-laptop", name: str = "Laptop") -> OAuthClient:
    """Store a client that has registered itself, or whose metadata document was read."""
    uris = ["http://127.0.0.1/callback", "https://app.test/callback"]
    return OAuthClient.objects.create(id=client_id, name=name, redirect_uris=uris)


def membership_of(person: Person) -> Membership:
    return Membership.objects.get(user=person.user)


def code_of(client: OAuthClient, person: Person, *scopes: str, redirect_uri: str = REDIRECT) -> str:
    """Consent as the person, as the page does; return the code."""
    asked = Consent(client, redirect_uri, CHALLENGE, scopes or ("mcp:list", "mcp:call"))
    actor = Actor.person(person.user.pk, person.user.get_username())
    return consent(membership_of(person).pk, asked, actor=actor)


def connect(client: OAuthClient, person: Person, *scopes: str) -> Pair:
    """Consent as the person, and redeem the code."""
    return pair_of(redeem(client, code_of(client, person, *scopes)))


def connection_of(person: Person) -> UUID:
    """Return the id of the person's only live connection."""
    (connection,) = own_connection_page(person.user.pk).connections
    return connection.id


def expire_access_tokens(person: Person) -> None:
    """Let the access tokens of the person's only connection expire, and all processes notice."""
    connection = connection_of(person)
    with transaction.atomic():
        tokens = Token.objects.filter(connection_id=connection)
        tokens.update(expires_at=timezone.now() - timedelta(seconds=1))
        announce("token", tenant=membership_of(person).tenant_id, object_id=str(connection))


def redeem(client: OAuthClient, code: str, /, **changed: str | None) -> OAuthAnswer:
    """Redeem a code at the token endpoint; None leaves a parameter out."""
    form: dict[str, str | None] = {
        "grant_type": "authorization_code",
        "client_id": client.pk,
        "code": code,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
        **changed,
    }
    return ask(form)


def refresh(client: OAuthClient, refresh_token: str, **more: str) -> OAuthAnswer:
    grant = {"grant_type": "refresh_token", "client_id": client.pk}
    return ask({**grant, "refresh_token": refresh_token, **more})


def ask(form: dict[str, str | None]) -> OAuthAnswer:
    body = urlencode({name: value for name, value in form.items() if value is not None})
    return answer_token(body, f"{ISSUER}/token", ISSUER)


def pair_of(answer: OAuthAnswer) -> Pair:
    """Return the tokens of a 200."""
    assert answer.status == 200, answer.body
    issued = json.loads(answer.body)
    assert issued["token_type"] == "Bearer"
    return Pair(issued["access_token"], issued["refresh_token"], issued["scope"])


def error_of(answer: OAuthAnswer) -> str:
    assert answer.status in {400, 401, 429}, answer
    refusal = json.loads(answer.body)
    check_description(refusal)
    error: str = refusal["error"]
    return error


def check_description(refusal: Mapping[str, Any]) -> None:
    """Check that a refusal says in words what is wrong, in the characters that RFC 6749 allows."""
    assert re.fullmatch(r"[ !#-\[\]-~]{15,}", refusal["error_description"]), refusal


def query_of(location: str) -> dict[str, Any]:
    """Return the parameters that a redirect brings to the client, each there once."""
    pairs = parse_qsl(urlsplit(location).query, strict_parsing=True)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)
