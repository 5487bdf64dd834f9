"""Arguments that arrive as texts: those of prompts, and the variables of templates.

Annotations say what they are read as, and what may be suggested for them: a parameter annotated
`int` gets a number, and one annotated `Literal["en", "de"]` suggests both.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from mcphost.kinds.python.parameters import Hints, Parameters, parameters_of
from mcphost.kinds.python.schemas import SignatureError, input_validator
from mcphost.protocol.prompts import PromptArgument
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.protocol.uris import check_uri

Choices = Mapping[str, tuple[str, ...]]


class Spoken(NamedTuple):
    """What a function takes, how its arguments are described, and values to suggest for them."""

    parameters: Parameters
    arguments: tuple[PromptArgument, ...]
    choices: Choices


def spoken_of(function: Callable[..., Any], hints: Hints) -> Spoken:
    """By the signature. Raises SignatureError, or what pydantic says of an annotation."""
    typed = parameters_of(function, hints, None)
    schema = typed.schema
    described = schema.get("properties", {})
    required = set(schema.get("required", ()))
    texts = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in described},
        "required": sorted(required),
    }
    arguments = tuple(
        PromptArgument(
            name, of.get("title", ""), of.get("description", ""), required=name in required
        )
        for name, of in described.items()
    )
    choices = {name: tuple(_choices(of, schema.get("$defs", {}))) for name, of in described.items()}
    return Spoken(replace(typed, validator=input_validator(texts)), arguments, choices)


def spoken_in(uri: str, spoken: Spoken) -> Spoken:
    """The same, once it is known to fit the URI. Raises SignatureError."""
    if "{" not in uri:
        if problem := check_uri(uri):
            raise SignatureError(problem)
        if spoken.arguments:
            raise SignatureError(f"a resource takes no arguments, and {uri} has no variables")
        return spoken
    try:
        template = UriTemplate(uri)
    except ValueError as error:
        raise SignatureError(str(error)) from None
    _check_variables(template, spoken)
    return spoken


def _check_variables(template: UriTemplate, spoken: Spoken) -> None:
    names = {argument.name for argument in spoken.arguments}
    always = {argument.name for argument in spoken.arguments if argument.required}
    if differ := names ^ set(template.variables):
        raise SignatureError(
            f"its parameters and the variables of {template.text} differ: {_listed(differ)}"
        )
    if wanted := always & template.optional:
        raise SignatureError(f"a URI may be without {_listed(wanted)}, so give a default")


def _choices(described: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[str]:
    """The texts that an annotation allows, where it allows but a few."""
    if "$ref" in described:
        described = definitions.get(described["$ref"].rpartition("/")[2], {})
    for part in described.get("anyOf", ()):
        yield from _choices(part, definitions)
    values = described.get("enum", [described["const"]] if "const" in described else [])
    yield from (value for value in values if isinstance(value, str))
    if described.get("type") == "boolean":
        yield from ("true", "false")


def _listed(names: set[str]) -> str:
    return ", ".join(map(repr, sorted(names)))
