"""Offerings made by tests."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID, uuid5

from mcphost.audit.redaction import Redactor
from mcphost.catalogue.redaction import ResultRedactor
from mcphost.catalogue.snapshots import (
    Offering,
    PromptSnapshot,
    ResourceSnapshot,
    Snapshot,
    TemplateSnapshot,
    offering_of,
)
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.runtime.outcomes import Complete, Outcome
from mcphost.runtime.schema import Validator
from tests.serving.defined_rounds import Does

_NAMES = UUID(int=0)


async def _nothing() -> Outcome:
    return Complete({})


def _common(name: str, version: str, scopes: Iterable[str]) -> dict[str, Any]:
    return {
        "id": uuid5(_NAMES, name),
        "name": name,
        "kind": "python",
        "version": version,
        "scopes": frozenset(scopes),
        "listing": {"name": name},
        "encoded": f'{{"name":"{name}"}}'.encode(),
        "input_validator": Validator({"type": "object"}),
        "input_redactor": Redactor(),
        "output_redactor": ResultRedactor(Redactor()),
        "program": Does(_nothing),
        "time_limit": None,
        "requires": (),
        "answer_within": None,
        "claims": False,
        "unasked": False,
    }


def resource(uri: str, version: str = "1+0", scopes: Iterable[str] = ()) -> ResourceSnapshot:
    return ResourceSnapshot(uri=uri, mime_type="text/plain", **_common(uri, version, scopes))


def template(text: str, version: str = "1+0", scopes: Iterable[str] = ()) -> TemplateSnapshot:
    said = _common(text, version, scopes)
    return TemplateSnapshot(
        uri_template=UriTemplate(text), mime_type="text/plain", completer=None, **said
    )


def prompt(name: str, version: str = "1+0", scopes: Iterable[str] = ()) -> PromptSnapshot:
    return PromptSnapshot(arguments=(), completer=None, **_common(name, version, scopes))


def offering(*served: Snapshot) -> Offering:
    return offering_of(served)
