"""Resource URIs: their normal form and what is allowed (spec: server/resources, "Common URI
Schemes"; RFC 3986).

URIs are compared as text. So that one resource has one text, resources are registered under their
normal form, and the URI of a request is normalized first: the scheme in lower case;
percent-encodings in upper case and only where they are needed; for a web address also the host in
lower case, and `/` for the empty path. Nothing else is changed, because it may be significant: in
`users://Ada/notes`, the authority is not a host name.
"""

import re
from typing import Final
from urllib.parse import quote

from mcphost.protocol.json_values import without_lone_surrogates

MAX_LENGTH: Final = 2048
"""In characters: the longest request line that is safe on the web."""

_UNRESERVED: Final = r"A-Za-z0-9._~\-"
_RESERVED: Final = r":/?#\[\]@!$&'()*+,;="
_ILLEGAL: Final = re.compile(rf"[^{_UNRESERVED}{_RESERVED}%]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_PLAIN: Final = re.compile(rf"[{_UNRESERVED}]")
_UNENCODED: Final = re.compile(rf"{_ILLEGAL.pattern}|{_BAD_ESCAPE.pattern}|[\[\]]|#[^#]*#")
_UNENCODED_SIGN: Final = re.compile(rf"{_BAD_ESCAPE.pattern}|[\[\]]")
_START: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/?#]*)?")
_PARTS: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/?#]*))?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?"
)
_HOST: Final = re.compile(
    r"(?P<user>[^@]*@)?(?P<host>\[[0-9A-Za-z.:]+\]|[^\[\]@:]*)(?P<port>:\d*)?"
)
_BRACKETS: Final = re.compile(r"[\[\]]")
_DOTS: Final = frozenset({".", ".."})
_WEB: Final = frozenset({"http", "https"})


def check_uri(uri: str) -> str | None:
    """Return the problem that keeps a URI from being the URI of a resource, or None.

    A URI that passes is in its normal form. For one that is not, the problem includes the normal
    form.
    """
    try:
        normal = normalize(uri)
    except ValueError as error:
        return str(error)
    return None if normal == uri else f"the URI is not normalized; use {normal}"


def normalize(uri: str) -> str:
    """Return the normal form of an absolute URI. Raises ValueError, with the reason, for an invalid
    URI."""
    if len(uri) > MAX_LENGTH:
        raise ValueError(f"the URI has more than {MAX_LENGTH} characters")
    illegal = _ILLEGAL.search(uri)
    if illegal is not None:
        raise ValueError(f"the URI has {illegal[0]!a}, which must be percent-encoded")
    if _BAD_ESCAPE.search(uri) is not None:
        raise ValueError("the URI has a % that two hexadecimal digits do not follow")
    parts = _PARTS.fullmatch(_ESCAPE.sub(_escaped, uri))
    if parts is None:
        raise ValueError("the URI does not begin with a scheme, such as docs:")
    scheme, authority, path = parts["scheme"].lower(), parts["authority"], parts["path"]
    query, fragment = parts["query"], parts["fragment"]
    if any(_BRACKETS.search(part) is not None for part in (path, query or "", fragment or "")):
        raise ValueError("the URI has brackets, which may only stand around an IP address")
    if "#" in (fragment or ""):
        raise ValueError("the URI has a second #")
    if not _DOTS.isdisjoint(path.split("/")):
        raise ValueError("the URI's path has . or .. for a segment")
    if authority is None and not path:
        raise ValueError("the URI has nothing after its scheme")
    if scheme in _WEB:
        path = path or "/"
    where = "" if authority is None else "//" + _authority(authority, web=scheme in _WEB)
    return f"{scheme}:{where}{path}{_led('?', query)}{_led('#', fragment)}"


def percent_encoded(text: str) -> str:
    """Return a URI as clients write it with what must be percent-encoded encoded: letters, blanks and signs
    that a person typed into a template, which not every client encodes.

    A legal URI, a text that is too long for one, and one with U+0000, which no database stores, stay as they
    are.
    """
    if len(text) > MAX_LENGTH or "\0" in text or _UNENCODED.search(text) is None:
        return text
    start = _START.match(text)
    end = 0 if start is None else start.end()
    parts, mark, fragment = text[end:].partition("#")
    rest = parts + mark + fragment.replace("#", "%23")
    encoded = _UNENCODED_SIGN.sub(_encode, rest) if end else rest
    return _ILLEGAL.sub(_encode, text[:end] + encoded)


def _encode(characters: re.Match[str]) -> str:
    return quote(without_lone_surrogates(characters[0]), safe="")


def _authority(authority: str, *, web: bool) -> str:
    parts = _HOST.fullmatch(authority)
    if parts is None or (web and not parts["host"]):
        raise ValueError("what follows // in the URI is not a host, or a host and a port")
    if not web:
        return authority
    host = _ESCAPE.sub(lambda escape: escape[0].upper(), parts["host"].lower())
    return (parts["user"] or "") + host + (parts["port"] or "")


def _led(mark: str, part: str | None) -> str:
    return "" if part is None else mark + part


def _escaped(escape: re.Match[str]) -> str:
    """Normalize one percent-encoding: the character itself where that means the same, else upper
    case."""
    character = chr(int(escape[0][1:], 16))
    return character if _PLAIN.fullmatch(character) else escape[0].upper()
