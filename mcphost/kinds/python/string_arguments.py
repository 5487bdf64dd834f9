"""Arguments that arrive as strings: those of prompts, and the variables of templates.

Annotations determine how they are converted and which values are suggested: a parameter annotated
`int` gets a number, and one annotated `Literal["en", "de"]` suggests both values.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from mcphost.kinds.functions.docstrings import Docstring
from mcphost.kinds.functions.program import Parameters
from mcphost.kinds.functions.schemas import SignatureError, input_validator
from mcphost.kinds.python.parameters import Hints, parameters_of
from mcphost.protocol.prompts import PromptArgument
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.protocol.uris import check_uri

Choices = Mapping[str, tuple[str, ...]]


class StringArguments(NamedTuple):
    """The parameters of a function, the descriptions of its arguments, and the values to suggest."""

    parameters: Parameters
    arguments: tuple[PromptArgument, ...]
    choices: Choices


def string_arguments_of(
    function: Callable[..., Any], hints: Hints, docstring: Docstring
) -> StringArguments:
    """Inspect a signature. Raises SignatureError, or pydantic's error for an annotation."""
    typed = parameters_of(function, hints, docstring)
    schema = typed.schema
    described = schema.get("properties", {})
    required = set(schema.get("required", ()))
    kinds = {
        name: tuple(_alternatives(of, schema.get("$defs", {}))) for name, of in described.items()
    }
    without_text = ("array", "object", "null")
    if wrong := {
        name
        for name, forms in kinds.items()
        if all(form.get("type") in without_text for form in forms)
    }:
        raise SignatureError(
            f"arguments arrive as texts, and {_listed(wrong)} cannot be read from one"
        )
    texts = {
        "type": "object",
        "properties": {
            # A string, with the mark for values that must not be recorded, if it has one.
            name: {"type": "string", **next(filter(None, map(_hidden, forms)), {})}
            for name, forms in kinds.items()
        },
        "required": sorted(required),
    }
    arguments = tuple(
        PromptArgument(
            name, of.get("title", ""), of.get("description", ""), required=name in required
        )
        for name, of in described.items()
    )
    choices = {
        name: tuple(value for form in forms for value in _choices(form))
        for name, forms in kinds.items()
    }
    return StringArguments(replace(typed, validator=input_validator(texts)), arguments, choices)


def arguments_for_uri(uri: str, string_arguments: StringArguments) -> StringArguments:
    """Return `string_arguments`, if its arguments match the variables of the URI. Raises SignatureError."""
    if "{" not in uri:
        if problem := check_uri(uri):
            raise SignatureError(problem)
        if string_arguments.arguments:
            raise SignatureError(f"a resource takes no arguments, and {uri} has no variables")
        return string_arguments
    try:
        template = UriTemplate(uri)
    except ValueError as error:
        raise SignatureError(str(error)) from None
    names = {argument.name for argument in string_arguments.arguments}
    always = {argument.name for argument in string_arguments.arguments if argument.required}
    if differ := names ^ set(template.variables):
        raise SignatureError(
            f"its parameters and the variables of {template.text} differ: {_listed(differ)}"
        )
    if without_default := always & template.optional:
        raise SignatureError(
            f"{_listed(without_default)}: optional in the URI, so a default is required"
        )
    return string_arguments


def _alternatives(
    described: Mapping[str, Any], definitions: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield the alternatives of an annotation's schema, any of which a value may fit."""
    if "$ref" in described:
        meant = definitions.get(described["$ref"].rpartition("/")[2], {})
        described = {**_hidden(described), **meant}
    parts = (*described.get("anyOf", ()), *described.get("oneOf", ()))
    for part in parts:
        yield from _alternatives({**_hidden(described), **part}, definitions)
    if not parts:
        yield described


def _hidden(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mark for values that must not be recorded, if the schema has one."""
    secret = described.get("writeOnly") is True or described.get("format") == "password"
    return {"writeOnly": True} if secret else {}


def _choices(form: Mapping[str, Any]) -> Iterator[str]:
    """Yield the allowed strings, if the schema lists them."""
    values = form.get("enum", [form["const"]] if "const" in form else [])
    yield from (value for value in values if isinstance(value, str))
    if form.get("type") == "boolean":
        yield from ("true", "false")


def _listed(names: set[str]) -> str:
    return ", ".join(map(repr, sorted(names)))
