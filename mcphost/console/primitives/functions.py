"""Pages for Python functions: those that a tenant may use, and all that the code offers."""

from itertools import chain

from django.contrib import messages
from django.db import transaction
from django.db.models import Count, Min
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from mcphost.catalogue import kinds, selectors, services
from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.catalogue.models import Grant
from mcphost.console.base import (
    CONFIRMED,
    SignedInRequest,
    actor,
    confirm_form,
    of_platform,
    of_tenant,
    page_of,
    query_text,
    show,
)
from mcphost.console.primitive_words import WORDS
from mcphost.console.return_links import is_changed, named_list_url
from mcphost.console.templatetags.console import format_sentence
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

GRANT, REVOKE = "grant", "revoke"
MAX_AT_ONCE = 500
STATES = ("granted", "not granted")
_TYPES = {words.singular: primitive_type for primitive_type, words in WORDS.items()}


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the functions granted to a tenant; for staff also those that could be."""
    may_grant = allowed(request.user, tenant, Permission.GRANT_FUNCTIONS)
    rows = [row for row in selectors.functions(tenant.pk) if row.granted or may_grant]
    rows.sort(key=lambda row: not row.granted)  # stable: the granted ones first
    search_text, state = query_text(request.GET, "q"), query_text(request.GET, "state")
    type_name = query_text(request.GET, "type")
    return show(
        request,
        "primitives/functions.html",
        "Python functions",
        functions=[
            row
            for row in rows
            if (_is_of_type(row.primitive_type, type_name) and _matches(row, search_text, state))
            or is_changed(request, row.reference)
        ],
        total=len(rows),
        search_text=search_text,
        state=state,
        states=STATES,
        types=_TYPES,
        type=type_name if type_name in _TYPES else "",
        words=WORDS,
        may_grant=may_grant,
    )


def _is_of_type(primitive_type: PrimitiveType, type_name: str) -> bool:
    """Return whether it is the type of this name; a name that is no type's is ignored."""
    return _TYPES.get(type_name) in (None, primitive_type)


def _matches(row: selectors.FunctionRow, search_text: str, state: str) -> bool:
    has_text = search_text.lower() in f"{row.label} {row.reference}".lower()
    return has_text and (state not in STATES or row.granted == (state == "granted"))


@of_tenant(Permission.GRANT_FUNCTIONS)
@require_POST
def change(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Grant functions to a tenant, or revoke the grants: all that are chosen, or none of them.

    The button of a row names its function; the buttons below take the chosen ones.
    """
    verb, _, only = query_text(request.POST, "verb").partition(" ")
    references = [only] if only else list(dict.fromkeys(request.POST.getlist("function")))
    first = references[0][:200] if references else ""
    row = f"function-{first}" if first else ""
    back = named_list_url(request, "admin:functions", tenant.slug, row=row, changed=first)
    if verb not in (GRANT, REVOKE) or not references:
        messages.error(request, "Choose the functions to grant or to revoke.")
        return redirect(back)
    if len(references) > MAX_AT_ONCE:
        limit = f"Choose at most {MAX_AT_ONCE} functions at once, not {len(references)}."
        messages.error(request, f"Nothing was changed. {limit}")
        return redirect(back)
    if verb == REVOKE and CONFIRMED not in request.POST:
        return _confirm_revocation(request, tenant, references, back)
    apply = services.grant_function if verb == GRANT else services.revoke_grant
    try:
        with transaction.atomic():
            changed = [
                reference
                for reference in (name.replace("\0", "")[:200] for name in references)
                if apply(tenant.pk, reference, actor(request))
            ]
    except InvalidPrimitiveError as refusal:
        for sentence in chain.from_iterable(refusal.problems.values()):
            messages.error(request, sentence)
        return redirect(back)
    if changed:
        may = "may use" if verb == GRANT else "may no longer use"
        functions_text = (
            changed[0]
            if len(changed) == 1
            else f"{len(changed)} functions: {_first_names(changed)}"
        )
        messages.success(request, f"{tenant.slug} {may} {functions_text}.")
    else:
        as_before = "already may use" if verb == GRANT else "has no grant of"
        messages.info(
            request, f"Nothing changed: {tenant.slug} {as_before} {_first_names(references)}."
        )
    return redirect(back)


def _confirm_revocation(
    request: SignedInRequest, tenant: Tenant, references: list[str], back: str
) -> HttpResponseBase:
    """Ask before functions are taken from a tenant: what is registered with them ends."""
    named = f"“{references[0][:200]}”" if len(references) == 1 else f"{len(references)} functions"
    rows = {row.reference: row for row in selectors.functions(tenant.pk)}
    uses = [
        use.name
        for reference in references
        if reference in rows
        for use in rows[reference].registered_as
    ]
    return confirm_form(
        request,
        f"Revoke {named}",
        page_of(tenant, "functions", "Python functions"),
        points=(
            format_sentence(
                "{} will no longer be allowed to use {}.", tenant.title, _first_names(references)
            ),
            f"Clients will no longer be able to use {_first_names(uses)}, which run{'s' * (len(uses) == 1)} this."
            if uses
            else "Nothing in this tenant runs this.",
            "Running calls will not be interrupted. To undo it, grant again.",
        ),
        back=back,
    )


def _first_names(names: list[str]) -> str:
    few = [name[:100] for name in names[:8]]
    return ", ".join(few) + (", …" if len(names) > len(few) else "")


@of_platform(Permission.GRANT_FUNCTIONS)
@require_safe
def all_functions(request: SignedInRequest) -> HttpResponseBase:
    """Show the tools folder: its functions, how many tenants use each, and what is broken."""
    counted = (
        Grant.objects.order_by()
        .values("function")
        .annotate(tenants=Count("tenant"), first=Min("tenant__slug"))
    )
    uses = {row["function"]: (row["first"], row["tenants"] - 1) for row in counted}
    functions = kinds.functions()
    search_text, type_name = query_text(request.GET, "q"), query_text(request.GET, "type")
    return show(
        request,
        "primitives/all_functions.html",
        "All Python functions",
        functions=[
            (reference, label, WORDS[kinds.primitive_type_of(reference)], uses.get(reference))
            for reference, label in sorted(functions, key=lambda pair: pair[1].lower())
            if search_text.lower() in f"{label} {reference}".lower()
            and _is_of_type(kinds.primitive_type_of(reference), type_name)
        ],
        total=len(functions),
        search_text=search_text,
        types=_TYPES,
        type=type_name if type_name in _TYPES else "",
        missing=sorted(uses.keys() - dict(functions).keys()),
        broken=[(kind.label, problem) for kind in kinds.KINDS.values() for problem in kind.check()],
    )
