"""Recognizes field names and texts that stand for a secret or a payment credential.

Forms must not ask for either (spec: client/elicitation, "Security Considerations"), nor may they be
mirrored into headers, which proxies see and log (spec: server/tools, "x-mcp-header"). The check
looks at words only: whole words and phrases, so that `max_tokens`, `pinned` and `shipping` are no
secrets. It covers the most spoken languages, whose words are in `secret_names.txt`; for scripts without
spaces and for inflected words it looks for fragments.
"""

import pkgutil
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

_LONGEST_CACHED: Final = 200

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ACCENT: Final = re.compile("[\u0300-\u036f]")


def _load() -> Mapping[str, frozenset[str]]:
    """Read the words of all languages, by their purpose."""
    table: dict[str, frozenset[str]] = {}
    text = (pkgutil.get_data("mcphost.protocol", "secret_names.txt") or b"").decode()
    for purpose, words in re.findall(r"^([a-z ]+): (.+)$", text, re.MULTILINE):
        table[purpose] = table.get(purpose, frozenset()).union(words.split())
    return table


_TABLE: Final = _load()


def looks_secret(name: str) -> bool:
    """Whether a name in camelCase, snake_case, kebab-case or words stands for a secret."""
    return _spoken(name) if len(name) > _LONGEST_CACHED else _cached(name)


@lru_cache(maxsize=4096)
def _cached(name: str) -> bool:
    return _spoken(name)


def _spoken(name: str) -> bool:
    if not name.isascii():
        name = _plain(name)
        if _FRAGMENT.search(name.lower()) is not None:
            return True
    words = [word.lower() for word in _WORD.findall(name)]
    return (
        not _TABLE["words"].isdisjoint(words)
        or (len(words) == 1 and words[0] in _TABLE["whole"])
        or any(_opens(words, at) for at in range(len(words)))
        or _has_phrase([word for word in words if word not in _TABLE["fillers"]])
    )


def _plain(name: str) -> str:
    """Remove accents, invisible characters and compatibility forms."""
    visible = "".join(each for each in name if unicodedata.category(each) != "Cf")
    return _ACCENT.sub("", unicodedata.normalize("NFKD", visible)).replace("_", " ")


def _opens(words: Sequence[str], at: int) -> bool:
    before = words[at - 1] if at else ""
    after = words[at + 1] if at + 1 < len(words) else ""
    match words[at]:
        case "token":
            return after not in _TABLE["no token before"] and before not in _TABLE["no token after"]
        case "key" | "keys":
            return before in _TABLE["key after"]
        case _:
            return False


def _has_phrase(words: Sequence[str]) -> bool:
    """Whether the words contain a known phrase: as separate words, as one word, or in the plural."""
    return any(
        _in_singular(words[at : at + length]) in _KNOWN
        for at, word in enumerate(words)
        if word in _FIRST
        for length in (1, 2, 3)
    )


def _in_singular(words: Sequence[str]) -> str:
    return " ".join(word.removesuffix("s") for word in words)


_KNOWN: Final = frozenset(
    _in_singular(words)
    for phrase in _TABLE["phrases"]
    for words in (phrase.split("_"), [phrase.replace("_", "")])
)
"""All phrases in the form of `_in_singular`, and each as one word, too."""
_FIRST: Final = frozenset(
    first for form in _KNOWN for first in (form.split()[0], form.split()[0] + "s")
)
_FRAGMENT: Final = re.compile(
    "|".join(re.escape(_plain(each).lower()) for each in _TABLE["fragments"])
)
