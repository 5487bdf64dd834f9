"""Many open live lists in one process: `python -m bench.watchers PORT COUNT`, with the cookies in BENCH_COOKIE.

Writes a line of JSON when all are open ({"open": how many}), and for each line that it reads how many rows
all of them have been told since the last one ({"rows"}).
"""

import asyncio
import json
import os
import sys

from websockets.asyncio.client import ClientConnection, connect

SIDE_BY_SIDE = 50
PATIENCE = 60


class Watchers:
    """Sockets of live lists, each read to the end."""

    def __init__(self, port: int, cookie: str) -> None:
        self._address = f"ws://127.0.0.1:{port}/admin/t/demo/calls/changes/?cursor=0"
        self._headers = {"Cookie": cookie, "Origin": f"http://127.0.0.1:{port}"}
        self._rows = 0
        self._reading: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        socket = await connect(
            self._address,
            additional_headers=self._headers,
            open_timeout=PATIENCE,
            proxy=None,
            ping_interval=None,
        )
        await asyncio.wait_for(socket.recv(), PATIENCE)
        self._reading.append(asyncio.create_task(self._read_rows(socket)))

    def rows(self) -> int:
        """How many rows came since the last question. Raises what ended a socket."""
        for reader in self._reading:
            if reader.done():
                reader.result()
        rows, self._rows = self._rows, 0
        return rows

    async def _read_rows(self, socket: ClientConnection) -> None:
        async for message in socket:
            self._rows += len(json.loads(message).get("rows", ()))


async def main(port: int, count: int) -> None:
    watchers = Watchers(port, os.environ["BENCH_COOKIE"])
    for opened in range(0, count, SIDE_BY_SIDE):
        await asyncio.gather(*(watchers.open() for _ in range(min(SIDE_BY_SIDE, count - opened))))
    print(json.dumps({"open": count}), flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps({"rows": watchers.rows()}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
