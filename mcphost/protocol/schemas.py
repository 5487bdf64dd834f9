"""Checks the JSON Schemas that tools register, and finds the headers that they ask for.

Schemas are checked at registration, so that a served schema is valid for its dialect, opens no
connection, cannot take unbounded time, and breaks no client (spec: basic/index, "JSON Schema
Usage"; server/tools, "x-mcp-header"; streamable-http, "Schema Extension").

Supported dialects: 2020-12, which is the default, and draft-07.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, get_args

import jsonschema_rs
import orjson

from mcphost.protocol.secret_names import looks_secret as looks_secret
from mcphost.protocol.subschemas import (
    Document,
    Subschema,
    anchors,
    pointer,
    references,
    walk,
    weigh,
)

Kind = Literal["string", "integer", "boolean"]

MAX_BYTES: Final = 64 * 1024
MAX_DEPTH: Final = 32
"""How many levels of subschemas are allowed, counting the root."""
MAX_NESTING: Final = 2 * MAX_DEPTH + 16
"""How many levels of objects and arrays are allowed: two for each schema, and some for a default or
an enum."""
MAX_SUBSCHEMAS: Final = 2_000
MAX_REFERENCES: Final = 500
MAX_WRITTEN_OUT: Final = 20_000
"""How many subschemas are allowed once every reference is replaced by its target."""

_MAX_PROBLEMS: Final = 20
_MAX_MESSAGE: Final = 300

DEFAULT_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
DRAFT_7: Final = "http://json-schema.org/draft-07/schema"

_METASCHEMAS: Final = {
    DEFAULT_DIALECT: jsonschema_rs.Draft202012Validator({"$ref": DEFAULT_DIALECT}, offline=True),
    DRAFT_7: jsonschema_rs.Draft7Validator({"$ref": f"{DRAFT_7}#"}, offline=True),
}

_HEADER: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""RFC 9110, section 5.6.2: `1*tchar`."""

_AS_IS: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """A problem with a schema. `path` is a JSON Pointer into it, empty for the whole schema."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class ParamHeader:
    """An argument that clients mirror into the header `Mcp-Param-<name>`.

    `path` is the chain of properties that leads to it from the root of the arguments.
    """

    path: tuple[str, ...]
    name: str
    kind: Kind


def check_schema(schema: Any, *, role: Literal["input", "output"]) -> tuple[SchemaProblem, ...]:
    """Return the problems that keep a schema from being a tool's `inputSchema` or `outputSchema`.

    `schema` may be anything. A check is skipped if an earlier check that it relies on found
    problems, so checking the corrected schema again may find more.
    """
    plain = as_plain(schema)
    if isinstance(plain, SchemaProblem):
        return (plain,)
    metaschema = _METASCHEMAS[plain.get("$schema", DEFAULT_DIALECT).removesuffix("#")]
    if not metaschema.is_valid(plain):
        errors = islice(metaschema.iter_errors(plain), _MAX_PROBLEMS)
        return tuple(_problem(error) for error in errors)
    subschemas = tuple(walk(plain))
    problems = list(_size_problems(subschemas))
    if role == "input" and plain.get("type") != "object":
        message = 'The type must be "object": arguments are always an object'
        problems.insert(0, SchemaProblem("/type", message))
    if not problems:
        document = Document(subschemas)
        problems += _reference_problems(subschemas, document)
        if not problems:
            problems += _effort_problems(document)
    if role == "input":
        problems += _header_problems(subschemas)
    if not problems:
        try:  # some problems show only when a validator is compiled, above all invalid patterns
            jsonschema_rs.validator_for(
                plain, offline=True, pattern_options=jsonschema_rs.RegexOptions()
            )
        except jsonschema_rs.ValidationError as error:
            problems.append(_problem(error))
    return tuple(problems[:_MAX_PROBLEMS])


def param_headers(schema: Mapping[str, Any]) -> tuple[ParamHeader, ...]:
    """Return the headers that an input schema asks for. It must have passed `check_schema`."""
    return tuple(
        ParamHeader(
            subschema.properties or (), subschema.keywords[_HEADER], subschema.keywords["type"]
        )
        for subschema in walk(schema)
        if _HEADER in subschema.keywords
    )


def is_recursive(schema: Mapping[str, Any]) -> bool:
    """Whether a value of the schema may contain values of the same schema, at any depth.

    The schema must have passed `check_schema`. Validating a value against a recursive schema is
    fast, but listing every error can take time exponential in the value's nesting.
    """
    _, loop = weigh(Document(tuple(walk(schema))).edges(in_place=False))
    return loop is not None


def as_plain(schema: Any) -> dict[str, Any] | SchemaProblem:
    """Return the schema as plain JSON, or the problem if it is not JSON or is too large to check."""
    try:
        encoded = orjson.dumps(schema, option=_AS_IS)
    except TypeError as error:
        return SchemaProblem("", f"The schema is not JSON: {error}")
    if len(encoded) > MAX_BYTES:
        return SchemaProblem("", f"The schema has {len(encoded)} bytes, more than {MAX_BYTES}")
    plain = orjson.loads(encoded)
    if not isinstance(plain, dict):
        return SchemaProblem("", "The schema must be a JSON object")
    nesting = 0
    level: list[Any] = [plain]
    while level:
        nesting += 1
        parts = (part.values() if isinstance(part, dict) else part for part in level)
        level = [child for part in parts for child in part if isinstance(child, dict | list)]
    if nesting > MAX_NESTING:
        return SchemaProblem("", f"The schema is nested deeper than {MAX_NESTING} levels")
    dialect = plain.get("$schema", DEFAULT_DIALECT)
    if not isinstance(dialect, str) or dialect.removesuffix("#") not in _METASCHEMAS:
        supported = " and ".join(_METASCHEMAS)
        return SchemaProblem(
            "/$schema", f"This dialect is not supported; supported are {supported}"
        )
    return plain


def _size_problems(subschemas: Sequence[Subschema]) -> Iterator[SchemaProblem]:
    if len(subschemas) > MAX_SUBSCHEMAS:
        yield SchemaProblem(
            "", f"There are {len(subschemas)} subschemas, more than {MAX_SUBSCHEMAS}"
        )
    if subschemas[-1].depth > MAX_DEPTH:
        yield SchemaProblem("", f"The subschemas are nested deeper than {MAX_DEPTH} levels")
    count = sum(len(references(subschema)) for subschema in subschemas)
    if count > MAX_REFERENCES:
        yield SchemaProblem("", f"There are {count} references, more than {MAX_REFERENCES}")


def _reference_problems(
    subschemas: Sequence[Subschema], document: Document
) -> Iterator[SchemaProblem]:
    names: set[str] = set()
    for subschema in subschemas:
        for keyword, name in anchors(subschema):
            if name in names:
                yield _at(subschema, keyword, f"The anchor {name!r} is defined twice")
            names.add(name)
        for keyword in ("$id", "$schema"):
            if subschema.path and keyword in subschema.keywords:
                yield _at(subschema, keyword, f"{keyword} may stand at the root only")
        for keyword, reference in references(subschema):
            if not reference.startswith("#"):
                message = "Only references within the schema (#…) are allowed: nothing is fetched"
                yield _at(subschema, keyword, message)
            elif document.find(reference) is None:
                yield _at(subschema, keyword, f"{reference!r} does not refer to a schema")


def _effort_problems(document: Document) -> Iterator[SchemaProblem]:
    _, loop = weigh(document.edges(in_place=True))
    if loop is not None:
        yield SchemaProblem(
            pointer(loop), "The schema refers to itself for the same value (infinite recursion)"
        )
        return
    weight, _ = weigh(document.edges(in_place=False))
    if weight > MAX_WRITTEN_OUT:
        message = f"With its references written out it has more than {MAX_WRITTEN_OUT} subschemas"
        yield SchemaProblem("", message)


def _header_problems(subschemas: Iterable[Subschema]) -> Iterator[SchemaProblem]:
    names: set[str] = set()
    for subschema in subschemas:
        keywords = subschema.keywords
        if _HEADER not in keywords:
            continue
        name = keywords[_HEADER]
        hidden = keywords.get("writeOnly") is True or keywords.get("format") == "password"
        message = None
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            message = "A header name is one or more of letters, digits and !#$%&'*+-.^_`|~"
        elif not subschema.properties:
            message = "Only a property that is reached by `properties` alone can be mirrored"
        elif keywords.get("type") not in get_args(Kind):
            message = (
                'Only a property whose type is "string", "integer" or "boolean" can be mirrored'
            )
        elif hidden or any(
            map(looks_secret, (subschema.path[-1], name, str(keywords.get("title", ""))))
        ):
            message = "A secret must not be mirrored: proxies see and log headers"
        elif name.lower() in names:
            message = f"{name!r} is used twice (names are case-insensitive)"
        if message is None:
            names.add(name.lower())
        else:
            yield _at(subschema, _HEADER, message)


def _problem(error: jsonschema_rs.ValidationError) -> SchemaProblem:
    message = error.message
    if message.endswith('is not a "regex"'):
        message += ": a pattern has no look-around, no back-references and no huge repetitions"
    if len(message) > _MAX_MESSAGE:
        message = f"{message[:_MAX_MESSAGE]}…"
    return SchemaProblem(pointer([str(step) for step in error.instance_path]), message)


def _at(subschema: Subschema, keyword: str, message: str) -> SchemaProblem:
    return SchemaProblem(pointer((*subschema.path, keyword)), message)
