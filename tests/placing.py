"""Forty random lines of the product, to be placed by a reader who has only docs/ARCHITECTURE.md.

`python -m tests.placing` prints the lines, `python -m tests.placing --answers` where they are from.
Names that say what they hold are what a reader finds a line's package and module by.
"""

import argparse
import random
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from tests.source_files import ROOT, sources

LINES = 40
SHORTEST = 25
"""Characters of a line that is worth a guess."""


class Line(NamedTuple):
    path: Path
    number: int
    text: str


def drawn(seed: int, count: int = LINES) -> Sequence[Line]:
    """Draw lines of code, each from another module. A line that several modules have is in no place of its own."""
    chance = random.Random(seed)
    lines_by_path = {path: list(code_lines(path)) for path in sorted(sources("mcphost"))}
    modules = Counter(
        text for lines in lines_by_path.values() for text in {line.text for line in lines}
    )
    paths = chance.sample(list(lines_by_path), 4 * count)
    candidates = (
        [line for line in lines_by_path[path] if modules[line.text] == 1] for path in paths
    )
    return [chance.choice(lines) for lines in candidates if lines][:count]


def code_lines(path: Path) -> Iterator[Line]:
    """The lines with code that is neither an import nor part of a string over several lines."""
    source = path.read_text()
    lines = source.splitlines()
    first: dict[int, str] = {}
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER):
            first.setdefault(token.start[0], token.string)
    for number, word in first.items():
        text = lines[number - 1].strip()
        if len(text) >= SHORTEST and word not in ("import", "from") and '"""' not in text:
            yield Line(path, number, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--answers", action="store_true", help="print where each line is from")
    options = parser.parse_args()
    for position, line in enumerate(drawn(options.seed), 1):
        shown = f"{line.path.relative_to(ROOT)}:{line.number}" if options.answers else line.text
        print(f"{position:2} {shown}")


if __name__ == "__main__":
    main()
