"""Find what a script uses and the sandbox lacks. The type checker cannot: it knows Python's whole
library."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from mcphost.kinds.script.library import (
    INSTEAD,
    MISSING_ARGUMENTS,
    MISSING_BUILTINS,
    MISSING_MEMBERS,
    MODULES,
)
from mcphost.kinds.script.signature import ScriptProblemError, in_characters, parsed

LIST: Final = "docs/scripts.md lists what there is"
_UNKNOWN_MODULE: Final = "Cannot resolve imported module"
_UNSUPPORTED: Final = re.compile(
    r"(?:NotImplementedError|SyntaxError): .*?does not (?:yet )?support (.*)", re.DOTALL
)


def differences_in(source: str) -> Iterator[ScriptProblemError]:
    """Yield what a script uses and the sandbox lacks. Raises ScriptProblemError for code that cannot be
    parsed."""
    reader = _LibraryReader(parsed(source))
    for node in ast.walk(reader.module):
        for at, message in reader.messages(node):
            column = in_characters(source, at.lineno, at.col_offset + 1)
            yield ScriptProblemError(message, at.lineno, column)


def in_plain_words(message: str) -> str:
    """Return a message of the interpreter without the interpreter's name; empty if `differences_in`
    says the same."""
    if message.startswith(_UNKNOWN_MODULE):
        return ""
    if match := _UNSUPPORTED.match(message):
        return f"A script cannot use {match[1].strip()}."
    return message


class _LibraryReader:
    """Says what is missing at a node of a script."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self._aliases: dict[str, str] = {}
        self._functions: set[str] = set()
        self._own: set[str] = set()
        for node in ast.walk(module):
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        """Remember the names that a node gives to modules, functions and members."""
        match node:
            case ast.Import(names=names):
                for alias in names:
                    self._aliases[alias.asname or alias.name.partition(".")[0]] = alias.name
                    self._own.add(alias.asname or alias.name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self._functions.add(name)
                self._own.add(name)
            case (
                ast.ClassDef(name=name)
                | ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.ExceptHandler(name=str(name))
            ):
                self._own.add(name)
            case ast.ImportFrom(names=names):
                self._own.update(alias.asname or alias.name for alias in names)
            case _:
                pass

    def messages(self, node: ast.AST) -> Iterator[tuple[ast.expr | ast.alias, str]]:
        """Yield messages about a node, each with the node that has its place."""
        match node:
            case ast.Import(names=names):
                yield from ((alias, text) for alias in names for text in _module(alias.name))
            case ast.ImportFrom(module=str(module), names=names) if module != "__future__":
                at = ast.alias(module, lineno=node.lineno, col_offset=node.col_offset + 5)
                yield from ((at, text) for text in _module(module))
                yield from ((alias, t) for alias in names for t in _name_of(module, alias.name))
            case ast.Attribute(value=ast.Name(id=name), attr=member) if name in self._aliases:
                yield from ((node, text) for text in _name_of(self._aliases[name], member))
            case ast.Attribute(attr=name, ctx=ast.Load()) if name in MISSING_MEMBERS - self._own:
                yield node, f"`{name}` is not in the sandbox: {LIST}."
            case ast.Name(id=name, ctx=ast.Load()) if name in MISSING_BUILTINS - self._own:
                yield node, f"`{name}` is not in the sandbox: {LIST}."
            case ast.Call():
                yield from ((node, text) for text in self._call(node))
            case _:
                pass

    def _call(self, node: ast.Call) -> Iterator[str]:
        match node.func:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in self._aliases:
                position = 1
            case ast.Attribute(attr=name) | ast.Name(id=name):
                position = 0 if isinstance(node.func, ast.Attribute) else 1
            case _:
                return
        for keyword in node.keywords:
            if keyword.arg in MISSING_ARGUMENTS.get(name, ()):
                yield f"`{name}` does not take `{keyword.arg}` in the sandbox."
        if name == "sub":
            replacement = [*node.args[position : position + 1]]
            replacement += [key.value for key in node.keywords if key.arg == "repl"]
            if any(
                isinstance(value, ast.Lambda) or getattr(value, "id", "") in self._functions
                for value in replacement
            ):
                yield "`sub` takes a text in the sandbox, not a function: use finditer."


def _module(name: str) -> Iterator[str]:
    if name not in MODULES:
        instead = INSTEAD.get(name.partition(".")[0])
        yield f"`{name}` cannot be imported in a script: {f'{instead}; ' if instead else ''}{LIST}."


def _name_of(module: str, name: str) -> Iterator[str]:
    if module in MODULES and name not in MODULES[module] and name != "*":
        yield f"`{module}` has no `{name}` in the sandbox: {LIST}."
