"""A client of live lists, in this process."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.test import Client

from mcphost.audit.summaries import selectors
from mcphost.console.live.hub import hub
from mcphost.console.live.routing import urlpatterns
from mcphost.serving.database import in_database

PATIENCE = 20
ACME = "/admin/t/acme/calls/changes/"
ALL = "/admin/calls/changes/"
ORIGIN = "http://localhost"

application = URLRouter(urlpatterns)


def session_of(client: Client) -> str:
    """The key of the session of a signed-in browser."""
    return client.cookies[settings.SESSION_COOKIE_NAME].value


class Reader:
    """A socket of a live list."""

    def __init__(self, path: str, session: str = "", query: str = "", **headers: str) -> None:
        told = {"host": "localhost", "origin": ORIGIN, **headers}
        if session:
            told["cookie"] = f"{settings.SESSION_COOKIE_NAME}={session}"
        self._line = WebsocketCommunicator(
            application,
            f"{path}?{query}",
            [(name.encode(), value.encode("latin-1")) for name, value in told.items()],
        )

    async def connect(self) -> bool:
        accepted, _ = await self._line.connect(PATIENCE)
        return bool(accepted)

    async def message(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(await self._line.receive_from(PATIENCE))
        return found

    async def rows(self) -> list[str]:
        """The HTML of the rows of the next message that has any, or of which some are gone."""
        while True:
            told = await self.message()
            if "rows" in told:
                return [row["html"] for row in told["rows"]]

    async def closed(self) -> int:
        """The code with which the server closes the socket; what came before is dropped."""
        while True:
            event = await self._line.receive_output(PATIENCE)
            if event["type"] == "websocket.close":
                code: int = event["code"]
                return code

    async def say(self, text: str) -> None:
        await self._line.send_to(text_data=text)

    async def leave(self) -> None:
        await self._line.disconnect(timeout=PATIENCE)


@asynccontextmanager
async def reading(
    path: str, session: str = "", query: str | None = None, **headers: str
) -> AsyncIterator[Reader]:
    """A socket that is open and has had its first message."""
    query = f"cursor={await newest()}" if query is None else query
    reader = Reader(path, session, query, **headers)
    assert await reader.connect(), "the socket is refused"
    await reader.message()
    try:
        yield reader
    finally:
        await reader.leave()


async def newest() -> int:
    return await in_database(selectors.newest)


async def ended() -> None:
    """End all sockets, and wait until nothing reads for them any more."""
    hub().drain()
    feeding = hub().feeding
    if feeding is not None:
        await asyncio.wait_for(feeding, PATIENCE)
