"""What the generated tests write through the API: one sample for each resource.

A resource that is added needs a line in SAMPLES, or in READ_ONLY of the test that reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5E"
    "rkJggg=="
)


@dataclass(frozen=True, slots=True)
class ApiSample:
    """A resource: where its objects are, what creates one, and a second value for each writable field.

    `fixed` fields are written once. Without `creation`, the object exists: `path` is its own. `hidden`
    are members that creations need and that are never returned.
    """

    path: str
    creation: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    hidden: Mapping[str, Any] = field(default_factory=dict)


def _primitive(
    types: str, kind: str, config: Mapping[str, Any], other: Mapping[str, Any]
) -> ApiSample:
    return ApiSample(
        f"/api/v1/tenants/acme/{types}",
        {
            "name": "first",
            "kind": kind,
            "config": config,
            "title": "First",
            "description": "The first.",
            "icons": [{"src": PNG, "mimeType": "image/png"}],
            "scopes": ["mcp:first"],
            "time_limit_seconds": 10,
            "answer_within_seconds": 600.5,
            "target_seconds": 60,
        },
        {
            "name": "second",
            "config": other,
            "title": "Zweites “ü”",
            "description": " \tKept as it is?".strip(),
            "icons": [],
            "scopes": [],
            "time_limit_seconds": None,
            "answer_within_seconds": None,
            "target_seconds": None,
        },
        ("kind",),
    )


def http_config(address: str) -> Mapping[str, Any]:
    """Return the configuration of a tool that requests an address."""
    return {"request": {"url": f"https://api.example.com/{address}", "method": "GET"}}


SAMPLES = (
    ApiSample(
        "/api/v1/tenants/acme",
        changes={
            "title": "Acme, Inc.",
            "icon": PNG,
            "instructions": "  Two lines,\nas they are.\n",
            "allowed_origins": ["https://b.example", "https://a.example"],
            "outgoing_hosts": ["api.example.com"],
            "public": True,
            "metadata_documents_only": True,
            "calls_per_minute": 90,
            "concurrent_calls": 9,
        },
    ),
    _primitive("tools", "http", http_config("orders"), http_config("items")),
    _primitive(
        "prompts",
        "text",
        {"messages": [{"content": {"type": "text", "text": "Hello"}}]},
        {
            "messages": [
                {"role": "assistant", "content": {"type": "text", "text": "Hello, {name}"}}
            ],
            "arguments": [{"required": False, "name": "name"}],
        },
    ),
    _primitive(
        "resources",
        "text",
        {"uri": "notes://today", "text": "Nothing."},
        {"text": "# Something", "mime_type": "text/markdown", "uri": "notes://tomorrow"},
    ),
    _primitive(
        "templates",
        "text",
        {"uri": "notes://days/{day}", "text": "Nothing on {day}."},
        {"uri": "notes://weeks/{week}", "text": "Nothing in {week}."},
    ),
    ApiSample(
        "/api/v1/tenants/acme/secrets",
        {"name": "first", "hosts": ["a.example", "b.example"], "places": ["header", "body"]},
        {"hosts": ["b.example"], "places": ["body"]},
        ("name",),
        {"value": "c4nary-of-a-value"},
    ),
    ApiSample(
        "/api/v1/tenants/acme/service_accounts",
        {"name": "first", "description": "Runs the nightly checks."},
    ),
)
CHANGEABLE = tuple(sample for sample in SAMPLES if sample.changes)
