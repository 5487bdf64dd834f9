"""Find what a script uses and the sandbox lacks. The type checker cannot: it knows Python's whole
library."""

import ast
import builtins
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from mcphost.kinds.script.library import (
    ENCODINGS,
    INSTEAD,
    INSTEAD_OF_NAMES,
    METHODS,
    MISSING_ARGUMENTS,
    MISSING_BUILTINS,
    MISSING_MEMBERS,
    MISSING_METHODS,
    MODULES,
    PACKAGES,
)
from mcphost.kinds.script.signature import ScriptProblemError, in_characters, parsed

LIST: Final = "docs/scripts.md lists what there is"
_SPECIAL: Final = re.compile(r"__\w+__")
_EXCEPTIONS: Final = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
)
_SEQUENCES: Final = (*(ast.List, ast.Tuple, ast.Set, ast.ListComp, ast.SetComp, ast.GeneratorExp),)
_NO_TEXTS: Final = frozenset(
    {
        *(
            "int",
            "float",
            "bool",
            "list",
            "dict",
            "set",
            "tuple",
            "bytes",
            "frozenset",
            "len",
            "sum",
        ),
        *("abs", "round", "sorted", "range", "List", "Dict", "Set", "Tuple"),
    }
)
"""Types, and functions whose values are no texts."""


def differences_in(source: str) -> Iterator[ScriptProblemError]:
    """Yield what a script uses and the sandbox lacks. Raises ScriptProblemError for code that cannot be
    parsed."""
    reader = _LibraryReader(parsed(source))
    for node in ast.walk(reader.module):
        for at, message in reader.messages(node):
            column = in_characters(source, at.lineno, at.col_offset + 1)
            yield ScriptProblemError(message, at.lineno, column)


class _LibraryReader:
    """Says what is missing at a node of a script."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self._aliases: dict[str, str] = {}
        self._functions: set[str] = set()
        self._own: set[str] = set()
        self._called: set[int] = set()
        self._values = NameValues(module)
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
            case ast.Call(func=function, args=arguments):
                self._called.add(id(function))
                if getattr(function, "id", getattr(function, "attr", "")) == "namedtuple":
                    for text in (part for node in arguments for part in ast.walk(node)):
                        if isinstance(text, ast.Constant) and isinstance(text.value, str):
                            self._own.update(text.value.replace(",", " ").split())
            case _:
                pass

    def messages(self, node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt | ast.alias, str]]:
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
            case ast.Attribute(ctx=ast.Load()):
                yield from ((node, text) for text in self._member(node))
            case ast.Name(id=name, ctx=ast.Load()) if name in MISSING_BUILTINS - self._own:
                yield node, _missing(name)
            case ast.ClassDef(body=body):
                for part in body:
                    method = getattr(part, "name", "")
                    if method in MISSING_METHODS:
                        yield part, f"`{method}` is never called in the sandbox: write a function."
            case ast.Call():
                yield from ((node, text) for text in self._call(node))
            case _:
                pass

    def _member(self, node: ast.Attribute) -> Iterator[str]:
        """Yield what is missing of a member that is read, which is none of a module."""
        name = node.attr
        if name in self._own:
            return
        if name in MISSING_MEMBERS or (_SPECIAL.fullmatch(name) and name != "__name__"):
            yield _missing(name)
        elif (
            name in METHODS
            and id(node) not in self._called
            and not (
                # Their methods are those of a class of the sandbox.
                getattr(node.value, "id", "") == "http"
                or getattr(node.value, "attr", "") == "headers"
            )
        ):
            yield (
                f"`{name}` can only be called in the sandbox, it is no value: "
                f"write lambda value: value.{name}(…)."
            )

    def _call(self, node: ast.Call) -> Iterator[str]:
        yield from refused_arguments(node, self._values)
        match node.func:
            case ast.Name(id="getattr" | "hasattr" as function):
                yield from self._named_member(function, node.args)
                return
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

    def _named_member(self, function: str, arguments: Sequence[ast.expr]) -> Iterator[str]:
        """Yield what is wrong with the name of a member that is a literal."""
        match arguments:
            case [_, ast.Constant(value=str(name)), *_] if name not in self._own and (
                name in METHODS or name in MISSING_MEMBERS
            ):
                yield f"`{function}` does not find `{name}` in the sandbox: write value.{name}(…)."
            case _:
                pass


class NameValues:
    """Says of which expressions of a script the value is certainly no text. A name is none if each value
    that the script gives to it is none."""

    def __init__(self, module: ast.Module) -> None:
        self._values: dict[str, list[ast.expr | None]] = {}
        targets: set[int] = set()
        for node in ast.walk(module):  # a statement comes before its target
            match node:
                case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                    targets.add(id(target))
                    self._add(name, value)
                case ast.AnnAssign(target=ast.Name(id=name) as target, annotation=type):
                    targets.add(id(target))
                    self._add(name, type)
                case ast.arg(arg=name, annotation=annotation):
                    self._add(name, annotation)
                case ast.ExceptHandler(name=str(name)):
                    self._add(name, ast.Constant(value=0))
                case ast.Name(id=name, ctx=ast.Store()) if id(node) not in targets:
                    self._add(name, None)
                case _:
                    pass

    def _add(self, name: str, value: ast.expr | None) -> None:
        self._values.setdefault(name, []).append(value)

    def is_no_text(self, node: ast.expr | None, depth: int = 5) -> bool:
        match node:
            case ast.Constant(value=value):
                return not isinstance(value, str)
            case ast.Call(func=ast.Name(id=name)) | ast.Subscript(value=ast.Name(id=name)):
                return (name in _NO_TEXTS or name in _EXCEPTIONS) and name not in self._values
            case ast.Name(id=name) if name in self._values and depth:
                return all(self.is_no_text(value, depth - 1) for value in self._values[name])
            case ast.Name(id=name):
                return name in _NO_TEXTS
            case _:
                return isinstance(node, (*_SEQUENCES, ast.Dict, ast.DictComp, ast.Compare))


def is_fraction(node: ast.expr) -> bool:
    is_division = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
    return is_division or (isinstance(node, ast.Constant) and isinstance(node.value, float))


def refused_arguments(node: ast.Call, values: NameValues) -> Iterator[str]:
    """Yield what calls of built-in functions and methods do not take."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[*arguments]) if name in _EXCEPTIONS:
            if len(arguments) > 1 or any(map(values.is_no_text, arguments)):
                yield f"`{name}` takes one text at most in the sandbox: f'{{value}}' is one."
        case ast.Call(func=ast.Name(id="pow"), args=[_, ast.UnaryOp(op=ast.USub()), _]):
            yield "`pow` takes no negative exponent with a modulus in the sandbox."
        case ast.Call(func=ast.Name(id="timedelta") | ast.Attribute(attr="timedelta")) if any(
            is_fraction(value) for value in (*node.args, *(key.value for key in node.keywords))
        ):
            yield "`timedelta` takes whole numbers in the sandbox: minutes=90, not hours=1.5."
        case ast.Call(func=ast.Name(id="bytes"), args=[argument]):
            called = getattr(argument, "func", None)
            if isinstance(argument, _SEQUENCES) or getattr(called, "id", "") == "range":
                yield "`bytes` takes no list in the sandbox: use bytes.fromhex or encode."
        case (
            ast.Call(
                func=ast.Attribute(attr="encode" | "decode"),
                args=[ast.Constant(value=str(encoding)), *_],
            )
            | ast.Call(
                func=ast.Name(id="str" | "bytes"), args=[_, ast.Constant(value=str(encoding)), *_]
            )
        ) if not ENCODINGS.fullmatch(encoding):
            yield f"The sandbox has no encoding {encoding!r}: it has utf-8, utf-16, utf-32 and ascii."
        case _:
            pass


def _missing(name: str) -> str:
    use = INSTEAD_OF_NAMES.get(name)
    return f"`{name}` is not in the sandbox: {f'use {use}; ' if use else ''}{LIST}."


def _module(name: str) -> Iterator[str]:
    if name not in MODULES:
        top = name.partition(".")[0]
        instead = INSTEAD.get(name) or INSTEAD.get(top)
        if not instead and top not in sys.stdlib_module_names:
            instead = PACKAGES
        yield f"`{name}` cannot be imported in a script: {f'{instead}; ' if instead else ''}{LIST}."


def _name_of(module: str, name: str) -> Iterator[str]:
    if module in MODULES and name not in MODULES[module] and name != "*":
        use = INSTEAD_OF_NAMES.get(name)
        yield (f"`{module}` has no `{name}` in the sandbox: {f'use {use}; ' if use else ''}{LIST}.")
