"""Checks of form schemas: what an elicitation form may contain (spec: client/elicitation).

A form is flat: strings, numbers, booleans, and a choice of one or several from a list; nothing
nests. A form must not ask for secrets, which would pass through the client and its model, and must
not contain web addresses, which users would follow unchecked. URL mode is for both.

Whether a form asks for a secret is decided by its words, and only if the user can type something
into it: a yes to "Rotate the API key?" gives no secret away.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import jsonschema_rs

from mcphost.protocol.schemas import SchemaProblem, as_plain
from mcphost.protocol.secret_names import looks_secret
from mcphost.protocol.subschemas import pointer
from mcphost.protocol.web_addresses import mentions_one

FORMATS: Final = ("email", "uri", "date", "date-time")

_MAX_PROBLEMS: Final = 20
_MAX_NAMES: Final = 20

_TYPE_NAMES: Final[Mapping[str, str]] = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}
_FORMAT_NAMES: Final[Mapping[str, str]] = {
    "email": "an email address",
    "uri": "a URI",
    "date": "a date such as 2026-01-31",
    "date-time": "a date and time such as 2026-01-31T09:30:00Z",
}

_ROOT: Final = frozenset(
    {"$schema", "type", "title", "description", "properties", "required", "additionalProperties"}
)
_EVERYWHERE: Final = frozenset({"type", "title", "description", "default"})
_KEYWORDS: Final[Mapping[str, frozenset[str]]] = {
    "text": _EVERYWHERE | {"minLength", "maxLength", "format"},
    "number": _EVERYWHERE | {"minimum", "maximum"},
    "yes or no": _EVERYWHERE,
    "one of": _EVERYWHERE | {"enum", "enumNames"},
    "one of titled": _EVERYWHERE | {"oneOf"},
    "some of": _EVERYWHERE | {"items", "minItems", "maxItems"},
}
"""The keywords of each type of field. Clients may not support any other."""

_TYPED: Final = frozenset({"text", "number"})
_HARMLESS: Final = ("email", "date", "date-time")
"""The types of fields that accept typed text or numbers, and the formats that no secret has."""

_BOUNDS: Final = (("minLength", "maxLength"), ("minItems", "maxItems"), ("minimum", "maximum"))
_NUMBERS: Final = frozenset({"minimum", "maximum"})

_FLAT: Final = (
    'the type must be "string", "number", "integer" or "boolean", or "array" for a choice of '
    "several: a form is flat"
)
_HINTS: Final = {
    "pattern": "say in the description what is expected, and check the answer",
    "multipleOf": "say in the description what is expected, and check the answer",
    "exclusiveMinimum": "use minimum",
    "exclusiveMaximum": "use maximum",
    "const": "use enum with one value",
    "$ref": "write it out",
}
_SECRET: Final = "it asks for a secret, which no form may: use URL mode"  # noqa: S105
_NO_FIELDS: Final = (
    "there must be at least one field, such as a boolean: clients show a form without fields in "
    "which nothing can be answered"
)
_ADDRESS: Final = "it holds a web address, which no form may: use URL mode"


def check_form(schema: Any) -> tuple[SchemaProblem, ...]:
    """Return the problems that keep a schema from being the `requestedSchema` of a form.

    `schema` may be anything. A default is checked only once its field has no other problem.
    """
    plain = as_plain(schema)
    if isinstance(plain, SchemaProblem):
        return (plain,)
    return tuple(islice(_form_problems(plain), _MAX_PROBLEMS))


def is_typed(schema: Mapping[str, Any]) -> bool:
    """Whether the user can type something into a form, not only choose, and so give a secret away.

    The schema must have passed `check_form`.
    """
    return any(map(_takes_anything, schema["properties"].values()))


def expected(field: Mapping[str, Any]) -> str:
    """Say which values a field accepts, for the user: "a whole number of at least 1", "one of red, blue".

    The field must have passed `check_form`.
    """
    if field["type"] == "array":
        items = field["items"]
        choices = _names(items.get("enum") or items["anyOf"])
        return f"a list of {choices}{_bounds(field, 'minItems', 'maxItems')}"
    if "enum" in field or "oneOf" in field:
        return f"one of {_names(field.get('enum') or field['oneOf'])}"
    if field["type"] == "string":
        text = _FORMAT_NAMES.get(field.get("format", ""), "a text")
        bounds = _bounds(field, "minLength", "maxLength")
        return f"{text}{bounds} characters" if bounds else text
    return _TYPE_NAMES[field["type"]] + _bounds(field, "minimum", "maximum")


def _names(choices: Sequence[Any]) -> str:
    """Name the values of choices, at most twenty."""
    names = [str(choice["const"] if isinstance(choice, dict) else choice) for choice in choices]
    more = ", …" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def _bounds(field: Mapping[str, Any], min_keyword: str, max_keyword: str) -> str:
    if min_keyword in field and max_keyword in field:
        return f" of {field[min_keyword]} to {field[max_keyword]}"
    if min_keyword in field:
        return f" of at least {field[min_keyword]}"
    return f" of at most {field[max_keyword]}" if max_keyword in field else ""


def message_problem(message: Any) -> str | None:
    """Return the problem with a message that users read with a form or an address, or None."""
    if not isinstance(message, str) or not message.strip():
        return "the message must be a text that says what is asked"
    return None


def form_message_problem(message: Any, *, typed: bool) -> str | None:
    """Return the problem with the message of a form, or None. `typed` is the result of `is_typed`."""
    return message_problem(message) or _text_problem(message, typed=typed)


def _form_problems(form: dict[str, Any]) -> Iterator[SchemaProblem]:
    if form.get("type") != "object":
        yield SchemaProblem("/type", 'the type must be "object": a form has fields')
    yield from _unknown((), form, _ROOT)
    fields = form.get("properties")
    if not isinstance(fields, dict):
        yield SchemaProblem("/properties", "there must be an object with the fields")
        return
    if not fields:
        yield SchemaProblem("/properties", _NO_FIELDS)
    required = form.get("required", [])
    if not _are_texts(required):
        yield SchemaProblem("/required", "it must be an array of different names of fields")
    else:
        for name in required:
            if name not in fields:
                yield SchemaProblem("/required", f"there is no field {name!r}")
    if not isinstance(form.get("additionalProperties", True), bool):
        yield SchemaProblem("/additionalProperties", "it must be true or false: a form is flat")
    for name, schema in fields.items():
        yield from _field_problems(name, schema)
    yield from _label_problems((), form, typed=any(map(_takes_anything, fields.values())))


def _field_problems(name: str, field: Any) -> Iterator[SchemaProblem]:
    path = ("properties", name)
    kind = _kind(field)
    if kind is None:
        yield SchemaProblem(pointer((*path, "type")), _FLAT)
        return
    problems = [*_unknown(path, field, _KEYWORDS[kind]), *_bound_problems(path, field)]
    problems += _choice_problems(path, field)
    format_name = field.get("format", FORMATS[0])
    if kind == "text" and format_name not in FORMATS:
        names = ", ".join(FORMATS)
        message = _SECRET if format_name == "password" else f"the format must be one of {names}"
        problems.append(SchemaProblem(pointer((*path, "format")), message))
    yield from problems
    if not problems and "default" in field:
        plain = {key: value for key, value in field.items() if key not in ("default", "enumNames")}
        validator = jsonschema_rs.Draft202012Validator(plain, offline=True, validate_formats=True)
        if not validator.is_valid(field["default"]):
            where = pointer((*path, "default"))
            yield SchemaProblem(where, "the default does not fit its own field")
    typed = _takes_anything(field)
    if typed and looks_secret(name):
        yield SchemaProblem(pointer(path), _SECRET)
    yield from _label_problems(path, field, typed=typed)


def _kind(field: Any) -> str | None:
    """Return the type of field; None if a form may not have it."""
    if not isinstance(field, dict):
        return None
    match field.get("type"):
        case "string":
            return "one of" if "enum" in field else "one of titled" if "oneOf" in field else "text"
        case "number" | "integer":
            return "number"
        case "boolean":
            return "yes or no"
        case "array":
            return "some of"
        case _:
            return None


def _takes_anything(field: Any) -> bool:
    return _kind(field) in _TYPED and field.get("format") not in _HARMLESS


def _unknown(
    path: tuple[str, ...], holder: Mapping[str, Any], allowed: frozenset[str]
) -> Iterator[SchemaProblem]:
    for keyword in holder:
        if keyword not in allowed:
            hint = f": {_HINTS[keyword]}" if keyword in _HINTS else ""
            message = f"{keyword!r} is not allowed in a form here{hint}"
            yield SchemaProblem(pointer((*path, keyword)), message)


def _bound_problems(path: tuple[str, ...], field: Mapping[str, Any]) -> Iterator[SchemaProblem]:
    for low, high in _BOUNDS:
        wrong = [bound for bound in (low, high) if bound in field and not _is_bound(field, bound)]
        for bound in wrong:
            must = "a number" if bound in _NUMBERS else "a whole number, 0 or more"
            yield SchemaProblem(pointer((*path, bound)), f"it must be {must}")
        if not wrong and low in field and high in field and field[low] > field[high]:
            yield SchemaProblem(pointer((*path, low)), f"it is more than {high}")


def _is_bound(field: Mapping[str, Any], bound: str) -> bool:
    value = field[bound]
    if bound in _NUMBERS:
        return type(value) in (int, float)
    return type(value) is int and value >= 0


def _choice_problems(path: tuple[str, ...], field: Mapping[str, Any]) -> Iterator[SchemaProblem]:
    if field["type"] != "array":
        if "enum" in field:
            yield from _enum_problems(path, field)
        elif "oneOf" in field:
            yield from _titled_problems((*path, "oneOf"), field["oneOf"])
        return
    path, items = (*path, "items"), field.get("items")
    if isinstance(items, dict) and "anyOf" in items:
        yield from _unknown(path, items, frozenset({"anyOf"}))
        yield from _titled_problems((*path, "anyOf"), items["anyOf"])
    elif isinstance(items, dict) and items.get("type") == "string" and "enum" in items:
        yield from _unknown(path, items, frozenset({"type", "enum"}))
        yield from _enum_problems(path, items)
    else:
        message = (
            'the items must be a choice: {"type": "string", "enum": […]} or '
            '{"anyOf": [{"const": …, "title": …}, …]}'
        )
        yield SchemaProblem(pointer(path), message)


def _enum_problems(path: tuple[str, ...], field: Mapping[str, Any]) -> Iterator[SchemaProblem]:
    if not _are_texts(field["enum"]) or not field["enum"]:
        yield SchemaProblem(pointer((*path, "enum")), "it must be an array of different texts")
        return
    names = field.get("enumNames", field["enum"])
    where = pointer((*path, "enumNames"))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        yield SchemaProblem(where, "it must be an array of texts")
    elif len(names) != len(field["enum"]):
        yield SchemaProblem(where, "there must be one for each value")
    elif "enumNames" in field and any(map(mentions_one, names)):
        yield SchemaProblem(where, _ADDRESS)


def _titled_problems(path: tuple[str, ...], options: Any) -> Iterator[SchemaProblem]:
    if not isinstance(options, list) or not all(map(_is_option, options)):
        yield SchemaProblem(pointer(path), 'it must be an array of {"const": text, "title": text}')
    elif not options or not _are_texts([option["const"] for option in options]):
        yield SchemaProblem(pointer(path), "options are required, with distinct values")
    elif any(mentions_one(option["title"]) for option in options):
        yield SchemaProblem(pointer(path), _ADDRESS)


def _is_option(option: Any) -> bool:
    return (
        isinstance(option, dict)
        and option.keys() == {"const", "title"}
        and all(isinstance(text, str) for text in option.values())
    )


def _are_texts(values: Any) -> bool:
    """Whether the value is an array of distinct strings."""
    return (
        isinstance(values, list)
        and all(isinstance(value, str) for value in values)
        and len(set(values)) == len(values)
    )


def _label_problems(
    path: tuple[str, ...], holder: Mapping[str, Any], *, typed: bool
) -> Iterator[SchemaProblem]:
    """Find problems with the title and the description, which users read."""
    for keyword in ("title", "description"):
        if keyword not in holder:
            continue
        text = holder[keyword]
        problem = _text_problem(text, typed=typed) if isinstance(text, str) else "it must be a text"
        if problem is not None:
            yield SchemaProblem(pointer((*path, keyword)), problem)


def _text_problem(text: str, *, typed: bool) -> str | None:
    if typed and looks_secret(text):
        return _SECRET
    return _ADDRESS if mentions_one(text) else None
