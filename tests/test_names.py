"""The names in the code are nouns and verbs of the field. The number of meaningless or generic names
does not grow."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.source_files import parse, sources

NAMELESS = re.compile(
    "_*(each|found|one|asked|known|given|said|left|wanted|place|most|sort|taking|held|what|chosen|taken|told|word"
    "|others|who|fates?|mine|other|look|leave|seen|gone|theirs|legs?|tell|some|ours|say|keep|whose|hear)_*",
    re.IGNORECASE,
)
"""Pronouns, participles and verbs that name nothing: a variable is named after what it holds (`rows`, not
`found`), a function after what it does to what (`release_claim`, not `leave`)."""
MAX_NAMES = 12
"""How many names of the product are such a word alone. Lower it when there are fewer."""
SLACK = 5
"""How many fewer there may be before the limit has to be lowered: not every change has to touch it."""
GENERIC = frozenset({"data", "item", "result", "value", "info", "name", "entry"})
"""Nouns that fit anything. They are right where nothing more is known, and no replacement for a better one."""
MAX_GENERIC_SHARE = 0.045


def _names() -> Iterator[str]:
    """Yield each name that is assigned, an argument or a function."""
    for path in sources("mcphost"):
        for node in ast.walk(parse(path)):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    yield name
                case (
                    ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name)
                ):
                    yield name
                case _:
                    pass


def test_the_number_of_meaningless_names_does_not_grow() -> None:
    names = [name.strip("_").lower() for name in _names() if NAMELESS.fullmatch(name)]
    assert MAX_NAMES - SLACK <= len(names) <= MAX_NAMES, Counter(names).most_common()


def test_the_share_of_generic_names_does_not_grow() -> None:
    names = [name.strip("_").lower() for name in _names()]
    share = sum(name in GENERIC for name in names) / len(names)
    assert share <= MAX_GENERIC_SHARE
