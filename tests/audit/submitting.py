"""Submit records from a thread without an event loop."""

import asyncio
from collections.abc import Sequence

from mcphost.audit.records import Record
from mcphost.audit.writer.writer import Writer


def submit_and_wait(
    writer: Writer, records: Sequence[Record], timeout: float | None = None
) -> None:
    """Commit `records` and wait for it. Raises what `submit` raises, and TimeoutError."""

    async def submit() -> None:
        await asyncio.wait_for(writer.submit(records), timeout)

    asyncio.run(submit())
