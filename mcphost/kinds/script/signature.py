"""The function of a script: its name, its texts, and the schemas of its annotations."""

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcphost.kinds.functions.docstrings import Docstring

MAX_CHARACTERS: Final = 64 * 1024
MAX_TOKENS: Final = 20_000
"""Words, numbers and signs of a script, those inside of its texts too: parsing them takes time and memory
of the server, up to 20 times the length of the script."""
MAX_PARTS: Final = 2000
"""Types, default values and choices in the schemas of a script. A class is counted wherever it is
used: 20 classes with two fields of the next one are a million parts."""
MAX_DEPTH: Final = 20
MAX_INTEGER: Final = 2**63

_PLAIN: Final[Mapping[str, Mapping[str, Any]]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "dict": {"type": "object"},
    "list": {"type": "array"},
    "Any": {},
    "object": {},
}
_TEXTS: Final[tuple[Mapping[str, Any], ...]] = ({"type": "string"}, {"type": "null"}, {})
"""Schemas of results that are sent as text only, or say nothing."""
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")

_LINE_END: Final = re.compile(r"\r\n?|\n")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class ScriptProblemError(Exception):
    """A script cannot be a tool. `line` and `column` count from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        self.line = line
        self.column = column
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Signature:
    """The function that is the tool. `waits` is true for an `async def`."""

    name: str
    waits: bool
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None


def signature_of(source: str) -> Signature:
    """Read the script's only public function. Raises ScriptProblemError."""
    body = parsed(source).body
    public = [
        statement
        for statement in body
        if isinstance(statement, Function) and not statement.name.startswith("_")
    ]
    if len(public) != 1:
        actual = "no function" if not public else "more than one"
        raise ScriptProblemError(
            "A script has one function whose name does not begin with `_`: that is the tool. "
            f"There is {actual}.",
            public[1].lineno if public else 1,
        )
    (function,) = public
    classes = {
        statement.name: statement for statement in body if isinstance(statement, ast.ClassDef)
    }
    try:
        return _SignatureReader(classes).read(function)
    except ScriptProblemError as problem:
        column = in_characters(source, problem.line, problem.column)
        raise ScriptProblemError(str(problem), problem.line, column) from None


def in_characters(source: str, line: int, column: int) -> int:
    """Return the column in characters for one in bytes of UTF-8, as `ast` counts."""
    text = _LINE_END.split(source)[line - 1].encode()[: column - 1]
    return len(text.decode(errors="ignore")) + 1


def parsed(source: str) -> ast.Module:
    """Parse a script, if it is not too large. Raises ScriptProblemError."""
    if len(source) > MAX_CHARACTERS:
        raise ScriptProblemError(f"The script has more than {MAX_CHARACTERS} characters.")
    if len(source) > MAX_TOKENS and sum(1 for _ in _TOKEN.finditer(source)) > MAX_TOKENS:
        raise ScriptProblemError(f"The script has more than {MAX_TOKENS} words and signs.")
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise ScriptProblemError(
            f"{error.msg}.".capitalize(), error.lineno or 1, error.offset or 1
        ) from None
    except (ValueError, RecursionError, MemoryError):
        raise ScriptProblemError("The script cannot be parsed.") from None


class _SignatureReader:
    """Reads a function, up to the limit of parts. `classes` are those of the script, by name."""

    def __init__(self, classes: Mapping[str, ast.ClassDef]) -> None:
        self._classes = classes
        self._parts_left = MAX_PARTS

    def read(self, function: Function) -> Signature:
        """Return the signature. Raises ScriptProblemError."""
        text = ast.get_docstring(function) or ""
        if not _is_text(text):
            raise ScriptProblemError(
                "The docstring has a character that is no text.", function.lineno
            )
        docstring = Docstring(text)
        inputs = self._inputs(function, docstring)
        output = self._schema(function.returns, inputs=False)
        waits = isinstance(function, ast.AsyncFunctionDef)
        output_schema = None if output in _TEXTS else output
        return Signature(function.name, waits, docstring.rest, inputs, output_schema)

    def _inputs(self, function: Function, docstring: Docstring) -> Mapping[str, Any]:
        parameters = function.args
        for wrong in (parameters.vararg, parameters.kwarg, *parameters.posonlyargs):
            if wrong is not None:
                raise _problem(wrong, f"The parameter {wrong.arg} cannot be given by name.")
        defaults = [None] * (len(parameters.args) - len(parameters.defaults)) + list(
            parameters.defaults
        )
        named = [*zip(parameters.args, defaults, strict=True)]
        named += zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        properties: dict[str, Any] = {}
        for parameter, default in named:
            schema = dict(self._schema(parameter.annotation, inputs=True, at=parameter))
            if default is not None:
                schema["default"] = self._value(default)
            if description := docstring.take(parameter.arg):
                schema["description"] = description
            properties[parameter.arg] = schema
        required = [parameter.arg for parameter, default in named if default is None]
        inputs: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            inputs["required"] = required
        inputs["additionalProperties"] = False
        return inputs

    def _schema(
        self,
        written: ast.expr | None,
        *,
        inputs: bool,
        depth: int = 0,
        at: ast.arg | None = None,
    ) -> Mapping[str, Any]:
        """Return the JSON Schema of an annotation; {} where there is none. Raises ScriptProblemError.

        Dataclasses are for results only: an argument arrives as plain JSON. `at` is the place of a
        missing annotation.
        """
        self._count(written or at)
        if depth > MAX_DEPTH:
            raise ScriptProblemError(
                "The annotation is nested too deep.", getattr(written, "lineno", 1)
            )

        def inner(annotation: ast.expr) -> Mapping[str, Any]:
            return self._schema(annotation, inputs=inputs, depth=depth + 1)

        match written:
            case None:
                return {}
            case ast.Constant(value=None):
                return _PLAIN["None"]
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _PLAIN:
                return _PLAIN[name]
            case ast.Name(id=name) if name in self._classes and not inputs:
                return _dataclass(self._classes[name], inner)
            case ast.BinOp(op=ast.BitOr(), left=first, right=second):
                return _any_of([inner(first), inner(second)])
            case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=part):
                return self._generic(written, name, _parts(part), inner)
            case _:
                raise _no_schema(written)

    def _generic(
        self, written: ast.expr, name: str, parts: list[ast.expr], inner: Any
    ) -> Mapping[str, Any]:
        match name, parts:
            case "list", [item]:
                return {"type": "array", "items": inner(item)}
            case "dict", [ast.Name(id="str"), value]:
                return {"type": "object", "additionalProperties": inner(value)}
            case "Optional", [member]:
                return _any_of([inner(member), _PLAIN["None"]])
            case "Union", _:
                return _any_of([inner(member) for member in parts])
            case "Literal", _:
                return {"enum": [self._value(member) for member in parts]}
            case _:
                raise _no_schema(written)

    def _value(self, written: ast.expr) -> Any:
        """Return the value of a literal that is JSON. Raises ScriptProblemError for anything else."""
        try:
            value = ast.literal_eval(written)
        except (ValueError, TypeError, RecursionError, MemoryError):
            raise _problem(written, "Only a literal can be here, for the input schema.") from None
        self._check_value(written, value)
        return value

    def _check_value(self, written: ast.expr, value: Any, depth: int = 0) -> None:
        self._count(written)
        if not isinstance(value, list | dict):
            if not _is_json(value):
                raise _problem(written, "This literal is not JSON.")
            return
        if depth == MAX_DEPTH:
            raise _problem(written, "This literal is nested too deep.")
        if isinstance(value, dict) and not all(map(_is_text, value)):
            raise _problem(written, "This literal has keys that are no texts.")
        for child in value.values() if isinstance(value, dict) else value:
            self._check_value(written, child, depth + 1)

    def _count(self, at: ast.expr | ast.arg | None) -> None:
        self._parts_left -= 1
        if self._parts_left < 0:
            text = f"The schemas have more than {MAX_PARTS} parts."
            raise ScriptProblemError(text) if at is None else _problem(at, text)


def _dataclass(definition: ast.ClassDef, inner: Any) -> Mapping[str, Any]:
    """Return the schema of a result's class, by its annotated fields."""
    properties = {
        statement.target.id: inner(statement.annotation)
        for statement in definition.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def _any_of(choices: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    flat: list[Any] = []
    for choice in choices:
        flat += choice.get("anyOf", [choice])
    return {} if {} in flat else {"anyOf": flat}


def _parts(part: ast.expr) -> list[ast.expr]:
    return list(part.elts) if isinstance(part, ast.Tuple) else [part]


def _is_json(value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, int):
        return -MAX_INTEGER <= value < MAX_INTEGER
    return math.isfinite(value) if isinstance(value, float) else _is_text(value)


def _is_text(value: Any) -> bool:
    """Whether this is a text that every client and database can store: no surrogate, no NUL."""
    return isinstance(value, str) and not re.search("[\0\ud800-\udfff]", value)


def _no_schema(written: ast.expr) -> ScriptProblemError:
    try:
        text = ast.unparse(written)[:100]
    except RecursionError:
        text = "This annotation"
    return _problem(written, f"{text} has no JSON Schema here.")


def _problem(at: ast.expr | ast.arg, message: str) -> ScriptProblemError:
    return ScriptProblemError(message, at.lineno, at.col_offset + 1)
