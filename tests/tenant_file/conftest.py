"""Fixtures: a tenant with something of every kind, and an empty one."""

from uuid import UUID

import pytest

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, services
from mcphost.tenant_file.documents import write
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


def scripts(count: int) -> bytes:
    """Return a file with scripts."""
    code = 'def script_{}(name: str) -> str:\n    """Greet."""\n    return name\n'
    configs = {f"script_{number}": {"code": code.format(number)} for number in range(count)}
    tools = {name: {"kind": "script", "config": config} for name, config in configs.items()}
    return write({"format": 1, "tools": tools}).encode()


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
