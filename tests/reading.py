"""Whether a reader finds the package and the file of a line of code, knowing docs/ARCHITECTURE.md alone.

`python -m tests.reading` prints 50 numbered lines, the same ones for the same code. A reader writes a guess
per line into a file: the number, the package and the file. Packages are those of the file map:

    7 serving.legacy call.py
    8 mcphost home.py           a module beside the packages
    9 identity token.py         a command: identity/management/commands/token.py
    10 console questions.py     template filters: console/templatetags/questions.py

Where packages have files of the same name, the package decides: a file counts only with its own package.

`python -m tests.reading GUESSES` prints the lines whose package or file was not found, with the right
ones, and counts the right guesses: at least 48 packages and 42 files are wanted. A line without a
guess counts as not found.
"""

import ast
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import NamedTuple

ROOT = Path(__file__).parents[1] / "mcphost"
LINES, SEED = 50, 2026
SHORTEST = 40
"""Characters: a shorter line says little to any reader."""
FOLDERS = ("management", "templatetags")
"""Folders of Django inside a package: their modules are in the package's row of the file map."""


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
        package = package_of(path)
        source = path.read_text()
        texts = source.splitlines()
        for number in sorted(_of_functions(ast.parse(source))):
            if len(text := texts[number - 1].strip()) >= SHORTEST:
                yield Line(package, path.name, text)


def package_of(path: Path) -> str:
    """The package as the file map names it."""
    first, *rest = path.parent.relative_to(ROOT.parent).parts[1:] or (ROOT.name,)
    return ".".join([first, *takewhile(lambda part: part not in (*FOLDERS, "commands"), rest)])


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


def guesses_of(text: str) -> dict[int, tuple[str, str]]:
    """The guessed package and file of each line, by its number."""
    found = {}
    for guess in filter(None, map(str.strip, text.splitlines())):
        number, package, file, *_ = guess.split()
        found[int(number)] = (package.strip("/").replace("/", "."), Path(file).name)
    return found


def score(sample: list[Line], guesses: dict[int, tuple[str, str]]) -> tuple[int, int, list[str]]:
    """How many packages and how many files were guessed right, and a text for each miss."""
    packages = files = 0
    misses = []
    for number, line in enumerate(sample, 1):
        package, file = guesses.get(number, ("-", "-"))
        packages += package == line.package
        if (package, file) == (line.package, line.file):
            files += 1
        else:
            misses.append(
                f"{number:>2}  {line.text}\n    guessed {package} {file}, is {line.package} {line.file}"
            )
    return packages, files, misses


def main() -> None:
    sample = lines()
    if len(sys.argv) == 1:
        for number, line in enumerate(sample, 1):
            print(f"{number:>2}  {line.text}")
        return
    packages, files, misses = score(sample, guesses_of(Path(sys.argv[1]).read_text()))
    for miss in misses:
        print(miss)
    print(f"of {LINES} lines: {packages} packages and {files} files")


if __name__ == "__main__":
    main()
