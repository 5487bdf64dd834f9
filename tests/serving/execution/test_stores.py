"""The store as tools use it: from the event loop, each in its own tenant."""

import pytest
from django.db import OperationalError

from mcphost.catalogue import store
from mcphost.runtime.ports import Stored, StoreRefused
from mcphost.serving.execution.ports import TenantStore
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


async def test_what_one_call_puts_another_call_of_the_tenant_gets(cast: Cast) -> None:
    assert await TenantStore(cast.acme.id).put("a", {"b": 1}, 0)
    assert not await TenantStore(cast.acme.id).put("a", {"b": 2}, 0)
    kept = await TenantStore(cast.acme.id).get("a")
    assert kept.value == {"b": 1}
    assert await TenantStore(cast.acme.id).delete("a", kept.revision)
    assert await TenantStore(cast.acme.id).get("a") == Stored(None, 0)


async def test_another_tenant_gets_nothing_of_it(cast: Cast) -> None:
    await TenantStore(cast.acme.id).put("a", 1, 0)
    assert await TenantStore(cast.globex.id).get("a") == store.NOTHING


async def test_what_cannot_be_kept_is_refused_in_words(cast: Cast) -> None:
    with pytest.raises(StoreRefused, match="Only JSON"):
        await TenantStore(cast.acme.id).put("a", object(), 0)


async def test_a_database_that_is_away_is_a_refusal_that_says_so(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> Stored:
        raise OperationalError("gone")

    monkeypatch.setattr(store, "get", away)
    with pytest.raises(StoreRefused, match="cannot be reached"):
        await TenantStore(cast.acme.id).get("a")
