"""Form fields for the properties of a JSON Schema.

What a field cannot express becomes a text area for JSON, so any value can be given. A field returns
JSON; `LEFT_OUT` if it is empty. Fields check types; constraints are checked with the whole schema.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django import forms as django_forms
from django.core.exceptions import ValidationError

from mcphost.console.forms.json_texts import CODE, check_values, json_text, parse_json
from mcphost.console.forms.prompts import plain

LEFT_OUT: Final = object()
"""What an empty field returns: its property is not sent."""
MAX_CHOICES: Final = 500
MAX_LABEL: Final = 200
MAX_HELP: Final = 2000

_MAX_REFERENCES: Final = 8
_ONE_LINE: Final = 80
"""The most characters of a text that gets one line; a longer one gets several."""
_INPUTS: Final = {"email": "email", "uri": "url", "date": "date", "time": "text"}
_EXAMPLES: Final = {"date-time": "2026-07-28T09:30:00Z", "time": "09:30:00Z"}
_NUMBER: Final = re.compile(r"(-?)0*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)", re.ASCII)
_YES_NO: Final = {"true": True, "false": False}

Read = Callable[[str], Any]


class TypedField(django_forms.CharField):
    """A text that is read as JSON of some type. `empty` is its value without a text."""

    def __init__(self, read: Read, *, empty: Any = LEFT_OUT, **options: Any) -> None:
        super().__init__(strip=False, **options)
        self._read, self._empty = read, empty

    def clean(self, value: Any) -> Any:
        text = plain(super().clean(value))
        return self._read(text) if text else self._empty


class ChosenField(django_forms.TypedChoiceField):
    """One of the values that a schema lists."""


class SomeChosenField(django_forms.TypedMultipleChoiceField):
    """Several of the values that a schema lists, in its order."""


def field_of(
    name: str, schema: Any, root: Mapping[str, Any], *, required: bool
) -> django_forms.Field:
    """Return the field for one property of the schema `root`, with its default filled in."""
    resolved_schema, nullable = resolved(schema, root)
    options: dict[str, Any] = {
        "label": label_text(resolved_schema.get("title"), MAX_LABEL)
        or label_text(name, MAX_LABEL)
        or "(no name)",
        "help_text": label_text(resolved_schema.get("description"), MAX_HELP),
        "required": required and not nullable,
    }
    empty = None if required and nullable else LEFT_OUT
    field, write = _drawn(resolved_schema, root, options, empty)
    if "default" in resolved_schema:
        field.initial = write(resolved_schema["default"])
    field.written = write  # type: ignore[attr-defined]
    return field


def initial_of(field: django_forms.Field, value: Any) -> Any:
    """Return the initial value with which a field of `field_of` shows JSON; None if it cannot."""
    return field.written(value)  # type: ignore[attr-defined]


def resolved(schema: Any, root: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return a property's schema without references and without null, and whether it may be null."""
    nullable = False
    merged: dict[str, Any] = dict(schema) if isinstance(schema, Mapping) else {}
    for _ in range(_MAX_REFERENCES):
        target = _inner(merged, root)
        if target is None:
            break
        nullable = nullable or "$ref" not in merged
        outer = {key: value for key, value in merged.items() if key not in ("$ref", "anyOf")}
        merged = {**target, **outer}
    types = merged.get("type")
    if isinstance(types, list) and len(types) == 2 and "null" in types:
        kept = next((type_name for type_name in types if type_name != "null"), "null")
        merged, nullable = {**merged, "type": kept}, True
    return merged, nullable


def _inner(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a schema stands for: a definition of the root, or an alternative beside null."""
    if "$ref" in schema:
        target: Any = root
        reference = str(schema["$ref"])
        for step in reference.removeprefix("#/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, Mapping) else None
        return target if isinstance(target, Mapping) and reference[:2] == "#/" else None
    ways = schema.get("anyOf")
    if isinstance(ways, list) and len(ways) == 2 and {"type": "null"} in ways:
        alternative = next((way for way in ways if way != {"type": "null"}), None)
        return alternative if isinstance(alternative, Mapping) else None
    return None


def _drawn(
    schema: Mapping[str, Any], root: Mapping[str, Any], options: dict[str, Any], empty: Any
) -> tuple[django_forms.Field, Callable[[Any], Any]]:
    choices = choices_of(schema)
    if choices is not None:
        return _one_of(choices, options, empty)
    match schema.get("type"):
        case "boolean":
            return _one_of([(True, "Yes"), (False, "No")], options, empty, keys=list(_YES_NO))
        case "string":
            return _text(schema, options, empty)
        case "integer" | "number" as type_:
            hint = "numeric" if type_ == "integer" else "decimal"
            widget = django_forms.TextInput(attrs={"inputmode": hint, "autocomplete": "off"})
            read = whole_number if type_ == "integer" else number
            return TypedField(read, empty=empty, widget=widget, **options), _number_text
        case "array":
            return _array(schema, root, options, empty)
        case _:
            return _json(options, empty)


def _one_of(
    choices: Sequence[tuple[Any, str]],
    options: dict[str, Any],
    empty: Any,
    keys: Sequence[str] | None = None,
) -> tuple[django_forms.Field, Callable[[Any], Any]]:
    keys = keys or _keys(choices)
    values = dict(zip(keys, (value for value, _ in choices), strict=True))
    listed = [(key, label) for key, (_, label) in zip(keys, choices, strict=True)]
    field = ChosenField(
        choices=[("", "Choose…" if options["required"] else "Not given"), *listed],
        coerce=values.__getitem__,
        empty_value=empty,
        widget=django_forms.Select(),
        **options,
    )
    return field, lambda value: _key_of(value, values)


def _some_of(
    choices: Sequence[tuple[Any, str]], options: dict[str, Any], empty: Any
) -> tuple[django_forms.Field, Callable[[Any], Any]]:
    keys = _keys(choices)
    values = dict(zip(keys, (value for value, _ in choices), strict=True))
    field = SomeChosenField(
        choices=[(key, label) for key, (_, label) in zip(keys, choices, strict=True)],
        coerce=values.__getitem__,
        empty_value=empty,
        widget=django_forms.CheckboxSelectMultiple(),
        **options,
    )

    def written(value: Any) -> list[str] | None:
        return (
            [_key_of(member, values) or "" for member in value] if isinstance(value, list) else None
        )

    return field, written


def _text(
    schema: Mapping[str, Any], options: dict[str, Any], empty: Any
) -> tuple[django_forms.Field, Callable[[Any], Any]]:
    string_format, longest = schema.get("format"), schema.get("maxLength")
    short = isinstance(longest, int) and longest <= _ONE_LINE
    widget: django_forms.Widget
    if isinstance(string_format, str) or short:
        kind = _INPUTS.get(str(string_format), "text")
        attrs = {"type": kind, "autocomplete": "off", "spellcheck": "false"}
        if string_format in _EXAMPLES:
            attrs["placeholder"] = _EXAMPLES[str(string_format)]
        widget = django_forms.TextInput(attrs=attrs)
    else:
        widget = django_forms.Textarea(attrs={"rows": 2, "autocomplete": "off"})
    return TypedField(_storable, empty=empty, widget=widget, **options), _only_text


def _array(
    schema: Mapping[str, Any], root: Mapping[str, Any], options: dict[str, Any], empty: Any
) -> tuple[django_forms.Field, Callable[[Any], Any]]:
    items, nullable = resolved(schema.get("items"), root)
    choices = choices_of(items) or choices_of({"oneOf": items.get("anyOf")})
    read = _READERS.get(str(items.get("type")))
    if nullable or (choices is None and read is None):
        return _json(options, empty)
    if options["required"]:  # nothing chosen is an empty list, which the schema may allow
        options, empty = {**options, "required": False}, []
    if choices is not None:
        return _some_of(choices, options, empty)
    assert read is not None
    hint = f"{options['help_text']} One per line.".strip()
    widget = django_forms.Textarea(attrs={"rows": 3, "autocomplete": "off"})
    field = TypedField(_by_line(read), empty=empty, widget=widget, **{**options, "help_text": hint})
    return field, _lines_text


def _json(options: dict[str, Any], empty: Any) -> tuple[django_forms.Field, Callable[[Any], Any]]:
    hint = f"{options['help_text']} Written as JSON.".strip()
    widget = django_forms.Textarea(attrs={"rows": 4, **CODE})
    return TypedField(
        parse_json, empty=empty, widget=widget, **{**options, "help_text": hint}
    ), json_text


def choices_of(schema: Mapping[str, Any]) -> list[tuple[Any, str]] | None:
    """Return the values that a schema lists, each with its label; None if it lists none."""
    listed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    names = schema.get("enumNames")
    if isinstance(listed, list):
        named = names if isinstance(names, list) and len(names) == len(listed) else listed
    else:
        ways = schema.get("oneOf")
        if not isinstance(ways, list) or not all(
            isinstance(way, Mapping) and "const" in way for way in ways
        ):
            return None
        listed = [way["const"] for way in ways]
        named = [way.get("title", way["const"]) for way in ways]
    if not 0 < len(listed) <= MAX_CHOICES or len(set(_keys([(v, "") for v in listed]))) < len(
        listed
    ):
        return None
    return [
        (value, label_text(name, MAX_LABEL) or json_text(value)[:MAX_LABEL])
        for value, name in zip(listed, named, strict=True)
    ]


def _keys(choices: Sequence[tuple[Any, str]]) -> list[str]:
    """Return what a browser sends for each value: the text itself, or JSON if not all are plain."""
    if all(isinstance(v, str) and v and v.isprintable() and v == v.strip() for v, _ in choices):
        return [value for value, _ in choices]
    return [json_text(value) for value, _ in choices]


def _key_of(value: Any, values: Mapping[str, Any]) -> str | None:
    keys = (
        key
        for key, candidate in values.items()
        if type(candidate) is type(value) and candidate == value
    )
    return next(keys, None)


def whole_number(text: str) -> int:
    """Read a whole number of at most 64 bits. Raises ValidationError."""
    parsed = number(text)
    if not float(parsed).is_integer():
        raise ValidationError("Enter a whole number.")
    whole: int = parse_json(f"{parsed:.0f}") if isinstance(parsed, float) else parsed
    return whole


def number(text: str) -> int | float:
    """Read a number of JSON. Raises ValidationError."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValidationError("Enter a number, such as 3 or 2.5.")
    parsed: int | float = parse_json(match[1] + match[2])
    return parsed


def _truth(text: str) -> bool:
    if text.strip() not in _YES_NO:
        raise ValidationError("Each line must be true or false.")
    return _YES_NO[text.strip()]


def _storable(text: str) -> str:
    check_values(text)
    return text


_READERS: Final[Mapping[str, Read]] = {
    "string": _storable,
    "integer": whole_number,
    "number": number,
    "boolean": _truth,
}
"""How the lines of a list are read, by the type of its items."""


def _by_line(read: Read) -> Read:
    def lines(text: str) -> list[Any]:
        values = []
        for line_number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                values.append(read(line))
            except ValidationError as error:
                raise ValidationError(f"Line {line_number}: {error.messages[0]}") from None
        return values

    return lines


def _only_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number_text(value: Any) -> str | None:
    return json_text(value) if isinstance(value, int | float) else None


def _lines_text(value: Any) -> str | None:
    if not isinstance(value, list):
        return None
    return "\n".join(member if isinstance(member, str) else json_text(member) for member in value)


def label_text(text: Any, limit: int) -> str:
    """Return a text of a schema as a label: short, and without control characters."""
    if not isinstance(text, str):
        return "" if text is None else json_text(text)[:limit]
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(
        character if character.isprintable() or character == "\n" else "\ufffd" for character in cut
    )
