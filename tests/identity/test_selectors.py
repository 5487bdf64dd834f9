"""Tests of authentication: cached, limited to the owner's role, refused without a reason."""

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from mcphost.feed.cache import MISS
from mcphost.feed.services import announce
from mcphost.identity import selectors, service_accounts
from mcphost.identity.models import Token
from mcphost.identity.selectors import Authenticated
from mcphost.identity.services import TokenRequest, issue, issue_for_service, revoke
from mcphost.identity.tokens import digest, new
from mcphost.runtime.call import PrincipalKind
from mcphost.tenants.roles import Audience, Role
from mcphost.tenants.services import close_tenant, remove_member, set_member
from tests.cast import ACTOR, Cast

pytestmark = pytest.mark.django_db(transaction=True)

CountQueries = Callable[[int], AbstractContextManager[Any]]


def _enter(token: str, slug: str | None = "acme", now: datetime | None = None) -> Any:
    return selectors.authenticate(token, Audience.MCP, slug, now)


def _cached(token: str) -> Any:
    return selectors.cached(token, Audience.MCP, "acme", timezone.now())


def _issue(cast: Cast, **values: Any) -> str:
    wanted = replace(TokenRequest("extra", ("mcp:list",)), **values)
    return issue(cast.acme.id, cast.operator.user, wanted, actor=ACTOR).plaintext


def _id(token: str) -> str:
    return token.split("_")[1]


def test_a_token_stands_for_its_owner_in_its_tenant(cast: Cast) -> None:
    found = _enter(cast.member.mcp_token)
    principal = found.principal
    assert principal.kind is PrincipalKind.TOKEN
    assert principal.tenant == cast.acme.id
    assert principal.user_id == cast.member.user.pk
    assert principal.id == principal.token_id == _id(cast.member.mcp_token)
    assert principal.label == "member (“member's client”, issued by member)"
    assert principal.scopes == {"mcp:list", "mcp:call"}
    assert (found.audience, found.slug) == (Audience.MCP, "acme")


def test_a_tokens_own_limits_and_expiry_come_with_it(cast: Cast) -> None:
    until = timezone.now() + timedelta(days=1)
    token = _issue(cast, calls_per_minute=7, concurrent_calls=2, expires_at=until)
    found = _enter(token)
    assert (found.calls_per_minute, found.concurrent_calls) == (7, 2)
    assert found.expires_at == until


def test_a_token_is_read_with_one_query_and_then_with_none(
    cast: Cast, django_assert_num_queries: CountQueries
) -> None:
    assert _cached(cast.member.mcp_token) is MISS
    with django_assert_num_queries(1):
        first = _enter(cast.member.mcp_token)
    with django_assert_num_queries(0):
        assert _enter(cast.member.mcp_token) is first
        assert _cached(cast.member.mcp_token) is first


@pytest.mark.parametrize("token", ["", "mcph_", "Bearer x", "mcph_" + "a" * 63])
def test_what_is_no_token_costs_no_query(
    cast: Cast, token: str, django_assert_num_queries: CountQueries
) -> None:
    with django_assert_num_queries(0):
        assert _enter(token) is None
        assert selectors.load(token, Audience.MCP, "acme", timezone.now()) is None


def test_a_wrong_checksum_costs_no_query(
    cast: Cast, django_assert_num_queries: CountQueries
) -> None:
    token = cast.member.mcp_token
    wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
    with django_assert_num_queries(0):
        assert _enter(wrong) is None


def test_an_unknown_id_costs_one_query_once(
    cast: Cast, django_assert_num_queries: CountQueries
) -> None:
    unknown = new(secrets.token_bytes)
    with django_assert_num_queries(1):
        assert _enter(unknown) is None
    with django_assert_num_queries(0):
        assert _enter(unknown) is None
        assert _cached(unknown) is None


def test_a_known_id_with_another_secret_is_refused_and_leaves_the_right_one_alone(
    cast: Cast, django_assert_num_queries: CountQueries
) -> None:
    right = cast.member.mcp_token
    forged = _with_id(_id(right))
    assert _enter(forged) is None
    with django_assert_num_queries(0):
        assert _enter(forged) is None
        assert _enter(right) is not None


def _with_id(token_id: str) -> str:
    """Return a well-formed token with an existing id and a guessed secret."""
    number = 0
    for digit in token_id:
        number = number * 62 + (
            "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".index(digit)
        )
    forged = new(lambda count: number.to_bytes(16) if count == 16 else b"guess".ljust(count))
    assert _id(forged) == token_id
    return forged


def test_a_flood_of_guesses_is_bounded_and_pushes_no_real_token_out(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _enter(cast.member.mcp_token)
    monkeypatch.setattr(selectors._refused, "_limit", 10)
    for _ in range(30):
        assert _enter(new(secrets.token_bytes)) is None
    assert len(selectors._refused) == 10
    assert _cached(cast.member.mcp_token) is found


@pytest.mark.requirement("auth.audience")
@pytest.mark.parametrize(
    ("audience", "slug", "opens"),
    [
        (Audience.MCP, "acme", True),
        (Audience.MCP, None, True),
        (Audience.MCP, "globex", False),
        (Audience.MCP, "commons", False),
        (Audience.MCP, "nowhere", False),
        (Audience.MCP, "", False),
        (Audience.API, "acme", False),
        (Audience.API, None, False),
    ],
)
def test_a_token_opens_the_doors_of_its_one_audience_only(
    cast: Cast, audience: Audience, slug: str | None, opens: bool
) -> None:
    for _ in range(2):  # from the database, then from the cache
        found = selectors.authenticate(cast.owner.mcp_token, audience, slug)
        assert (found is not None) is opens


def test_a_token_for_the_api_is_refused_at_an_endpoint(cast: Cast) -> None:
    token = cast.owner.api_token
    assert selectors.authenticate(token, Audience.MCP, "acme") is None
    found = selectors.authenticate(token, Audience.API, None)
    assert found is not None
    assert found.slug == "acme"
    assert found.principal.scopes == {"api:read", "api:write"}


@pytest.mark.requirement("auth.invalid-token")
def test_a_token_expires_by_the_clock_it_is_asked_with_even_when_remembered(cast: Cast) -> None:
    until = timezone.now() + timedelta(hours=1)
    token = _issue(cast, expires_at=until)
    just_before = until - timedelta(microseconds=1)
    assert _enter(token, now=just_before) is not None
    assert selectors.cached(token, Audience.MCP, "acme", until) is None
    assert selectors.load(token, Audience.MCP, "acme", until) is None
    assert _enter(token, now=just_before) is not None


@pytest.mark.parametrize("role", Role)
def test_rights_are_the_tokens_scopes_cut_down_to_the_owners_present_role(
    cast: Cast, role: Role
) -> None:
    user = cast.operator.user
    set_member(cast.acme.id, user, role, actor=ACTOR)
    found = _enter(cast.operator.mcp_token)
    assert found.principal.scopes == {"mcp:list", "mcp:call"}
    api = selectors.authenticate(cast.operator.api_token, Audience.API, None)
    assert api is not None
    expected = {"api:read", "api:write"} if role in (Role.OWNER, Role.OPERATOR) else set()
    assert api.principal.scopes == expected


def test_a_higher_role_gives_a_token_no_scope_that_it_was_not_issued_with(cast: Cast) -> None:
    set_member(cast.acme.id, cast.member.user, Role.OWNER, actor=ACTOR)
    assert _enter(cast.member.mcp_token).principal.scopes == {"mcp:list", "mcp:call"}


def test_a_token_dies_with_the_membership_and_does_not_rise_with_a_new_one(cast: Cast) -> None:
    assert _enter(cast.member.mcp_token) is not None
    remove_member(cast.acme.id, cast.member.user, actor=ACTOR)
    assert _enter(cast.member.mcp_token) is None
    set_member(cast.acme.id, cast.member.user, Role.OWNER, actor=ACTOR)
    assert _enter(cast.member.mcp_token) is None


def test_a_token_sleeps_while_its_owner_is_switched_off(cast: Cast) -> None:
    user = cast.member.user
    assert _enter(cast.member.mcp_token) is not None
    user.is_active = False
    user.save()
    assert _enter(cast.member.mcp_token) is None
    user.is_active = True
    user.save()
    assert _enter(cast.member.mcp_token) is not None


def test_a_token_dies_with_its_owner(cast: Cast) -> None:
    assert _enter(cast.member.mcp_token) is not None
    cast.member.user.delete()
    assert _enter(cast.member.mcp_token) is None


def test_a_token_dies_with_the_tenant(cast: Cast) -> None:
    assert _enter(cast.member.mcp_token) is not None
    close_tenant(cast.acme.id, actor=ACTOR)
    assert _enter(cast.member.mcp_token) is None
    assert _enter(cast.stranger.mcp_token, "globex") is not None


def test_a_revoked_token_is_refused_in_this_process_at_once(cast: Cast) -> None:
    assert _enter(cast.member.mcp_token) is not None
    revoke(cast.acme.id, _id(cast.member.mcp_token), actor=ACTOR)
    assert _cached(cast.member.mcp_token) is MISS
    assert _enter(cast.member.mcp_token) is None


def test_an_id_that_was_refused_works_once_there_is_a_token_of_it(cast: Cast) -> None:
    text = new(secrets.token_bytes)
    assert _enter(text) is None
    token_id = _id(cast.member.mcp_token)
    Token.objects.filter(pk=token_id).update(id=_id(text), digest=digest(text))
    assert _enter(text) is None
    with transaction.atomic():
        announce("token", tenant=cast.acme.id, object_id=_id(text))
    assert _enter(text) is not None


@pytest.mark.parametrize("name", ["acme", "commons"])
def test_only_a_public_tenant_has_anonymous_callers(cast: Cast, name: str) -> None:
    tenant = getattr(cast, name)
    principal = selectors.anonymous(tenant)
    if not tenant.public:
        assert principal is None
        return
    assert principal is not None
    assert principal.kind is PrincipalKind.ANONYMOUS
    assert (principal.id, principal.token_id, principal.user_id) == ("", None, None)
    assert principal.scopes == {"mcp:list", "mcp:call"}


def test_a_closed_public_tenant_has_no_anonymous_callers(cast: Cast) -> None:
    assert selectors.anonymous(close_tenant(cast.commons.id, actor=ACTOR)) is None


def test_tokens_are_listed_per_tenant_without_anything_secret(cast: Cast) -> None:
    listed = selectors.tokens(cast.globex.id)
    assert {token.owner for token in listed} == {"stranger"}
    assert {token.slug for token in listed} == {"globex"}
    assert len(selectors.all_tokens()) == 8
    text = repr(listed)
    secret = cast.stranger.mcp_token.split("_")[2]
    assert secret not in text
    assert digest(cast.stranger.mcp_token).hex() not in text


def test_a_listed_token_says_whether_it_can_be_used(cast: Cast) -> None:
    now = timezone.now()
    _issue(cast, name="short", expires_at=now + timedelta(hours=1))
    revoke(cast.acme.id, _id(cast.owner.mcp_token), actor=ACTOR)
    remove_member(cast.acme.id, cast.member.user, actor=ACTOR)
    states = {
        token.name: token.state(now + timedelta(hours=1))
        for token in selectors.tokens(cast.acme.id)
    }
    assert states["short"] == "expired"
    assert states["owner's client"] == "revoked"
    assert states["member's client"] == "orphaned"
    assert states["auditor's client"] == "live"


def test_one_token_is_read_of_its_tenant_only(cast: Cast) -> None:
    id = _id(cast.owner.mcp_token)
    listed = {token.id: token for token in selectors.tokens(cast.acme.id)}
    assert selectors.token(cast.acme.id, id) == listed[id]
    assert selectors.token(cast.globex.id, id) is None
    assert selectors.token(cast.acme.id, "x" * 70) is None


def test_live_tokens_are_counted_as_they_are_listed(cast: Cast) -> None:
    now = timezone.now()
    _issue(cast, name="short", expires_at=now + timedelta(hours=1))
    revoke(cast.acme.id, _id(cast.owner.mcp_token), actor=ACTOR)
    remove_member(cast.acme.id, cast.member.user, actor=ACTOR)
    Token.objects.filter(pk=_id(cast.auditor.mcp_token)).update(last_used_at=now)
    service = service_accounts.create(cast.acme.id, "nightly", actor=ACTOR)
    wanted = TokenRequest("robot", ("mcp:call",))
    issue_for_service(cast.acme.id, service, wanted, actor=ACTOR)
    later = now + timedelta(hours=1)

    def expected(at: datetime) -> int:
        of_clients = [
            each for each in selectors.tokens(cast.acme.id) if each.audience is Audience.MCP
        ]
        return sum(each.state(at) == "live" for each in of_clients)

    assert selectors.live_tokens(cast.acme.id, now) == (expected(now), 1)
    assert selectors.live_tokens(cast.acme.id, later) == (expected(later), 1)
    assert expected(later) == expected(now) - 1
    service_accounts.disable(cast.acme.id, service, actor=ACTOR)
    assert selectors.live_tokens(cast.acme.id, later) == (expected(later), 1)


def test_what_authentication_gives_cannot_be_changed(cast: Cast) -> None:
    found = _enter(cast.member.mcp_token)
    assert isinstance(found, Authenticated)
    with pytest.raises(AttributeError):
        found.slug = "globex"  # type: ignore[misc]
