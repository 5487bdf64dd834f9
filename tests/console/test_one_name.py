"""Pages call a question a question and an answer an answer. The names of the protocol are for code and the API."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django.conf import settings

from mcphost.console.glossary import TERMS

CONSOLE: Final = Path(settings.BASE) / "mcphost" / "console"
TEMPLATES: Final = Path(settings.BASE) / "templates"
_OTHER_NAMES: Final = re.compile(
    r"input[ _-]?(?:required|requests?|responses?)|\belicitations?\b|\brespon(?:ses?|ded|ds?)\b",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", re.DOTALL)
_SAID: Final = re.compile(r'(?:aria-label|title|placeholder|alt)="([^"{]*)"|(?:one|add)="([^"]*)"')
"""Attributes that people read, and texts that a template passes to another one."""

PROGRAMS: Final = "client_programs.py"
"""Its texts are programs."""
HTTP: Final = {
    "templates/api/reference.html": {"Response", "Responses"},
    "mcphost/console/primitives/played_clients.py": {"elicitation"},
    "templates/console/forms/part_http.html": {"Response"},
    "templates/console/primitives/primitive.html": {"response"},
    "mcphost/console/forms/http_part.py": {"Response", "response"},
    "mcphost/console/forms/kind_forms.py": {"response"},
    "mcphost/console/primitives/definitions.py": {"Response"},
    "mcphost/console/primitives/imports.py": {"responds"},
    "mcphost/console/tenants/doctor.py": {"response"},
    "mcphost/console/tenants/secrets.py": {"responses"},
    "mcphost/console/records/wire.py": {"Response"},
    "mcphost/console/forms/questions.py": {"elicitation"},
    "mcphost/console/templatetags/questions.py": {"response"},
    "mcphost/console/glossary.py": {"Input request", "input request", "input response"},
}
"""Responses of HTTP, of JSON-RPC and of models, which are no answers; what only code reads; and the glossary."""


def _texts_of_templates() -> Iterator[tuple[str, str]]:
    for path in TEMPLATES.rglob("*.html"):
        source = path.read_text()
        attributes = " ".join(part for pair in _SAID.findall(source) for part in pair)
        yield str(path.relative_to(settings.BASE)), f"{_CODE.sub(' ', source)} {attributes}"


def _texts_of_code() -> Iterator[tuple[str, str]]:
    """Yield the texts of the console's code that have several words, or begin like a label; no docstrings."""
    for path in CONSOLE.rglob("*.py"):
        if path.name == PROGRAMS:
            continue
        tree = ast.parse(path.read_text())
        docstrings = set(_docstrings(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                is_text = " " in node.value or node.value[:1].isupper()
                if is_text and id(node) not in docstrings:
                    yield str(path.relative_to(settings.BASE)), node.value


def _docstrings(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr):
                yield id(statement.value)


def test_pages_say_question_and_answer() -> None:
    wrong = [
        f"{path}: {text.strip()[:80] if len(text) < 200 else name}"
        for path, text in (*_texts_of_templates(), *_texts_of_code())
        for name in set(_OTHER_NAMES.findall(text)) - HTTP.get(path, set())
    ]
    assert wrong == []


def test_the_glossary_joins_the_names() -> None:
    meanings = {term.name: term.meaning for term in TERMS}
    assert "input request" in meanings["Question"]
    assert "input response" in meanings["Answer"]
    assert "Response" not in meanings
