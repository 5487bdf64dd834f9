"""The file map in docs/ARCHITECTURE.md, made from the code: `python -m tests.file_map` writes it.

Each module has the first paragraph of its docstring, and the names in it that most other modules use.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tests.source_files import parse, sources

ROOT: Final = Path(__file__).resolve().parent.parent
DOCUMENT: Final = ROOT / "docs" / "ARCHITECTURE.md"
HEADING: Final = "## File map\n"
# Modules that say nothing about their package.
BOILERPLATE: Final = {"__init__", "apps"}
PACKAGE: Final = ROOT / "mcphost"
MAX_NAMES: Final = 6
"""How many names of a module are in the map."""


def write() -> None:
    """Replace the file map, which is the last section of the document."""
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(text[: text.index(HEADING)] + file_map())


def file_map() -> str:
    """Return the section as Markdown: a table for each package, a row for each module."""
    return "\n".join([HEADING, _INTRODUCTION, *(_table(folder) for folder in packages())])


_INTRODUCTION: Final = """\
`python -m tests.file_map` makes this section from the code: the first paragraph of each module's docstring, and at most six of its names.
Those are functions and classes before constants, and what most other modules use before the rest; "…" stands for further ones.
`commands/x` stands for `management/commands/x`, which is `manage.py x`. Packages with tables also have `apps` and `migrations/`.
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
    text = ast.get_docstring(parse(path)) or ""
    return re.sub(r"\s+", " ", text.split("\n\n")[0])


def listed_names(path: Path) -> Sequence[str]:
    """Return the names of a module for the map, in the order of their definitions, with "…" if there are more.

    They are those that other modules use; if there are none, the public ones.
    """
    users = _users()
    defined = [name for name in _defined(path) if not name.startswith("_")]
    names = [name for name in defined if users[path, name]] or defined
    by_use = sorted(names, key=lambda name: (name.isupper(), -users[path, name]))
    listed = [name for name in names if name in by_use[:MAX_NAMES]]
    return listed if len(listed) == len(names) else [*listed, "…"]


def _defined(path: Path) -> Sequence[str]:
    """Return the names that a module defines at its top level."""
    names: dict[str, None] = {}
    for node in parse(path).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names[node.name] = None
            case ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)]):
                names[name] = None
    return list(names)


@cache
def _users() -> Counter[tuple[Path, str]]:
    """Count the modules that use a name of another module."""
    files = {_dotted(path): path for path in sources("mcphost")}
    return Counter(
        use for user in files.values() for use in set(_uses(user, files)) if use[0] != user
    )


def _uses(user: Path, files: Mapping[str, Path]) -> Iterator[tuple[Path, str]]:
    """Yield the names of other modules that a module imports, or reads as attributes of them."""
    imported: dict[str, Path] = {}
    read: list[tuple[str, str]] = []
    for node in ast.walk(parse(user)):
        match node:
            case ast.ImportFrom(module=str(source)):
                for alias in node.names:
                    if module := files.get(f"{source}.{alias.name}"):
                        imported[alias.asname or alias.name] = module
                    elif source in files:
                        yield files[source], alias.name
            case ast.Attribute(value=ast.Name(name), attr=attribute):
                read.append((name, attribute))
    yield from ((imported[name], attribute) for name, attribute in read if name in imported)


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _table(package: Path) -> str:
    title = package.relative_to(PACKAGE if package != PACKAGE else ROOT)
    rows = [
        " | ".join([f"`{module}`", summary(path).replace("|", r"\|"), _code(listed_names(path))])
        for module, path in modules(package)
    ]
    table = ["", "module | contents | names", "---|---|---", *rows] if rows else []
    return "\n".join([f"### `{title}/`", "", summary(package / "__init__.py"), *table, ""])


def _code(names: Sequence[str]) -> str:
    return " ".join(name if name == "…" else f"`{name}`" for name in names) or "-"


if __name__ == "__main__":
    write()
