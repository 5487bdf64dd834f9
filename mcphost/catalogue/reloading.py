"""Reload the functions of `tools/` in this process, for development: never in production, where processes
are replaced one after another."""

from django.db import transaction

from mcphost.catalogue import compiling, selectors
from mcphost.feed.nodes import heartbeat
from mcphost.feed.services import announce
from mcphost.kinds.python.kind import Reload, python_kind
from mcphost.protocol.subscriptions import LISTS


def reload_if_changed() -> Reload | None:
    """Load the functions again if a file has changed, and notify the clients whose lists it changes.

    Raises the database's errors when clients cannot be notified; the new code is served all the same.
    """
    reload = python_kind.reload_if_changed()
    if reload is None:
        return None
    compiling.forget_all()
    selectors.forget_all()
    heartbeat.redeclare()
    with transaction.atomic():
        for topic in LISTS:
            announce(topic)
    return reload
