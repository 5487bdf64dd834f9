"""The kinds in the console: what to call each when a primitive is made, and its part of the form.

A kind that has no wording and no part of its own here gets both from itself: its label, and a form
drawn from the JSON Schema of its configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from mcphost.catalogue import kinds, selectors
from mcphost.console.forms.http_part import HttpPart
from mcphost.console.forms.kind_parts import (
    FormInput,
    FunctionPart,
    Part,
    PromptPart,
    ResourcePart,
    TemplatePart,
)
from mcphost.console.forms.schema_part import SchemaPart
from mcphost.console.forms.script_part import ScriptPart
from mcphost.console.primitive_words import Words
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.vault.secrets.selectors import tenant_secrets

PYTHON, TEXT, HTTP, SCRIPT = "python", "text", "http", "script"

_ABOUT_TOOLS: Final = {
    HTTP: (
        "An HTTP request",
        "When one request to a service is enough. Address, fields and response, no code.",
    ),
    SCRIPT: (
        "A script",
        "When it takes several requests, loops or a decision. Python, written here, in a sandbox.",
    ),
    PYTHON: (
        "A Python function",
        "When it needs packages, files or a database. Code that platform staff grant.",
    ),
}
"""The label of kinds of tools, and when to choose each."""
_TEXT_PARTS: Final[Mapping[PrimitiveType, type[PromptPart | ResourcePart | TemplatePart]]] = {
    PrimitiveType.PROMPT: PromptPart,
    PrimitiveType.RESOURCE: ResourcePart,
    PrimitiveType.TEMPLATE: TemplatePart,
}


@dataclass(frozen=True, slots=True)
class Way:
    """One choice of what to make a new primitive from."""

    kind: str
    label: str
    about: str
    current: bool


def ways(words: Words, current_kind: str) -> tuple[Way, ...]:
    """Return the ways to make a primitive of a type."""
    if words.primitive_type is PrimitiveType.TOOL:
        about = _ABOUT_TOOLS
    else:
        about = {
            TEXT: (words.text_label, words.text_about),
            PYTHON: ("A Python function", "Code granted by platform staff"),
        }
    other_kinds = {
        name: (kind.label, kind.about)
        for name, kind in kinds.KINDS.items()
        if name not in about and words.primitive_type in kind.primitive_types
    }
    return tuple(
        Way(kind, *texts, current_kind == kind) for kind, texts in (about | other_kinds).items()
    )


def kind_for(tenant: UUID, primitive_type: PrimitiveType, requested_kind: str) -> str:
    """Return the kind of a new primitive: the requested one, if the type has it, or else the type's
    first. For a tool that is a function, if the tenant has any."""
    if (
        requested_kind in kinds.KINDS
        and primitive_type in kinds.KINDS[requested_kind].primitive_types
    ):
        return requested_kind
    if primitive_type is not PrimitiveType.TOOL:
        return TEXT
    return PYTHON if selectors.granted_functions(tenant, primitive_type) else HTTP


def part_of(
    primitive_type: PrimitiveType,
    tenant: UUID,
    kind: str,
    sent: FormInput,
    config: Mapping[str, Any],
) -> Part:
    """Return the part of the form that reads and writes a configuration of this kind."""
    match kind:
        case "python":
            return FunctionPart(sent, config, selectors.granted_functions(tenant, primitive_type))
        case "http":
            return HttpPart(sent, config, _secrets(tenant))
        case "script":
            return ScriptPart(sent, config, _secrets(tenant))
        case "text":
            return _TEXT_PARTS[primitive_type](sent, config)
        case _:
            model = kinds.KINDS[kind].config_model(primitive_type)
            return SchemaPart(sent, config, model.model_json_schema())


def _secrets(tenant: UUID) -> list[str]:
    return [row.name for row in tenant_secrets(tenant)]
