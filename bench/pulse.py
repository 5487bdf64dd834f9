"""How late the event loop of a server is: `python -m bench.pulse PORT`.

Asks again and again for `/healthz`, which the loop answers itself: a response takes as long as something else
keeps the loop. Writes for each line that it reads the longest response since the line before, in seconds, and
how many there were ({"longest", "responses"}).
"""

import asyncio
import json
import sys
import time

PAUSE = 0.002
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Pulse:
    """Requests over one connection, one after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._longest, self._responses = 0.0, 0

    async def beat(self) -> None:
        """Ask until cancelled."""
        while True:
            begun = time.perf_counter()
            self._writer.write(REQUEST)
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await self._reader.readexactly(int(length))
            self._longest = max(self._longest, time.perf_counter() - begun)
            self._responses += 1
            await asyncio.sleep(PAUSE)

    def report(self) -> dict[str, float]:
        """What was seen since the last report."""
        seen = {"longest": self._longest, "responses": self._responses}
        self._longest, self._responses = 0.0, 0
        return seen


async def main(port: int) -> None:
    pulse = Pulse(*await asyncio.open_connection("127.0.0.1", port))
    beating = asyncio.create_task(pulse.beat())
    while await asyncio.to_thread(sys.stdin.readline):
        if beating.done():
            beating.result()
        print(json.dumps(pulse.report()), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
