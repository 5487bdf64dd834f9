"""Who may read a live list: checked at the connection, and again before each message."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.contrib import auth
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from mcphost.console.live.views import LiveView
from mcphost.console.models import FilteredList
from mcphost.console.records.filters import RecordFilter, tenants_of
from mcphost.identity import browser_sessions
from mcphost.tenants.access import allowed, holders, tenant_for
from mcphost.tenants.roles import Permission


@dataclass(frozen=True, slots=True)
class LiveReader:
    """A signed-in user who reads a list of one tenant, or of all (None).

    `secret` changes with the user's password: sessions from before it have then ended.
    """

    user: int
    session: str
    secret: str
    tenant: UUID | None


def admit(
    session: str, slug: str | None, record_filter: RecordFilter, listing: FilteredList
) -> tuple[LiveReader, LiveView] | None:
    """Return the user of a session and the list of the tenant with a slug (None: of all tenants).

    None if the session has ended, the tenant is unknown, or the user may not read its calls.
    """
    request = HttpRequest()
    request.session = SessionStore(session)
    user = auth.get_user(request)
    if not isinstance(user, User) or not user.is_active:
        return None
    secret = user.get_session_auth_hash()
    if slug is None:
        if not allowed(user, None, Permission.VIEW_RECORDS):
            return None
        return LiveReader(user.pk, session, secret, None), LiveView(
            tenants_of(record_filter), record_filter, True, listing
        )
    try:
        tenant = tenant_for(user, slug, Permission.VIEW_RECORDS)
    except PermissionDenied:
        return None
    view = LiveView(frozenset({tenant.pk}), record_filter, False, listing)
    return LiveReader(user.pk, session, secret, tenant.pk), view


def still_allowed(viewers: Collection[LiveReader]) -> frozenset[LiveReader]:
    """Return those whose session goes on, and who may still read what they read."""
    if not viewers:
        return frozenset()
    sessions = browser_sessions.alive({viewer.session for viewer in viewers})
    users = User.objects.in_bulk({viewer.user for viewer in viewers})
    tenants = {viewer.tenant for viewer in viewers if viewer.tenant is not None}
    holding = holders(Permission.VIEW_RECORDS, tuple(users.values()), tenants)
    secrets = {pk: user.get_session_auth_hash() for pk, user in users.items()}
    return frozenset(
        viewer
        for viewer in viewers
        if viewer.session in sessions
        and (viewer.user, viewer.tenant) in holding
        and secrets[viewer.user] == viewer.secret
    )
