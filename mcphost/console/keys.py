"""The platform's keys, for its staff: the ring, and what can be done to a key, each confirmed.

And for the owners of a tenant: the end of its salt.
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

from mcphost.audit.in_flight import calls_of
from mcphost.console.base import Crumb, Visit, actor, of_platform, of_tenant, page_of, sent, show
from mcphost.console.tenants import CloseForm
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.vault import lifecycle, listing
from mcphost.vault.errors import KeyRefusalError, UnknownKeyError, VaultError
from mcphost.vault.listing import KeyRow
from mcphost.vault.states import TRANSITIONS, KeyState, Verb

Act = Callable[[], object]


@of_platform(Permission.MANAGE_KEYS)
@require_safe
def ring(request: Visit) -> HttpResponseBase:
    """Every key there ever was, the newest first."""
    rows = listing.keys(timezone.now())
    return show(
        request,
        "keys.html",
        "Keys",
        keys=[(row, TRANSITIONS[row.state]) for row in rows],
        waiting=any(row.state is KeyState.STANDBY for row in rows),
    )


@of_platform(Permission.MANAGE_KEYS)
def rotate(request: Visit) -> HttpResponseBase:
    """A new key, which seals once every process has read it."""
    return _confirmed(
        request,
        lambda: lifecycle.rotate(actor(request)),
        done="A new key is written. It seals in some seconds, when every process has read it.",
        title="Rotate the keys",
        verb="Rotate",
        harmless=True,
        explanation=(
            "A new key is made, and seals when every process has had time to read it. The one that "
            "seals now goes on opening what it sealed until the last of that has expired, and then "
            "retires by itself. No call is disturbed."
        ),
    )


@of_platform(Permission.MANAGE_KEYS)
def compromise(request: Visit) -> HttpResponseBase:
    """A new key at once, because somebody else may know the one that seals."""
    rows = listing.keys(timezone.now())
    lost = [row for row in rows if Verb.COMPROMISE in TRANSITIONS[row.state]]
    return _confirmed(
        request,
        lambda: lifecycle.rotate(actor(request), compromised=True),
        done="A new key seals. The old one opens nothing any more.",
        title="Rotate as compromised",
        verb="Rotate at once",
        explanation=(
            f"What was sealed under {_named(lost)} is refused, from the moment that a process hears "
            "of it; calls that wait have to be made again. A new key seals at once. Keys that were "
            "replaced earlier go on opening, unless you retire them."
        ),
    )


@of_platform(Permission.MANAGE_KEYS)
def retire(request: Visit, key_id: str) -> HttpResponseBase:
    """The end of a key before its last token has expired."""
    row = _key(key_id)
    consequence = (
        "Nothing was sealed under it. The rotation is called off, and the key that seals goes on."
        if row.state is KeyState.STANDBY
        else f"{_first_upper(row.waiting)}: the answers are refused, and the calls have to be made again."
    )
    return _confirmed(
        request,
        lambda: lifecycle.retire(row.id, actor(request)),
        refusal=_refusal(row, Verb.RETIRE),
        done=f"{row.id} is retired: it opens nothing any more.",
        title=f"Retire {row.id}",
        verb="Retire",
        explanation=consequence,
    )


@of_platform(Permission.MANAGE_KEYS)
def destroy(request: Visit, key_id: str) -> HttpResponseBase:
    """The end of a retired key's secret."""
    row = _key(key_id)
    return _confirmed(
        request,
        lambda: lifecycle.destroy(row.id, actor(request)),
        refusal=_refusal(row, Verb.DESTROY),
        done=f"{row.id} is destroyed.",
        title=f"Destroy {row.id}",
        verb="Destroy for good",
        explanation=(
            f"Its secret is erased, and nothing brings it back. {_first_upper(row.waiting)}; it opens "
            "nothing as it is."
        ),
    )


@of_tenant(Permission.MANAGE_TENANT)
def salt(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """The end of everything that was sealed for a tenant, confirmed by its slug."""
    back = page_of(tenant, "settings", "Settings")
    if not listing.has_salt(tenant.pk):
        messages.info(request, "The salt was destroyed already.")
        return redirect(back.url)
    form = CloseForm(tenant, *sent(request))
    if request.method == "POST" and form.is_valid():
        lifecycle.destroy_salt(tenant.pk, actor(request))
        messages.success(request, "The salt is destroyed. What was sealed before opens nowhere.")
        return redirect(back.url)
    longest = timedelta(seconds=settings.MCPHOST_MAX_ANSWER_SECONDS)
    waiting = listing.calls_wait(calls_of(tenant.pk, timezone.now(), longest))
    return show(
        request,
        "confirm.html",
        "Destroy the salt",
        back,
        form=form,
        verb="Destroy for good",
        back=back.url,
        explanation=(
            f"{_first_upper(waiting)} for an answer here: all of them are lost. Nothing is ever sealed "
            "for this tenant again: its tools cannot ask anybody, and lists of more than one page fail. "
            "Tokens stay good, and what was recorded can be read. There is no way back."
        ),
    )


def _confirmed(
    request: Visit, act: Act, *, done: str, title: str, refusal: str = "", **page: Any
) -> HttpResponseBase:
    """The page that asks; sent back, the act, or why it is refused."""
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


def _refusal(row: KeyRow, verb: Verb) -> str:
    try:
        lifecycle.require(row.id, row.state, verb)
    except KeyRefusalError as error:
        return _sentence(error)
    return ""


def _named(rows: list[KeyRow]) -> str:
    return ", ".join(f"{row.id} ({row.waiting})" for row in rows) or "no key"


def _sentence(error: VaultError) -> str:
    return f"{_first_upper(str(error))}."


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]
