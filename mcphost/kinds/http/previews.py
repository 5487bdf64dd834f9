"""The request of an HTTP tool as it would be sent, with its headers, for the author of the tool. Nothing is sent.

It is made by the code that makes the requests of calls. Where a secret belongs, it has the name of the secret.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mcphost.egress.addresses import AllowedHost, Target
from mcphost.egress.client import EgressLimits
from mcphost.egress.messages import FilledRequest, OutgoingRequest, build
from mcphost.egress.secret_values import Filler, Secret, SecretPlace
from mcphost.kinds.http.configs import RequestConfig
from mcphost.kinds.http.numbers import IntegerArguments
from mcphost.kinds.http.requests import RequestTemplate
from mcphost.kinds.http.templates import ANSWERS, ARGUMENTS

KEY_EXAMPLE: Final = "one-for-each-call"
"""Stands for the Idempotency-Key, which differs from call to call."""
_STANDS: Final = "secret-5f2c9d-{}-d9c2f5"
"""Stands for a secret, with its name in hexadecimal: characters that no encoding changes."""
_BASIC: Final = re.compile(r"(?i)(basic) ([A-Za-z0-9+/=]+)")


@dataclass(frozen=True, slots=True)
class RequestPreview:
    """A request as it would be sent. Header names are in lower case; `body` is empty without one."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: str


def preview_of(
    config: RequestConfig,
    schema: Mapping[str, Any],
    arguments: dict[str, Any],
    answers: Mapping[str, Any],
    *,
    has_secrets: bool,
) -> RequestPreview:
    """Return the request for these arguments and answers.

    `has_secrets`: whether the tenant has any, for which responses are not compressed. Raises ToolError and
    EgressError as a call would.
    """
    values = {ARGUMENTS: IntegerArguments(schema).read(arguments), ANSWERS: answers}
    request = RequestTemplate(config).fill(values, KEY_EXAMPLE)
    target = Target.parse(request.url)
    names = {handle.name for handle in request.handles()}
    stands = {name: _STANDS.format(name.encode().hex()) for name in names}
    hosts = (AllowedHost(target.scheme, target.host, target.port),)
    everywhere = frozenset(SecretPlace)
    secrets = {name: Secret(stand, hosts, everywhere) for name, stand in stands.items()}
    limit = EgressLimits().request_bytes
    message = build(request, target, Filler(secrets, target), limit, compressed=not has_secrets)
    return RequestPreview(
        message.method,
        _with_secrets_named(message.target.url, stands),
        tuple(_headers(message, request, stands)),
        _body_text(message.body, stands),
    )


def _headers(
    message: FilledRequest, request: OutgoingRequest, stands: Mapping[str, str]
) -> Iterable[tuple[str, str]]:
    has_secret_body = any(request.body_handles())
    for name, value in message.headers:
        # The length of a body with a secret would be that of the name.
        if not (name == b"content-length" and has_secret_body):
            text = _BASIC.sub(partial(_opened, stands), value.decode("latin-1"))
            yield name.decode("ascii"), _with_secrets_named(text, stands)


def _opened(stands: Mapping[str, str], match: re.Match[str]) -> str:
    """Return credentials with the names of their secrets, if they have any."""
    try:
        text = base64.b64decode(match[2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return match[0]
    has_secret = any(stand in text for stand in stands.values())
    return f"{match[1]} base64({text})" if has_secret else match[0]


def _with_secrets_named(text: str, stands: Mapping[str, str]) -> str:
    for name, stand in stands.items():
        text = text.replace(stand, f"{{secrets.{name}}}")
    return text


def _body_text(body: bytes, stands: Mapping[str, str]) -> str:
    try:
        return _with_secrets_named(body.decode(), stands)
    except UnicodeDecodeError:
        return f"({len(body)} bytes that are no text)"
