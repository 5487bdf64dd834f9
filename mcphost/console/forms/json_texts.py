"""JSON that is typed into a text area: errors name the line and the column."""

import json
from collections import Counter
from math import isfinite
from typing import Any, Final, NoReturn

from django import forms as django_forms
from django.core.exceptions import ValidationError

MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**63


class JsonField(django_forms.CharField):
    """A text area whose value is an object; None if it is empty."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        parsed = parse_json(text)
        if not isinstance(parsed, dict):
            raise ValidationError("This must be a JSON object: {…}.")
        return parsed


def json_object(
    label: str, hint: str = "", rows: int = 6, *, required: bool = False, **attrs: Any
) -> JsonField:
    """A JSON object; its initial value is a text, as `json_text` writes it."""
    widget = django_forms.Textarea(attrs={"rows": rows, **CODE, **attrs})
    return JsonField(label=label, help_text=hint, required=required, widget=widget)


CODE: Final = {
    "class": "c-code-input",
    "spellcheck": "false",
    "autocapitalize": "off",
    "autocomplete": "off",
}
"""Attributes of a text area for code."""


def json_text(value: Any) -> str:
    """Write a value for a text area."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def parse_json(text: str) -> Any:
    """Parse JSON that can be stored. Raises ValidationError, with line and column if it is no JSON."""
    try:
        parsed = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_int=_integer,
            parse_float=_float,
            object_pairs_hook=_members,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ValidationError(f"This is not JSON: {error.msg} ({where}).") from None
    except RecursionError:
        raise _too_deep() from None
    check_values(parsed)
    return parsed


def _refuse_constant(name: str) -> NoReturn:
    raise ValidationError(f"This is not JSON: {name} is no JSON number.")


def _integer(digits: str) -> int:
    number = int(digits) if len(digits) < 21 else MAX_INTEGER
    if not -MAX_INTEGER <= number < MAX_INTEGER:
        raise ValidationError(f"The number {digits[:40]} has more than 64 bits.")
    return number


def _float(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValidationError(f"The number {digits[:40]} is too large.")
    return number


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValidationError(f"The name {json.dumps(twice[:40])} is given twice in one object.")
    return members


def check_values(value: Any) -> None:
    """Refuse what PostgreSQL cannot store, and what is nested too deep. Raises ValidationError."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for member in level:
            if isinstance(member, dict):
                inner += [*member, *member.values()]
            elif isinstance(member, list):
                inner += member
            elif isinstance(member, str):
                _check_text(member)
        level = inner
    if level:
        raise _too_deep()


def _check_text(text: str) -> None:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValidationError(r"A text must not have \u0000 or half of a surrogate pair.")


def _too_deep() -> ValidationError:
    return ValidationError(f"This is nested deeper than {MAX_DEPTH} levels.")
