"""Pages for a primitive's versions and its end: compare, roll back, disable, archive, delete."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms as django_forms
from django.contrib import messages
from django.http import Http404, HttpResponseBase, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from mcphost.audit import call_list
from mcphost.catalogue import saved_calls, selectors, services
from mcphost.catalogue.errors import (
    CatalogueError,
    InvalidPrimitiveError,
    NotDeletableError,
    StaleError,
    UnchangedError,
    UnknownError,
    WrongStateError,
)
from mcphost.catalogue.models import MAX_NOTE
from mcphost.catalogue.selectors import PrimitiveRow, VersionRow
from mcphost.catalogue.states import DELETABLE, PrimitiveState, PrimitiveVerb, possible
from mcphost.console import return_links
from mcphost.console.base import (
    CONFIRMED,
    Crumb,
    SignedInRequest,
    actor,
    confirm_form,
    form_input,
    of_tenant,
    page_of,
    query_text,
    show,
)
from mcphost.console.dashboards.uses import counted, uses
from mcphost.console.forms import forms
from mcphost.console.forms.edits import BASED_ON, STATE
from mcphost.console.primitive_words import WORDS, Words
from mcphost.console.primitives.definitions import labelled
from mcphost.console.primitives.primitives import PUBLISHED, row_of
from mcphost.console.primitives.version_changes import FieldChange, changes
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.listings.input_requests import count_open
from mcphost.serving.execution import trials
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

MAX_AT_ONCE = 200
"""Primitives that one bulk action changes."""
MAX_NAMED = 8
"""Primitives that the confirmation of a bulk action names."""

_RECENT = timedelta(hours=1)
"""Calls that began earlier and have no result are taken for lost, not for under way."""

_MOVES: Mapping[PrimitiveVerb, tuple[Callable[..., PrimitiveRow], str]] = {
    PrimitiveVerb.PUBLISH: (services.publish, PUBLISHED),
    PrimitiveVerb.DISABLE: (services.disable, "{} is disabled. Clients can no longer use it."),
    PrimitiveVerb.ENABLE: (
        services.enable,
        "{} is enabled. Its last published version is served again.",
    ),
    PrimitiveVerb.ARCHIVE: (services.archive, "{} is archived. Clients can no longer use it."),
    PrimitiveVerb.RESTORE: (services.restore, "{} is restored, disabled. Enable it to serve it."),
}
_REFUSALS = (StaleError, UnchangedError, WrongStateError, NotDeletableError)
_REVIEW = " Review its changes, and publish it then."
_REPLACED = "The version that is served now is named below. Confirm again to replace it."
_SERVED_AGAIN = "It is disabled, and will be served again."

_DISABLED = (
    "Clients will no longer see `{name}` or be able to {verb} it. You can enable it again.",
)
_ARCHIVED = (
    "Clients will no longer see `{name}` or be able to {verb} it.",
    "The list will show it only under the state “archived”, from where it can be restored.",
)
_ENDS: Mapping[PrimitiveVerb, tuple[str, Sequence[str]]] = {
    PrimitiveVerb.DISABLE: ("Disable", _DISABLED),
    PrimitiveVerb.ARCHIVE: ("Archive", _ARCHIVED),
}
_AFFECTED = "The answer to its open question will no longer be accepted: the next round of that call will be refused."
_ALL_AFFECTED = (
    "Answers to its {count} open questions will no longer be accepted: the next round of those calls will be "
    "refused."
)
_TRIALS = "Trials that still wait for an answer will end."


class RollBackForm(forms.ConsoleForm):
    """Why an earlier version is served again."""

    note = forms.lines("Note", "Optional. It goes into the audit log.", rows=2, maxlength=MAX_NOTE)


class PrimitiveDeleteForm(forms.ConsoleForm):
    """The name, typed in by someone who means it."""

    name = forms.text("Name", spellcheck="false")

    def __init__(self, row: PrimitiveRow, *sent: Any) -> None:
        super().__init__(*sent)
        self._name = row.name
        self.fields["name"].label = f"Type `{row.name}` to confirm"

    def clean_name(self) -> str:
        typed: str = self.cleaned_data["name"]
        if typed != self._name:
            raise django_forms.ValidationError(f"Type {self._name} to confirm.")
        return typed


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def version(
    request: SignedInRequest,
    tenant: Tenant,
    primitive_type: PrimitiveType,
    primitive_id: UUID,
    version_id: UUID,
) -> HttpResponseBase:
    """Show a version: who published it, why, and what it changed."""
    row = row_of(tenant, primitive_type, primitive_id)
    shown_version, before, after = _version_of(row, version_id)
    return show(
        request,
        "primitives/version.html",
        f"Version {shown_version.number}",
        *_crumbs(request, row),
        at_row=f"row-{row.id}",
        words=WORDS[primitive_type],
        row=row,
        version=shown_version,
        before=before,
        after=after,
        changes=changes(before, shown_version),
        can_serve=not shown_version.live and PrimitiveVerb.PUBLISH in possible(row.state),
        is_newer=any(
            version.live and version.number < shown_version.number
            for version in selectors.versions(row.id)
        ),
    )


@of_tenant(Permission.EDIT_TOOLS)
def roll_back(
    request: SignedInRequest,
    tenant: Tenant,
    primitive_type: PrimitiveType,
    primitive_id: UUID,
    version_id: UUID,
) -> HttpResponseBase:
    """Serve an earlier version again, after a confirmation that says what that affects."""
    row = row_of(tenant, primitive_type, primitive_id)
    restored, *_ = _version_of(row, version_id)
    form = RollBackForm(*form_input(request))
    read = query_text(request.POST, BASED_ON) or row.version
    was = query_text(request.POST, STATE) or row.state.value
    if request.method == "POST" and form.is_valid():
        done = _run_service(
            request, row, lambda: _serve_again(request, row, version_id, form, (read, was))
        )
        if form.is_valid():
            if done:
                trials.end_of(row, trials.ROLLED_BACK, actor(request))
                messages.success(request, f"{row.name}: version {restored.label} is served again.")
            return redirect(
                return_links.row_url(request, WORDS[primitive_type].detail, tenant.slug, row.id)
            )
        # Once the version that is served now has been shown, confirming again replaces it.
        row = row_of(tenant, primitive_type, primitive_id)
        read, was = row.version, row.state.value
    return _confirm(
        request,
        row,
        _roll_back_title(row, restored),
        [
            *([_SERVED_AGAIN] if row.state is PrimitiveState.DISABLED else []),
            f"Clients will get version {restored.number} of `{row.name}` instead of {row.version_number}.",
            "The working copy will stay as it is.",
            *_trials_of(row),
            *_under_way(row, going_on=True),
        ],
        form=form,
        bound={BASED_ON: read, STATE: was},
        harmless=True,
        changes=_differences(row, restored),
    )


def _roll_back_title(row: PrimitiveRow, restored: VersionRow) -> str:
    """Name the version: one that is newer than the served one is not rolled back to."""
    if row.version_number < restored.number:
        return f"Serve version {restored.number} of “{row.name}”"
    return f"Roll back “{row.name}” to version {restored.number}"


def _differences(row: PrimitiveRow, restored: VersionRow) -> Sequence[FieldChange]:
    """Compare a version with the one that is served now; nothing without one."""
    live = next((version for version in selectors.versions(row.id) if version.live), None)
    return () if live is None else changes(live, restored)


def _serve_again(
    request: SignedInRequest,
    row: PrimitiveRow,
    version_id: UUID,
    form: RollBackForm,
    read: tuple[str, str],
) -> None:
    """Roll back; say in the form if the version that would be replaced, or the state, is not the one
    that was shown."""
    more = {"note": form.cleaned_data["note"], "instead_of": read[0], "was": read[1]}
    try:
        services.roll_back(row.id, version_id, actor(request), **more)
    except StaleError as refusal:
        form.add_error(None, f"Nothing was changed. {refusal}. {_REPLACED}")


@of_tenant(Permission.EDIT_TOOLS)
def move(
    request: SignedInRequest,
    tenant: Tenant,
    primitive_type: PrimitiveType,
    primitive_id: UUID,
    verb: str,
) -> HttpResponseBase:
    """Change a primitive's state. Disabling and archiving are confirmed on a page that says what
    they affect."""
    row = row_of(tenant, primitive_type, primitive_id)
    primitive_verb = PrimitiveVerb(verb)
    if request.method == "POST":
        service, sentence = _MOVES[primitive_verb]
        more = {}
        if primitive_verb is PrimitiveVerb.PUBLISH:
            note = query_text(request.POST, "note", MAX_NOTE + 1)
            based_on, was = (query_text(request.POST, name) for name in (BASED_ON, STATE))
            more = {"note": note, "based_on": based_on, "was": was}
        elif primitive_verb is PrimitiveVerb.ENABLE:
            more = {"version": query_text(request.POST, BASED_ON)}
        if _run_service(request, row, lambda: service(row.id, actor(request), **more)):
            if primitive_verb in trials.ENDED_BY:
                trials.end_of(row, trials.ENDED_BY[primitive_verb], actor(request))
            messages.success(request, sentence.format(row.name))
        return redirect(
            return_links.row_url(request, WORDS[primitive_type].detail, tenant.slug, row.id)
        )
    if primitive_verb not in _ENDS:
        return HttpResponseNotAllowed(["POST"])
    title, consequences = _ENDS[primitive_verb]
    points = [
        *(text.format(name=row.name, verb=WORDS[primitive_type].verb) for text in consequences),
        *_recent_use(request, row),
        *_trials_of(row),
        *_under_way(row, going_on=False),
    ]
    return _confirm(request, row, f"{title} “{row.name}”", points)


@of_tenant(Permission.EDIT_TOOLS)
def delete(
    request: SignedInRequest, tenant: Tenant, primitive_type: PrimitiveType, primitive_id: UUID
) -> HttpResponseBase:
    """Delete a draft or an archived primitive, confirmed by its name."""
    row = row_of(tenant, primitive_type, primitive_id)
    if row.state not in DELETABLE:
        messages.error(request, f"Archive {row.name} before you delete it.")
        return redirect(
            return_links.row_url(request, WORDS[primitive_type].detail, tenant.slug, row.id)
        )
    form = PrimitiveDeleteForm(row, *form_input(request))
    if request.method == "POST" and form.is_valid():
        if _run_service(request, row, lambda: services.delete(row.id, actor(request))):
            trials.end_of(row, trials.DELETED, actor(request))
            messages.success(request, f"{row.name} is deleted.")
        return redirect(
            return_links.named_list_url(request, WORDS[primitive_type].listing, tenant.slug)
        )
    contents = " and all its versions"
    if saved := saved_calls.count(row.id):
        calls = "saved call" if saved == 1 else f"{saved} saved calls"
        contents = f", all its versions and its {calls}"
    return _confirm(
        request,
        row,
        f"Delete the {WORDS[primitive_type].singular} “{row.name}”",
        [
            f"`{row.name}`{contents} will be deleted.",
            *_recent_use(request, row),
            *_trials_of(row),
            "Its calls will stay in the record.",
        ],
        form=form,
        final=True,
    )


@of_tenant(Permission.EDIT_TOOLS)
@require_POST
def bulk(
    request: SignedInRequest, tenant: Tenant, primitive_type: PrimitiveType
) -> HttpResponseBase:
    """Publish or disable several primitives: each for itself, with what was refused named.

    Each chosen value is `<id>:<fingerprint of the working copy>:<state>`. What has changed since the
    list was shown is not published.
    """
    verb, words = query_text(request.POST, "verb"), WORDS[primitive_type]
    sent = (value.partition(":") for value in request.POST.getlist("chosen"))
    based_on_by_id = {primitive_id: based_on for primitive_id, _, based_on in sent}
    rows = selectors.primitives(Tenant.objects.filter(pk=tenant.pk), primitive_type)
    selected_rows = [row for row in rows if str(row.id) in based_on_by_id]
    if refused := _refused_choice(verb, len(based_on_by_id), len(selected_rows), words):
        messages.error(request, f"Nothing was changed. {refused}")
        return redirect(return_links.named_list_url(request, words.listing, tenant.slug))
    published = [row for row in selected_rows if row.state is PrimitiveState.PUBLISHED]
    if verb == "disable" and published and CONFIRMED not in request.POST:
        return _confirm_disabling(request, published, words)
    done = 0
    for row in selected_rows:
        try:
            if verb == "publish":
                based_on, _, was = based_on_by_id[str(row.id)].partition(":")
                services.publish(row.id, actor(request), based_on=based_on, was=was)
            else:
                services.disable(row.id, actor(request))
                trials.end_of(row, trials.ENDED_BY[PrimitiveVerb.DISABLE], actor(request))
        except CatalogueError as refusal:
            messages.error(request, f"{row.name} was left as it is. {_refusal_text(row, refusal)}")
        else:
            done += 1
    if done:
        noun = words.singular if done == 1 else words.plural
        messages.success(request, f"{done} {noun} {verb.removesuffix('e')}ed.")
    if missing := len(based_on_by_id) - len(selected_rows):
        messages.error(
            request, f"{missing} of the chosen no longer exist{'s' if missing == 1 else ''}."
        )
    first = selected_rows[0].id
    back = return_links.named_list_url(
        request, words.listing, tenant.slug, row=f"row-{first}", changed=str(first)
    )
    return redirect(back)


def _confirm_disabling(
    request: SignedInRequest, rows: Sequence[PrimitiveRow], words: Words
) -> HttpResponseBase:
    """Ask before several primitives are disabled."""
    back = return_links.named_list_url(request, words.listing, request.tenant.slug)
    title = f"Disable {len(rows)} {words.singular if len(rows) == 1 else words.plural}"
    names = ", ".join(f"`{row.name}`" for row in rows[:MAX_NAMED])
    more = f" and {len(rows) - MAX_NAMED} more" if len(rows) > MAX_NAMED else ""
    points = (
        f"Clients will no longer see or be able to {words.verb}: {names}{more}. You can enable each again.",
        "Answers to their open questions will no longer be accepted.",
        *([_TRIALS] if words.primitive_type is PrimitiveType.TOOL else ()),
    )
    return confirm_form(request, title, Crumb(words.title, back), points=points, back=back)


def _refused_choice(verb: str, selected: int, existing: int, words: Words) -> str:
    """Return why a bulk action is refused as a whole, or an empty text."""
    if selected > MAX_AT_ONCE:
        return f"Choose at most {MAX_AT_ONCE} {words.plural} at once, not {selected}."
    if verb not in ("publish", "disable") or not existing:
        return f"Choose {words.plural} first."
    return ""


def _refusal_text(row: PrimitiveRow, refusal: CatalogueError) -> str:
    """Return a refusal's sentences, with the labels of fields; that of a conflict says what to do."""
    if isinstance(refusal, InvalidPrimitiveError):
        return " ".join(map(str, labelled(row.tenant_id, row.fields, refusal.problems)))
    return f"{refusal}.{_REVIEW}" if isinstance(refusal, StaleError) else str(refusal)


def _version_of(
    row: PrimitiveRow, version_id: UUID
) -> tuple[VersionRow, VersionRow | None, VersionRow | None]:
    """Return a version, the one before it and the one after. Raises Http404 if it is none of this primitive."""
    newest_first = [None, *selectors.versions(row.id), None]
    for after, version, before in zip(
        newest_first, newest_first[1:], newest_first[2:], strict=False
    ):
        if version is not None and version.id == version_id:
            return version, before, after
    raise Http404


def _trials_of(row: PrimitiveRow) -> Sequence[str]:
    return (_TRIALS,) if row.primitive_type is PrimitiveType.TOOL else ()


def _recent_use(request: SignedInRequest, row: PrimitiveRow) -> Sequence[str]:
    """Say how often a primitive was used lately, to users who may read the record."""
    tenant, now = request.tenant, timezone.now()
    if not counted(row.primitive_type) or not allowed(
        request.user, tenant, Permission.VIEW_RECORDS
    ):
        return ()
    use = uses(tenant, [row], now)[row.id]
    if use.last_at is None:
        return ("It was not used in the last 7 days.",)
    calls = "1 call" if use.calls == "1" else f"{use.calls} calls"
    return (f"{calls} in the last 7 days, the last at {use.last_at:%Y-%m-%d %H:%M} UTC.",)


def _under_way(row: PrimitiveRow, *, going_on: bool) -> Sequence[str]:
    """Return sentences that say which calls are affected."""
    now, tenant = timezone.now(), frozenset({row.tenant_id})
    target = row.uri or row.name
    open_requests = count_open(tenant, now, target=target)
    running = call_list.count_running(tenant, target, now - _RECENT, now)
    parts = []
    if running:
        parts.append(f"{running} {'call is' if running == 1 else 'calls are'} in progress.")
    if open_requests:
        requests = "open question" if open_requests == 1 else f"{open_requests} open questions"
        if going_on:
            parts.append(
                f"Its {requests} will still accept answers; those already given will be kept."
            )
        elif open_requests == 1:
            parts.append(_AFFECTED)
        else:
            parts.append(_ALL_AFFECTED.format(count=open_requests))
    return parts or ("No call waits for an answer, and none is in progress.",)


def _run_service(request: SignedInRequest, row: PrimitiveRow, verb: Callable[[], Any]) -> bool:
    """Run a service; show why it refused. Raises Http404 if the primitive was deleted meanwhile."""
    try:
        verb()
    except UnknownError:
        raise Http404 from None
    except (InvalidPrimitiveError, *_REFUSALS) as refusal:
        messages.error(request, f"Nothing was changed. {_refusal_text(row, refusal)}")
        return False
    return True


def _crumbs(request: SignedInRequest, row: PrimitiveRow) -> tuple[Crumb, Crumb]:
    words: Words = WORDS[row.primitive_type]
    tenant = request.tenant
    listed = page_of(tenant, words.listing.removeprefix("admin:"), words.title)
    return listed, Crumb(row.name, return_links.row_url(request, words.detail, tenant.slug, row.id))


def _confirm(
    request: SignedInRequest,
    row: PrimitiveRow,
    title: str,
    points: Sequence[str],
    *,
    form: forms.ConsoleForm | None = None,
    **more: Any,
) -> HttpResponseBase:
    crumbs = _crumbs(request, row)
    return show(
        request,
        "confirm.html",
        title,
        *crumbs,
        form=form,
        points=points,
        back=crumbs[-1].url,
        at_row=f"row-{row.id}",
        **{"verb": title, **more},
    )
