"""The check of an HTTP tool's form while it is filled in, with a preview of its request.

Nothing is saved, and nothing is sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final
from uuid import UUID

from django.http import HttpResponseBase, JsonResponse
from django.views.decorators.http import require_POST

from mcphost.catalogue import outgoing
from mcphost.console.base import SignedInRequest, form_input, of_tenant
from mcphost.console.forms.argument_rows import NoRowsError, accepts_more, rows_of
from mcphost.console.forms.http_part import NO_ARGUMENTS, HttpPart
from mcphost.console.forms.json_texts import json_text
from mcphost.console.forms.kind_forms import HTTP, part_of
from mcphost.console.primitives import examples
from mcphost.console.primitives.primitives import row_of
from mcphost.egress.errors import EgressError
from mcphost.kinds.http.config_checks import check_config, inspect_config, unused_arguments
from mcphost.kinds.http.configs import RequestConfig
from mcphost.kinds.http.previews import preview_of
from mcphost.kinds.kind import KindError
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.sdk import ToolError
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

_MAKING: Final = {"request", "input_schema", "questions", "body_json"}
"""What a request is made of: without errors there, it can be shown."""
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
    config = part.readable_config() or {}
    problems = _config_problems(config)
    _show_problems(part, problems)
    return JsonResponse(
        {
            "problems": _problems(part),
            "notices": _notices(part, tenant.pk, config),
            "arguments": _arguments(part),
            "request": _request(part, config, problems),
        }
    )


def _config_problems(config: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """Return what is wrong with a configuration, by the paths of its fields."""
    if not config:
        return {}
    problems = inspect_config(config)
    try:
        check_config(config)
    except KindError as refusal:
        return {**problems, **refusal.problems}
    return problems


def _show_problems(part: HttpPart, problems: Mapping[str, Sequence[str]]) -> None:
    """Show problems beside their fields, besides the errors that the fields have themselves."""
    for path, sentences in problems.items():
        field = part.field_at(path.split("."))
        if not (field and field.errors):
            part.show_problems_at(path.split("."), sentences)


def _problems(part: HttpPart) -> Sentences:
    """Return the sentences of the fields with errors; those of no field are under an empty name."""
    whole = [*part.non_field_errors(), *part.arguments.errors]
    fields = {field.html_name: list(field.errors) for field in part.bound_fields if field.errors}
    return {**fields, **({"": whole} if whole else {})}


def _notices(part: HttpPart, tenant: UUID, config: Mapping[str, Any]) -> Sentences:
    """Return what does not keep a tool from being saved, but is likely a mistake, or would keep its calls
    from being sent."""
    notices: Sentences = {}
    for path, sentences in outgoing.problems(tenant, HTTP, config).items():
        field = part.field_at(path.split(".")[1:])
        if field is not None:
            notices.setdefault(field.html_name, []).extend(sentences)
    for name in unused_arguments(config):
        sentence = f"The argument {name!r} is used nowhere in the request."
        notices.setdefault(part.field_of_argument(name).html_name, []).append(sentence)
    return notices


def _arguments(part: HttpPart) -> Mapping[str, Any]:
    """Return the arguments as a schema and as rows, or why they cannot be shown in the other way."""
    if part.has_rows:
        if part.arguments.wrong:
            return {"why": "Correct the marked arguments first."}
        further_arguments = part.cleaned_data["further_arguments"]
        return {"schema": json_text(part.arguments.schema(accepts_more=further_arguments))}
    if part["input_schema"].errors:
        return {"why": "Correct the schema first."}
    schema = part.cleaned_data["input_schema"]
    schema = NO_ARGUMENTS if schema is None else schema
    try:
        return {"rows": rows_of(schema), "further_arguments": accepts_more(schema)}
    except NoRowsError as refusal:
        return {"why": str(refusal)}


def _request(
    part: HttpPart, config: Mapping[str, Any], problems: Mapping[str, Sequence[str]]
) -> Mapping[str, Any]:
    """Return the request with example values, or why there is none."""
    wrong = {path.partition(".")[0] for path in problems} | part.errors.keys()
    if not config or part.arguments.wrong or wrong & _MAKING:
        return {"why": "It is shown once the marked fields are correct."}
    schema = config["input_schema"]
    answers = {
        question["key"]: examples.arguments(question["requested_schema"], of_all=True)
        for question in config["questions"]
    }
    try:
        preview = preview_of(
            RequestConfig.model_validate(config["request"]),
            schema,
            examples.arguments(schema, of_all=True),
            answers,
            has_secrets=bool(part.secrets),
        )
    except (ToolError, EgressError) as refusal:
        return {"why": f"A call with these values would fail: {refusal}"}
    return asdict(preview)
