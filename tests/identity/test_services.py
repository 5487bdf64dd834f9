"""Tests of issuing and revoking tokens: who may have which, what is stored and announced."""

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.serializers import serialize
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.feed.models import Change
from mcphost.identity import services
from mcphost.identity.models import Token
from mcphost.identity.service_accounts import create
from mcphost.identity.services import (
    NAME_LIMIT,
    SCOPES_LIMIT,
    IssuedToken,
    TokenRequest,
    issue,
    issue_for_service,
    revoke,
)
from mcphost.identity.tokens import digest
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.roles import Audience
from mcphost.tenants.services import close_tenant
from tests.cast import ACTOR, Cast

pytestmark = pytest.mark.django_db

WANTED = TokenRequest("laptop", ("mcp:list", "mcp:echo", "mcp:list"))


def _issue(cast: Cast, holder: str = "owner", **values: Any) -> IssuedToken:
    user = getattr(cast, holder).user
    return issue(cast.acme.id, user, replace(WANTED, **values), actor=ACTOR)


def _problems(cast: Cast, holder: str = "owner", **values: Any) -> dict[str, list[str]]:
    before = Token.objects.count(), Entry.objects.count(), Change.objects.count()
    with pytest.raises(InvalidError) as refused:
        _issue(cast, holder, **values)
    assert (Token.objects.count(), Entry.objects.count(), Change.objects.count()) == before
    return refused.value.problems


def test_issuing_a_token_writes_an_audit_record_and_a_change_log_entry(cast: Cast) -> None:
    until = timezone.now() + timedelta(days=1)
    for expires_at in (None, until):
        issued = _issue(cast, expires_at=expires_at)
        assert (issued.scopes, issued.expires_at) == (("mcp:echo", "mcp:list"), expires_at)
        entry = Entry.objects.get(action="token.issued", target=issued.id)
        assert entry.tenant == cast.acme.id
        assert entry.facts == {
            "name": "laptop",
            "owner": "owner",
            "consented": False,
            "audience": "mcp",
            "scopes": ["mcp:echo", "mcp:list"],
            "expires_at": expires_at and until.isoformat(),
        }
        change = Change.objects.get(name="token", object_id=issued.id)
        assert change.tenant == cast.acme.id
        assert str(Token.objects.get(pk=issued.id)) == f"laptop ({issued.id})"


@pytest.mark.requirement("auth.storage")
def test_only_the_sha256_of_a_token_is_stored_and_never_its_text(
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
    assert secret not in f"{issued!r} {issued}"


@pytest.mark.parametrize(
    ("name", "audience", "scopes", "problems"),
    [
        *(
            (
                name,
                Audience.API,
                (scope,),
                [f"The owner is {name} and may not hold {scope!r}."],
            )
            for name, scope in (
                ("auditor", "api:write"),
                ("member", "api:read"),
                ("member", "api:write"),
            )
        ),
        ("owner", Audience.MCP, ("api:read",), ["'api:read' cannot be used by a token for 'mcp'."]),
        ("owner", Audience.API, ("mcp:list",), ["'mcp:list' cannot be used by a token for 'api'."]),
        (
            "owner",
            Audience.MCP,
            ("mcp:list", "all", "mcp:*"),
            ["'all' is not a scope.", "'mcp:*' is not a scope."],
        ),
    ],
)
def test_a_token_has_only_scopes_of_its_audience_and_of_its_owners_role(
    cast: Cast, name: str, audience: Audience, scopes: tuple[str, ...], problems: list[str]
) -> None:
    assert _problems(cast, name, scopes=scopes, audience=audience) == {"scopes": problems}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scopes", ()),
        ("scopes", [f"mcp:t{number}" for number in range(SCOPES_LIMIT + 1)]),
        *(("name", name) for name in ("  ", "x" * (NAME_LIMIT + 1), "nul\x00", "two\nlines")),
        ("calls_per_minute", 0),
        ("concurrent_calls", -1),
        ("expires_at", datetime(2100, 1, 1)),  # noqa: DTZ001 - that is the point
        ("expires_at", datetime(2020, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_bad_field_is_reported_under_its_name(cast: Cast, field: str, value: Any) -> None:
    assert set(_problems(cast, **{field: value})) == {field}


def test_only_active_members_have_tokens(cast: Cast) -> None:
    assert set(_problems(cast, "stranger")) == {"owner"}
    assert set(_problems(cast, "staff")) == {"owner"}
    cast.member.user.is_active = False
    cast.member.user.save()
    assert set(_problems(cast, "member")) == {"owner"}


@pytest.mark.parametrize("state", ["closed", "unknown"])
def test_closed_and_unknown_tenants_are_refused_with_the_same_error(cast: Cast, state: str) -> None:
    close_tenant(cast.acme.id, actor=ACTOR)
    tenant = cast.acme.id if state == "closed" else uuid4()
    with pytest.raises(InvalidError, match="not an active member of this tenant"):
        issue(tenant, cast.owner.user, WANTED, actor=ACTOR)


def test_a_token_is_revoked_once_and_only_by_its_own_tenant(cast: Cast) -> None:
    issued = _issue(cast)
    assert not revoke(cast.globex.id, issued.id, actor=ACTOR)
    assert not revoke(cast.acme.id, "unknown", actor=ACTOR)
    assert not Entry.objects.filter(action="token.revoked").exists()
    assert revoke(cast.acme.id, issued.id, actor=ACTOR)
    assert not revoke(cast.acme.id, issued.id, actor=ACTOR)
    assert Entry.objects.filter(action="token.revoked", target=issued.id).count() == 1
    assert Change.objects.filter(name="token", object_id=issued.id).count() == 2
    assert Token.objects.get(pk=issued.id).revoked_at is not None


def test_the_number_of_tokens_per_holder_is_limited_even_if_they_are_revoked(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a member could multiply the limits of a token by issuing more tokens."""
    monkeypatch.setattr(services, "MAX_TOKENS", 3)
    account = create(cast.acme.id, "nightly", actor=ACTOR)
    for _ in range(2):  # one is of the cast
        issued = _issue(cast, "member")
    for _ in range(3):
        issue_for_service(cast.acme.id, account, WANTED, actor=ACTOR)
    revoke(cast.acme.id, issued.id, actor=ACTOR)
    (problem,) = _problems(cast, "member")["owner"]
    assert problem.startswith("The limit is 100 tokens")
    with pytest.raises(InvalidError, match="100 tokens"):
        issue_for_service(cast.acme.id, account, WANTED, actor=ACTOR)
    assert _issue(cast, "operator").name == "laptop"
