"""Tests that a token's owner issued it, or that it is labelled "without consent"."""

from dataclasses import replace

import pytest

from mcphost.audit.records import Actor
from mcphost.identity import selectors
from mcphost.identity.models import Token
from mcphost.identity.services import FOR_ONESELF, TokenRequest, issue
from mcphost.runtime.call import Principal
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.roles import Audience
from mcphost.tenants.services import grant_scopes
from tests.cast import ACTOR, Cast, Person

WANTED = TokenRequest("laptop", ("mcp:list",))


def _itself(person: Person) -> Actor:
    return Actor.person(person.user.pk, person.user.get_username())


def _principal(plaintext: str) -> Principal:
    selectors.forget_all()
    found = selectors.authenticate(plaintext, Audience.MCP, "acme")
    assert found is not None
    return found.principal


@pytest.mark.django_db
@pytest.mark.parametrize("issuer", ["owner", "staff", "stranger", "member"])
def test_a_user_cannot_issue_tokens_for_another_user(cast: Cast, issuer: str) -> None:
    before = Token.objects.count()
    actor = _itself(getattr(cast, issuer))
    for person in (cast.operator, cast.auditor):
        with pytest.raises(InvalidError) as refused:
            issue(cast.acme.id, person.user, WANTED, actor=actor)
        assert refused.value.problems == {"owner": [FOR_ONESELF]}
    assert Token.objects.count() == before


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["owner", "operator", "auditor", "member"])
def test_every_member_can_issue_tokens_for_themselves(cast: Cast, name: str) -> None:
    person = getattr(cast, name)
    issued = issue(cast.acme.id, person.user, WANTED, actor=_itself(person))
    principal = _principal(issued.plaintext)
    assert principal.label == f"{name} (“laptop”, issued by {name})"
    assert principal.user_id == person.user.pk


@pytest.mark.django_db
def test_a_token_issued_by_a_command_is_labelled_without_consent(cast: Cast) -> None:
    issued = issue(cast.acme.id, cast.member.user, WANTED, actor=ACTOR)
    label = "member (“laptop”, issued without consent by the cast)"
    assert _principal(issued.plaintext).label == label
    (listed,) = (
        each
        for each in selectors.own_token_page(cast.member.user.pk).tokens
        if each.id == issued.id
    )
    assert (listed.issued_by, listed.without_consent) == ("the cast", True)
    own = issue(cast.acme.id, cast.member.user, WANTED, actor=ACTOR, consented=True)
    assert "without consent" not in _principal(own.plaintext).label


@pytest.mark.django_db
@pytest.mark.parametrize("quote", "“”„")
def test_a_token_name_cannot_forge_the_rest_of_the_label(cast: Cast, quote: str) -> None:
    wanted = replace(WANTED, name=f"x{quote}, issued by staff) (“y")
    issued = issue(cast.acme.id, cast.member.user, wanted, actor=_itself(cast.member))
    label = _principal(issued.plaintext).label
    assert label == 'member (“x", issued by staff) ("y”, issued by member)'


@pytest.mark.django_db
def test_members_cannot_issue_tokens_with_tool_scopes_that_no_owner_granted(cast: Cast) -> None:
    wanted = replace(WANTED, scopes=("mcp:list", "mcp:payroll"))
    for person in (cast.member, cast.auditor):
        with pytest.raises(InvalidError, match="has to grant you 'mcp:payroll'"):
            issue(cast.acme.id, person.user, wanted, actor=_itself(person))
    for person in (cast.owner, cast.operator):
        issue(cast.acme.id, person.user, wanted, actor=_itself(person))


@pytest.mark.django_db
def test_revoking_a_granted_scope_affects_only_tokens_that_the_user_issued(
    cast: Cast,
) -> None:
    wanted, user = replace(WANTED, scopes=("mcp:list", "mcp:payroll")), cast.member.user
    theirs = issue(cast.acme.id, user, wanted, actor=ACTOR)
    grant_scopes(cast.acme.id, user, ["mcp:payroll"], actor=_itself(cast.owner))
    issued = issue(cast.acme.id, user, wanted, actor=_itself(cast.member))
    assert _principal(issued.plaintext).scopes == {"mcp:list", "mcp:payroll"}
    grant_scopes(cast.acme.id, user, [], actor=_itself(cast.owner))
    assert _principal(issued.plaintext).scopes == {"mcp:list"}
    assert _principal(theirs.plaintext).scopes == {"mcp:list", "mcp:payroll"}
