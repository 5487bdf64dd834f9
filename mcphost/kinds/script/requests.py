"""Outgoing HTTP requests of scripts. A script has handles of secrets, and never their values."""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import orjson

from mcphost.egress.client import EgressLimits
from mcphost.egress.errors import EgressRequestError
from mcphost.egress.messages import (
    IDEMPOTENCY_KEY,
    SAFE_METHODS,
    Content,
    FormBody,
    JsonBody,
    OutgoingRequest,
)
from mcphost.egress.secret_values import SecretHandle, Template, Text
from mcphost.kinds.script.addresses import CallerTexts
from mcphost.protocol.json_values import repaired_json
from mcphost.runtime.ports import Ports

LIMITS: Final = EgressLimits(response_bytes=1024 * 1024, redirects=5)
NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})
"""Methods that are idempotent by themselves (RFC 9110, section 9.2.2)."""


class Requests:
    """Sends the requests of one call. `nonce` makes its handles of secrets unguessable to callers.
    `texts` are those of the caller."""

    def __init__(self, ports: Ports, nonce: str, texts: CallerTexts) -> None:
        self._ports = ports
        self._texts = texts
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

        `request` is method, URL, query parameters, headers, a JSON body, and a form or a text as body.
        Raises EgressError, and ToolError for an address that has a text of the caller where it must not.
        """
        response = await self._ports.http.send(self._request(request, idempotency_key), LIMITS)
        return {
            "status": response.status,
            "headers": dict(response.joined_headers),
            "text": repaired_json(response.body).decode("utf-8", "replace"),
        }

    def _request(self, request: list[Any], idempotency_key: str) -> OutgoingRequest:
        method, url, params, headers, json, data = request
        if not isinstance(url, str):
            raise EgressRequestError("The address of a request is a text.")
        try:
            parts = urlsplit(self._texts.encode(url))
        except ValueError:
            raise EgressRequestError("The URL is malformed.") from None
        target = parts._replace(query="").geturl()
        if self._handle.search(target):
            raise EgressRequestError(
                "A secret goes into a header, the query, a JSON body or a form, not into the address."
            )
        if json is not None and data is not None:
            raise EgressRequestError("A request has `json` or `data`, not both.")
        query = parse_qsl(parts.query, keep_blank_values=True)
        query += _fields("params", params)
        sent = _headers(headers)
        if method not in SAFE_METHODS:
            sent.setdefault(IDEMPOTENCY_KEY.lower(), idempotency_key)
        return OutgoingRequest(
            url=target,
            method=method,
            headers=tuple((name, self._text(value)) for name, value in sent.items()),
            query=tuple((name, self._text(value)) for name, value in query),
            content=self._body(data) if json is None else JsonBody(self._json(json)),
            repeatable=method in _REPEATABLE,
        )

    def _body(self, data: Any) -> Content:
        if isinstance(data, Mapping):
            return FormBody(tuple((name, self._text(v)) for name, v in _fields("data", data)))
        if not isinstance(data, str | None):
            raise EgressRequestError("`data` of a request is a text or an object of fields.")
        if self._handle.search(data or ""):
            raise EgressRequestError(
                'A secret is a field of a form, data={"name": secret("…")}, not a part of a text.'
            )
        return (data or "").encode()

    def _text(self, text: str) -> Text:
        pieces = self._handle.split(text)
        if len(pieces) == 1:
            return text
        # Every second piece is the name of a secret.
        parts = [SecretHandle(piece) if at % 2 else piece for at, piece in enumerate(pieces)]
        return Template(tuple(part for part in parts if part != ""))

    def _json(self, value: Any) -> Any:
        match value:
            case str():
                return self._text(value)
            case list():
                return [self._json(member) for member in value]
            case dict():
                return {key: self._json(member) for key, member in value.items()}
            case _:
                return value


def _headers(headers: Any) -> dict[str, str]:
    """Return the headers by their names in lower case. Raises EgressRequestError."""
    sent: dict[str, str] = {}
    for name, value in _members("headers", headers):
        if isinstance(value, list | Mapping):
            raise EgressRequestError(f"`headers`: {name!r} is a list or an object, not a text.")
        sent[name.lower()] = _plain(value)
    return sent


def _fields(argument: str, fields: Any) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of a query or a form: a list is a field for each of its elements.
    Raises EgressRequestError."""
    for name, value in _members(argument, fields):
        for element in value if isinstance(value, list) else [value]:
            if isinstance(element, list | Mapping):
                raise EgressRequestError(
                    f"`{argument}`: {name!r} has a list or an object in it, which has no one form. "
                    "Write it as a text, such as json.dumps(…)."
                )
            if element is not None:
                yield name, _plain(element)


def _members(argument: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the members of an object that have a value. Raises EgressRequestError."""
    if not isinstance(value or {}, Mapping):
        raise EgressRequestError(f"`{argument}` of a request is an object.")
    yield from ((name, member) for name, member in (value or {}).items() if member is not None)


def _plain(value: Any) -> str:
    """Write a value as JSON does, a text as it is."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
