"""The ports in memory behave like the real ones, as far as a tool can observe."""

import pytest

from mcphost.runtime.memory import MemoryLinks, MemoryStore
from mcphost.runtime.ports import NoStore, Stored, StoreRefusedError


async def test_a_write_with_an_outdated_revision_changes_nothing() -> None:
    store = MemoryStore()
    assert await store.put("a", 1, 0)
    assert not await store.put("a", 2, 0)
    assert not await store.put("b", 2, 1)
    assert await store.get("a") == Stored(1, 1)


async def test_a_deleted_value_is_absent_and_its_revision_is_not_accepted_later() -> None:
    store = MemoryStore()
    assert await store.put("a", 1, 0)
    assert not await store.delete("a", 2)
    assert await store.delete("a", 1)
    assert await store.get("a") == Stored(None, 0)
    assert await store.delete("a", 0)
    assert await store.put("a", 2, 0)
    assert not await store.put("a", 3, 1)


@pytest.mark.parametrize("value", [object(), {1}, float("nan")])
async def test_only_json_values_are_stored(value: object) -> None:
    with pytest.raises(StoreRefusedError, match="Only JSON"):
        await MemoryStore().put("a", value, 0)


async def test_a_wait_for_a_link_succeeds_only_if_the_link_is_done() -> None:
    links = MemoryLinks(done={"payment"})
    assert links.page("payment") == links.page("payment") != links.callback("payment")
    assert await links.wait("payment", 1, ())
    assert not await links.wait("other", 1, ())


async def test_using_an_absent_store_raises_an_error() -> None:
    store = NoStore()
    for tried in (store.get("a"), store.put("a", 1, 0), store.delete("a", 1)):
        with pytest.raises(StoreRefusedError, match="no store"):
            await tried
