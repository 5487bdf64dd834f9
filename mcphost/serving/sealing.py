"""Seal and open tokens on the event loop, with keys that this process may have to read first.

Another process may seal with a key that this one has not read yet. So a token with an unknown key
is refused only after the key ring was read again. That happens at most once a second, for all
waiting requests together: tokens with invented key ids cause no more queries, and requests with a
known key do not wait.
"""

import asyncio
from collections.abc import Callable
from uuid import UUID

from mcphost.sealing.tokens import Purpose, Reason, Ring, SealError
from mcphost.serving.background import background
from mcphost.serving.database import in_database
from mcphost.vault import sealer, selectors
from mcphost.vault.sealer import TenantSealer

EVERY_SECONDS = 1.0


class LateKeys:
    """Reads the key ring again for tokens with an unknown key."""

    def __init__(self, read: Callable[[], Ring]) -> None:
        self._read = read
        self._began_at = float("-inf")
        self._waiting: asyncio.Task[Ring] | None = None
        self._reading: asyncio.Task[Ring] | None = None

    async def ring(self) -> Ring:
        """Return the ring from a read that began after this call.

        Raises the errors of the read: VaultError, or the database's.
        """
        if self._waiting is None or self._waiting.done():
            self._waiting = background.start(self._next(self._reading))
            self._waiting.add_done_callback(_look_at)
        # A caller that disconnects does not cancel the read for the others.
        return await asyncio.shield(self._waiting)

    async def _next(self, before: "asyncio.Task[Ring] | None") -> Ring:
        loop = asyncio.get_running_loop()
        if before is not None:
            await asyncio.wait([before])
        await asyncio.sleep(self._began_at + EVERY_SECONDS - loop.time())
        # From here on the read may miss a new key: later callers need the next read.
        self._reading, self._waiting = self._waiting, None
        self._began_at = loop.time()
        return await in_database(self._read)


def _look_at(task: "asyncio.Task[Ring]") -> None:
    """Retrieve the exception, so that asyncio does not log it when no caller waits any more."""
    if not task.cancelled():
        task.exception()


_late_keys = LateKeys(selectors.reread_ring)


async def seal(
    purpose: Purpose, tenant: UUID, payload: bytes, limit: int | None = None, context: bytes = b""
) -> str:
    """Seal `payload` under the active key; `sealing.tokens.key_id` of the token says which that was.

    Raises SealError when the token would be too large or the tenant's salt was destroyed, VaultError
    when there are no keys.
    """
    return (await _sealer(tenant)).seal(purpose, payload, limit, context)


async def unseal(
    purpose: Purpose, tenant: UUID, token: str, limit: int | None = None, context: bytes = b""
) -> bytes:
    """Open a token that any process sealed for exactly this purpose, tenant and context.

    Raises SealError for every other token. Raises VaultError or the database's errors when the keys
    cannot be read: a token with an unknown key is not called invalid then.
    """
    keys = await _sealer(tenant)
    try:
        return keys.unseal(purpose, token, limit, context)
    except SealError as error:
        if error.reason is not Reason.UNKNOWN_KEY:
            raise
    late = keys.with_ring(await _late_keys.ring())
    return late.unseal(purpose, token, limit, context)


async def _sealer(tenant: UUID) -> TenantSealer:
    cached = sealer.cached(tenant)
    return await in_database(sealer.fetch, tenant) if cached is None else cached
