"""Compile a kind's configuration into what calls need: validators, redactors, the listing.

Many tenants run the same function, so what is derived from a pair of schemas is derived
once and shared, and so is a listing with the same texts.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson
from django.conf import settings

from mcphost.audit import redaction
from mcphost.audit.redaction import Redactor
from mcphost.catalogue import kinds
from mcphost.catalogue.listing import ListingTexts, describe
from mcphost.catalogue.ordering import property_order
from mcphost.catalogue.redaction import ResultRedactor
from mcphost.kinds.kind import Compiled
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.schemas import ParamHeader, SchemaProblem, check_schema, param_headers
from mcphost.runtime.schema import Validator

MAX_CODES = 4096
MAX_LISTINGS = 8192
LABEL_DIGITS = 8
ARGUMENT_LIMIT_NOTICE = (
    "Its input schema is expensive to check, so its arguments may have at most {} bytes."
)
"""The notice when a primitive is saved or published that has an `argument_limit`."""


class NotServableError(Exception):
    """A primitive cannot be served as it is. `problems` are sentences for operators."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__(" ".join(problems))


@dataclass(frozen=True, slots=True)
class CompiledSchemas:
    """What is derived from the two schemas."""

    param_headers: tuple[ParamHeader, ...]
    input_validator: Validator
    output_validator: Validator | None
    input_redactor: Redactor
    output_redactor: ResultRedactor


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing on the wire, as a dict and as JSON; `digest` is its canonical JSON's SHA-256."""

    wire: Mapping[str, Any]
    encoded: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class Ready:
    """A configuration that can be served: what the code declares, and what is derived from it."""

    compiled: Compiled
    digest: str
    shape: CompiledSchemas


@dataclass(frozen=True, slots=True)
class _Code:
    """A cache key: the identity of the object that a kind returned, without reading its content."""

    compiled: Compiled

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Code) and other.compiled is self.compiled

    def __hash__(self) -> int:
        return id(self.compiled)


@dataclass(frozen=True, slots=True)
class _ShapeKey:
    digest: str
    order: str
    """That of properties: forms show them in it."""
    compiled: Compiled = field(compare=False)


@dataclass(frozen=True, slots=True)
class _ListingKey:
    code: _Code
    name: str
    uri: str
    title: str
    description: str
    icons: str
    texts: ListingTexts = field(compare=False)


def ready(primitive_type: PrimitiveType, kind: str, config: Mapping[str, Any]) -> Ready:
    """Compile a configuration.

    Raises kinds.KindError when the kind refuses it (no such function, a broken file),
    NotServableError when its schemas break the protocol's rules.
    """
    return ready_of(kinds.compile_config(kind, config, primitive_type))


def ready_of(compiled: Compiled) -> Ready:
    """Return the same of what a kind has compiled. Raises NotServableError."""
    return _prepare(_Code(compiled))


def listing_of(compiled: Compiled, texts: ListingTexts) -> Listing:
    """Return the listing on the wire, shared by all primitives for which it is the same."""
    icons = canonical(texts.icons) if texts.icons else ""
    key = _ListingKey(
        _Code(compiled), texts.name, texts.uri, texts.title, texts.description, icons, texts
    )
    return _describe(key)


def argument_limit(validator: Validator) -> int | None:
    """Return the limit in bytes for arguments whose schema is expensive to check.

    None where only the limit of a request body applies.
    """
    limit = validator.effort.limit(settings.MCPHOST_BODY_LIMIT)
    return None if limit == settings.MCPHOST_BODY_LIMIT else limit


def publication_digest(ready: Ready, listing: Listing, snapshot: Mapping[str, Any]) -> str:
    """Return SHA-256 in hex of a whole publication.

    It covers what clients see in the list (names, texts, annotations, schemas, icons), what the
    author promises, and what the operator set (`fields.snapshot`). Equal digests mean that
    publishing would change nothing.
    """
    parts = [ready.digest, listing.digest, snapshot]
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def digest_of(compiled: Compiled) -> str:
    """Return SHA-256 in hex of the canonical JSON of all that the author promises to callers."""
    parts: list[Any] = [compiled.input_schema, compiled.output_schema, compiled.author_version]
    if compiled.primitive_type is not PrimitiveType.TOOL:
        parts += [compiled.uri, compiled.mime_type]
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def label(number: int, digest: str) -> str:
    """Return the label of a version for people and records, e.g. `3+ab12cd34`."""
    return f"{number}+{digest[:LABEL_DIGITS]}"


def canonical(value: Any) -> str:
    """Return JSON that is the same for equal values: sorted keys, no spaces.

    Raises what `json.dumps` raises.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def forget_all() -> None:
    """Clear the caches. This only frees memory: cached values never become stale."""
    for cached in (_prepare, _derive, _describe):
        cached.cache_clear()


@lru_cache(MAX_CODES)
def _prepare(key: _Code) -> Ready:
    try:
        digest = digest_of(key.compiled)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotServableError([f"The schemas are not JSON: {error}"]) from None
    order = json.dumps(property_order([key.compiled.input_schema, key.compiled.output_schema]))
    return Ready(key.compiled, digest, _derive(_ShapeKey(digest, order, key.compiled)))


@lru_cache(MAX_CODES)
def _derive(key: _ShapeKey) -> CompiledSchemas:
    inputs, outputs = key.compiled.input_schema, key.compiled.output_schema
    problems = _sentences("input", check_schema(inputs, role="input"))
    if outputs is not None:
        problems += _sentences("output", check_schema(outputs, role="output"))
    if problems:
        raise NotServableError(problems)
    return CompiledSchemas(
        param_headers=param_headers(inputs),
        input_validator=Validator(inputs),
        output_validator=None if outputs is None else Validator(outputs),
        input_redactor=redaction.compile(inputs),
        output_redactor=ResultRedactor(redaction.compile(outputs)),
    )


def _sentences(which: str, problems: tuple[SchemaProblem, ...]) -> list[str]:
    return [f"The {which} schema, at {p.path or 'its root'}: {p.message}" for p in problems]


@lru_cache(MAX_LISTINGS)
def _describe(key: _ListingKey) -> Listing:
    compiled, texts = key.code.compiled, key.texts
    wire = describe(compiled, texts)
    digest = hashlib.sha256(canonical(wire).encode()).hexdigest()
    return Listing(wire, orjson.dumps(wire), digest)
