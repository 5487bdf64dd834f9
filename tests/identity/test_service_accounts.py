"""Tests of service accounts: they call in their own name, with at most a member's rights."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.feed.models import Change
from mcphost.identity import selectors, service_accounts
from mcphost.identity.models import Token
from mcphost.identity.selectors import authenticate
from mcphost.identity.services import IssuedToken, TokenRequest, issue_for_service
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.tenants.errors import InvalidError, UnknownTenantError
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import Audience, Role
from mcphost.tenants.services import close_tenant
from tests.cast import ACTOR, Cast

pytestmark = pytest.mark.django_db

WANTED = TokenRequest("cron", ("mcp:list", "mcp:call", "mcp:payroll"))


def _owner(cast: Cast) -> Actor:
    return Actor.person(cast.owner.user.pk, "owner")


def _made(cast: Cast, name: str = "nightly") -> UUID:
    return service_accounts.create(cast.acme.id, name, "runs at night", actor=_owner(cast))


def _issue(cast: Cast, account: UUID) -> IssuedToken:
    return issue_for_service(cast.acme.id, account, WANTED, actor=_owner(cast))


def _principal(issued: IssuedToken) -> Principal | None:
    found = authenticate(issued.plaintext, Audience.MCP, "acme")
    return None if found is None else found.principal


def _entry(action: str) -> Any:
    entry = Entry.objects.get(action=action)
    return entry.tenant, entry.actor_label, entry.target, entry.facts


def test_a_service_account_has_no_user_and_is_labelled_as_a_service_account(cast: Cast) -> None:
    account = _made(cast)
    issued = _issue(cast, account)
    principal = _principal(issued)
    assert principal is not None
    assert (principal.kind, principal.user_id) == (PrincipalKind.SERVICE, None)
    assert principal.label == "service account nightly (“cron”, issued by owner)"
    assert principal.scopes == set(WANTED.scopes)
    assert Actor.of(principal).kind == "service"
    made = (cast.acme.id, "owner", str(account), {"name": "nightly"})
    assert _entry("service_account.created") == made
    facts = Entry.objects.get(action="token.issued", target=issued.id).facts
    assert facts["owner"] == "service account nightly"
    listed = {each.id: each for each in selectors.tokens(cast.acme.id)}[issued.id]
    assert (listed.owner, listed.issued_by) == ("service account nightly", "owner")
    assert not listed.without_consent
    _made(cast, "another")
    counts = [(each.name, each.live_tokens) for each in service_accounts.accounts(cast.acme.id)]
    assert counts == [("another", 0), ("nightly", 1)]


@pytest.mark.parametrize(("audience", "scope"), [(Audience.API, "api:read"), (Audience.MCP, "*")])
def test_a_service_account_has_at_most_the_scopes_of_a_member(
    cast: Cast, audience: Audience, scope: str
) -> None:
    account = _made(cast)
    with pytest.raises(InvalidError) as refused:
        issue_for_service(
            cast.acme.id, account, TokenRequest("x", (scope,), audience), actor=_owner(cast)
        )
    assert set(refused.value.problems) == {"scopes"}


@pytest.mark.parametrize(
    ("field", "name", "description"),
    [
        *(("name", name, "") for name in ("", "Nightly", "a b", "a(b", "-a", "a-", "x" * 61)),
        *(("name", name, "") for name in ("\u0430dmin", "a\n")),
        *(("description", "nightly", text) for text in ("x" * 201, "a\0b", "two\nlines")),
    ],
)
def test_misleading_names_and_bad_descriptions_of_service_accounts_are_refused(
    cast: Cast, field: str, name: str, description: str
) -> None:
    with pytest.raises(InvalidError) as refused:
        service_accounts.create(cast.acme.id, name, description, actor=ACTOR)
    assert set(refused.value.problems) == {field}


def test_a_former_owner_cannot_issue_tokens_for_service_accounts(cast: Cast) -> None:
    account = _made(cast)
    Membership.objects.filter(user=cast.owner.user).update(role=Role.MEMBER.value)
    with pytest.raises(PermissionDenied):
        _issue(cast, account)
    assert not Token.objects.filter(service_account=account).exists()


def test_service_account_names_are_never_reused_and_their_number_is_limited(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = _made(cast)
    with CaptureQueriesContext(connection) as queries:
        assert service_accounts.remove(cast.acme.id, account, actor=ACTOR)
    assert not any("feed_counter" in query["sql"] for query in queries), "it has no live token"
    with pytest.raises(InvalidError, match="is or was used"):
        _made(cast)
    service_accounts.create(cast.globex.id, "nightly", actor=ACTOR)
    monkeypatch.setattr(service_accounts, "MAX_ACCOUNTS", 1)
    with pytest.raises(InvalidError, match="at most 1 service accounts"):
        service_accounts.create(cast.globex.id, "another", actor=ACTOR)


def test_tokens_of_a_service_account_stop_while_it_is_disabled_and_work_again_when_enabled(
    cast: Cast,
) -> None:
    account = _made(cast)
    issued = _issue(cast, account)
    assert service_accounts.disable(cast.acme.id, account, actor=_owner(cast))
    assert not service_accounts.disable(cast.acme.id, account, actor=_owner(cast))
    selectors.forget_all()
    assert _principal(issued) is None
    with pytest.raises(InvalidError, match="or it is disabled"):
        _issue(cast, account)
    assert selectors.current_principals([issued.id]) == {}
    assert service_accounts.enable(cast.acme.id, account, actor=_owner(cast))
    assert not service_accounts.enable(cast.acme.id, account, actor=_owner(cast))
    selectors.forget_all()
    assert _principal(issued) is not None
    assert Change.objects.filter(name="token", object_id=issued.id).count() == 3
    assert Entry.objects.filter(action="service_account.disabled").count() == 1
    assert Entry.objects.filter(action="service_account.enabled").count() == 1


def test_removing_a_service_account_ends_its_tokens_permanently(cast: Cast) -> None:
    account = _made(cast)
    issued = _issue(cast, account)
    assert service_accounts.remove(cast.acme.id, account, actor=_owner(cast))
    assert not service_accounts.remove(cast.acme.id, account, actor=_owner(cast))
    assert not service_accounts.enable(cast.acme.id, account, actor=_owner(cast))
    selectors.forget_all()
    assert _principal(issued) is None
    assert service_accounts.accounts(cast.acme.id) == ()
    (listed,) = (each for each in selectors.tokens(cast.acme.id) if each.id == issued.id)
    assert listed.owner_state == "orphaned"
    assert Entry.objects.filter(action="service_account.removed").count() == 1


def test_service_accounts_of_other_tenants_cannot_be_changed_or_given_tokens(cast: Cast) -> None:
    account = _made(cast)
    with pytest.raises(InvalidError, match="no such service account"):
        issue_for_service(cast.globex.id, account, WANTED, actor=ACTOR)
    for verb in (service_accounts.disable, service_accounts.enable, service_accounts.remove):
        assert not verb(cast.globex.id, account, actor=ACTOR)
        assert not verb(cast.acme.id, uuid4(), actor=ACTOR)


def test_a_closed_tenant_gets_no_service_accounts_and_its_tokens_are_refused(cast: Cast) -> None:
    issued = _issue(cast, _made(cast))
    close_tenant(cast.acme.id, actor=ACTOR)
    selectors.forget_all()
    assert _principal(issued) is None
    with pytest.raises(UnknownTenantError):
        _made(cast, "another")


def test_a_token_has_exactly_one_holder(cast: Cast) -> None:
    issued = _issue(cast, _made(cast))
    with pytest.raises(IntegrityError), transaction.atomic():
        Token.objects.filter(pk=issued.id).update(owner=cast.owner.user)
    with pytest.raises(IntegrityError), transaction.atomic():
        Token.objects.filter(pk=issued.id).update(service_account=None)
