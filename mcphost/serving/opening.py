"""Sealing and opening on the event loop, with keys that this process may have to learn of first.

Another process may seal under a key of which this one has not heard yet. So a token of an unknown
key is not refused before the ring was read anew, which happens at most once a second, for all who
wait at once: whatever ids are made up, the database is asked no more often, and whoever has a token
of a known key waits for nobody.
"""

import asyncio
from collections.abc import Callable
from uuid import UUID

from mcphost.sealing.tokens import Purpose, Reason, Ring, SealError
from mcphost.serving.hop import in_database
from mcphost.vault import sealer, selectors
from mcphost.vault.sealer import TenantSealer

EVERY_SECONDS = 1.0


class LateKeys:
    """One process's reading of the ring for tokens whose key it does not know."""

    def __init__(self, read: Callable[[], Ring]) -> None:
        self._read = read
        self._began_at = float("-inf")
        self._waiting: asyncio.Task[Ring] | None = None
        self._reading: asyncio.Task[Ring] | None = None

    async def ring(self) -> Ring:
        """The ring, as a reading saw it that began after this call.

        Raises what the reading raises: VaultError, or the database's own errors.
        """
        loop = asyncio.get_running_loop()
        if self._waiting is None or self._waiting.done() or self._waiting.get_loop() is not loop:
            self._waiting = loop.create_task(self._next(self._reading))
            self._waiting.add_done_callback(_look_at)
        # Whoever hangs up does not take the reading from the others.
        return await asyncio.shield(self._waiting)

    async def _next(self, before: "asyncio.Task[Ring] | None") -> Ring:
        loop = asyncio.get_running_loop()
        if before is not None and before.get_loop() is loop:
            await asyncio.wait([before])
        await asyncio.sleep(self._began_at + EVERY_SECONDS - loop.time())
        # From here on it may miss what is written: who comes now needs the next one.
        self._reading, self._waiting = self._waiting, None
        self._began_at = loop.time()
        return await in_database(self._read)


def _look_at(task: "asyncio.Task[Ring]") -> None:
    """Those who waited have gone: what was raised is nobody's any more, and no news either."""
    if not task.cancelled():
        task.exception()


_late_keys = LateKeys(selectors.reread_ring)


async def seal(purpose: Purpose, tenant: UUID, payload: bytes, limit: int | None = None) -> str:
    """Seal `payload` under the active key; `sealing.tokens.key_id` of the token says which that was.

    Raises SealError when the token would be too large or the tenant's salt was destroyed, VaultError
    when there are no keys.
    """
    return (await _sealer(tenant)).seal(purpose, payload, limit)


async def unseal(purpose: Purpose, tenant: UUID, token: str, limit: int | None = None) -> bytes:
    """The payload of a token that was sealed for exactly this purpose and tenant, on any process.

    Raises SealError for everything else; VaultError, or the database's errors, when keys cannot be
    read: a token of which nothing is known is not called invalid then.
    """
    keys = await _sealer(tenant)
    try:
        return keys.unseal(purpose, token, limit)
    except SealError as error:
        if error.reason is not Reason.UNKNOWN_KEY:
            raise
    return keys.with_ring(await _late_keys.ring()).unseal(purpose, token, limit)


async def _sealer(tenant: UUID) -> TenantSealer:
    known = sealer.at_hand(tenant)
    return await in_database(sealer.fetch, tenant) if known is None else known
