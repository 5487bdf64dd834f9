"""Redact secrets in log lines, and shorten them, as a second line of defence.

The first is that no code logs secrets. This module recognizes secrets by their form (our own
tokens, credentials in headers, anything long and opaque) and by the name of their key.
"""

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

REDACTED = "[redacted]"
MAX_DEPTH = 6
MAX_TEXT = 2000
"""Characters of a text in a line: clients and tool authors control the length of logged texts."""
MAX_TRACEBACK = 20_000
MAX_READ = 100_000
CUT_SECRET = 200
"""Characters after which the beginning of a secret is recognized as long and opaque."""
_TRACEBACKS = frozenset({"exception", "stack"})

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # API tokens (`mcph_<id>_<secret>_<checksum>`) and sealed tokens (`mcps1.<key id>.<body>`).
    (re.compile(r"mcph_[0-9A-Za-z_-]+"), f"mcph_{REDACTED}"),
    (re.compile(r"mcps[0-9]\.[0-9A-Za-z_.-]+"), f"mcps_{REDACTED}"),
    # Credentials in headers, as they are sent, or printed as pairs or as a dict.
    (
        re.compile(
            r"""(?ix) ( \b (?:proxy-)? authorization | \b (?:set-)? cookie ) ( ["']? \s* [:=,] \s* b? ["']? )
            [^"'\r\n]+"""
        ),
        rf"\1\2{REDACTED}",
    ),
    (re.compile(r"(?i)\b(bearer)\s+[0-9A-Za-z._~+/=-]{6,}"), rf"\1 {REDACTED}"),
    # A password in a URL.
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,30}://[^\s:/@]*):[^\s/@]+@"), rf"\1:{REDACTED}@"),
    # Values that do not fit, as pydantic quotes them in its errors: to the end of the line.
    (re.compile(r"\binput_value=[^\n]*"), f"input_value={REDACTED}"),
    # Anything else that is long and opaque. Digests in hex (64 digits) are shorter and stay.
    (re.compile(r"(?<![0-9A-Za-z_+/-])[0-9A-Za-z_-]{80,}={0,2}"), REDACTED),
)
_SECRET_WORDS = frozenset(
    [
        "authorization",
        "cookie",
        "cookies",
        "credential",
        "credentials",
        "passphrase",
        "passwd",
        "password",
        "passwords",
        "secret",
        "secrets",
        "token",
        "tokens",
    ]
)
_SECRET_KEYS = frozenset(
    ["api", "access", "master", "private", "secret", "session", "signing", "wrapping", "payload"]
)
_HARMLESS = frozenset({"progress_token"})
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\u0085\u2028\u2029]")


def is_secret_key(name: str) -> bool:
    """Whether a key names a secret: `password`, `api_token`, `requestState`, `master-key`, …

    Decided by its last word, so that `token_id` and `secret_count` do not.
    """
    words = _HUMP.sub("_", name).lower().replace("-", "_").split("_")
    if "_".join(words) in _HARMLESS:
        return False
    last = words[-1]
    before = words[-2] if len(words) > 1 else ""
    return (
        last in _SECRET_WORDS
        or (last == "apikey")
        or (last == "key" and before in _SECRET_KEYS)
        or (last == "state" and before == "request")
    )


def redact_text(text: str) -> str:
    """`text` without anything that looks like a secret, cut after MAX_READ characters.

    Callers control the length of texts, and reading one keeps the process from other work.
    """
    more = len(text) - MAX_READ
    text = text[:MAX_READ]
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    # The last characters may be the beginning of a secret, which is not recognized by itself.
    return text if more <= 0 else f"{text[:-CUT_SECRET]}… [more than {more} more characters]"


def redact(value: Any, depth: int = 0) -> Any:
    """`value` as plain data without secrets. Objects become their `repr`; deep ones are cut."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return redact_text(value)
        case bytes() | bytearray():
            return redact_text(repr(bytes(value)))
        case _ if depth >= MAX_DEPTH:
            return "[too deep]"
        case Mapping():
            return {str(k): _redact_item(str(k), v, depth) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [redact(item, depth + 1) for item in value]
        case _:
            return redact_text(repr(value))


def _redact_item(key: str, value: Any, depth: int) -> Any:
    if is_secret_key(key) and value not in (None, "", False, True):
        return REDACTED
    return redact(value, depth + 1)


def processor(logger: Any, method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    """The structlog processor: redacts the whole line, and keeps its message on one line."""
    clean = {}
    for key, value in event.items():
        # Texts are shortened after the redaction, which recognizes only whole secrets.
        safe = _redact_item(key, value, 0)
        longest = MAX_TRACEBACK if key in _TRACEBACKS else MAX_TEXT
        if isinstance(safe, str) and len(safe) > longest:
            safe = f"{safe[:longest]}… [{len(safe) - longest} more characters]"
        clean[key] = safe
    clean["event"] = _CONTROLS.sub(_escaped, str(clean.get("event", "")))
    return clean


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
