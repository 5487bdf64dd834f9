"""Tests of issuing and revoking tokens: who may have which, what is stored and announced."""

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.serializers import serialize
from django.db import connection, connections, transaction
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.feed.models import Change
from mcphost.identity.models import Token
from mcphost.identity.service_accounts import create
from mcphost.identity.services import (
    MOST_TOKENS,
    NAME_LIMIT,
    SCOPES_LIMIT,
    IssuedToken,
    TokenRequest,
    issue,
    issue_for_service,
    revoke,
)
from mcphost.identity.tokens import digest
from mcphost.tenants.access import lock_open_tenant
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.roles import Audience
from mcphost.tenants.services import close_tenant
from tests.cast import ACTOR, Cast

pytestmark = pytest.mark.django_db

WANTED = TokenRequest("laptop", ("mcp:list", "mcp:echo", "mcp:list"))


def _issue(cast: Cast, name: str = "owner", **values: Any) -> IssuedToken:
    user = getattr(cast, name).user
    return issue(cast.acme.id, user, replace(WANTED, **values), actor=ACTOR)


def _problems(cast: Cast, name: str = "owner", **values: Any) -> dict[str, list[str]]:
    before = Token.objects.count(), Entry.objects.count(), Change.objects.count()
    with pytest.raises(InvalidError) as refused:
        _issue(cast, name, **values)
    assert (Token.objects.count(), Entry.objects.count(), Change.objects.count()) == before
    return refused.value.problems


def test_a_token_is_issued_with_its_record_and_its_news(cast: Cast) -> None:
    issued = _issue(cast, name="owner")
    entry = Entry.objects.get(action="token.issued", target=issued.id)
    assert entry.tenant == cast.acme.id
    assert entry.facts == {
        "name": "laptop",
        "owner": "owner",
        "consented": False,
        "audience": "mcp",
        "scopes": ["mcp:echo", "mcp:list"],
        "expires_at": None,
    }
    change = Change.objects.get(what="token", object_id=issued.id)
    assert change.tenant == cast.acme.id


@pytest.mark.requirement("auth.storage")
def test_what_is_kept_is_the_sha256_of_the_whole_text_and_never_the_text(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    issued = _issue(cast)
    secret = issued.plaintext.split("_")[2]
    row = Token.objects.get(pk=issued.id)
    assert bytes(row.digest) == digest(issued.plaintext)
    kept = serialize("json", [*Token.objects.all(), *Entry.objects.all(), *Change.objects.all()])
    assert secret not in kept
    assert secret not in caplog.text


def test_an_issued_token_does_not_show_its_text_by_accident(cast: Cast) -> None:
    issued = _issue(cast)
    assert issued.plaintext not in f"{issued!r} {issued}"
    assert issued.plaintext.split("_")[2] not in repr(issued)
    assert "plaintext" in {field.name for field in fields(issued)}


def test_scopes_are_kept_once_each_and_sorted(cast: Cast) -> None:
    assert _issue(cast).scopes == ("mcp:echo", "mcp:list")


def test_the_expiry_is_in_the_record(cast: Cast) -> None:
    until = timezone.now() + timedelta(days=1)
    issued = _issue(cast, expires_at=until)
    assert issued.expires_at == until
    entry = Entry.objects.get(action="token.issued", target=issued.id)
    assert entry.facts["expires_at"] == until.isoformat()


@pytest.mark.parametrize("name", ["auditor", "member"])
def test_a_token_for_the_api_is_only_for_those_whose_role_may_hold_it(
    cast: Cast, name: str
) -> None:
    problems = _problems(cast, name, scopes=("api:read",), audience=Audience.API)
    assert problems == {"scopes": [f"The owner is {name} and may not hold 'api:read'."]}


@pytest.mark.parametrize(
    ("audience", "scope"), [(Audience.MCP, "api:read"), (Audience.API, "mcp:list")]
)
def test_a_token_holds_scopes_of_its_one_audience_only(
    cast: Cast, audience: Audience, scope: str
) -> None:
    problems = _problems(cast, scopes=(scope,), audience=audience)
    assert problems == {"scopes": [f"'{scope}' cannot be used by a token for '{audience.value}'."]}


def test_every_bad_scope_is_named(cast: Cast) -> None:
    problems = _problems(cast, scopes=("mcp:list", "all", "mcp:*"))
    assert problems == {"scopes": ["'all' is not a scope.", "'mcp:*' is not a scope."]}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"scopes": ()}, "scopes"),
        ({"scopes": [f"mcp:t{number}" for number in range(SCOPES_LIMIT + 1)]}, "scopes"),
        ({"name": "  "}, "name"),
        ({"name": "x" * (NAME_LIMIT + 1)}, "name"),
        ({"name": "nul\x00"}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"calls_per_minute": 0}, "calls_per_minute"),
        ({"concurrent_calls": -1}, "concurrent_calls"),
        ({"expires_at": datetime(2100, 1, 1)}, "expires_at"),  # noqa: DTZ001 - that is the point
    ],
)
def test_a_bad_field_is_refused_beside_it(cast: Cast, values: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidError) as refused:
        issue(cast.acme.id, cast.owner.user, replace(WANTED, **values), actor=ACTOR)
    assert set(refused.value.problems) == {field}


def test_an_expiry_in_the_past_is_refused(cast: Cast) -> None:
    assert set(_problems(cast, expires_at=timezone.now())) == {"expires_at"}


def test_only_active_members_have_tokens(cast: Cast) -> None:
    assert set(_problems(cast, "stranger")) == {"owner"}
    assert set(_problems(cast, "staff")) == {"owner"}
    cast.member.user.is_active = False
    cast.member.user.save()
    assert set(_problems(cast, "member")) == {"owner"}


@pytest.mark.parametrize("state", ["closed", "unknown"])
def test_closed_and_unknown_tenants_are_refused_alike(cast: Cast, state: str) -> None:
    close_tenant(cast.acme.id, actor=ACTOR)
    tenant = cast.acme.id if state == "closed" else uuid4()
    with pytest.raises(InvalidError, match="not an active member of this tenant"):
        issue(tenant, cast.owner.user, WANTED, actor=ACTOR)


def test_a_token_is_revoked_once_with_its_record_and_its_news(cast: Cast) -> None:
    issued = _issue(cast)
    assert revoke(cast.acme.id, issued.id, actor=ACTOR)
    assert not revoke(cast.acme.id, issued.id, actor=ACTOR)
    assert Entry.objects.filter(action="token.revoked", target=issued.id).count() == 1
    assert Change.objects.filter(what="token", object_id=issued.id).count() == 2
    assert Token.objects.get(pk=issued.id).revoked_at is not None


def test_a_token_of_another_tenant_and_an_unknown_one_cannot_be_revoked(cast: Cast) -> None:
    issued = _issue(cast)
    assert not revoke(cast.globex.id, issued.id, actor=ACTOR)
    assert not revoke(cast.acme.id, "unknown", actor=ACTOR)
    assert not Entry.objects.filter(action="token.revoked").exists()


def test_a_token_has_a_readable_name(cast: Cast) -> None:
    issued = _issue(cast)
    assert str(Token.objects.get(pk=issued.id)) == f"laptop ({issued.id})"


def test_a_holder_has_a_hundred_tokens_at_most_however_they_are_revoked(cast: Cast) -> None:
    """Otherwise a member could multiply the limits of a token by issuing more tokens."""
    account = create(cast.acme.id, "nightly", actor=ACTOR)
    of_member = Token.objects.filter(owner=cast.member.user)
    for _ in range(MOST_TOKENS - of_member.count()):
        issued = _issue(cast, "member")
    for _ in range(MOST_TOKENS):
        issue_for_service(cast.acme.id, account, WANTED, actor=ACTOR)
    revoke(cast.acme.id, issued.id, actor=ACTOR)
    (problem,) = _problems(cast, "member")["owner"]
    assert problem.startswith("The limit is 100 tokens")
    with pytest.raises(InvalidError, match="100 tokens"):
        issue_for_service(cast.acme.id, account, WANTED, actor=ACTOR)
    assert _issue(cast, "operator").name == "laptop"


def test_tokens_that_ended_before_today_leave_room_for_others(cast: Cast) -> None:
    made = [_issue(cast, "member").id for _ in range(MOST_TOKENS // 2)]
    yesterday = timezone.now() - timedelta(days=2)
    old = Token.objects.filter(owner=cast.member.user)
    old.update(created_at=yesterday, expires_at=yesterday)
    old.filter(pk__in=made[:10]).update(expires_at=None, revoked_at=yesterday)
    for _ in range(MOST_TOKENS):
        _issue(cast, "member")
    assert _problems(cast, "member")["owner"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgresql
def test_a_token_is_issued_while_the_members_of_its_tenant_are_changed(cast: Cast) -> None:
    """Checking the token's reference to the tenant does not wait for the tenant's lock.

    It did once, and deadlocked with a change that waited for the change log.
    """

    def issued() -> str:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '5s'")
            return _issue(cast, "member").name
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        lock_open_tenant(cast.acme.id, ACTOR, None)
        assert pool.submit(issued).result(30) == "laptop"
