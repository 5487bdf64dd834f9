"""Tests of the capabilities in the initialization of a session, by revision."""

import pytest

from mcphost.protocol.legacy.capabilities import client_capabilities, initialize_result
from mcphost.protocol.revisions import LATEST_LEGACY, REVISIONS, negotiate
from tests.wire import SESSION_BASED, check_message

SAID = {
    "roots": {"listChanged": True},
    "sampling": {"tools": {}},
    "elicitation": {"form": {}, "url": {}},
    "experimental": {"x": {}},
    "made-up": {},
}
SERVER = {
    "name": "acme",
    "version": "1.2",
    "title": "Acme",
    "description": "Everything.",
    "websiteUrl": "https://acme.example",
    "icons": [{"src": "https://acme.example/a.png"}],
}


def test_client_capabilities_are_limited_to_those_of_the_revision() -> None:
    can = {name: client_capabilities(REVISIONS[name], SAID) for name in SESSION_BASED}
    roots, other = {"listChanged": True}, {"x": {}}
    assert can["2024-11-05"] == can["2025-03-26"]
    assert can["2025-03-26"] == {"roots": roots, "sampling": {}, "experimental": other}
    assert can["2025-06-18"] == {
        "roots": roots,
        "sampling": {},
        "elicitation": {},
        "experimental": other,
    }
    assert can["2025-11-25"] == {k: v for k, v in SAID.items() if k != "made-up"}


@pytest.mark.parametrize("odd", [True, None])
@pytest.mark.parametrize("revision", SESSION_BASED)
def test_a_capability_that_is_not_an_object_is_ignored(revision: str, odd: object) -> None:
    assert client_capabilities(REVISIONS[revision], {"sampling": odd, "elicitation": odd}) == {}


@pytest.mark.parametrize("instructions", ["", "Ask first."])
@pytest.mark.parametrize("revision", SESSION_BASED)
def test_the_initialize_result_is_valid_for_its_revision(revision: str, instructions: str):
    result = initialize_result(REVISIONS[revision], SERVER, instructions)
    check_message({"jsonrpc": "2.0", "id": 1, "result": result}, "initialize", revision)
    assert result["protocolVersion"] == revision
    assert result.get("instructions", "") == instructions


@pytest.mark.parametrize(
    ("requested", "name"),
    [
        *((name, name) for name in SESSION_BASED),
        ("2024-10-07", SESSION_BASED[0]),
        ("2025-01-01", "2024-11-05"),
        ("2025-11-24", "2025-06-18"),
        ("2026-07-28", LATEST_LEGACY.name),
        ("2999-01-01", LATEST_LEGACY.name),
        ("1.0", LATEST_LEGACY.name),
        ("", LATEST_LEGACY.name),
    ],
)
def test_a_client_gets_its_revision_or_the_newest_before_it(requested: str, name: str) -> None:
    assert negotiate(requested).name == name
