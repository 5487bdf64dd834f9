"""Forms that clients can show: which schemas a question may have (spec: client/elicitation).

A form is flat: texts, numbers, yes or no, and a choice of one or several from a list; nothing nests.
A form must not ask for secrets, which would pass through the client and its model, and must not
hold web addresses, which would be clicked unseen. For both there is URL mode.

Whether a form asks for a secret is told by its words, and only of what somebody could type in: a
yes to "Rotate the API key?" gives no secret away.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import jsonschema_rs

from mcphost.protocol.schemas import Problem, as_plain
from mcphost.protocol.secret_names import looks_secret
from mcphost.protocol.subschemas import pointer
from mcphost.protocol.web_addresses import mentions_one

FORMATS: Final = ("email", "uri", "date", "date-time")

_MOST_PROBLEMS: Final = 20

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
"""The keywords of each kind of field. What is not here, clients may not know."""

_TYPED: Final = frozenset({"text", "number"})
_HARMLESS: Final = ("email", "date", "date-time")
"""The kinds of fields that take whatever somebody types, and the formats that no secret has."""

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
_ADDRESS: Final = "it holds a web address, which no form may: use URL mode"


def check_form(schema: Any) -> tuple[Problem, ...]:
    """What keeps a schema from being the `requestedSchema` of a form; empty if nothing.

    `schema` may be anything. A default is looked at once its field is as it should be.
    """
    plain = as_plain(schema)
    if isinstance(plain, Problem):
        return (plain,)
    return tuple(islice(_form_problems(plain), _MOST_PROBLEMS))


def is_typed(schema: Mapping[str, Any]) -> bool:
    """Whether somebody can type into a form, and so give away what no list of choices holds.

    The schema must be one that `check_form` passed.
    """
    return any(map(_takes_anything, schema["properties"].values()))


def message_problem(message: Any) -> str | None:
    """What keeps a text from being what people are told, in a form or beside a page's address."""
    if not isinstance(message, str) or not message.strip():
        return "the message must be a text that says what is asked"
    return None


def form_message_problem(message: Any, *, typed: bool) -> str | None:
    """What keeps a text from being the message of a form; None if nothing. `typed`: `is_typed`."""
    return message_problem(message) or _text_problem(message, typed=typed)


def _form_problems(form: dict[str, Any]) -> Iterator[Problem]:
    if form.get("type") != "object":
        yield Problem("/type", 'the type must be "object": a form has fields')
    yield from _unknown((), form, _ROOT)
    fields = form.get("properties")
    if not isinstance(fields, dict):
        yield Problem("/properties", "there must be an object with the fields")
        return
    yield from _required_problems(form.get("required", []), fields)
    if not isinstance(form.get("additionalProperties", True), bool):
        yield Problem("/additionalProperties", "it must be true or false: a form is flat")
    for name, field in fields.items():
        yield from _field_problems(name, field)
    yield from _said((), form, typed=any(map(_takes_anything, fields.values())))


def _required_problems(required: Any, fields: Mapping[str, Any]) -> Iterator[Problem]:
    if not _are_texts(required):
        yield Problem("/required", "it must be an array of different names of fields")
        return
    for name in required:
        if name not in fields:
            yield Problem("/required", f"there is no field {name!r}")


def _field_problems(name: str, field: Any) -> Iterator[Problem]:
    path = ("properties", name)
    kind = _kind(field)
    if kind is None:
        yield Problem(pointer((*path, "type")), _FLAT)
        return
    found = [*_unknown(path, field, _KEYWORDS[kind]), *_bound_problems(path, field)]
    found += _choice_problems(path, field)
    found += _format_problems(path, field) if kind == "text" else ()
    yield from found
    if not found and "default" in field and not _fits(field):
        yield Problem(pointer((*path, "default")), "the default does not fit its own field")
    typed = _takes_anything(field)
    if typed and looks_secret(name):
        yield Problem(pointer(path), _SECRET)
    yield from _said(path, field, typed=typed)


def _kind(field: Any) -> str | None:
    """Which kind of field it is, None if it is none that a form may have."""
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
    path: tuple[str, ...], holder: Mapping[str, Any], known: frozenset[str]
) -> Iterator[Problem]:
    for keyword in holder:
        if keyword not in known:
            hint = f": {_HINTS[keyword]}" if keyword in _HINTS else ""
            message = f"{keyword!r} is not part of what forms may say here{hint}"
            yield Problem(pointer((*path, keyword)), message)


def _bound_problems(path: tuple[str, ...], field: Mapping[str, Any]) -> Iterator[Problem]:
    for low, high in _BOUNDS:
        wrong = [bound for bound in (low, high) if bound in field and not _is_bound(field, bound)]
        for bound in wrong:
            must = "a number" if bound in _NUMBERS else "a whole number, 0 or more"
            yield Problem(pointer((*path, bound)), f"it must be {must}")
        if not wrong and low in field and high in field and field[low] > field[high]:
            yield Problem(pointer((*path, low)), f"it is more than {high}")


def _is_bound(field: Mapping[str, Any], bound: str) -> bool:
    value = field[bound]
    if bound in _NUMBERS:
        return type(value) in (int, float)
    return type(value) is int and value >= 0


def _format_problems(path: tuple[str, ...], field: Mapping[str, Any]) -> Iterator[Problem]:
    given = field.get("format", FORMATS[0])
    where = pointer((*path, "format"))
    if given == "password":
        yield Problem(where, _SECRET)
    elif given not in FORMATS:
        yield Problem(where, f"the format must be one of {', '.join(FORMATS)}")


def _choice_problems(path: tuple[str, ...], field: Mapping[str, Any]) -> Iterator[Problem]:
    if field["type"] == "array":
        yield from _items_problems((*path, "items"), field.get("items"))
    elif "enum" in field:
        yield from _enum_problems(path, field)
    elif "oneOf" in field:
        yield from _titled_problems((*path, "oneOf"), field["oneOf"])


def _items_problems(path: tuple[str, ...], items: Any) -> Iterator[Problem]:
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
        yield Problem(pointer(path), message)


def _enum_problems(path: tuple[str, ...], field: Mapping[str, Any]) -> Iterator[Problem]:
    if not _are_texts(field["enum"]) or not field["enum"]:
        yield Problem(pointer((*path, "enum")), "it must be an array of different texts")
        return
    names = field.get("enumNames", field["enum"])
    where = pointer((*path, "enumNames"))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        yield Problem(where, "it must be an array of texts")
    elif len(names) != len(field["enum"]):
        yield Problem(where, "there must be one for each value")
    elif "enumNames" in field and any(map(mentions_one, names)):
        yield Problem(where, _ADDRESS)


def _titled_problems(path: tuple[str, ...], options: Any) -> Iterator[Problem]:
    if not isinstance(options, list) or not all(map(_is_option, options)):
        yield Problem(pointer(path), 'it must be an array of {"const": text, "title": text}')
    elif not options or not _are_texts([option["const"] for option in options]):
        yield Problem(pointer(path), "there must be options, each with a value of its own")
    elif any(mentions_one(option["title"]) for option in options):
        yield Problem(pointer(path), _ADDRESS)


def _is_option(option: Any) -> bool:
    return (
        isinstance(option, dict)
        and option.keys() == {"const", "title"}
        and all(isinstance(text, str) for text in option.values())
    )


def _are_texts(values: Any) -> bool:
    """Whether it is an array of texts of which no two are the same."""
    return (
        isinstance(values, list)
        and all(isinstance(value, str) for value in values)
        and len(set(values)) == len(values)
    )


def _fits(field: Mapping[str, Any]) -> bool:
    plain = {name: value for name, value in field.items() if name not in ("default", "enumNames")}
    validator = jsonschema_rs.Draft202012Validator(plain, offline=True, validate_formats=True)
    return validator.is_valid(field["default"])


def _said(path: tuple[str, ...], holder: Mapping[str, Any], *, typed: bool) -> Iterator[Problem]:
    """What is wrong with the texts that people read."""
    for keyword in ("title", "description"):
        if keyword not in holder:
            continue
        text = holder[keyword]
        problem = _text_problem(text, typed=typed) if isinstance(text, str) else "it must be a text"
        if problem is not None:
            yield Problem(pointer((*path, keyword)), problem)


def _text_problem(text: str, *, typed: bool) -> str | None:
    if typed and looks_secret(text):
        return _SECRET
    return _ADDRESS if mentions_one(text) else None
