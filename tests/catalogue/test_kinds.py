"""Tests of the registered kinds, and of the Python kind with real files."""

from pathlib import Path
from uuid import UUID

import pytest
from pytest_django import Settings

from mcphost.catalogue import kinds, selectors, services
from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.catalogue.kinds import KindError
from mcphost.catalogue.seeding import publish_functions
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.python.kind import PythonKind
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import create_tenant
from tests.catalogue.memory_kind import ACTOR, fields

SOURCE = '''
from mcphost.sdk import ToolAnnotations, tool


@tool(name="shout", title="Shout", annotations=ToolAnnotations(read_only_hint=True), version="2")
def loud(text: str) -> str:
    """Say it louder."""
    return text.upper()


@tool()
def silent(text: str):
    return text
'''


@pytest.fixture
def folder(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tools, with its own instance of the Python kind."""
    (tmp_path / "voice.py").write_text(SOURCE)
    (tmp_path / "broken.py").write_text("def (:\n")
    settings.MCPHOST_TOOLS = tmp_path
    python = PythonKind()
    monkeypatch.setattr(kinds, "python_kind", python)
    monkeypatch.setitem(kinds.KINDS, "python", python)
    kinds.discover()
    return tmp_path


@pytest.fixture
def tenant(db: None, folder: Path) -> UUID:
    return create_tenant("acme", TenantFields(title="Acme"), actor=ACTOR).id


def test_every_kind_is_registered_under_its_own_name() -> None:
    with pytest.raises(KindError, match="no kind called 'another'"):
        kinds.compile_config("another", {})
    assert {name: kind.name for name, kind in kinds.KINDS.items()} == {
        "http": "http",
        "python": "python",
        "script": "script",
        "text": "text",
    }


def test_the_function_that_needs_a_grant_is_read_from_the_configuration_of_the_kind() -> None:
    assert kinds.function_of("python", {"function": "demo.echo"}) == "demo.echo"
    assert kinds.function_of("python", {}) == ""
    assert kinds.function_of("another", {"function": "demo.echo"}) == ""
    for kind, field in kinds.GRANTED_BY_STAFF.items():
        assert field in kinds.KINDS[kind].config_model(PrimitiveType.TOOL).model_fields


def test_a_function_of_a_file_becomes_a_tool(tenant: UUID) -> None:
    assert [reference for reference, _ in kinds.functions()] == ["voice.loud", "voice.silent"]
    assert kinds.compiled_function("voice.loud").name == "shout"
    publish_functions(tenant, ["voice.loud"], ACTOR)
    (tool,) = selectors.offering(tenant).tools
    assert (tool.name, tool.read_only) == ("shout", True)
    assert (tool.listing["title"], tool.listing["description"]) == ("Shout", "Say it louder.")
    assert tool.listing["inputSchema"]["required"] == ["text"]
    assert tool.input_validator.problems({"text": "a"}) == ()
    assert tool.input_validator.problems({"text": 5}) != ()


def test_a_function_without_a_description_needs_one_from_the_operator(tenant: UUID) -> None:
    services.grant_function(tenant, "voice.silent", ACTOR)
    with pytest.raises(InvalidPrimitiveError) as refusal:
        services.create(tenant, fields("voice.silent"), ACTOR)
    assert list(refusal.value.problems) == ["description"]
    config = {"function": "voice.silent", "volume": 11}
    with pytest.raises(InvalidPrimitiveError) as refusal:
        services.create(tenant, fields("voice.silent", config=config), ACTOR)
    assert list(refusal.value.problems) == ["config.volume"]
    services.create(tenant, fields("voice.silent", description="Says nothing."), ACTOR)
