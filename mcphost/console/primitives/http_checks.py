"""The check of an HTTP tool's form while it is filled in. Nothing is saved, and nothing is sent."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.http import HttpResponseBase, JsonResponse
from django.views.decorators.http import require_POST

from mcphost.console.base import SignedInRequest, form_input, of_tenant
from mcphost.console.forms.argument_rows import NoRowsError, accepts_others, rows_of
from mcphost.console.forms.http_part import NO_ARGUMENTS, HttpPart
from mcphost.console.forms.json_texts import json_text
from mcphost.console.forms.kind_forms import HTTP, part_of
from mcphost.console.primitives.primitives import row_of
from mcphost.kinds.http.config_checks import check_config, inspect_config, unused_arguments
from mcphost.kinds.kind import KindError
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

Sentences = dict[str, list[str]]
"""Sentences by the names of the HTML fields beside which they are shown."""


@of_tenant(Permission.EDIT_TOOLS)
@require_POST
def unsaved(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Check the form of a new tool."""
    return _checked(request, tenant, {})


@of_tenant(Permission.EDIT_TOOLS)
@require_POST
def saved(request: SignedInRequest, tenant: Tenant, primitive_id: UUID) -> HttpResponseBase:
    """Check the form of a saved tool."""
    row = row_of(tenant, PrimitiveType.TOOL, primitive_id)
    return _checked(request, tenant, row.fields.config if row.fields.kind == HTTP else {})


def _checked(
    request: SignedInRequest, tenant: Tenant, before: Mapping[str, Any]
) -> HttpResponseBase:
    """Return what saving would refuse, what to know, and the arguments as a schema and as rows."""
    part = part_of(PrimitiveType.TOOL, tenant.pk, HTTP, form_input(request), before)
    assert isinstance(part, HttpPart)
    part.is_valid()
    config = part.readable_config()
    if config is not None:
        _show_problems(part, config)
    return JsonResponse(
        {
            "problems": _problems(part),
            "notices": _notices(part, config or {}),
            "arguments": _arguments(part),
        }
    )


def _show_problems(part: HttpPart, config: Mapping[str, Any]) -> None:
    """Show what is wrong with a configuration besides the errors of its fields."""
    problems: dict[str, Sequence[str]] = dict(inspect_config(config))
    try:
        check_config(config)
    except KindError as refusal:
        problems |= refusal.problems
    for path, sentences in problems.items():
        field = part.field_at(path.split("."))
        if not (field and field.errors):
            part.show_problems_at(path.split("."), sentences)


def _problems(part: HttpPart) -> Sentences:
    """Return the sentences of the fields with errors; those of no field are under an empty name."""
    whole = [*part.non_field_errors(), *part.arguments.errors]
    fields = {field.html_name: list(field.errors) for field in part.bound_fields if field.errors}
    return {**fields, **({"": whole} if whole else {})}


def _notices(part: HttpPart, config: Mapping[str, Any]) -> Sentences:
    """Return what does not keep a tool from being saved, but is likely a mistake."""
    notices: Sentences = {}
    for name in unused_arguments(config):
        sentence = f"The argument {name!r} is used nowhere in the request."
        notices.setdefault(part.field_of_argument(name).html_name, []).append(sentence)
    return notices


def _arguments(part: HttpPart) -> Mapping[str, Any]:
    """Return the arguments as a schema and as rows, or why they cannot be shown in the other way."""
    if part.has_rows:
        if part.arguments.wrong:
            return {"why": "Correct the marked arguments first."}
        others = part.cleaned_data["others"]
        return {"schema": json_text(part.arguments.schema(accepts_others=others))}
    if part["input_schema"].errors:
        return {"why": "Correct the schema first."}
    schema = part.cleaned_data["input_schema"]
    schema = NO_ARGUMENTS if schema is None else schema
    try:
        return {"rows": rows_of(schema), "others": accepts_others(schema)}
    except NoRowsError as refusal:
        return {"why": str(refusal)}
