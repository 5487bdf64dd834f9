"""The file map in docs/ARCHITECTURE.md, made from docstrings: `python -m tests.file_map` writes it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DOCUMENT: Final = ROOT / "docs" / "ARCHITECTURE.md"
HEADING: Final = "## File map\n"
# Modules that say nothing about their package.
BOILERPLATE: Final = {"__init__", "apps"}
PACKAGE: Final = ROOT / "mcphost"


def write() -> None:
    """Replace the file map, which is the last section of the document."""
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(text[: text.index(HEADING)] + file_map())


def file_map() -> str:
    """Return the section as Markdown: a table for each package, a row for each module."""
    return "\n".join([HEADING, _INTRODUCTION, *(_table(folder) for folder in packages())])


_INTRODUCTION: Final = """\
`python -m tests.file_map` makes this section from the first paragraph of each module's docstring. `commands/x` stands for
`management/commands/x`, which is `manage.py x`. Packages with tables also have `apps` and `migrations/`.
"""


def packages() -> list[Path]:
    """Return the folders of `mcphost/` that have a description, sorted by path."""
    folders = [path.parent for path in PACKAGE.rglob("__init__.py")]
    return sorted(folder for folder in folders if summary(folder / "__init__.py"))


def modules(package: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of each module in the table of a package."""
    commands = package / ("commands" if package.name == "management" else "management/commands")
    for path in sorted(package.glob("*.py")):
        if path.stem not in BOILERPLATE:
            yield path.stem, path
    if package != PACKAGE:
        for path in sorted(commands.glob("[!_]*.py")):
            yield f"commands/{path.stem}", path


def summary(path: Path) -> str:
    """Return the first paragraph of a module's docstring, in one line."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return re.sub(r"\s+", " ", text.split("\n\n")[0])


def _table(package: Path) -> str:
    title = package.relative_to(PACKAGE if package != PACKAGE else ROOT)
    rows = [
        f"`{module}` | {summary(path).replace('|', chr(92) + '|')}"
        for module, path in modules(package)
    ]
    table = ["", "module | contents", "---|---", *rows] if rows else []
    return "\n".join([f"### `{title}/`", "", summary(package / "__init__.py"), *table, ""])


if __name__ == "__main__":
    write()
