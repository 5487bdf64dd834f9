"""Fixtures: tenants, and functions to make tools from."""

from uuid import UUID

import pytest

from mcphost.catalogue import compiling, kinds, services
from mcphost.catalogue.models import Grant
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import create_tenant
from tests.catalogue.memory_kind import ACTOR, Shelf


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """The functions in "the code": `demo.echo`, `demo.add` and `demo.clock`."""
    shelf = Shelf()
    for reference in ("demo.echo", "demo.add", "demo.clock"):
        shelf.put(reference)
    monkeypatch.setitem(kinds.KINDS, "python", shelf)
    compiling.forget_all()
    return shelf


@pytest.fixture
def acme(db: None, shelf: Shelf) -> UUID:
    """A tenant that may use all functions of the shelf."""
    tenant = create_tenant("acme", TenantFields(title="Acme"), actor=ACTOR).id
    for reference in shelf.functions:
        services.grant_function(tenant, reference, ACTOR)
    return tenant


@pytest.fixture
def globex(db: None, shelf: Shelf) -> UUID:
    """Another tenant, without grants."""
    tenant = create_tenant("globex", TenantFields(title="Globex"), actor=ACTOR).id
    assert not Grant.objects.filter(tenant=tenant).exists()
    return tenant
