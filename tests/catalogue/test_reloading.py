"""A process that reloads its functions serves the new code, and notifies the clients."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.test import override_settings

from mcphost.catalogue import compiling, kinds, selectors
from mcphost.catalogue.reloading import reload_if_changed
from mcphost.catalogue.seeding import publish_functions
from mcphost.feed.models import Change, NodeFunctions
from mcphost.feed.nodes import heartbeat
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import create_tenant
from tests.catalogue.memory_kind import ACTOR

pytestmark = pytest.mark.django_db(transaction=True)

CODE = '''
from mcphost.sdk import tool

@tool
def greet({parameters}) -> str:
    """Greet {whom}."""
    return ""
'''


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Path]:
    """The only file of tools."""
    (tmp_path / "tools").mkdir()
    path = tmp_path / "tools" / "greetings.py"
    path.write_text(CODE.format(parameters="", whom="everyone"))
    with override_settings(MCPHOST_TOOLS=path.parent):
        _load()
        yield path
    _load()


def _load() -> None:
    kinds.discover()
    compiling.forget_all()
    selectors.forget_all()


@pytest.fixture
def tenant(source: Path) -> UUID:
    id = create_tenant("acme", TenantFields(title="Acme"), actor=ACTOR).id
    publish_functions(id, ["greetings.greet"], ACTOR)
    return id


def test_a_tenant_offers_the_new_code_and_its_clients_are_notified(
    source: Path, tenant: UUID
) -> None:
    assert selectors.offering(tenant).tools[0].listing["description"] == "Greet everyone."
    before = set(Change.objects.values_list("seq", flat=True))
    source.write_text(CODE.format(parameters="name: str", whom="one person"))
    assert reload_if_changed() is not None
    tool = selectors.offering(tenant).tools[0]
    assert tool.listing["description"] == "Greet one person."
    assert list(tool.listing["inputSchema"]["properties"]) == ["name"]
    announced = Change.objects.exclude(seq__in=before).values_list("name", "tenant")
    assert set(announced) == {("tool", None), ("prompt", None), ("resource", None)}


def test_nothing_is_announced_while_no_file_changes(source: Path, tenant: UUID) -> None:
    before = Change.objects.count()
    assert reload_if_changed() is None
    assert Change.objects.count() == before


def test_the_next_heartbeat_declares_the_new_functions(source: Path) -> None:
    heartbeat.redeclare()  # it may have beaten in this process before
    heartbeat.beat()
    try:
        assert list(_declared()) == ["greetings.greet"]
        source.write_text(CODE.format(parameters="", whom="all").replace("def greet", "def hail"))
        reload_if_changed()
        assert list(heartbeat.loaded_by(heartbeat.id) or ()) == ["greetings.hail"]
        assert list(_declared()) == ["greetings.greet"]
        heartbeat.beat()
        assert list(_declared()) == ["greetings.hail"]
    finally:
        heartbeat.unregister()


def _declared() -> dict[str, str]:
    declared: dict[str, str] = NodeFunctions.objects.get(node=heartbeat.id).declared
    return declared
