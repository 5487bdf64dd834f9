"""What large clients refuse although the specification allows it, in one place.

A client that refuses one tool drops it, or its model's API refuses the whole request, so that all tools
of the server stop. The import of OpenAPI documents repairs what can be repaired; of other tools the
console and `manage.py check` report it.

- Anthropic's API (Claude Code, Claude Desktop) matches the names of arguments with
  `^[a-zA-Z0-9_.-]{1,64}$`, and takes no `anyOf`, `oneOf` or `allOf` at the top of a schema.
- OpenAI's API (Codex, ChatGPT) takes none of these at the top either, and no dot in the name of a tool.
- VS Code takes no list without `items`, and no dot in the name of a tool.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from mcphost.protocol.subschemas import Subschema, pointer, walk

_ARGUMENT: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_UNFIT: Final = re.compile(r"[^a-zA-Z0-9_.-]+")
_TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_COMPOSED: Final = ("anyOf", "oneOf", "allOf")
_MAX_NAMED: Final = 5
"""How many arguments or schemas a warning names."""

ANTHROPIC: Final = "Claude Code and Claude Desktop (Anthropic's API)"
OPENAI: Final = "Codex and ChatGPT (OpenAI's API)"
VS_CODE: Final = "VS Code"


class OfferedTool(NamedTuple):
    """A tool as clients read it."""

    name: str
    input_schema: Mapping[str, Any]


class ClientRule(NamedTuple):
    """What some clients do not take. `problems` returns the parts of a tool that break the rule."""

    clients: tuple[str, ...]
    effect: str
    problems: Callable[[OfferedTool], list[str]]


def client_warnings(tool: OfferedTool) -> list[str]:
    """Return what large clients refuse about a tool, in sentences that name the clients."""
    return list(_warnings(tool))


def fits_argument(name: str) -> bool:
    """Whether every large client takes this name of an argument."""
    return _ARGUMENT.fullmatch(name) is not None


def fitting_argument(text: str) -> str:
    """Return a name of an argument for a text, such as `ip_address` for `ip address`."""
    return _UNFIT.sub("_", text).strip("_.-")[:64] or "argument"


def add_items(schema: dict[str, Any]) -> None:
    """Add `items` to a schema of a list without any. Its meaning stays."""
    if _lacks_items(schema):
        schema["items"] = {}


def _warnings(tool: OfferedTool) -> Iterator[str]:
    for rule in _RULES:
        if problems := rule.problems(tool):
            parts = ", ".join(problems[:_MAX_NAMED])
            more = f" and {len(problems) - _MAX_NAMED} more" if len(problems) > _MAX_NAMED else ""
            yield f"{' and '.join(rule.clients)}: {rule.effect} ({parts}{more})."


def _unfit_arguments(tool: OfferedTool) -> list[str]:
    properties = tool.input_schema.get("properties")
    names = properties if isinstance(properties, Mapping) else {}
    return [repr(name[:100]) for name in names if not fits_argument(name)]


def _composed(tool: OfferedTool) -> list[str]:
    return [keyword for keyword in _COMPOSED if keyword in tool.input_schema]


def _lists_without_items(tool: OfferedTool) -> list[str]:
    return [
        pointer(subschema.path) or "the schema itself"
        for subschema in walk(tool.input_schema)
        if _is_without_items(subschema)
    ]


def _unfit_name(tool: OfferedTool) -> list[str]:
    return [] if _TOOL_NAME.fullmatch(tool.name) or not tool.name else [tool.name]


def _is_without_items(subschema: Subschema) -> bool:
    return _lacks_items(subschema.keywords)


def _lacks_items(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    is_list = kinds == "array" or (isinstance(kinds, list) and "array" in kinds)
    return is_list and "items" not in schema and "prefixItems" not in schema


_RULES: Final = (
    ClientRule(
        (ANTHROPIC,),
        "they refuse every request while a tool has an argument whose name is not 1 to 64 of "
        "A-Z a-z 0-9 _ . -",
        _unfit_arguments,
    ),
    ClientRule(
        (ANTHROPIC, OPENAI),
        "they refuse a schema of arguments with these keywords at the top: move them into an argument",
        _composed,
    ),
    ClientRule(
        (VS_CODE,), 'it refuses a list without items: add "items": {}', _lists_without_items
    ),
    ClientRule(
        (OPENAI, VS_CODE), "they take no dot in the name of a tool, and no long one", _unfit_name
    ),
)
