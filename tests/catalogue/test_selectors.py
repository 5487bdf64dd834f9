"""Tests of the selectors for the console."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcphost.catalogue import selectors, services
from mcphost.catalogue.rows import FunctionRow
from mcphost.catalogue.states import PrimitiveState
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.models import Tenant
from tests.catalogue.kit import ACTOR, Shelf, fields

pytestmark = pytest.mark.django_db


def test_tools_of_some_tenants_are_listed_in_every_state_by_one_query(acme: UUID, globex: UUID):
    services.grant_function(globex, "demo.echo", ACTOR)
    draft = services.create(acme, fields("demo.echo"), ACTOR)
    published = services.publish(services.create(acme, fields("demo.add"), ACTOR).id, ACTOR)
    foreign = services.create(globex, fields("demo.echo"), ACTOR)
    with CaptureQueriesContext(connection) as queries:
        rows = selectors.primitives(Tenant.objects.all())
    assert len(queries) == 1
    assert rows == (published, draft, foreign)
    assert [(row.tenant_slug, row.name, row.state) for row in rows] == [
        ("acme", "add", PrimitiveState.PUBLISHED),
        ("acme", "echo", PrimitiveState.DRAFT),
        ("globex", "echo", PrimitiveState.DRAFT),
    ]
    assert selectors.primitives(Tenant.objects.filter(pk=globex)) == (foreign,)
    assert selectors.primitives(Tenant.objects.none()) == ()


def test_names_counts_and_scopes_are_read_without_the_files(acme: UUID, globex: UUID) -> None:
    services.grant_function(globex, "demo.echo", ACTOR)
    services.create(acme, fields("demo.echo", scopes=["mcp:a", "mcp:b"]), ACTOR)
    services.publish(services.create(acme, fields("demo.add"), ACTOR).id, ACTOR)
    config = {"uri": "demo://page", "text": "x"}
    page = fields(sort=PrimitiveType.RESOURCE, kind="text", name="page", config=config)
    services.create(acme, replace(page, scopes=["mcp:a"]), ACTOR)
    services.create(globex, fields("demo.echo", scopes=["mcp:c"]), ACTOR)
    with CaptureQueriesContext(connection) as queries:
        assert selectors.target_names(acme) == ("add", "echo", "demo://page")
        assert selectors.target_names(acme, PrimitiveType.TOOL) == ("add", "echo")
        assert selectors.counts([acme, globex]) == {
            acme: {
                (PrimitiveType.TOOL, PrimitiveState.PUBLISHED): 1,
                (PrimitiveType.TOOL, PrimitiveState.DRAFT): 1,
                (PrimitiveType.RESOURCE, PrimitiveState.DRAFT): 1,
            },
            globex: {(PrimitiveType.TOOL, PrimitiveState.DRAFT): 1},
        }
        assert selectors.counts([uuid4()]) == {}
        assert selectors.working_scopes(acme) == {"mcp:a", "mcp:b"}
    assert len(queries) == 5
    assert not [each for each in queries if "config" in each["sql"] or "snapshot" in each["sql"]]


def test_a_tool_nobody_has_is_none_and_has_no_versions(db: None) -> None:
    assert selectors.primitive(uuid4()) is None
    assert selectors.versions(uuid4()) == ()


def test_the_problems_of_many_tenants_are_read_by_one_query_and_not_kept(acme, globex, shelf):
    for function in ("demo.echo", "demo.add"):
        services.publish(services.create(acme, fields(function), ACTOR).id, ACTOR)
    shelf.functions.clear()
    with CaptureQueriesContext(connection) as queries:
        problems = list(selectors.problems_of(Tenant.objects.all()))
    assert len(queries) == 1
    assert [(problem.tenant_id, problem.name) for problem in problems] == [
        (acme, "add"),
        (acme, "echo"),
    ]
    assert list(selectors.problems_of(Tenant.objects.filter(pk=globex))) == []


def test_functions_are_those_of_the_code_and_those_that_were_granted(globex: UUID, shelf: Shelf):
    services.grant_function(globex, "demo.clock", ACTOR)
    services.grant_function(globex, "demo.add", ACTOR)
    del shelf.functions["demo.clock"]
    assert selectors.functions(globex) == (
        FunctionRow("demo.add", PrimitiveType.TOOL, "add", granted=True, known=True),
        FunctionRow("demo.clock", PrimitiveType.TOOL, "demo.clock", granted=True, known=False),
        FunctionRow("demo.echo", PrimitiveType.TOOL, "echo", granted=False, known=True),
    )
