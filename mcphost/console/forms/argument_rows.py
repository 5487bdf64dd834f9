"""The arguments of an HTTP tool as rows of a form: read from a JSON Schema, and written as one.

Only the schema is stored. A schema that the rows cannot write again as it is has no rows.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

import orjson
from django import forms as django_forms
from django.core.exceptions import ValidationError

from mcphost.console.forms import forms
from mcphost.console.forms.json_texts import json_text, parse_json
from mcphost.console.forms.prompts import lines_of, plain
from mcphost.console.forms.rows import MAX_ROWS, RowForm, Rows
from mcphost.console.forms.schema_fields import number, whole_number

TYPE_LABELS: Final = (
    ("text", "Text"),
    ("integer", "Whole number"),
    ("number", "Number"),
    ("boolean", "Yes or no"),
    ("date", "Date"),
    ("texts", "List of texts"),
    ("numbers", "List of numbers"),
    ("file", "File in Base64"),
    ("object", "Object"),
)
_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "date": {"type": "string", "format": "date"},
    "file": {"type": "string", "contentEncoding": "base64"},
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "numbers": {"type": "array", "items": {"type": "number"}},
    "object": {"type": "object"},
}
"""The schema of each type, the special ones before those that they refine."""
_KEYWORDS: Final = frozenset(
    {"type", "format", "contentEncoding", "items", "description", "enum", "default", "examples"}
)
_LISTS: Final = {"texts": "text", "numbers": "number"}
_ROOT: Final = frozenset({"type", "properties", "required", "additionalProperties"})
_UNSAFE: Final = frozenset('{}"')
"""Characters that the name of an argument cannot have in a placeholder."""


class NoRowsError(Exception):
    """A schema cannot be shown as rows. The message is a sentence for the operator."""


class SchemaArgumentRow(RowForm):
    """An argument: a property of the schema."""

    CONTENT_FIELDS = ("name", "description", "choices", "default", "example")

    name = forms.text("Name", spellcheck="false", autocapitalize="off")
    type = forms.select("Type", choices=TYPE_LABELS)
    required = django_forms.BooleanField(label="Required", required=False, initial=True)
    description = forms.lines("Description", "Tells the model what to fill in.", rows=2)
    choices = forms.lines("Choices", "The only values allowed, one per line. Empty: any.", rows=2)
    example = forms.text("Example", "Also used by the preview below.", spellcheck="false")
    default = forms.text("Default", "What the model is told. It is not filled in.")

    @property
    def has_more(self) -> bool:
        """Whether the row has values, or errors, beyond those of a plain argument."""
        more = ("choices", "example", "default")
        return any(self[name].value() or self[name].errors for name in more)

    def clean_name(self) -> str:
        """Return the name. Raises ValidationError for one that no placeholder can have."""
        name: str = self.cleaned_data["name"]
        if not name:
            raise ValidationError("It is required.")
        if _UNSAFE & set(name):
            raise ValidationError('A name must not have braces or quotation marks: {, }, ".')
        return name

    def clean_choices(self) -> list[Any]:
        """Return the values. Raises ValidationError for one of another type."""
        type_ = self._type
        lines = lines_of(self.cleaned_data["choices"])
        if lines and type_ in ("boolean", "object"):
            raise ValidationError("Only texts and numbers have choices.")
        return [_read(_LISTS.get(type_, type_), line) for line in lines]

    def clean_default(self) -> Any:
        """Return the value; None without one. Raises ValidationError for one of another type."""
        return self._value("default")

    def clean_example(self) -> Any:
        """Return the value; None without one. Raises ValidationError for one of another type."""
        return self._value("example")

    @property
    def _type(self) -> str:
        type_: str = self.cleaned_data.get("type") or "text"
        return type_

    def _value(self, field: str) -> Any:
        text: str = self.cleaned_data[field]
        return _read(self._type, text) if text else None

    def as_property(self) -> dict[str, Any]:
        """Return the schema of a valid row."""
        submitted = self.cleaned_data
        property_: dict[str, Any] = deepcopy(dict(_SCHEMAS[self._type]))
        if submitted["choices"]:
            property_.get("items", property_)["enum"] = submitted["choices"]
        if submitted["description"].strip():
            property_["description"] = plain(submitted["description"]).strip()
        if submitted["default"] is not None:
            property_["default"] = submitted["default"]
        if submitted["example"] is not None:
            property_["examples"] = [submitted["example"]]
        return property_


def argument_rows(sent: tuple[Any, Any], starting: Sequence[Mapping[str, Any]]) -> "ArgumentRows":
    """Return the rows of a form: those that were sent, or else those of `rows_of`."""
    return ArgumentRows(SchemaArgumentRow, "arguments", sent, starting)


class ArgumentRows(Rows[SchemaArgumentRow]):
    """The arguments of a form. No two have one name."""

    def is_valid(self) -> bool:
        valid = super().is_valid()
        names: set[str] = set()
        for row in self.filled:
            name = row.cleaned_data.get("name", "")
            if name and name in names:
                row.add_error("name", "There are two arguments with this name.")
                valid = False
            names.add(name)
        return valid

    def row_of(self, name: str) -> SchemaArgumentRow | None:
        """Return the row of an argument."""
        return next((row for row in self.filled if row["name"].value() == name), None)

    def schema(self, *, accepts_more: bool) -> dict[str, Any]:
        """Return the schema of valid rows."""
        properties = {row.cleaned_data["name"]: row.as_property() for row in self.filled}
        required = [row.cleaned_data["name"] for row in self.filled if row.cleaned_data["required"]]
        closing = {} if accepts_more else {"additionalProperties": False}
        return {"type": "object", "properties": properties, "required": required, **closing}


def rows_of(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the initial values of the rows that write a schema. Raises NoRowsError."""
    _check_root(schema)
    properties, required = schema.get("properties", {}), schema.get("required", [])
    starting = [
        {**_row_of(name, property_), "required": name in required}
        for name, property_ in properties.items()
    ]
    sent = {
        f"arguments-{index}-{field}": value
        for index, row in enumerate(starting)
        for field, value in row.items()
        if value is not False
    }
    rows = argument_rows((sent, {}), ())
    if not rows.is_valid() or not is_same(rows.schema(accepts_more=accepts_more(schema)), schema):
        _report_difference(rows, properties)
    return starting


def accepts_more(schema: Mapping[str, Any]) -> bool:
    """Whether a schema that has rows accepts arguments that it does not list."""
    return "additionalProperties" not in schema


def is_same(schema: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two schemas are equal, whatever the order of their names."""
    return _normal(schema) == _normal(second)


def _normal(schema: Mapping[str, Any]) -> bytes:
    required = sorted(schema.get("required", ()))
    return _canonical({**schema, "properties": schema.get("properties", {}), "required": required})


def _canonical(value: Any) -> bytes:
    """Return a value as JSON, to be compared: in Python, True is equal to 1."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _check_root(schema: Mapping[str, Any]) -> None:
    further = [keyword for keyword in schema if keyword not in _ROOT]
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if further:
        raise NoRowsError(f"It has {json_text(further[0])}, which fields cannot show.")
    if schema.get("type") != "object" or not isinstance(properties, Mapping):
        raise NoRowsError("It is not the schema of an object with properties.")
    if schema.get("additionalProperties", False) is not False:
        raise NoRowsError('It has "additionalProperties", which fields can only show as false.')
    if len(properties) > MAX_ROWS:
        raise NoRowsError(f"It has more than {MAX_ROWS} arguments.")
    if not isinstance(required, list) or not all(
        isinstance(name, str) and name in properties for name in required
    ):
        raise NoRowsError("It requires arguments that it does not describe.")


def _row_of(name: str, property_: Any) -> dict[str, Any]:
    """Return the values of an argument. Raises NoRowsError for a property of no type of the rows."""
    if not isinstance(property_, Mapping):
        raise NoRowsError(f"The argument {name!r} has no type.")
    further = [keyword for keyword in property_ if keyword not in _KEYWORDS]
    if further:
        raise NoRowsError(
            f"The argument {name!r} has {json_text(further[0])}, which fields cannot show."
        )
    type_ = next((type_ for type_, base in _SCHEMAS.items() if _has(property_, base)), None)
    if type_ is None:
        raise NoRowsError(f"The argument {name!r} has a type that fields cannot show.")
    examples = property_.get("examples")
    items = property_.get("items", property_) if type_ in _LISTS else property_
    values = items.get("enum", [])
    return {
        "name": name,
        "type": type_,
        "description": property_.get("description", ""),
        "choices": "\n".join(map(_text, values if isinstance(values, list) else [])),
        "default": _text(property_["default"]) if "default" in property_ else "",
        "example": _text(examples[0]) if isinstance(examples, list) and examples else "",
    }


def _has(property_: Mapping[str, Any], base: Mapping[str, Any]) -> bool:
    """Whether a property has all that a type has."""
    return all(
        _has(property_[key], value)
        if isinstance(value, Mapping) and isinstance(property_.get(key), Mapping)
        else property_.get(key) == value
        for key, value in base.items()
    )


def _report_difference(rows: ArgumentRows, properties: Mapping[str, Any]) -> None:
    for row in rows.filled:
        name = row["name"].value()
        property_ = properties.get(name)
        if (
            row.errors
            or property_ is None
            or _canonical(row.as_property()) != _canonical(property_)
        ):
            raise NoRowsError(f"The argument {name!r} has values that fields cannot show.")
    raise NoRowsError("It has names that fields cannot show.")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _read(type_: str, text: str) -> Any:
    """Read a value of a type of the rows. Raises ValidationError."""
    match type_:
        case "integer":
            return whole_number(text)
        case "number":
            return number(text)
        case "boolean":
            return _member_of(text, bool, "Write true or false.")
        case "object":
            return _member_of(text, dict, "Write a JSON object, such as {}.")
        case "texts" | "numbers":
            return _member_of(text, list, 'Write a JSON list, such as ["a", "b"].')
        case _:
            return text


def _member_of(text: str, expected: type, sentence: str) -> Any:
    try:
        value = parse_json(text)
    except ValidationError:
        raise ValidationError(sentence) from None
    if not isinstance(value, expected):
        raise ValidationError(sentence)
    return value
