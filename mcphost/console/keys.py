"""Pages for the platform's keys, for staff: the key ring, and confirmed actions on its keys.

Also the page on which the owners of a tenant destroy its salt.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit.open_calls import calls_of
from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    actor,
    form_input,
    of_platform,
    of_tenant,
    page_of,
    show,
)
from mcphost.console.tenants.tenants import CloseForm
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.vault import lifecycle, listing
from mcphost.vault.errors import KeyRefusalError, UnknownKeyError, VaultError
from mcphost.vault.listing import KeyRow
from mcphost.vault.states import TRANSITIONS, KeyState, KeyVerb

Act = Callable[[], object]


@of_platform(Permission.MANAGE_KEYS)
@require_safe
def ring(request: SignedInRequest) -> HttpResponseBase:
    """List all keys, including retired and destroyed ones, newest first."""
    rows = listing.keys(timezone.now())
    return show(
        request,
        "keys.html",
        "Keys",
        keys=[(row, TRANSITIONS[row.state]) for row in rows],
        waiting=any(row.state is KeyState.STANDBY for row in rows),
    )


@of_platform(Permission.MANAGE_KEYS)
def rotate(request: SignedInRequest) -> HttpResponseBase:
    """Create a new key, which seals once every process has had time to read it."""
    return _confirmed(
        request,
        lambda: lifecycle.rotate(actor(request)),
        done="A new key was created. It becomes active in a few seconds, once every process has read it.",
        title="Rotate the keys",
        verb="Rotate",
        harmless=True,
        explanation=(
            "A new key is created, and becomes active once every process has had time to read it. "
            "The current key keeps opening what it sealed until the last of that has expired, and "
            "then retires by itself. No call is interrupted."
        ),
    )


@of_platform(Permission.MANAGE_KEYS)
def compromise(request: SignedInRequest) -> HttpResponseBase:
    """Replace the sealing key at once, because it may have been disclosed."""
    rows = listing.keys(timezone.now())
    lost = [row for row in rows if KeyVerb.COMPROMISE in TRANSITIONS[row.state]]
    named = ", ".join(f"{row.id} ({row.waiting})" for row in lost) or "no key"
    return _confirmed(
        request,
        lambda: lifecycle.rotate(actor(request), compromised=True),
        done="A new key is active. The old key no longer opens anything.",
        title="Rotate as compromised",
        verb="Rotate at once",
        explanation=(
            f"Everything sealed with {named} is refused as soon as each process has received "
            "the change, and waiting calls have to be repeated. A new key becomes active at once. "
            "Keys that were replaced earlier keep opening what they sealed, unless you retire them."
        ),
    )


@of_platform(Permission.MANAGE_KEYS)
def retire(request: SignedInRequest, key_id: str) -> HttpResponseBase:
    """Retire a key before its last token has expired."""
    row = _key(key_id)
    consequence = (
        "Nothing was sealed with it. The rotation is cancelled; the active key stays active."
        if row.state is KeyState.STANDBY
        else f"{_first_upper(row.waiting)}: their answers will be refused, and the calls have to be repeated."
    )
    return _confirmed(
        request,
        lambda: lifecycle.retire(row.id, actor(request)),
        refusal=_refusal(row, KeyVerb.RETIRE),
        done=f"{row.id} is retired. It no longer opens anything.",
        title=f"Retire {row.id}",
        verb="Retire",
        explanation=consequence,
    )


@of_platform(Permission.MANAGE_KEYS)
def destroy(request: SignedInRequest, key_id: str) -> HttpResponseBase:
    """Erase the secret of a retired key."""
    row = _key(key_id)
    return _confirmed(
        request,
        lambda: lifecycle.destroy(row.id, actor(request)),
        refusal=_refusal(row, KeyVerb.DESTROY),
        done=f"{row.id} is destroyed.",
        title=f"Destroy {row.id}",
        verb="Destroy permanently",
        explanation=(
            f"Its secret is erased and cannot be recovered. {_first_upper(row.waiting)}; the key is "
            "retired and opens nothing already."
        ),
    )


@of_tenant(Permission.MANAGE_TENANT)
def salt(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Destroy a tenant's salt: nothing sealed for it opens any more. Confirmed by its slug."""
    back = page_of(tenant, "settings", "Settings")
    if not listing.has_salt(tenant.pk):
        messages.info(request, "The salt has already been destroyed.")
        return redirect(back.url)
    form = CloseForm(tenant, *form_input(request))
    if request.method == "POST" and form.is_valid():
        lifecycle.destroy_salt(tenant.pk, actor(request))
        messages.success(
            request, "The salt is destroyed. What was sealed before can no longer be opened."
        )
        return redirect(back.url)
    longest = timedelta(seconds=settings.MCPHOST_MAX_ANSWER_SECONDS)
    waiting = listing.calls_wait(calls_of(tenant.pk, timezone.now(), longest))
    return show(
        request,
        "confirm.html",
        "Destroy the salt",
        back,
        form=form,
        verb="Destroy permanently",
        back=back.url,
        explanation=(
            f"{_first_upper(waiting)} for an answer in this tenant; every waiting call is lost. Nothing "
            "can ever be sealed for this tenant again: its tools cannot ask questions, and lists of "
            "more than one page fail. Tokens keep working, and records can still be read. This cannot "
            "be undone."
        ),
    )


def _confirmed(
    request: SignedInRequest, act: Act, *, done: str, title: str, refusal: str = "", **page: Any
) -> HttpResponseBase:
    """Show the confirmation page; on POST, run `act` or show why it is refused."""
    back = Crumb("Keys", reverse("admin:keys"))
    if refusal:
        messages.error(request, refusal)
        return redirect(back.url)
    if request.method != "POST":
        return show(request, "confirm.html", title, back, back=back.url, **page)
    try:
        act()
        messages.success(request, done)
    except VaultError as error:
        messages.error(request, _sentence(error))
    return redirect(back.url)


def _key(key_id: str) -> KeyRow:
    try:
        return listing.key(key_id, timezone.now())
    except UnknownKeyError:
        raise Http404 from None


def _refusal(row: KeyRow, verb: KeyVerb) -> str:
    try:
        lifecycle.require(row.id, row.state, verb)
    except KeyRefusalError as error:
        return _sentence(error)
    return ""


def _sentence(error: VaultError) -> str:
    return f"{_first_upper(str(error))}."


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]
