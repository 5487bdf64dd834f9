"""Whether a field's name says that its value is a secret.

Secrets must not be mirrored into headers, which proxies see and log (spec: server/tools,
"x-mcp-header"), nor be asked for in a form. Only the name is there to go by, so whole words
count: `max_tokens` and `pinned` are nobody's secret.
"""

import re
from collections.abc import Sequence
from typing import Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_WORDS: Final = frozenset(
    {
        *("password", "passwords", "passwd", "passphrase", "passcode", "pwd"),
        *("secret", "secrets", "credential", "credentials", "authorization", "bearer", "jwt"),
        *("apikey", "apikeys", "privatekey", "secretkey", "accesskey", "clientsecret"),
        *("accesstoken", "authtoken", "refreshtoken", "apitoken", "sessiontoken"),
        *("pin", "otp", "totp", "ssn", "cvv", "cvc", "csc"),
    }
)
"""Words that are enough by themselves."""

_KEYS: Final = frozenset(
    {"api", "private", "secret", "access", "signing", "encryption", "master", "ssh", "account"}
)
"""Before the word "key": a key that opens something, not the key of a map."""

_COUNTED: Final = frozenset({"count", "limit", "budget", "usage", "type", "size", "length"})
_PAGED: Final = frozenset({"page", "next", "previous", "continuation", "sync", "max", "min"})
"""After and before the word "token": a token of text or of a page, not one that opens something."""

_PHRASES: Final = (
    ("social", "security", "number"),
    ("card", "number"),
    ("security", "code"),
    ("verification", "code"),
    ("one", "time", "code"),
)

_HINT: Final = re.compile(
    "pass|pwd|secret|credential|authorization|bearer|jwt|key|token|pin|otp|ssn|cvv|cvc|csc|card|security|code",
    re.IGNORECASE,
)
"""Without one of these there is none of the above: most texts need no closer look."""


def looks_secret(name: str) -> bool:
    """Whether a name in camelCase, snake_case, kebab-case or words speaks of a secret."""
    if _HINT.search(name) is None:
        return False
    words = [word.lower() for word in _WORD.findall(name)]
    return (
        not _WORDS.isdisjoint(words)
        or any(_opens(words, at) for at in range(len(words)))
        or any(_holds(words, phrase) for phrase in _PHRASES)
    )


def _opens(words: Sequence[str], at: int) -> bool:
    before = words[at - 1] if at else ""
    after = words[at + 1] if at + 1 < len(words) else ""
    match words[at]:
        case "token":
            return after not in _COUNTED and before not in _PAGED
        case "key" | "keys":
            return before in _KEYS
        case _:
            return False


def _holds(words: Sequence[str], phrase: Sequence[str]) -> bool:
    return any(
        tuple(words[at : at + len(phrase)]) == phrase for at in range(len(words) - len(phrase) + 1)
    )
