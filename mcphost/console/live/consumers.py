"""The sockets of live lists, as Channels consumers. Only pages of this server may open them."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from channels.consumer import get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.http import QueryDict, parse_cookie
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain

from mcphost.console.live.hub import Arrival, hub
from mcphost.console.live.sockets import CloseCode, LiveSocket
from mcphost.console.live.views import cursor_of
from mcphost.console.models import FilteredList
from mcphost.console.records.filters import RecordFilter

MAX_QUERY_BYTES = 4096
_SESSION_KEY = re.compile(r"[0-9a-z]{8,40}")


class LiveListConsumer(AsyncWebsocketConsumer):
    """Sends a client the rows of its list that change. The client sends nothing.

    A client of another origin, without a session, or without the right to read is refused before the
    handshake ends, all alike.
    """

    channel_layer_alias = ""  # none: what changed is read from the database
    listing = FilteredList.CALLS
    _socket: LiveSocket | None = None
    _writing: asyncio.Task[None] | None = None

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Call the handler of a message. (Channels' own enters a thread first, for the database.)"""
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        arrival = arrival_of(self.scope, self.listing)
        self._socket = None if arrival is None else await hub().admit(arrival)
        if self._socket is None:
            await self.close()
            return
        await self.accept()
        self._writing = asyncio.get_running_loop().create_task(self._write(self._socket))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._socket is not None:
            self._socket.end(CloseCode.UNEXPECTED)
            hub().remove(self._socket)

    async def disconnect(self, code: int) -> None:
        if self._socket is not None:
            hub().remove(self._socket)
        if self._writing is not None:
            self._writing.cancel()

    async def websocket_disconnect(self, message: Any) -> None:
        await self.disconnect(message.get("code", 1006))
        raise StopConsumer

    async def _write(self, socket: LiveSocket) -> None:
        while (text := await socket.message()) is not None:
            await self.send(text_data=text)
        await self.close(code=socket.code)


class QuestionsConsumer(LiveListConsumer):
    """The same for the list of questions."""

    listing = FilteredList.QUESTIONS


def arrival_of(scope: Any, listing: FilteredList) -> Arrival | None:
    """Return what a handshake asks for; None for one that is refused unread."""
    headers = headers_of(scope)
    query = scope["query_string"]
    if len(query) > MAX_QUERY_BYTES or not is_own_origin(scope.get("scheme", "ws"), headers):
        return None
    cookies = parse_cookie("; ".join(headers.get("cookie", ())))
    session = cookies.get(settings.SESSION_COOKIE_NAME, "")
    fields = QueryDict(query)
    cursor = cursor_of(fields.get("cursor", ""))
    if cursor is None or not _SESSION_KEY.fullmatch(session):
        return None
    return Arrival(
        session, scope["url_route"]["kwargs"].get("slug"), RecordFilter.of(fields), cursor, listing
    )


Headers = Mapping[str, Sequence[str]]
_SCHEMES = {"ws": "http", "wss": "https"}


def headers_of(scope: Mapping[str, Any]) -> Headers:
    """Return the values of each header of an ASGI scope."""
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return headers


def is_own_origin(scheme: str, headers: Headers) -> bool:
    """Return whether `Origin` is this server's or in MCPHOST_TRUSTED_ORIGINS, as for forms."""
    origins, hosts = headers.get("origin", ()), headers.get("host", ())
    if len(origins) != 1 or len(hosts) != 1:
        return False
    origin, host = origins[0], hosts[0]
    domain, _ = split_domain_port(host)
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        return False
    if origin == f"{_SCHEMES.get(scheme, 'https')}://{host}":
        return True
    return any(_is_trusted(origin, trusted) for trusted in settings.CSRF_TRUSTED_ORIGINS)


def _is_trusted(origin: str, trusted: str) -> bool:
    if "*" not in trusted:
        return origin == trusted
    try:
        trusted_url, origin_url = urlsplit(trusted), urlsplit(origin)
    except ValueError:
        return False
    return trusted_url.scheme == origin_url.scheme and is_same_domain(
        origin_url.netloc, trusted_url.netloc.lstrip("*")
    )
