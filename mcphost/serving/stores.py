"""What tools keep between calls (`ctx.store`): the tenant's part of the catalogue's table."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from django.db import Error

from mcphost.catalogue import store
from mcphost.runtime.ports import Stored, StoreRefused
from mcphost.serving.hop import in_database

T = TypeVar("T")

log = logging.getLogger(__name__)


class TenantStore:
    """Fills `runtime.ports.Store` for the calls of one tenant, who cannot reach another's."""

    __slots__ = ("_tenant",)

    def __init__(self, tenant: UUID) -> None:
        self._tenant = tenant

    async def get(self, key: str) -> Stored:
        return await _reach(store.get, self._tenant, key)

    async def put(self, key: str, value: Any, revision: int) -> bool:
        return await _reach(store.put, self._tenant, key, value, revision)

    async def delete(self, key: str, revision: int) -> bool:
        return await _reach(store.delete, self._tenant, key, revision)


async def _reach(function: Callable[..., T], *args: Any) -> T:
    try:
        return await in_database(function, *args)
    except Error as error:
        log.error("the store cannot be reached: %s", type(error).__name__)
        raise StoreRefused("The store cannot be reached at the moment; try again soon.") from None
