"""Validate the fields of a primitive (texts, scopes, limits) by the rules of the protocol and of its kind.

All problems are found at once, so that a form can show each beside its field.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NewType
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from mcphost.catalogue import compiling, kinds
from mcphost.catalogue.compiling import NotServableError, Ready
from mcphost.catalogue.errors import InvalidPrimitiveError, NotInspectedError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.icons import check_icons
from mcphost.catalogue.kinds import KindError
from mcphost.catalogue.models import MAX_NOTE, Grant, Primitive
from mcphost.kinds.kind import InspectionBusyError
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.json_values import check_json
from mcphost.protocol.tools import check_tool_name
from mcphost.tenants.roles import COMMON_SCOPES

MAX_TITLE = 200
MAX_DESCRIPTION = 8000
MAX_SCOPES = 16
MAX_SECONDS = 3600.0

_SCOPE = re.compile(r"mcp:[A-Za-z0-9_.-]{1,64}")


def check_title(title: Any) -> list[str]:
    """Check an override of the title: one line of text, or nothing."""
    return _check_text(title, MAX_TITLE, allowed="")


def check_description(description: Any) -> list[str]:
    """Check an override of the description: text of several lines, or nothing."""
    return _check_text(description, MAX_DESCRIPTION, allowed="\n\r\t")


def check_note(note: Any, longest: int) -> list[str]:
    """Check the note of a publication: text of several lines, or nothing."""
    return _check_text(note, longest, allowed="\n\r\t")


def check_scopes(scopes: Any) -> list[str]:
    """Check the scopes that a caller needs besides those for listing and calling."""
    if not isinstance(scopes, list | tuple):
        return ["Scopes must be a list of strings."]
    if len(scopes) > MAX_SCOPES:
        return [f"At most {MAX_SCOPES} scopes are allowed."]
    problems: list[str] = []
    for scope in scopes:
        if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):
            shown = repr(str(scope)[:80])
            problems.append(f"{shown} is not a scope: `mcp:` and 1 to 64 of A-Z a-z 0-9 _ . -")
        elif scope in COMMON_SCOPES:
            problems.append(f"{scope} is required of every caller anyway; leave it out.")
    return problems


def check_time_limit(seconds: Any) -> list[str]:
    """Check the seconds for one round, or None for the default of the code or the platform."""
    return _check_seconds(seconds, MAX_SECONDS, "The time limit")


def check_answer_within(seconds: Any) -> list[str]:
    """Check the seconds that a question waits, or None for the default of the code or the platform."""
    return _check_seconds(seconds, settings.MCPHOST_MAX_ANSWER_SECONDS, "The answer time limit")


def check_target(seconds: Any) -> list[str]:
    """Check the seconds that people should need for an answer, or None for no target."""
    return _check_seconds(seconds, settings.MCPHOST_MAX_ANSWER_SECONDS, "The target time")


def _check_seconds(seconds: Any, longest: float, label: str) -> list[str]:
    if seconds is None:
        return []
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 < seconds <= longest:
        return [f"{label} must be more than 0 and at most {longest:g} seconds."]
    return []


def _check_text(text: Any, longest: int, *, allowed: str) -> list[str]:
    if not isinstance(text, str):
        return ["This must be a string."]
    if len(text) > longest:
        return [f"At most {longest} characters; this has {len(text)}."]
    # Cc are control characters (U+0000 breaks PostgreSQL), Cs lone surrogates (no UTF-8).
    bad = next(
        (c for c in text if c not in allowed and unicodedata.category(c) in ("Cc", "Cs")), ""
    )
    return [f"The character U+{ord(bad):04X} is not allowed here."] if bad else []


_CHECKS = {
    "title": check_title,
    "description": check_description,
    "scopes": check_scopes,
    "time_limit_seconds": check_time_limit,
    "answer_within_seconds": check_answer_within,
    "icons": check_icons,
    "target_seconds": check_target,
}


Inspected = NewType("Inspected", PrimitiveFields)
"""Fields that have passed through `inspect`: what a transaction may store once `check` has accepted them."""


class _Findings(dict[str, list[str]]):
    """Problems by field."""

    def note(self, field: str, *problems: str) -> None:
        if problems:
            self.setdefault(field, []).extend(problems)


def normalized(fields: PrimitiveFields) -> PrimitiveFields:
    """Return the fields as they are stored: texts trimmed, scopes unique and sorted, real lists.

    A value of the wrong type is left as it is, for `check` to refuse.
    """
    scopes = _listed(fields.scopes)
    are_texts = isinstance(scopes, list) and all(isinstance(scope, str) for scope in scopes)
    return replace(
        fields,
        name=_trimmed(fields.name),
        title=_trimmed(fields.title),
        description=_trimmed(fields.description),
        scopes=sorted(set(scopes)) if are_texts else scopes,
        icons=_listed(fields.icons),
    )


def normalized_note(text: str) -> str:
    """Return the note of a publication as it is stored. Raises InvalidPrimitiveError, on `note`."""
    trimmed = text.strip()
    if problems := check_note(trimmed, MAX_NOTE):
        raise InvalidPrimitiveError({"note": problems})
    return trimmed


def inspect(tenant_id: UUID, fields: PrimitiveFields) -> Inspected:
    """Look at the configuration as closely as its kind can; return the same fields.

    It blocks, so call it before the transaction: inside one it raises RuntimeError. Raises
    InvalidPrimitiveError, and NotInspectedError while the kind is busy.
    """
    if fields.kind not in tuple(kinds.KINDS) or _config_problems(fields):
        return Inspected(fields)  # `check` reports this with the problems of other fields
    try:
        problems = kinds.inspect_config(fields.kind, fields.config, tenant_id)
    except InspectionBusyError as busy:
        raise NotInspectedError(_inside_config(busy.problems)) from None
    if problems:
        raise InvalidPrimitiveError(_inside_config(problems))
    return Inspected(fields)


def _inside_config(problems: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return problems of a configuration by the fields of its primitive."""
    return {
        f"config.{field}" if field else "config": list(texts) for field, texts in problems.items()
    }


def inspect_and_check(
    tenant_id: UUID, fields: PrimitiveFields, primitive_id: UUID | None = None
) -> Inspected:
    """As `inspect`, but raise InvalidPrimitiveError with all problems at once, also those that `check` finds."""
    findings = _Findings()
    for find_problems in (
        lambda: inspect(tenant_id, fields),
        lambda: check(tenant_id, normalized(fields), primitive_id),
    ):
        try:
            find_problems()
        except InvalidPrimitiveError as refusal:
            for field, sentences in refusal.problems.items():
                findings.note(field, *(s for s in sentences if s not in findings.get(field, ())))
    if findings:
        raise InvalidPrimitiveError(findings)
    return Inspected(fields)


def check(
    tenant_id: UUID,
    fields: PrimitiveFields,
    primitive_id: UUID | None = None,
    granted: Collection[str] = (),
) -> Ready:
    """Validate the fields and return them compiled.

    `primitive_id` is the id of the stored primitive, if there is one. `granted` are functions that the
    same change grants to the tenant. Raises InvalidPrimitiveError with all problems by field; those of
    the configuration are at `config` or `config.<field>`.
    """
    findings = _Findings()
    for field, check_field in _CHECKS.items():
        findings.note(field, *check_field(getattr(fields, field)))
    name: Any = fields.name
    problem = check_tool_name(name) if isinstance(name, str) else "The name must be a string."
    if problem:
        findings.note("name", problem)
    else:
        namesakes = Primitive.objects.filter(
            tenant=tenant_id, primitive_type=fields.primitive_type, name=name
        )
        if _of_another(namesakes, primitive_id):
            findings.note("name", in_use_message("name", fields.primitive_type))
    ready = _check_config(findings, tenant_id, fields, granted)
    if ready and ready.compiled.uri:  # its kind has checked its form
        namesakes = Primitive.objects.filter(tenant=tenant_id, uri=ready.compiled.uri)
        if _of_another(namesakes, primitive_id):
            findings.note(uri_field(fields), in_use_message("uri", fields.primitive_type))
    # Models choose tools by their descriptions, and people choose prompts.
    if ready and not fields.primitive_type.has_uri:
        description = fields.description or ready.compiled.description.strip()
        if not description:
            findings.note("description", _NO_DESCRIPTION.get(fields.kind, DESCRIBE))
    if findings or ready is None:
        raise InvalidPrimitiveError(findings)
    return ready


DESCRIBE = "Write a description: models use it to choose tools, and people to choose prompts."
_NO_DESCRIPTION = dict.fromkeys(
    kinds.GRANTED_BY_STAFF, "The code has no description; write one here."
)


def uri_field(fields: PrimitiveFields) -> str:
    """Return the field that gives the URI: `uri` in the configuration, or the function."""
    return f"config.{kinds.GRANTED_BY_STAFF.get(fields.kind, 'uri')}"


def in_use_message(field: str, primitive_type: PrimitiveType) -> str:
    """Return the refusal of a name or URI that another primitive has already."""
    return f"Another {primitive_type.value} of this tenant has that {field if field == 'name' else 'URI'}."


def check_grant(tenant_id: UUID, function: str) -> list[str]:
    """Return why a tenant may not use a function; empty if it may, or no grant is needed."""
    if not function or Grant.objects.filter(tenant=tenant_id, function=function).exists():
        return []
    return [f"{function[:200]} is not granted to this tenant."]


def _of_another(primitives: QuerySet[Primitive], primitive_id: UUID | None) -> bool:
    return primitives.values_list("id", flat=True).first() not in (None, primitive_id)


def _check_config(
    findings: _Findings, tenant_id: UUID, fields: PrimitiveFields, granted: Collection[str]
) -> Ready | None:
    if fields.kind not in tuple(kinds.KINDS):  # a tuple: a kind of a wrong type may not be hashable
        findings.note("kind", f"There is no kind called {fields.kind!r}.")
        return None
    if unstorable := _config_problems(fields):
        for field, problems in unstorable.items():
            findings.note(field, *problems)
        return None
    # A function that is not granted is not compiled: its problems must not be shown to the tenant.
    function = kinds.function_of(fields.kind, fields.config)
    if function not in granted and (refused := check_grant(tenant_id, function)):
        findings.note(f"config.{kinds.GRANTED_BY_STAFF[fields.kind]}", *refused)
        return None
    try:
        return compiling.ready(fields.primitive_type, fields.kind, fields.config)
    except KindError as error:
        for field, problems in error.problems.items():
            findings.note(f"config.{field}" if field else "config", *problems)
    except NotServableError as error:
        findings.note("config", *error.problems)
    return None


def _config_problems(fields: PrimitiveFields) -> dict[str, list[str]]:
    """Return what keeps the configuration from being stored, whatever its kind."""
    if not isinstance(fields.config, Mapping):
        return {"config": ["The configuration must be an object."]}
    if problems := check_json(dict.fromkeys(fields.config)):
        return {"config": problems}
    problems_by_field = {
        f"config.{name}": check_json(value) for name, value in fields.config.items()
    }
    return {field: problems for field, problems in problems_by_field.items() if problems}


def _listed(values: Any) -> Any:
    """Return tuples and sets as lists, as JSON gives them back."""
    return list(values) if isinstance(values, tuple | set | frozenset) else values


def _trimmed(text: Any) -> Any:
    return text.strip() if isinstance(text, str) else text
