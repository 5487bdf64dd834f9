"""Recognizes field names and texts that stand for a secret or a payment credential.

Forms must not ask for either (spec: client/elicitation, "Security Considerations"), nor may they be
mirrored into headers, which proxies see and log (spec: server/tools, "x-mcp-header"). The check
looks at words only, which are in `secret_names.txt` with a table for each language. A name becomes
words in lower case without accents; phrases that are known to be harmless (`max_tokens`) are
removed; what remains is searched for terms.
"""

import pkgutil
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

_MAX_CACHED: Final = 200

_WORD_PATTERN: Final = re.compile(
    r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\x00-\x7f\s]+"
)
_ACCENTED_WORD: Final = re.compile(r"[^\W\d_]+")
_ACCENT: Final = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0670]")
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"})
"""How these letters are often written where they are missing."""


def _load() -> Mapping[str, Sequence[str]]:
    """Read the terms of all languages, by their purpose."""
    table: dict[str, list[str]] = {}
    text = (pkgutil.get_data("mcphost.protocol", "secret_names.txt") or b"").decode()
    for purpose, terms in re.findall(r"^([a-z]+): (.+)$", text, re.MULTILINE):
        table.setdefault(purpose, []).extend(terms.split())
    return table


_TABLE: Final = _load()
_LETTERS: Final = str.maketrans(dict(pair.split("=") for pair in _TABLE["letters"]))


def looks_secret(name: str) -> bool:
    """Whether a name in camelCase, snake_case, kebab-case or words stands for a secret."""
    return _stands_for_secret(name) if len(name) > _MAX_CACHED else _cached(name)


def words_of(name: str) -> list[str]:
    """Split a name in camelCase, snake_case, kebab-case or words; in lower case without accents."""
    return [
        word.lower() for word in _WORD_PATTERN.findall(name if name.isascii() else _plain(name))
    ]


@lru_cache(maxsize=4096)
def _cached(name: str) -> bool:
    return _stands_for_secret(name)


def _stands_for_secret(name: str) -> bool:
    plain = name if name.isascii() else _plain(name)
    words = _WORD_PATTERN.findall(plain)
    vocabulary = _vocabulary()
    if not vocabulary.capitals.isdisjoint(words):
        return True
    words = [word.lower() for word in words]
    if " ".join(words) in vocabulary.whole:
        return True
    texts = {" ".join(words), " ".join(word for word in words if word not in vocabulary.fillers)}
    if plain is not name:
        texts.add(" ".join(_ACCENTED_WORD.findall(unicodedata.normalize("NFC", name).lower())))
    return any(
        vocabulary.secret.search(vocabulary.harmless.sub(" . ", f" {text} ")) is not None
        for text in texts
    )


def _plain(text: str) -> str:
    """Remove accents, punctuation, invisible characters and compatibility forms."""
    bare = _ACCENT.sub("", unicodedata.normalize("NFKD", text)).translate(_LETTERS)
    categories = ((char, unicodedata.category(char)) for char in bare)
    return "".join(
        char if category[0] in "LMN" or char.isascii() else " "
        for char, category in categories
        if category != "Cf"
    )


class _Vocabulary(NamedTuple):
    """The terms of all languages."""

    capitals: frozenset[str]
    fillers: frozenset[str]
    whole: frozenset[str]
    harmless: re.Pattern[str]
    secret: re.Pattern[str]


@cache
def _vocabulary() -> _Vocabulary:
    """Compile the terms, at the first use: that takes as long as many imports."""
    return _Vocabulary(
        capitals=frozenset(_TABLE["capitals"]),
        fillers=frozenset(_spellings(_TABLE["fillers"])),
        whole=frozenset(term.replace("_", " ") for term in _spellings(_TABLE["whole"])),
        harmless=_pattern(map(_begun, _spellings(_TABLE["harmless"]))),
        secret=_pattern(
            [
                *map(_exact, (*_spellings(_TABLE["words"]), *_TABLE["accented"])),
                *map(_begun, _spellings(_TABLE["stems"])),
                *map(_anywhere, _spellings(_TABLE["fragments"])),
            ]
        ),
    )


_Tokens = tuple[str, ...]
"""A regular expression as its smallest parts, which `_pattern` shares between expressions."""

_GAP: Final = "(?:[^ ]+ ){0,5}"


def _term(term: str, start: str, ending: str, end: str) -> _Tokens:
    """Convert a term. `ending` is what may follow each part but the last one of several."""
    tokens = [start]
    parts = term.split("_")
    for part in parts:
        if part == "..":
            tokens[-1:] = [" ", _GAP]
        else:
            tokens += [*map(re.escape, part), ending, " ?"]
    last = ending if end and len(parts) > 1 else ""
    return tuple(filter(None, (*tokens[:-2], last, end)))


def _exact(term: str) -> _Tokens:
    return _term(term, " ", "s?", " ")


def _begun(term: str) -> _Tokens:
    return _term(term, " ", "[^ ]*", "")


def _anywhere(term: str) -> _Tokens:
    return _term(term, "", "[^ ]*", "")


def _spellings(terms: Iterable[str]) -> Iterator[str]:
    """Yield each term without its accents, and with the two letters that stand for some."""
    for term in terms:
        for spelling in {term, term.translate(_UMLAUTS)}:
            yield "_".join("".join(_plain(part).split()).lower() for part in spelling.split("_"))


def _pattern(expressions: Iterable[_Tokens]) -> re.Pattern[str]:
    """Compile a pattern for any of the expressions, with common beginnings written once: the time
    for a text hardly grows with the number of terms."""
    root: dict[str, Any] = {}
    for tokens in expressions:
        node = root
        for token in tokens:
            node = node.setdefault(token, {})
        node[""] = {}
    return re.compile(_alternatives(root))


def _alternatives(node: Mapping[str, Any]) -> str:
    if "" in node:  # whatever is longer begins with this one
        return ""
    branches = [token + _alternatives(rest) for token, rest in node.items()]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
