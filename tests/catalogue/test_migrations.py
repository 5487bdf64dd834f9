"""Tests that the migration to primitives leaves existing tools unchanged."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import StateApps

from mcphost.catalogue import selectors, services
from mcphost.catalogue.states import PrimitiveState
from mcphost.kinds.primitive_types import PrimitiveType
from tests.catalogue.kit import ACTOR, fields

BEFORE = ("catalogue", "0001_initial")

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(to: tuple[str, str] | None = None) -> StateApps:
    """Migrate the tables to a state, or to the latest; return the models of that state."""
    executor = MigrationExecutor(connection)
    return executor.migrate([to] if to else executor.loader.graph.leaf_nodes()).apps


@pytest.fixture
def before() -> Iterator[StateApps]:
    """The tables of a server that has only tools."""
    yield migrate(BEFORE)
    migrate()


def published_then(apps: StateApps, name: str) -> tuple[UUID, UUID]:
    """Create a tool as it was stored and published then; return its id and its tenant's."""
    tenant = apps.get_model("tenants", "Tenant").objects.create(slug="acme", title="Acme")
    apps.get_model("catalogue", "Grant").objects.create(tenant=tenant, function="demo.echo")
    config = {"function": "demo.echo"}
    tool = apps.get_model("catalogue", "Tool").objects.create(
        tenant=tenant, name=name, kind="python", config=config, title="Parrot"
    )
    overrides = {"title": "Parrot", "description": "", "scopes": [], "icons": []}
    tool.live = apps.get_model("catalogue", "ToolVersion").objects.create(
        tool=tool,
        number=1,
        digest="0" * 64,
        function="demo.echo",
        snapshot={"kind": "python", "config": config, "time_limit_seconds": None, **overrides},
        code={},
        published_by="ada",
    )
    tool.state = "published"
    tool.save()
    return tool.id, tenant.id


def test_a_tool_that_was_published_is_still_served_and_survives_the_way_back(before, shelf):
    tool_id, tenant_id = published_then(before, "echo")
    migrate()
    tools = migrate(BEFORE).get_model("catalogue", "Tool").objects
    assert [(tool.id, tool.live.number) for tool in tools.all()] == [(tool_id, 1)]
    assert tools.get().live.tool_id == tool_id
    migrate()
    row = selectors.primitive(tool_id)
    assert (row.sort, row.fields.name, row.fields.title) == (PrimitiveType.TOOL, "echo", "Parrot")
    assert (row.state, row.version) == (PrimitiveState.PUBLISHED, "1+00000000")
    [tool] = selectors.offering(tenant_id).tools
    assert (tool.id, tool.name) == (tool_id, "echo")
    services.update(tool_id, fields(title="Cockatoo"), ACTOR)
    assert services.publish(tool_id, ACTOR).version.startswith("2+")
