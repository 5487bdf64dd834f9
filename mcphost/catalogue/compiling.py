"""From a kind's configuration to what calls need: validators, redactors, the listing.

Many tenants run the same function, so what is derived from a pair of schemas is derived
once and shared, and so is a listing whose texts are alike.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from mcphost.audit import redaction
from mcphost.audit.redaction import Redactor
from mcphost.catalogue import kinds
from mcphost.catalogue.cache import FilledCache
from mcphost.catalogue.listing import Face, describe
from mcphost.catalogue.redaction import ResultRedactor
from mcphost.kinds.kind import Compiled
from mcphost.kinds.sorts import Sort
from mcphost.protocol.schemas import ParamHeader, Problem, check_schema, param_headers
from mcphost.runtime.schema import Validator

MAX_CODES = 4096
MAX_LISTINGS = 8192
LABEL_DIGITS = 8


class NotServableError(Exception):
    """A primitive cannot be served as it is. `problems` are sentences for operators."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__(" ".join(problems))


@dataclass(frozen=True, slots=True)
class Shape:
    """What is derived from the two schemas."""

    param_headers: tuple[ParamHeader, ...]
    input_validator: Validator
    output_validator: Validator | None
    input_redactor: Redactor
    output_redactor: ResultRedactor


@dataclass(frozen=True, slots=True)
class Listing:
    """How it is listed on the wire, as a dict and as JSON."""

    wire: Mapping[str, Any]
    encoded: bytes


@dataclass(frozen=True, slots=True)
class Ready:
    """A configuration that can be served: what the code says, and what is derived from it."""

    compiled: Compiled
    digest: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class _Code:
    """The very object that a kind gave back, as a key: nothing of it has to be looked at."""

    compiled: Compiled

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Code) and other.compiled is self.compiled

    def __hash__(self) -> int:
        return id(self.compiled)


@dataclass(frozen=True, slots=True)
class _ShapeKey:
    digest: str
    compiled: Compiled = field(compare=False)


@dataclass(frozen=True, slots=True)
class _ListingKey:
    code: _Code
    name: str
    uri: str
    title: str
    description: str
    icons: str
    face: Face = field(compare=False)


def ready(sort: Sort, kind: str, config: Mapping[str, Any]) -> Ready:
    """Compile a configuration.

    Raises kinds.KindError when the kind refuses it (no such function, a broken file),
    NotServableError when its schemas break the protocol's rules.
    """
    return _codes.get(_Code(kinds.compile_config(kind, config, sort)))


def listing_of(compiled: Compiled, face: Face) -> Listing:
    """The listing on the wire, shared with all that read the same."""
    icons = canonical(face.icons) if face.icons else ""
    key = _ListingKey(
        _Code(compiled), face.name, face.uri, face.title, face.description, icons, face
    )
    return _listings.get(key)


def digest_of(compiled: Compiled) -> str:
    """SHA-256 in hex over the canonical JSON of all that the author promises to callers."""
    parts: list[Any] = [compiled.input_schema, compiled.output_schema, compiled.author_version]
    if compiled.sort is not Sort.TOOL:
        parts += [compiled.uri, compiled.mime_type]
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def label(number: int, digest: str) -> str:
    """A version as people and records see it, e.g. `3+ab12cd34`."""
    return f"{number}+{digest[:LABEL_DIGITS]}"


def canonical(value: Any) -> str:
    """JSON that is alike for equal values: sorted keys, no spaces. Raises what `json` does."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def forget_all() -> None:
    """Derive everything anew. Only memory is at stake: what is kept never goes stale."""
    _codes.clear()
    _shapes.clear()
    _listings.clear()


def _prepare(key: _Code) -> Ready:
    try:
        digest = digest_of(key.compiled)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotServableError([f"The schemas are not JSON: {error}"]) from None
    return Ready(key.compiled, digest, _shapes.get(_ShapeKey(digest, key.compiled)))


def _derive(key: _ShapeKey) -> Shape:
    inputs, outputs = key.compiled.input_schema, key.compiled.output_schema
    problems = _sentences("input", check_schema(inputs, role="input"))
    if outputs is not None:
        problems += _sentences("output", check_schema(outputs, role="output"))
    if problems:
        raise NotServableError(problems)
    return Shape(
        param_headers=param_headers(inputs),
        input_validator=Validator(inputs),
        output_validator=None if outputs is None else Validator(outputs),
        input_redactor=redaction.compile(inputs),
        output_redactor=ResultRedactor(redaction.compile(outputs)),
    )


def _sentences(which: str, problems: tuple[Problem, ...]) -> list[str]:
    return [f"The {which} schema, at {p.path or 'its root'}: {p.message}" for p in problems]


def _describe(key: _ListingKey) -> Listing:
    compiled, face = key.code.compiled, key.face
    wire = describe(compiled, face)
    return Listing(wire, orjson.dumps(wire))


_codes: FilledCache[_Code, Ready] = FilledCache(_prepare, MAX_CODES)
_shapes: FilledCache[_ShapeKey, Shape] = FilledCache(_derive, MAX_CODES)
_listings: FilledCache[_ListingKey, Listing] = FilledCache(_describe, MAX_LISTINGS)
