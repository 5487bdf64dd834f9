"""Tests of the selectors for the console."""

from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcphost.catalogue import selectors, services
from mcphost.catalogue.states import PrimitiveState
from mcphost.tenants.models import Tenant
from tests.catalogue.memory_kind import ACTOR, fields

pytestmark = pytest.mark.django_db


def test_tools_of_several_tenants_in_every_state_are_read_by_one_query(acme: UUID, globex: UUID):
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


def test_problems_of_several_tenants_are_read_by_one_query_and_not_cached(acme, globex, shelf):
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
