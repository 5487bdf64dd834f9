"""The store as tools use it: from the event loop, each in its own tenant."""

import pytest

from mcphost.catalogue import store
from mcphost.runtime.ports import Stored
from mcphost.serving.execution.ports import TenantStore
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_stored_value_is_visible_to_other_calls_of_the_tenant(cast: Cast) -> None:
    assert await TenantStore(cast.acme.id).put("a", {"b": 1}, 0)
    assert not await TenantStore(cast.acme.id).put("a", {"b": 2}, 0)
    kept = await TenantStore(cast.acme.id).get("a")
    assert kept.value == {"b": 1}
    assert await TenantStore(cast.acme.id).delete("a", kept.revision)
    assert await TenantStore(cast.acme.id).get("a") == Stored(None, 0)


async def test_a_stored_value_is_invisible_to_other_tenants(cast: Cast) -> None:
    await TenantStore(cast.acme.id).put("a", 1, 0)
    assert await TenantStore(cast.globex.id).get("a") == store.NOTHING
