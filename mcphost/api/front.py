"""What surrounds the API's views in the ASGI application. It needs no Django REST framework.

Requests are counted before anything is read, and every error becomes a problem: also those of the
server around the views, which would be pages or plain text.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from django.utils import timezone

from mcphost.api.problems import MEDIA_TYPE, ApiProblem, ProblemType
from mcphost.feed.cache import MISS
from mcphost.identity import selectors
from mcphost.identity.attempts import network
from mcphost.listings.exports import MEDIA_TYPES as FILE_TYPES
from mcphost.protocol.headers import Headers
from mcphost.serving.limits import WINDOW_SECONDS, ApiAllowance, count_api_request
from mcphost.serving.options import options
from mcphost.tenants.roles import Audience

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]

_PASSED_ON: Final = (b"retry-after", b"allow")
_MEDIA_TYPES: Final = tuple(
    media_type.encode() for media_type in ("application/json", MEDIA_TYPE, *FILE_TYPES.values())
)
_DETAILS: Final = {
    ProblemType.MALFORMED: "The request cannot be served as it is.",
    ProblemType.NOT_FOUND: "There is nothing at this address. The API is below /api/v1/.",
    ProblemType.TOO_LARGE: "Send a smaller body.",
    ProblemType.INTERNAL: "The server failed. Its log says why.",
    ProblemType.UNAVAILABLE: "The server is busy, or its database is away. Try again in a moment.",
}


class ApiFront:
    """The application of the API's views."""

    def __init__(self, views: Any) -> None:
        self._views = views

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        allowance = _count(scope)
        answer = _ApiAnswer(scope["path"], allowance, send)
        if allowance.retry_after:
            await answer.refuse_for_rate()
            return
        await self._views(scope, receive, answer.send)


class _ApiAnswer:
    """The response on its way back: JSON and exported files as they are, anything else as a problem."""

    def __init__(self, path: str, allowance: ApiAllowance, send: Send) -> None:
        self._path = path
        self._allowance = allowance
        self._send = send
        self._replaced = False

    async def send(self, event: dict[str, Any]) -> None:
        """Send an event of the views, or a problem once in its place."""
        if event["type"] == "http.response.start":
            headers = [(name.lower(), value) for name, value in event["headers"]]
            if _is_for_programs(event["status"], headers):
                event = {**event, "headers": [*headers, *self._rate_headers()]}
            else:
                self._replaced = True
                await self._send_problem(event["status"], headers)
        if not self._replaced:
            await self._send(event)

    async def refuse_for_rate(self) -> None:
        """Answer 429."""
        detail = f"The limit is {self._allowance.limit} requests per minute."
        await self._respond(ApiProblem(ProblemType.TOO_MANY, detail, self._path), [])

    async def _send_problem(self, status: int, headers: RawHeaders) -> None:
        problem_type = ProblemType.of_status(status if status >= 400 else 404)
        detail = _DETAILS.get(problem_type, problem_type.title)
        passed_on = [pair for pair in headers if pair[0] in _PASSED_ON]
        await self._respond(ApiProblem(problem_type, detail, self._path), passed_on)

    async def _respond(self, problem: ApiProblem, headers: RawHeaders) -> None:
        body = problem.encoded()
        own: RawHeaders = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]
        start = {"type": "http.response.start", "status": problem.type.status}
        await self._send({**start, "headers": [*own, *headers, *self._rate_headers()]})
        await self._send({"type": "http.response.body", "body": body})

    def _rate_headers(self) -> RawHeaders:
        """Return the limit and what is left of it (draft-ietf-httpapi-ratelimit-headers)."""
        limit, remaining, retry_after = self._allowance
        state = f'"requests";r={remaining};t={retry_after or WINDOW_SECONDS}'
        headers = [
            (b"ratelimit-policy", f'"requests";q={limit};w={WINDOW_SECONDS}'.encode()),
            (b"ratelimit", state.encode()),
        ]
        return [*headers, (b"retry-after", b"%d" % retry_after)] if retry_after else headers


def _count(scope: Mapping[str, Any]) -> ApiAllowance:
    """Count a request for its token, if it is known to work, else for its address."""
    header = Headers(scope["headers"]).get("authorization") or ""
    scheme, _, bearer = header.partition(" ")
    default = options().api_requests_per_minute
    if scheme.lower() == "bearer":
        authenticated = selectors.cached(bearer.strip(), Audience.API, None, timezone.now())
        if authenticated is not None and authenticated is not MISS:
            limit = authenticated.calls_per_minute or default
            return count_api_request(authenticated.principal.token_id or "", limit)
    client = scope.get("client")
    return count_api_request(network(client[0] if client else ""), default)


def _is_for_programs(status: int, headers: RawHeaders) -> bool:
    media_type = dict(headers).get(b"content-type", b"")
    return status in (204, 304) or media_type.startswith(_MEDIA_TYPES)
