"""Pages for the platform's keys, for staff: the key ring, and confirmed actions on its keys.

Also the page on which the owners of a tenant destroy its salt.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from mcphost.console import key_effects, key_picture
from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    actor,
    form_input,
    link_to,
    of_platform,
    of_tenant,
    page_of,
    query_text,
    show,
)
from mcphost.console.forms import forms
from mcphost.console.key_effects import LINKS, UnderKey, known_by
from mcphost.console.return_links import named_list_url
from mcphost.console.templatetags.console import format_sentence
from mcphost.console.tenants.tenants import CloseForm
from mcphost.serving.process import status
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.vault import lifecycle, listing, selectors
from mcphost.vault.errors import KeyRefusalError, UnknownKeyError, VaultError
from mcphost.vault.listing import KeyRow
from mcphost.vault.states import TRANSITIONS, KeyState, KeyVerb

Act = Callable[[], object]


class CompromiseForm(forms.ConsoleForm):
    """The id of the key that is replaced, typed by a user who means it."""

    key = forms.text("Key", spellcheck="false", autocomplete="off")

    def __init__(self, key: str, *sent: Any) -> None:
        super().__init__(*sent)
        self._key = key
        self.fields["key"].label = f"Type `{key}` to confirm"

    def clean_key(self) -> str:
        typed: str = self.cleaned_data["key"]
        if typed != self._key:
            raise ValidationError(f"Type {self._key} to confirm.")
        return typed


@of_platform(Permission.MANAGE_KEYS)
@require_safe
def ring(request: SignedInRequest) -> HttpResponseBase:
    """List all keys, including retired and destroyed ones, newest first."""
    now = timezone.now()
    with suppress(VaultError):
        selectors.ring()  # so that this process says what it would seal and open with
    rows, processes = listing.keys(now), status.living()
    lost = _lost(rows)
    return show(
        request,
        "keys.html",
        "Keys",
        lost=sum((under for _, under in lost), UnderKey()) if lost else None,
        picture=key_picture.draw(rows, now),
        keys=[
            (row, TRANSITIONS[row.state], key_effects.under_key(row), known_by(row.id, processes))
            for row in rows
        ],
        now=now,
    )


@of_platform(Permission.MANAGE_KEYS)
def rotate(request: SignedInRequest) -> HttpResponseBase:
    """Create a new key, which seals once every process has had time to read it."""
    return _confirmed(
        request,
        lambda: lifecycle.rotate(actor(request)),
        done=lambda made: (
            f"The key {made} was created. It becomes active in a few seconds, once every process has "
            f"read it.{_going_on(' Still in progress under the keys before it: {}.')}"
        ),
        title="Rotate the key",
        verb="Rotate the key",
        harmless=True,
        points=lambda: (
            (
                "A new key will be created. It becomes active once every process has had time to read it "
                f"({_processes(len(status.living()))} at the moment)."
            ),
            (
                "The current key will keep opening what it sealed until the last of it has expired, and then "
                "retire by itself."
            ),
            f"No call will be interrupted{_going_on(': {} will go on')}.",
        ),
    )


@of_platform(Permission.MANAGE_KEYS)
def compromise(request: SignedInRequest) -> HttpResponseBase:
    """Replace the sealing key at once, because it may have been disclosed."""
    rows = listing.keys(timezone.now())
    lost = _lost(rows)
    active = next((row.id for row in rows if row.state is KeyState.ACTIVE), "")
    # What was typed is compared with the key that the page has shown; the service refuses if another is active.
    shown_key = query_text(request.POST, "replaces") or active
    under = sum((under for _, under in lost), UnderKey())
    named = ", ".join(f"`{key}`" for key, _ in lost) or "no key"
    return _confirmed(
        request,
        lambda: lifecycle.rotate(
            actor(request), compromised=True, replaces=query_text(request.POST, "replaces")
        ),
        done=lambda made: (
            f"The key {made} is active. What was sealed with {named} is refused. {_were_lost(under)}"
        ),
        title=f"Replace the compromised key “{active}”"
        if active
        else "Replace the compromised key",
        form=CompromiseForm(shown_key, *form_input(request)) if shown_key else None,
        bound={"replaces": shown_key},
        verb="Replace the compromised key",
        final=True,
        points=lambda: (
            (
                f"Everything sealed with {named} will be refused as soon as each process has received "
                "the change."
            ),
            _lost_for_clients(under),
            LINKS,
            "A new key will become active at once.",
            f"{_still_opening(rows)}.",
        ),
    )


def _lost(rows: Sequence[KeyRow]) -> list[tuple[str, UnderKey]]:
    """Return the keys that a compromise replaces, each with what is lost under it."""
    return [
        (row.id, key_effects.under_key(row))
        for row in rows
        if KeyVerb.COMPROMISE in TRANSITIONS[row.state]
    ]


def _still_opening(rows: Sequence[KeyRow]) -> str:
    keys = [f"`{row.id}`" for row in rows if row.state is KeyState.RETIRING]
    if not keys:
        return "No key that was replaced earlier still opens anything"
    return f"{', '.join(keys)}, replaced earlier, will keep opening what was sealed with it, unless you retire it"


def _will_be_lost(under: UnderKey) -> str:
    return f"{under or 'No waiting calls, open sessions or tasks'} will be lost."


def _lost_for_clients(under: UnderKey) -> str:
    result = " Calls have to be repeated, sessions begin anew, and tasks fail." if under else ""
    return f"{_will_be_lost(under)}{result}"


def _were_lost(under: UnderKey) -> str:
    return f"Lost: {under}." if under else "No call, session or task was lost."


@of_platform(Permission.MANAGE_KEYS)
def retire(request: SignedInRequest, key_id: str) -> HttpResponseBase:
    """Retire a key before its last token has expired."""
    row = _key(key_id)
    under = key_effects.under_key(row)
    if row.state is KeyState.STANDBY:
        consequences: Sequence[str] = (
            "Nothing was sealed with it.",
            "The rotation will be cancelled; the active key stays active.",
        )
        done = f"{row.id} is retired, and the rotation is cancelled. Nothing was sealed with it."
    else:
        by_itself = (
            f" Otherwise it retires by itself on {row.until:%Y-%m-%d at %H:%M} UTC, when all that it sealed has "
            "expired."
            if row.until
            else ""
        )
        consequences = (
            f"The key will no longer open anything.{by_itself}",
            _lost_for_clients(under),
            LINKS,
        )
        done = f"{row.id} is retired and opens nothing. {_were_lost(under)}"
    return _confirmed(
        request,
        lambda: lifecycle.retire(row.id, actor(request), was=query_text(request.POST, "was")),
        refusal=_refusal(row, KeyVerb.RETIRE),
        done=lambda made: done,
        title=f"Retire the key “{row.id}”",
        bound={"was": row.state.value},
        key=row.id,
        verb=f"Retire the key “{row.id}”",
        final=True,
        points=consequences,
    )


@of_platform(Permission.MANAGE_KEYS)
def destroy(request: SignedInRequest, key_id: str) -> HttpResponseBase:
    """Erase the secret of a retired key."""
    row = _key(key_id)
    depends = (
        f"Nothing more depends on it: {listing.calls_were(row.lost)} lost when it was retired."
        if row.lost
        else "Nothing depends on it."
    )
    return _confirmed(
        request,
        lambda: lifecycle.destroy(row.id, actor(request)),
        refusal=_refusal(row, KeyVerb.DESTROY),
        done=lambda made: (
            f"{row.id} is destroyed: its secret is erased. Nothing in progress was sealed with it."
        ),
        title=f"Destroy the key “{row.id}”",
        key=row.id,
        verb=f"Destroy the key “{row.id}”",
        final=True,
        points=(
            f"It is already retired and opens nothing. {depends}",
            "Its secret will be erased, and cannot be recovered.",
            "It will stay in the list of keys as destroyed, and in the audit log.",
        ),
    )


@of_tenant(Permission.MANAGE_TENANT)
def salt(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Destroy a tenant's salt: nothing sealed for it opens any more. Confirmed by its slug."""
    back = page_of(tenant, "settings", "Settings")
    if not listing.has_salt(tenant.pk):
        messages.info(request, "The salt has already been destroyed.")
        return redirect(back.url)
    title = f"Destroy the salt of “{tenant.title}”"
    form = CloseForm(tenant, *form_input(request))
    under = key_effects.under_key_of_tenant(tenant.pk, timezone.now())
    if request.method == "POST" and form.is_valid():
        lifecycle.destroy_salt(tenant.pk, actor(request))
        messages.success(
            request,
            f"The salt is destroyed. What was sealed before can no longer be opened. {_were_lost(under)}",
        )
        return redirect(back.url)
    return show(
        request,
        "confirm.html",
        title,
        back,
        form=form,
        verb=title,
        back=back.url,
        final=True,
        explanation=format_sentence(
            "Clients hold sealed data between two requests, and the tenant's salt is needed to open it. Destroy the "
            "salt only if that data must become unreadable for good. If a key may have leaked, {} instead; to shut "
            "the tenant down, close it.",
            _replacement(request.user),
        ),
        points=(
            f"{_will_be_lost(under)} {LINKS}",
            (
                "The tenant will never again be able to ask questions, keep sessions, run tasks, or return lists of more "
                "than one page."
            ),
            "Tokens will keep working for everything else. Calls and the audit log will stay readable.",
        ),
    )


def _replacement(user: User) -> SafeString | str:
    if allowed(user, None, Permission.MANAGE_KEYS):
        return format_sentence(
            "replace the compromised key under {}", link_to("Keys", reverse("admin:keys"))
        )
    return "ask platform staff to replace the compromised key"


def _confirmed(
    request: SignedInRequest,
    act: Act,
    *,
    done: Callable[[object], str],
    title: str,
    key: str = "",
    refusal: str = "",
    **page: Any,
) -> HttpResponseBase:
    """Show the confirmation page; on POST, run `act` and say what it did, or why it is refused.

    `explanation`, in `page`, may be a function, which only the template calls: a POST does not wait
    for the counts that the page shows.
    `key` is the key that is changed; without one, `act` returns that of a new one. `bound`, in
    `page`, are the form's hidden fields: what the page was shown for, which `act` compares.
    """
    back = Crumb("Keys", reverse("admin:keys"))
    if refusal:
        messages.error(request, refusal)
        return redirect(back.url)
    form: forms.ConsoleForm | None = page.get("form")
    if request.method != "POST" or (form is not None and not form.is_valid()):
        return show(request, "confirm.html", title, back, back=back.url, **page)
    try:
        made = act()
        messages.success(request, done(made))
        key = key or str(made)
    except VaultError as error:
        messages.error(request, _sentence(error))
    return redirect(named_list_url(request, "admin:keys", row=f"key-{key}" if key else ""))


def _going_on(sentence: str) -> str:
    """Return a sentence with what goes on under all keys together; empty if nothing does."""
    under = sum(map(key_effects.under_key, listing.keys(timezone.now())), UnderKey())
    return sentence.format(under) if under else ""


def _processes(number: int) -> str:
    return "1 process" if number == 1 else f"{number} processes"


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
