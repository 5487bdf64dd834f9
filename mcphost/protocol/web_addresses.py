"""Web addresses in texts and in URL-mode questions (spec: client/elicitation, "Safe URL Handling").

An address that the user is asked to open has a field of its own, which clients show in full before
they ask for consent. The texts of a form must contain no address: users would follow it unchecked.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from mcphost.protocol.secret_names import looks_secret, words_of
from mcphost.protocol.uris import normalize

_LINK: Final = re.compile(
    r"""
    [a-z][a-z0-9+.-]{0,30}:\\?/\\?/                         # any scheme with an authority
    | (?<![\w.-])(?:javascript|vbscript|mailto|sms|tel|callto|facetime|skype|whatsapp|magnet|intent
        |bitcoin|geo|view-source|blob|file):[^\s:]
    | (?<![\w.-])data:[\w.+-]*[/;,]
    | (?<![\w.-])www\.\w
    | (?<![\w:/])//\w[\w-]*\.\w                             # the scheme of the page
    | (?<![\w.@/-])(?:\w[\w-]*\.)+[^\W\d_]{2,}(?::\d+)?/    # a host and a path
    | (?<![\w.@/-])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?/(?!\d)  # not of a network: 10.0.0.0/8
    | (?<![\w.@/-])localhost(?::\d+)?/
    | \]\(\s*[^\s)]                                         # Markdown: [text](address)
    | ^[ \t]*\[[^\]\n]+\]:[ \t]*\S*(?:/|\.[^\W\d_]{2})      # Markdown: [name]: address
    | <[a-z][^<>]*\b(?:href|src|action|formaction|data)\s*= # HTML
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""What clients turn into a link."""

_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that need no encryption: the traffic does not leave the machine."""

_SENSITIVE: Final = re.compile(
    r"key|pass|code|sid|sess|session(?: ?id)?|sig|signature|ticket|auth|assertion|cookie|magic(?: link)?"
    r"|saml (?:response|request)|(?:e ?)?mail(?: ?address)?|login(?: hint)?|user(?: ?name| ?id)?"
    r"|(?:tele|mobile ?)?phone(?: number)?|mobile number|tel|msisdn|(?:first|last|full|given|family) ?name"
    r"|surname|dob|date of birth|birth ?da(?:te|y)|street(?: address)?|passport(?: number)?"
)
"""Names of parameters that hold credentials or identify a person, beside those that `looks_secret`
recognizes (spec: client/elicitation, "Safe URL Handling": no sensitive information about the end
user, and no pre-authenticated address)."""
_LAST_WORDS: Final = frozenset({"signature", "sig", "ticket", "auth", "email", "phone"})
"""Words that are one of these names with any words before them: `X-Amz-Signature`."""
_ENDINGS: Final = ("token", "sessionid", "sessid", "apikey", "signature", "password")
_NAMES: Final = frozenset(
    {"name", "display name", "real name", "customer name", "person", "contact"}
)
"""Names of parameters that hold the name of a person, or of something else."""

_VALUES: Final = (
    (re.compile(r"(?<![\w.-])eyJ[\w-]{5,}\.[\w-]+\.", re.ASCII), "a signed token"),
    (
        re.compile(
            r"(?<![\w.-])(?:gh[pousr]_\w{20}|github_pat_\w{20}|glpat-[\w-]{16}|xox[abeoprs]-\w{6}"
            r"|[sr]k-[\w-]{20}|[spr]k_live_\w{8}|AKIA[A-Z0-9]{12}|ASIA[A-Z0-9]{12}|AIza[\w-]{30}"
            r"|ya29\.[\w-]{8}|npm_\w{30}|hf_\w{30}|SG\.[\w-]{16})",
            re.ASCII,
        ),
        "a token of a service",
    ),
    (
        re.compile(r"\b(?:Bearer|Basic)\s+[\w.~+/=-]{8}", re.IGNORECASE),
        "a header with a credential",
    ),
    (re.compile(r"(?<![\w.%+-])[\w.%+-]+@[\w-]+\.[\w.-]*\w"), "an e-mail address"),
    (re.compile(r"(?<!\w)\+[1-9](?:[ ()./-]?\d){7,14}(?!\d)"), "a telephone number"),
)
"""Values that are a credential or identify a person whatever their parameter is called."""
_OPAQUE: Final = re.compile(r"(?=[\w.~-]*\d)(?=[\w.~-]*[A-Za-z])[\w.~-]{16,}", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MAX_NESTING: Final = 4


def mentions_one(text: str) -> bool:
    """Whether a text contains something that clients would turn into a link."""
    visible = "".join(char for char in text if char.isascii() or unicodedata.category(char) != "Cf")
    return _LINK.search(html.unescape(unicodedata.normalize("NFKC", visible))) is not None


def url_problem(url: Any) -> str | None:
    """Return the problem that keeps an address from being one that users are asked to open, or
    None."""
    if not isinstance(url, str):
        return "the address must be a text"
    try:
        normalize(url)
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("https", "http"):
        return "the address must begin with https://"
    if not parts.hostname:
        return "the address must name a host"
    exposed = next(_exposed(url, _MAX_NESTING), None)
    if exposed is not None:
        return f"the address must not contain {exposed}: users would share it"
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        return "the address must begin with https:// (http:// is for localhost only)"
    return None


def _exposed(address: str, nesting: int) -> Iterator[str]:
    """Yield what an address contains of credentials and of persons, also in addresses inside it."""
    try:
        parts = urlsplit(address)
    except ValueError:  # a value that only resembles an address
        parts = SplitResult("", "", address, "", "")
    if "@" in parts.netloc:
        yield "a user name or password"
    values = [unquote(parts.path), unquote(parts.fragment)]
    for name, value in _parameters(parts):
        if _is_sensitive(name, value):
            yield f"the parameter {name!r}"
        values.append(value or name)
    for value in values:
        yield from (content for pattern, content in _VALUES if pattern.search(value))
        if nesting and value not in (address, parts.path, parts.fragment):
            yield from _exposed(value, nesting - 1)
    if _has_opaque_segment(parts.path.split("/")):
        yield "a token in its path"


def _parameters(parts: SplitResult) -> Iterator[tuple[str, str]]:
    """Yield the parameters of the query, of the fragment, and of segments of the path."""
    texts = [parts.query, *(segment.partition(";")[2] for segment in parts.path.split("/"))]
    before, _, routed = parts.fragment.rpartition("?")
    texts += [text for text in (before, routed) if "=" in text]  # an anchor is no parameter
    for text in texts:
        yield from parse_qsl(text.replace(";", "&"), keep_blank_values=True)


def _is_sensitive(name: str, value: str) -> bool:
    words = words_of(name)
    if not words:
        return False
    plain = " ".join(words)
    return (
        _SENSITIVE.fullmatch(plain) is not None
        or words[-1] in _LAST_WORDS
        or (len(words) == 1 and plain.endswith(_ENDINGS))
        or looks_secret(name)
        or (plain in _NAMES and _is_name_of_person(value))
    )


def _is_name_of_person(value: str) -> bool:
    """Whether a value is two to four words that begin with a capital letter."""
    words = value.split()
    return 2 <= len(words) <= 4 and all(word[0].isupper() and not word.isupper() for word in words)


def _has_opaque_segment(segments: list[str]) -> bool:
    """Whether a segment that stands for a secret is followed by one that reads as its value."""
    return any(
        _OPAQUE.fullmatch(value) and not _UUID.fullmatch(value)
        for name, value in pairwise(segments)
        if name and _is_sensitive(name, "")
    )
