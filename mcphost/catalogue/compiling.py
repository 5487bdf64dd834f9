"""From a kind's configuration to what calls need: validators, redactors, the listing.

Tools of many tenants run the same function, so what is derived from a pair of schemas is derived
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
from mcphost.kinds.kind import Compiled
from mcphost.protocol.schemas import ParamHeader, Problem, check_schema, param_headers
from mcphost.protocol.tools import ToolListing, describe_tool
from mcphost.runtime.schema import Validator

MAX_SHAPES = 4096
MAX_LISTINGS = 8192
LABEL_DIGITS = 8


class NotServableError(Exception):
    """A tool cannot be served as it is. `problems` are sentences for operators."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__(" ".join(problems))


@dataclass(frozen=True, slots=True)
class Shape:
    """What is derived from a tool's two schemas."""

    param_headers: tuple[ParamHeader, ...]
    input_validator: Validator
    output_validator: Validator | None
    input_redactor: Redactor
    output_redactor: Redactor


@dataclass(frozen=True, slots=True)
class Listing:
    """A tool on the wire, as a dict and as JSON."""

    wire: Mapping[str, Any]
    encoded: bytes


@dataclass(frozen=True, slots=True)
class Ready:
    """A configuration that can be served: what the code says, and what is derived from it."""

    compiled: Compiled
    digest: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class _ShapeKey:
    digest: str
    compiled: Compiled = field(compare=False)


@dataclass(frozen=True, slots=True)
class _ListingKey:
    digest: str
    texts: str
    listing: ToolListing = field(compare=False)


def ready(kind: str, config: Mapping[str, Any]) -> Ready:
    """Compile a configuration.

    Raises kinds.KindError when the kind refuses it (no such function, a broken file), NotServableError
    when its schemas break the protocol's rules.
    """
    compiled = kinds.compile_config(kind, config)
    try:
        digest = digest_of(compiled)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotServableError([f"The schemas are not JSON: {error}"]) from None
    return Ready(compiled, digest, _shapes.get(_ShapeKey(digest, compiled)))


def digest_of(compiled: Compiled) -> str:
    """SHA-256 in hex over the canonical JSON of both schemas and the author's version."""
    parts = [compiled.input_schema, compiled.output_schema, compiled.author_version]
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def label(number: int, digest: str) -> str:
    """A version as people and records see it, e.g. `3+ab12cd34`."""
    return f"{number}+{digest[:LABEL_DIGITS]}"


def canonical(value: Any) -> str:
    """JSON that is alike for equal values: sorted keys, no spaces. Raises what `json` does."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def listing_of(ready: Ready, listing: ToolListing) -> Listing:
    """The listing on the wire, shared with every tool that reads the same."""
    texts = [listing.name, listing.title, listing.description, listing.annotations, listing.icons]
    return _listings.get(_ListingKey(ready.digest, canonical(texts), listing))


def forget_all() -> None:
    """Derive everything anew. Only memory is at stake: what is kept never goes stale."""
    _shapes.clear()
    _listings.clear()


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
        input_redactor=redaction.compile(inputs, ()),
        output_redactor=redaction.compile(outputs or {}, ()),
    )


def _sentences(which: str, problems: tuple[Problem, ...]) -> list[str]:
    return [f"The {which} schema, at {p.path or 'its root'}: {p.message}" for p in problems]


def _describe(key: _ListingKey) -> Listing:
    wire = describe_tool(key.listing)
    return Listing(wire, orjson.dumps(wire))


_shapes: FilledCache[_ShapeKey, Shape] = FilledCache(_derive, MAX_SHAPES)
_listings: FilledCache[_ListingKey, Listing] = FilledCache(_describe, MAX_LISTINGS)
