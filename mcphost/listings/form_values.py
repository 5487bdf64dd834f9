"""The values of recorded forms in words. What a client sent may have any shape:
an object or a list is read where there is one, and anything else is shown as it is."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def fields_of(schema: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what each field of a form is called, by its name."""
    properties = mapping_of(schema.get("properties"))
    return {
        name: text_of(mapping_of(field).get("title") or name) for name, field in properties.items()
    }


def value_in_words(value: Any, schema: Mapping[str, Any], name: str) -> str:
    """Return the value of a field of a form as the form shows it: a choice by its title."""
    field = mapping_of(mapping_of(schema.get("properties")).get(name))
    titles = _titles(field) | _titles(mapping_of(field.get("items")))
    if isinstance(value, list):
        return ", ".join(titles.get(str(part), value_text(part)) for part in value)
    return titles.get(str(value), value_text(value))


def _titles(field: Mapping[str, Any]) -> dict[str, str]:
    """The titles of the choices of a field, by their values."""
    choices = [mapping_of(choice) for choice in list_of(field.get("oneOf") or field.get("anyOf"))]
    titles = {str(choice.get("const")): text_of(choice.get("title") or "") for choice in choices}
    titles.update(
        zip(
            map(str, list_of(field.get("enum"))),
            map(text_of, list_of(field.get("enumNames"))),
            strict=False,
        )
    )
    return {value: title for value, title in titles.items() if title}


def value_text(value: Any) -> str:
    """Return a value as a person reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(value_text, value))
    return "none" if value is None else text_of(value)


def text_of(value: Any) -> str:
    """Return a text, or the JSON of any other value."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return an object; an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> Sequence[Any]:
    """Return a list; an empty one for any other value."""
    return value if isinstance(value, list) else []
