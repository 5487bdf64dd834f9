"""The source files of the project, for tests and tools that read the code itself."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def sources(*folders: str) -> list[Path]:
    """Return the Python files of these folders, without migrations."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in paths if "migrations" not in path.parts]


def containing(pattern: str, *folders: str) -> list[Path]:
    """Return the files with a line that matches. Parsing all files takes twenty times as long."""
    line = re.compile(pattern, re.MULTILINE)
    return [path for path in sources(*folders) if line.search(path.read_text())]


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))
