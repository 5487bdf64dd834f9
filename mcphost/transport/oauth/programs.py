"""Endpoints for programs: what they send is checked before Django, and they never receive HTML."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mcphost.protocol.headers import Headers
from mcphost.transport import cors
from mcphost.transport.oauth.refusals import answered_before_method, refuse
from mcphost.transport.request import Receive
from mcphost.transport.response import RawHeaders, Send

FORM: Final = "application/x-www-form-urlencoded"
FORM_BYTES: Final = 64 * 1024
REGISTRATION_BYTES: Final = 16 * 1024

_PASSED_ON: Final = (b"retry-after", b"allow")
_DESCRIPTIONS: Final = {
    404: "There is nothing at this address.",
    413: "The request is too large.",
    500: "The server failed. Its log says why.",
    503: "The server is busy. Try again in a moment.",
}


class _EarlyRefusal(NamedTuple):
    status: int
    description: str
    headers: RawHeaders = ()


class ForPrograms:
    """An application whose views take POST only, with a body of one media type and at most `limit` bytes.

    All responses are JSON, may be read by any web page, and are not stored. What Django or its
    surroundings answer otherwise, such as the page for an error, becomes an error of OAuth.
    """

    def __init__(self, views: Any, media_type: str, limit: int) -> None:
        self._views = views
        self._media_type = media_type
        self._limit = limit

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        headers = Headers(scope["headers"])
        if await answered_before_method(headers, scope["method"], send):
            return
        refusal = self._refusal(headers, scope["method"])
        if refusal is None and scope.get("query_string"):
            # Addresses are logged on the way, and by Django (RFC 6749 section 2.3.1).
            refusal = _EarlyRefusal(400, "Send parameters in the body, not in the address.")
        if refusal is not None:
            await refuse(send, *refusal)
            return
        exchange = _Exchange(receive, send, self._limit)
        await self._views(scope, exchange.receive, exchange.send)
        if exchange.too_large:
            await refuse(send, *self._too_large())

    def _refusal(self, headers: Headers, method: str) -> _EarlyRefusal | None:
        """Why the request is refused unread; None if it is not."""
        if method != "POST":
            return _EarlyRefusal(405, "Send POST.", [(b"allow", b"POST, OPTIONS")])
        media_type = (headers.get("content-type") or "").partition(";")[0].strip().lower()
        if media_type != self._media_type:
            return _EarlyRefusal(415, f"Content-Type must be {self._media_type}.")
        if (headers.get("content-encoding") or "identity").lower() != "identity":
            return _EarlyRefusal(
                415, "Content-Encoding is not supported: send the body uncompressed."
            )
        length = headers.get("content-length") or "0"
        if length.isdecimal() and int(length[:20]) > self._limit:
            return self._too_large()
        return None

    def _too_large(self) -> _EarlyRefusal:
        return _EarlyRefusal(413, f"The body is larger than {self._limit} bytes.")


class _Exchange:
    """One request on its way to the views, and their response on its way back."""

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive = receive
        self._send = send
        self._unread = limit
        self._replaced = False

    @property
    def too_large(self) -> bool:
        return self._unread < 0

    async def receive(self) -> dict[str, Any]:
        """The next event; `http.disconnect` instead of what exceeds the limit."""
        event = await self._receive()
        self._unread -= len(event.get("body", b""))
        return {"type": "http.disconnect"} if self.too_large else event

    async def send(self, event: dict[str, Any]) -> None:
        """Send an event of the response if it is JSON, else an error once."""
        if event["type"] == "http.response.start":
            headers = [(name.lower(), value) for name, value in event["headers"]]
            media_type = dict(headers).get(b"content-type", b"")
            self._replaced = not media_type.startswith(b"application/json")
            if self._replaced:
                status = event["status"] if event["status"] >= 400 else 500
                description = _DESCRIPTIONS.get(status, "The request could not be answered.")
                passed_on = [pair for pair in headers if pair[0] in _PASSED_ON]
                await refuse(self._send, status, description, passed_on)
                return
            own = [pair for pair in headers if pair[0] != b"cache-control"]
            event["headers"] = [*own, (b"cache-control", b"no-store"), *cors.ANYONE]
        if not self._replaced:
            await self._send(event)
