"""Outgoing HTTP requests of scripts. A script has handles of secrets, and never their values."""

import re
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from mcphost.egress.client import EgressLimits
from mcphost.egress.errors import EgressRequestError
from mcphost.egress.messages import (
    IDEMPOTENCY_KEY,
    SAFE_METHODS,
    JsonBody,
    OutgoingRequest,
)
from mcphost.egress.secret_values import SecretHandle, Template, Text
from mcphost.runtime.ports import Ports

LIMITS: Final = EgressLimits(response_bytes=1024 * 1024, redirects=5)
NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})
"""Methods that are idempotent by themselves (RFC 9110, section 9.2.2)."""


class Requests:
    """Sends the requests of one call. `nonce` makes its handles of secrets unguessable to callers."""

    def __init__(self, ports: Ports, nonce: str) -> None:
        self._ports = ports
        self._nonce = nonce

    @cached_property
    def _handle(self) -> re.Pattern[str]:
        """What finds handles. Most scripts send nothing, and compiling takes a while."""
        return re.compile(rf"secret:({NAME.pattern}):{self._nonce}")

    def handle(self, name: str) -> str:
        """Return what stands for a secret in the sandbox."""
        return f"secret:{name}:{self._nonce}"

    async def send(self, request: list[Any], idempotency_key: str) -> dict[str, Any]:
        """Send a request, with the secrets that it names, and return the response without them.

        `request` is method, URL, query parameters, headers, a JSON body and a text body. Raises
        EgressError.
        """
        response = await self._ports.http.send(self._request(request, idempotency_key), LIMITS)
        return {
            "status": response.status,
            "headers": dict(response.joined_headers),
            "text": response.body.decode("utf-8", "replace"),
        }

    def _request(self, request: list[Any], idempotency_key: str) -> OutgoingRequest:
        method, url, params, headers, json, data = request
        if not isinstance(url, str) or not isinstance(data, str | None):
            raise EgressRequestError("The address and `data` of a request are texts.")
        if not isinstance(params or {}, dict) or not isinstance(headers or {}, dict):
            raise EgressRequestError("`params` and `headers` of a request are objects.")
        try:
            parts = urlsplit(url)
        except ValueError:
            raise EgressRequestError("The URL is malformed.") from None
        target = parts._replace(query="").geturl()
        if self._handle.search(target) or self._handle.search(data or ""):
            raise EgressRequestError(
                "A secret goes into a header, the query or a JSON body, not into the address or `data`."
            )
        query = parse_qsl(parts.query, keep_blank_values=True)
        query += [(str(name), str(value)) for name, value in (params or {}).items()]
        sent = {str(name).lower(): str(value) for name, value in (headers or {}).items()}
        if method not in SAFE_METHODS:
            sent.setdefault(IDEMPOTENCY_KEY.lower(), idempotency_key)
        return OutgoingRequest(
            url=target,
            method=method,
            headers=tuple((name, self._text(value)) for name, value in sent.items()),
            query=tuple((name, self._text(value)) for name, value in query),
            content=(data or "").encode() if json is None else JsonBody(self._json(json)),
            repeatable=method in _REPEATABLE,
        )

    def _text(self, text: str) -> Text:
        pieces = self._handle.split(text)
        if len(pieces) == 1:
            return text
        # Every second piece is the name of a secret.
        parts = [SecretHandle(one) if at % 2 else one for at, one in enumerate(pieces)]
        return Template(tuple(one for one in parts if one != ""))

    def _json(self, value: Any) -> Any:
        match value:
            case str():
                return self._text(value)
            case list():
                return [self._json(one) for one in value]
            case dict():
                return {key: self._json(one) for key, one in value.items()}
            case _:
                return value
