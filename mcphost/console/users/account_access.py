"""What acts as a user: the tokens and connected apps of one account, for the pages of platform staff."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from mcphost.identity import selectors
from mcphost.identity.oauth import connections
from mcphost.identity.oauth.connections import ConnectionListing
from mcphost.identity.selectors import TokenListing

LIVE = "live"


@dataclass(frozen=True, slots=True)
class AccountAccess:
    """The newest tokens and apps of a user that work, and whether there may be more of either."""

    tokens: Sequence[TokenListing]
    apps: Sequence[ConnectionListing]
    is_part: bool


def of_user(user_id: int) -> AccountAccess:
    """Return what acts as a user, as far as the first page of each list has it."""
    now = timezone.now()
    tokens = selectors.own_token_page(user_id)
    apps = connections.own_connection_page(user_id)
    return AccountAccess(
        [token for token in tokens.tokens if token.state(now) == LIVE],
        [app for app in apps.connections if app.state(now) == LIVE],
        bool(tokens.after or apps.after),
    )
