"""What may be sent to pages for people: Django keeps all of it on disk before it looks who sends it."""

from collections.abc import Mapping
from typing import Any

from mcphost.protocol.headers import Headers
from mcphost.transport.bodies import Receive
from mcphost.transport.options import options
from mcphost.transport.responder import Send

GONE = {"type": "http.disconnect"}


class Limited:
    """An ASGI application whose requests have bodies of at most `MCPHOST_FORM_LIMIT` bytes.

    What says that it is larger is refused unread, what turns out to be is given up; both get 413.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        limit = options().form_limit
        length = Headers(scope["headers"]).raw(b"content-length") or b"0"
        if length.isdigit() and int(length[:20]) > limit:
            await _refuse(send, limit)
            return
        body = _Body(receive, limit)
        await self._application(scope, body.receive, send)
        if body.too_large:
            await _refuse(send, limit)


class _Body:
    """Counts what comes, and says that the client has gone when it is too much."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._left = limit

        self.too_large = False

    async def receive(self) -> dict[str, Any]:
        event = GONE if self.too_large else await self._receive()
        self._left -= len(event.get("body", b""))
        self.too_large = self._left < 0
        return GONE if self.too_large else event


async def _refuse(send: Send, limit: int) -> None:
    body = b"The request is larger than %d bytes.\n" % limit
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
