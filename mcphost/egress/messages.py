"""An outgoing request with its handles, what is sent for it, and the response to it."""

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never
from urllib.parse import quote, quote_plus, urljoin

import orjson

from mcphost.egress.addresses import MAX_URL, Target
from mcphost.egress.errors import EgressRequestError, EgressResponseError
from mcphost.egress.multipart import MultipartBody, encode
from mcphost.egress.secret_values import Filler, SecretHandle, SecretPlace, Text, handles

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS: Final = SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

RESERVED_HEADERS: Final = frozenset(
    [
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
"""Headers of the connection itself, and those that this package sets. In lower case."""
# Every other header of a caller may be a credential, so it stays with the origin it was meant for.
_ACROSS_ORIGINS: Final = frozenset(
    {"accept", "accept-language", "content-type", "idempotency-key", "user-agent"}
)
_SINGLE: Final = frozenset({"content-encoding", "content-type", "location", "retry-after"})
"""Headers of a response that have one value and are read here. Repeated, the last one counts, as RFC
9110, section 8.3, reports of Content-Type; a list of them would be no valid value."""
_APART: Final = "set-cookie"
"""The header that must not be joined by commas, which its values contain (RFC 9110, section 5.3)."""
IDEMPOTENCY_KEY: Final = "Idempotency-Key"
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class EncodedText(str):
    """The text of a parameter or a field that is percent-encoded already, such as `a%2Cb,c`.

    It has no secrets. Only a query and `FormBody` may have it.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A body in JSON. Handles and templates may be any value in it, but no key."""

    value: Any


@dataclass(frozen=True, slots=True)
class FormBody:
    """A body of names and values (`application/x-www-form-urlencoded`)."""

    fields: tuple[tuple[str, Text], ...]


Content = bytes | JsonBody | FormBody | MultipartBody | None


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request as its author describes it.

    `query` is added to that of the URL. `basic` is a user name and a password for the header
    Authorization. `repeatable`: whether it may be sent again if the connection or the service
    fails; None is true for GET, HEAD and OPTIONS only. The other methods are repeated only if there
    is an Idempotency-Key, too, by which the service recognises the repetition; the caller sets it.
    """

    url: str
    method: str = "GET"
    headers: tuple[tuple[str, Text], ...] = ()
    query: tuple[tuple[str, Text], ...] = ()
    basic: tuple[Text, Text] | None = None
    content: Content = None
    repeatable: bool | None = None

    @property
    def may_repeat(self) -> bool:
        if self.method in SAFE_METHODS:
            return self.repeatable is not False
        keyed = any(name.lower() == IDEMPOTENCY_KEY.lower() for name, _ in self.headers)
        return keyed and self.repeatable is True

    def handles(self) -> Iterator[SecretHandle]:
        yield from handles([self.headers, self.query, self.basic])
        yield from self.body_handles()

    def body_handles(self) -> Iterator[SecretHandle]:
        if isinstance(self.content, JsonBody):
            yield from handles(self.content.value)
        elif isinstance(self.content, FormBody | MultipartBody):
            yield from handles(self.content.fields)


@dataclass(frozen=True, slots=True)
class ReceivedResponse:
    """A response, decompressed, with every secret of the tenant masked.

    `url` is where it came from after redirects. Header names are in lower case.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    url: str

    def header(self, name: str) -> str | None:
        """Return the value of a header, or None (RFC 9110, section 5.3).

        Repeated headers are joined by commas, except Set-Cookie by line breaks, and except those
        that have one value, of which the last counts.
        """
        name = name.lower()
        values = [value for header_name, value in self.headers if header_name == name]
        return _joined(name, values) if values else None

    @property
    def joined_headers(self) -> Mapping[str, str]:
        """Every header once, as `header` returns it."""
        values: dict[str, list[str]] = {}
        for name, value in self.headers:
            values.setdefault(name, []).append(value)
        return {name: _joined(name, header_values) for name, header_values in values.items()}


def _joined(name: str, values: Sequence[str]) -> str:
    if name in _SINGLE:
        return values[-1]
    return ("\n" if name == _APART else ", ").join(values)


@dataclass(frozen=True, slots=True, repr=False)
class FilledRequest:
    """What is sent: it has the values of secrets, and is never shown.

    `credentials` are texts that the values are hidden in, to be masked besides the values.
    """

    method: str
    target: Target
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    credentials: tuple[str, ...]


def build(
    request: OutgoingRequest, target: Target, filler: Filler, max_body: int, *, compressed: bool
) -> FilledRequest:
    """Fill in the secrets. Raise EgressRequestError or EgressSecretError if the request is invalid.

    `compressed`: whether the response may be. The length of a compressed response tells whether a secret
    in it is like the text beside it, which the author of the request may have chosen.
    """
    if request.method not in METHODS:
        raise EgressRequestError(f"The method must be one of {', '.join(sorted(METHODS))}.")
    body, content_type = _body(request.content, filler)
    if len(body) > max_body:
        raise EgressRequestError(f"The body of a request may have at most {max_body} bytes.")
    credentials = _basic(request, filler)
    headers = {"host": target.authority, "user-agent": "mcphost", "accept": "*/*"}
    if content_type:
        headers["content-type"] = content_type
    if credentials:
        headers["authorization"] = f"Basic {credentials[0]}"
    headers |= _own_headers(request, filler)
    headers |= {"accept-encoding": "gzip, deflate" if compressed else "identity"}
    if body or request.method not in SAFE_METHODS | {"DELETE"}:
        headers["content-length"] = str(len(body))
    return FilledRequest(
        request.method,
        _with_query(target, request, filler),
        tuple((name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()),
        body,
        credentials,
    )


def redirected(
    request: OutgoingRequest, target: Target, status: int, location: str
) -> tuple[OutgoingRequest, Target]:
    """Return the request that follows a redirect (RFC 9110, section 15.4), and where it goes.

    To another origin go neither secrets nor any header that may be a credential. Raises
    EgressResponseError for a redirect that cannot be followed.
    """
    try:
        following = Target.parse(urljoin(target.url, location))
    except (EgressRequestError, ValueError) as error:
        reason = str(error) if isinstance(error, EgressRequestError) else "It is malformed."
        raise EgressResponseError(
            f"{target.origin} redirects to an invalid URL. {reason}"
        ) from None
    request = replace(request, url=following.url, query=())
    changes = status == 303 or (status in (301, 302) and request.method == "POST")
    if changes and request.method != "HEAD":
        plain = tuple(h for h in request.headers if not h[0].lower().startswith("content-"))
        request = replace(request, method="GET", content=None, headers=plain)
    if following.origin != target.origin:
        if any(request.body_handles()):
            raise EgressResponseError(
                f"{target.origin} redirects a body with a secret to another origin."
            )
        kept = tuple(
            (name, value)
            for name, value in request.headers
            if name.lower() in _ACROSS_ORIGINS and not any(handles(value))
        )
        request = replace(request, headers=kept, basic=None)
    return request, following


def _body(content: Content, filler: Filler) -> tuple[bytes, str | None]:
    match content:
        case None:
            return b"", None
        case bytes():
            return content, None
        case FormBody(fields):
            pairs = _pairs(fields, filler, SecretPlace.BODY)
            return _encoded(pairs, quote_plus), "application/x-www-form-urlencoded"
        case MultipartBody(fields, files, media_types):
            return encode(_pairs(fields, filler, SecretPlace.BODY), files, media_types)
        case JsonBody(value):
            return _json(filler.json(value)), "application/json"
        case _ as never:
            assert_never(never)


def _json(value: Any) -> bytes:
    with suppress(TypeError, RecursionError):
        return orjson.dumps(value)
    # Not from the error, which may quote what the body contains.
    raise EgressRequestError("The body of the request cannot be written as JSON.")


def _basic(request: OutgoingRequest, filler: Filler) -> tuple[str, ...]:
    if request.basic is None:
        return ()
    user, password = (filler.text(text, SecretPlace.HEADER) for text in request.basic)
    if ":" in user:
        raise EgressRequestError("The user name of basic authentication must not contain a colon.")
    return (base64.b64encode(f"{user}:{password}".encode()).decode("ascii"),)


def _own_headers(request: OutgoingRequest, filler: Filler) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for name, text in request.headers:
        lower = name.lower()
        if not _TOKEN.fullmatch(name) or lower in RESERVED_HEADERS:
            raise EgressRequestError(f"A request must not set the header {name!r}.")
        value = filler.text(text, SecretPlace.HEADER).strip(" \t")
        if lower == "authorization" and any(handles(text)):
            value = _encoded_basic(value)
        if not _VALUE.fullmatch(value):
            raise EgressRequestError(f"The value of the header {name!r} has invalid characters.")
        joint = "; " if lower == "cookie" else ", "  # RFC 6265, section 4.2.1
        headers[lower] = f"{headers[lower]}{joint}{value}" if lower in headers else value
    return headers


def _encoded_basic(value: str) -> str:
    """Encode a user and a password after `Basic`. Base64 has no colon, so it is left as it is (RFC 7617,
    section 2)."""
    scheme, _, credentials = value.partition(" ")
    if scheme.lower() != "basic" or ":" not in credentials:
        return value
    return f"{scheme} {base64.b64encode(credentials.strip().encode()).decode('ascii')}"


def _with_query(target: Target, request: OutgoingRequest, filler: Filler) -> Target:
    if not request.query:
        return target
    pairs = _pairs(request.query, filler, SecretPlace.QUERY)
    joint = "&" if "?" in target.path else "?"
    target = replace(target, path=f"{target.path}{joint}{_encoded(pairs, quote).decode()}")
    if len(target.url) > MAX_URL:
        raise EgressRequestError(f"A URL may have at most {MAX_URL} characters.")
    return target


def _pairs(
    fields: Iterable[tuple[str, Text]], filler: Filler, request_part: SecretPlace
) -> list[tuple[str, str]]:
    return [
        (
            filler.text(name, request_part),
            text if isinstance(text, EncodedText) else filler.text(text, request_part),
        )
        for name, text in fields
    ]


def _encoded(pairs: Iterable[tuple[str, str]], encode_text: Callable[..., str]) -> bytes:
    """Write names and values as a query or as the body of a form."""
    written = (
        f"{encode_text(name, safe='')}="
        f"{text if isinstance(text, EncodedText) else encode_text(text, safe='')}"
        for name, text in pairs
    )
    return "&".join(written).encode("ascii")
