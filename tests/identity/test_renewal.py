"""Tests of renewing tokens: the successor is the same principal."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.identity import selectors, service_accounts
from mcphost.identity.models import Token
from mcphost.identity.selectors import authenticate, current_principals
from mcphost.identity.services import (
    IssuedToken,
    TokenRequest,
    issue,
    issue_for_service,
    renew,
    revoke,
)
from mcphost.runtime.call import Principal
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.roles import Audience, Role
from mcphost.tenants.services import grant_scopes, remove_member, set_member
from tests.cast import ACTOR, Cast

pytestmark = pytest.mark.django_db


def itself(user: User) -> Actor:
    return Actor.person(user.pk, user.get_username())


def token_of(cast: Cast, *scopes: str) -> IssuedToken:
    wanted = TokenRequest("laptop", scopes or ("mcp:list", "mcp:call"), calls_per_minute=5)
    return issue(cast.acme.id, cast.member.user, wanted, actor=itself(cast.member.user))


def renewal(cast: Cast, token_id: str) -> IssuedToken:
    args = (cast.acme.id, token_id)
    return renew(*args, actor=itself(cast.member.user), expires_at=None)


def principal_of(token: IssuedToken) -> Principal:
    found = authenticate(token.plaintext, Audience.MCP, "acme")
    assert found is not None
    return found.principal


def expire(token: IssuedToken) -> None:
    Token.objects.filter(pk=token.id).update(expires_at=timezone.now() - timedelta(seconds=1))


def works(token: IssuedToken) -> bool:
    selectors.forget_all()
    return authenticate(token.plaintext, Audience.MCP, "acme") is not None


def test_a_renewal_has_the_principal_and_all_else_of_the_first_token(cast: Cast) -> None:
    first = token_of(cast)
    second = renewal(cast, first.id)
    third = renewal(cast, second.id)
    assert [principal_of(token).id for token in (first, second, third)] == [first.id] * 3
    assert principal_of(third).token_id == third.id
    same = ("name", "scopes", "audience", "owner_id", "membership_id", "consented")
    for token in (second, third):
        row, former = Token.objects.get(pk=token.id), Token.objects.get(pk=first.id)
        assert [getattr(row, name) for name in same] == [getattr(former, name) for name in same]
        assert row.calls_per_minute == 5
    assert works(first)
    entry = Entry.objects.get(action="token.renewed", target=second.id)
    assert entry.facts["renews"] == first.id
    assert second.plaintext not in str(entry.facts)
    assert principal_of(token_of(cast)).id not in {first.id, second.id, third.id}


def test_a_renewal_has_no_scope_that_its_holder_may_not_take_any_more(cast: Cast) -> None:
    grant_scopes(cast.acme.id, cast.member.user, ["mcp:paint"], actor=ACTOR)
    first = token_of(cast, "mcp:list", "mcp:paint")
    grant_scopes(cast.acme.id, cast.member.user, [], actor=ACTOR)
    assert renewal(cast, first.id).scopes == ("mcp:list",)
    only = token_of(cast)
    Token.objects.filter(pk=only.id).update(scopes=["mcp:paint"])
    with pytest.raises(InvalidError):
        renewal(cast, only.id)


def test_an_expired_token_names_its_newest_working_renewal(cast: Cast) -> None:
    first = token_of(cast)
    expire(first)
    assert current_principals([first.id]) == {}
    second = renewal(cast, first.id)
    third = renewal(cast, second.id)
    assert current_principals([first.id])[first.id].token_id == third.id
    revoke(cast.acme.id, third.id, actor=ACTOR)
    assert current_principals([first.id])[first.id].token_id == second.id
    expire(second)
    assert current_principals([first.id, second.id]) == {}


def test_a_revoked_token_ends_alone_and_a_stolen_one_with_its_line(cast: Cast) -> None:
    first, other = token_of(cast), token_of(cast)
    second = renewal(cast, first.id)
    third = renewal(cast, second.id)
    assert revoke(cast.acme.id, second.id, actor=ACTOR)
    assert [works(token) for token in (first, second, third)] == [True, False, True]
    assert set(current_principals([first.id, second.id])) == {first.id}
    assert revoke(cast.acme.id, third.id, actor=ACTOR, stolen=True)
    assert [works(token) for token in (first, second, third, other)] == [False] * 3 + [True]
    entry = Entry.objects.get(action="token.revoked", target=third.id)
    assert entry.facts == {"stolen": True, "tokens": sorted([first.id, third.id])}
    assert not revoke(cast.acme.id, first.id, actor=ACTOR, stolen=True)


def test_users_renew_only_their_own_tokens_that_are_not_revoked(cast: Cast) -> None:
    first, before = token_of(cast), Token.objects.count()
    for other in (cast.owner.user, cast.staff.user, cast.stranger.user):
        with pytest.raises(InvalidError):
            renew(cast.acme.id, first.id, actor=itself(other), expires_at=None)
    revoked = token_of(cast)
    revoke(cast.acme.id, revoked.id, actor=ACTOR)
    for tenant, token_id in (
        (cast.acme.id, revoked.id),
        (cast.acme.id, "none"),
        (cast.globex.id, first.id),
    ):
        with pytest.raises(InvalidError):
            renew(tenant, token_id, actor=itself(cast.member.user), expires_at=None)
    remove_member(cast.acme.id, cast.member.user, actor=ACTOR)
    with pytest.raises(PermissionDenied):
        renewal(cast, first.id)
    set_member(cast.acme.id, cast.member.user, Role.MEMBER, actor=ACTOR)
    with pytest.raises(InvalidError):  # it stopped working for good
        renewal(cast, first.id)
    assert Token.objects.count() == before + 1


def test_those_who_manage_tokens_renew_those_of_service_accounts(cast: Cast) -> None:
    account = service_accounts.create(cast.acme.id, "nightly", actor=ACTOR)
    wanted = TokenRequest("cron", ("mcp:call",))
    first = issue_for_service(cast.acme.id, account, wanted, actor=ACTOR)
    args = (cast.acme.id, first.id)
    second = renew(*args, actor=itself(cast.owner.user), expires_at=None)
    assert principal_of(second).id == first.id
    with pytest.raises(PermissionDenied):
        renew(*args, actor=itself(cast.member.user), expires_at=None)
    service_accounts.disable(cast.acme.id, account, actor=ACTOR)
    with pytest.raises(InvalidError):
        renew(*args, actor=itself(cast.owner.user), expires_at=None)
