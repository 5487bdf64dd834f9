"""Whether a reader finds the package and the file of a line of code, knowing docs/ARCHITECTURE.md alone.

`python -m tests.reading` prints 50 numbered lines, the same ones for the same code. A reader writes a guess
per line: the number, the package and the file, such as `7 serving.legacy call.py`. Then
`python -m tests.reading GUESSES` counts the right ones: at least 48 packages and 42 files are wanted.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

ROOT = Path(__file__).parents[1] / "mcphost"
LINES, SEED = 50, 2026
SHORTEST = 40
"""Characters: a shorter line says little, whoever reads it."""


class Line(NamedTuple):
    """One line of code, and where it is."""

    package: str
    file: str
    text: str


def lines() -> list[Line]:
    """The sample."""
    return Random(SEED).sample(sorted(_all()), LINES)


def _all() -> Iterator[Line]:
    for path in ROOT.rglob("*.py"):
        if "migrations" in path.parts:
            continue
        package = ".".join(path.parent.relative_to(ROOT).parts)
        source = path.read_text()
        texts = source.splitlines()
        for number in sorted(_of_functions(ast.parse(source))):
            if len(text := texts[number - 1].strip()) >= SHORTEST:
                yield Line(package, path.name, text)


def _of_functions(tree: ast.Module) -> set[int]:
    """The lines of statements in functions, without signatures and docstrings."""
    found: set[int] = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                if not (
                    isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                ):
                    found.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return found


def score(sample: list[Line], guesses: str) -> tuple[int, int]:
    """How many packages and how many files were guessed right."""
    packages = files = 0
    for guess in guesses.splitlines():
        number, package, file = guess.split()
        line = sample[int(number) - 1]
        packages += package == line.package
        files += (package, file) == (line.package, line.file)
    return packages, files


def main() -> None:
    sample = lines()
    if len(sys.argv) == 1:
        for number, line in enumerate(sample, 1):
            print(f"{number:>2}  {line.text}")
        return
    packages, files = score(sample, Path(sys.argv[1]).read_text())
    print(f"of {LINES} lines: {packages} packages and {files} files")


if __name__ == "__main__":
    main()
