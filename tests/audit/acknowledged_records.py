"""A process that records as fast as it can and prints which records were acknowledged.

test_killed_process.py runs it, and kills it while it writes.
"""

import asyncio
import os
import sys
from datetime import UTC, datetime
from uuid import UUID

import django

TENANT = UUID(int=7)


async def recording() -> None:
    writer.start()

    async def one_caller() -> None:
        while True:
            job = [
                Record(new_id(), datetime.now(UTC), action="a", actor_kind="system"),
                Record(
                    new_id(), datetime.now(UTC), TENANT, action="b", actor_kind="system",
                    payload={"text": "x" * 100},
                ),
            ]  # fmt: skip
            await writer.submit(job)
            os.write(1, "".join(f"{record.id}\n" for record in job).encode())

    await asyncio.gather(*(one_caller() for _ in range(16)))


if __name__ == "__main__":
    django.setup()

    from django.core.management import call_command

    from mcphost.audit.ports import set_payload_cipher
    from mcphost.audit.records import Record, new_id
    from mcphost.audit.writer.writer import writer
    from tests.audit.ciphers import XorCipher

    if "--migrate" in sys.argv:
        call_command("migrate", "audit", verbosity=0)
    set_payload_cipher(XorCipher())
    asyncio.run(recording())
