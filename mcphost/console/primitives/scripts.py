"""The check of a script while it is typed: what saving would refuse, and nothing is saved."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from django.http import HttpResponseBase, JsonResponse
from django.views.decorators.http import require_POST

from mcphost.console.base import SignedInRequest, of_tenant
from mcphost.console.forms.prompts import plain
from mcphost.kinds.script.kind import script_kind
from mcphost.sandbox.processes import WorkerLost
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

MOST_AT_ONCE: Final = 2
"""The most checks in a process: each runs in a worker of its own."""
RETRY_SECONDS: Final = 2

log = logging.getLogger(__name__)

_checking: set[int] = set()
_lock = Lock()


@of_tenant(Permission.EDIT_TOOLS)
@require_POST
def check(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Return the problems of a script, and the schema of its arguments, as JSON.

    429 while another check of the user is under way, or too many of others; 503 if no worker can check.
    """
    with checking(request.user.pk) as admitted:
        if not admitted:
            return _unchecked(429, "Other scripts are checked now.")
        try:
            found = script_kind.look(plain(request.POST.get("code", "")))
        except WorkerLost as lost:
            log.warning("a script could not be checked: %s", lost)
            return _unchecked(503, f"The script could not be checked: {lost}")
    return JsonResponse({"problems": found.problems, "input_schema": found.input_schema})


@contextmanager
def checking(user: int) -> Iterator[bool]:
    """Count a check of a user; False if the user has one under way, or too many others have."""
    with _lock:
        admitted = user not in _checking and len(_checking) < MOST_AT_ONCE
        if admitted:
            _checking.add(user)
    try:
        yield admitted
    finally:
        if admitted:
            with _lock:
                _checking.discard(user)


def _unchecked(status: int, detail: str) -> JsonResponse:
    return JsonResponse({"detail": detail}, status=status, headers={"Retry-After": RETRY_SECONDS})
