"""Tests that a revocation by another process takes effect here after a poll of the change log.

To simulate the other process, the tests write to the database and the change log while this
process's loop gets no notice (`elsewhere`), and then poll the loop by hand. One poll is enough;
docs/ARCHITECTURE.md promises two.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from mcphost.feed.cache import MISS
from mcphost.feed.loop import loop
from mcphost.feed.services import announce
from mcphost.identity import selectors
from mcphost.identity.models import Token
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import Audience
from tests.cast import Cast
from tests.conftest import Elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


def _enter(token: str, slug: str | None = "acme") -> Any:
    return selectors.authenticate(token, Audience.MCP, slug)


def _cached(token: str, slug: str = "acme") -> Any:
    return selectors.cached(token, Audience.MCP, slug, timezone.now())


def _revoke(cast: Cast) -> None:
    token_id = cast.member.mcp_token.split("_")[1]
    Token.objects.filter(pk=token_id).update(revoked_at=timezone.now())
    announce("token", tenant=cast.acme.id, object_id=token_id)


def _remove(cast: Cast) -> None:
    Membership.objects.filter(user=cast.member.user).delete()
    announce("member", tenant=cast.acme.id, object_id=str(cast.member.user.pk))


def _switch_off(cast: Cast) -> None:
    cast.member.user.is_active = False
    cast.member.user.save()


def _close(cast: Cast) -> None:
    Tenant.objects.filter(pk=cast.acme.id).update(closed_at=timezone.now())
    announce("tenant", tenant=cast.acme.id, object_id="acme")


@pytest.mark.parametrize(
    "take_away", [_revoke, _remove, _switch_off, lambda cast: cast.member.user.delete(), _close]
)
def test_a_token_revoked_by_another_process_is_refused_after_a_poll(
    cast: Cast, elsewhere: Elsewhere, take_away: Callable[[Cast], None]
) -> None:
    token, owner = cast.member.mcp_token, _enter(cast.owner.mcp_token)
    known, stranger = _enter(token), _enter(cast.stranger.mcp_token, "globex")
    with elsewhere(), transaction.atomic():
        take_away(cast)
    assert _cached(token) is known
    assert loop.poll()
    assert _enter(token) is None
    assert _cached(cast.stranger.mcp_token, "globex") is stranger
    if take_away is not _close:
        assert _cached(cast.owner.mcp_token) is owner


def test_a_role_changed_by_another_process_applies_after_a_poll(
    cast: Cast, elsewhere: Elsewhere
) -> None:
    def rights() -> frozenset[str]:
        found = selectors.authenticate(cast.owner.api_token, Audience.API, None)
        assert found is not None
        return found.principal.scopes

    assert rights() == {"api:read", "api:write"}
    with elsewhere(), transaction.atomic():
        Membership.objects.filter(user=cast.owner.user).update(role="member")
        announce("member", tenant=cast.acme.id, object_id=str(cast.owner.user.pk))
    assert rights() == {"api:read", "api:write"}
    loop.poll()
    assert rights() == set()


def test_a_token_revoked_while_it_is_loaded_is_not_cached(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is read, then the token is revoked and the change arrives before it is cached."""
    known_of = selectors._cached_token_of

    def slowly_cached(row: Token) -> Any:
        found = known_of(row)
        with transaction.atomic():
            _revoke(cast)
        return found

    monkeypatch.setattr(selectors, "_cached_token_of", slowly_cached)
    assert _enter(cast.member.mcp_token) is not None
    monkeypatch.undo()
    assert _cached(cast.member.mcp_token) is MISS
    assert _enter(cast.member.mcp_token) is None
