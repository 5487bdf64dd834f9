"""Tests of authentication: cached, limited to the owner's role, refused without a reason."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from django.utils import timezone

from mcphost.feed.cache import MISS
from mcphost.identity import selectors
from mcphost.identity.models import Token
from mcphost.identity.services import TokenRequest, issue, revoke
from mcphost.identity.tokens import digest, new
from mcphost.runtime.call import PrincipalKind
from mcphost.tenants.roles import API_SCOPES, Audience, Role
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


def test_a_token_authenticates_its_owner_in_its_tenant_with_the_tokens_own_limits(
    cast: Cast,
) -> None:
    found = _enter(cast.member.mcp_token)
    principal = found.principal
    assert principal.kind is PrincipalKind.TOKEN
    assert principal.tenant == cast.acme.id
    assert principal.user_id == cast.member.user.pk
    assert principal.id == principal.token_id == _id(cast.member.mcp_token)
    assert principal.label == "member (“member's client”, issued by member)"
    assert principal.scopes == {"mcp:list", "mcp:call"}
    assert (found.audience, found.slug) == (Audience.MCP, "acme")
    with pytest.raises(AttributeError):
        found.slug = "globex"
    until = timezone.now() + timedelta(days=1)
    found = _enter(_issue(cast, calls_per_minute=7, concurrent_calls=2, expires_at=until))
    assert (found.calls_per_minute, found.concurrent_calls) == (7, 2)
    assert found.expires_at == until


def test_malformed_tokens_and_wrong_checksums_cost_no_query(
    cast: Cast, django_assert_num_queries: CountQueries
) -> None:
    token = cast.member.mcp_token
    wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
    with django_assert_num_queries(0):
        for text in ("", "mcph_", "Bearer x", "mcph_" + "a" * 63, wrong):
            assert _enter(text) is None
            assert selectors.load(text, Audience.MCP, "acme", timezone.now()) is None


def test_a_forged_secret_for_an_existing_id_is_refused_and_the_real_token_keeps_working(
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


@pytest.mark.requirement("auth.audience")
@pytest.mark.parametrize("kind", ["mcp_token", "api_token"])
def test_a_token_authenticates_only_for_its_own_audience_and_tenant(cast: Cast, kind: str) -> None:
    own = Audience.MCP if kind == "mcp_token" else Audience.API
    slugs = ("acme", None, "globex", "commons", "nowhere", "")
    for audience, slug in product(Audience, slugs):
        for _ in range(2):  # from the database, then from the cache
            found = selectors.authenticate(getattr(cast.owner, kind), audience, slug)
            opens = audience is own and slug in ("acme", None)
            assert (found is not None) is opens, (audience, slug)


@pytest.mark.requirement("auth.invalid-token")
def test_a_token_expires_at_the_given_time_even_when_cached(cast: Cast) -> None:
    until = timezone.now() + timedelta(hours=1)
    token = _issue(cast, expires_at=until)
    just_before = until - timedelta(microseconds=1)
    assert _enter(token, now=just_before) is not None
    assert selectors.cached(token, Audience.MCP, "acme", until) is None
    assert selectors.load(token, Audience.MCP, "acme", until) is None
    assert _enter(token, now=just_before) is not None


def test_the_current_principals_of_tokens_are_those_that_would_be_admitted_now(cast: Cast) -> None:
    expired = _id(_issue(cast, expires_at=timezone.now() + timedelta(hours=1)))
    Token.objects.filter(pk=expired).update(expires_at=timezone.now() - timedelta(seconds=1))
    ids = [_id(each.mcp_token) for each in (cast.owner, cast.operator, cast.stranger, cast.member)]
    revoke(cast.acme.id, ids[1], actor=ACTOR)
    close_tenant(cast.globex.id, actor=ACTOR)
    _switch_off(cast)
    assert list(selectors.current_principals([*ids, expired, "unknown"])) == [ids[0]]


@pytest.mark.parametrize("role", Role)
def test_scopes_are_limited_to_the_owners_current_role(cast: Cast, role: Role) -> None:
    user = cast.operator.user
    set_member(cast.acme.id, user, role, actor=ACTOR)
    found = _enter(cast.operator.mcp_token)
    assert found.principal.scopes == {"mcp:list", "mcp:call"}
    api = selectors.authenticate(cast.operator.api_token, Audience.API, None)
    assert api is not None
    assert api.principal.scopes == API_SCOPES[role]
    set_member(cast.acme.id, cast.member.user, role, actor=ACTOR)
    assert _enter(cast.member.mcp_token).principal.scopes == {"mcp:list", "mcp:call"}


def _leave_and_come_back(cast: Cast) -> None:
    remove_member(cast.acme.id, cast.member.user, actor=ACTOR)
    assert _enter(cast.member.mcp_token) is None
    set_member(cast.acme.id, cast.member.user, Role.OWNER, actor=ACTOR)


def _switch_off(cast: Cast) -> None:
    cast.member.user.is_active = False
    cast.member.user.save()


ENDS: dict[str, Callable[[Cast], object]] = {
    "membership": _leave_and_come_back,
    "switched off": _switch_off,
    "owner": lambda cast: cast.member.user.delete(),
    "tenant": lambda cast: close_tenant(cast.acme.id, actor=ACTOR),
    "revoked": lambda cast: revoke(cast.acme.id, _id(cast.member.mcp_token), actor=ACTOR),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_token_is_refused_at_once_when_its_owner_membership_or_tenant_ends(
    cast: Cast, end: str
) -> None:
    assert _enter(cast.member.mcp_token) is not None
    ENDS[end](cast)
    assert _cached(cast.member.mcp_token) in (MISS, None)
    assert _enter(cast.member.mcp_token) is None
    assert _enter(cast.stranger.mcp_token, "globex") is not None
    if end == "switched off":
        cast.member.user.is_active = True
        cast.member.user.save()
        assert _enter(cast.member.mcp_token) is not None


def test_only_an_open_public_tenant_has_anonymous_callers(cast: Cast) -> None:
    assert selectors.anonymous(cast.acme) is None
    principal = selectors.anonymous(cast.commons)
    assert principal is not None
    assert principal.kind is PrincipalKind.ANONYMOUS
    assert (principal.id, principal.token_id, principal.user_id) == ("", None, None)
    assert principal.scopes == {"mcp:list", "mcp:call"}
    assert selectors.anonymous(close_tenant(cast.commons.id, actor=ACTOR)) is None


def test_the_token_list_of_a_tenant_contains_no_secrets(cast: Cast) -> None:
    listed = selectors.tokens(cast.globex.id)
    assert {token.owner for token in listed} == {"stranger"}
    assert {token.slug for token in listed} == {"globex"}
    assert len(selectors.all_tokens()) == 8
    text = repr(listed)
    secret = cast.stranger.mcp_token.split("_")[2]
    assert secret not in text
    assert digest(cast.stranger.mcp_token).hex() not in text


def test_a_token_can_be_read_only_through_its_own_tenant(cast: Cast) -> None:
    id = _id(cast.owner.mcp_token)
    listed = {token.id: token for token in selectors.tokens(cast.acme.id)}
    assert selectors.token(cast.acme.id, id) == listed[id]
    assert selectors.token(cast.globex.id, id) is None
    assert selectors.token(cast.acme.id, "x" * 70) is None
