"""Fixtures: a tenant with something of every kind, and an empty one."""

from uuid import UUID

import pytest

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, services
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import create_tenant
from mcphost.vault.secrets.services import create_secret

ACTOR = Actor.system("olga")
FUNCTION = "probe.echo"


def new_tenant(slug: str) -> UUID:
    return create_tenant(slug, TenantFields(title=slug.title()), actor=ACTOR).id


def store_secret(tenant: UUID, name: str = "api_key") -> UUID:
    places = ["header"]
    hosts = ["api.example.com"]
    return create_secret(tenant, name, "a-secret-value", hosts=hosts, places=places, actor=ACTOR)


@pytest.fixture
def acme(db: None) -> UUID:
    """An empty tenant that may use the function `probe.echo`."""
    kinds.discover()
    tenant = new_tenant("acme")
    services.grant_function(tenant, FUNCTION, ACTOR)
    return tenant


@pytest.fixture
def globex(db: None) -> UUID:
    """Another empty tenant, without grants."""
    return new_tenant("globex")
