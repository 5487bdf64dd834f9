"""The function of a script: its name, its texts, and the schemas of its annotations."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

MOST_CHARACTERS: Final = 64 * 1024
MOST_DEPTH: Final = 20

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
_SECTION: Final = re.compile(r"(?:Args|Arguments|Parameters)\s*:\s*$")
_PARAMETER: Final = re.compile(r"\s*(\w+)(?:\s*\([^)]*\))?\s*:\s*(.+)$")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class ScriptProblem(Exception):  # noqa: N818 - a refusal that says what happened
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
    """Read the script's only public function. Raises ScriptProblem."""
    if len(source) > MOST_CHARACTERS:
        raise ScriptProblem(f"The script has more than {MOST_CHARACTERS} characters.")
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        raise ScriptProblem(
            f"{error.msg}.".capitalize(), error.lineno or 1, error.offset or 1
        ) from None
    except (ValueError, RecursionError, MemoryError):
        raise ScriptProblem("The script cannot be parsed.") from None
    public = [one for one in body if isinstance(one, Function) and not one.name.startswith("_")]
    if len(public) != 1:
        found = "no function" if not public else "more than one"
        raise ScriptProblem(
            "A script has one function whose name does not begin with `_`: that is the tool. "
            f"There is {found}.",
            public[1].lineno if public else 1,
        )
    (function,) = public
    return _signature(function, {one.name: one for one in body if isinstance(one, ast.ClassDef)})


def _signature(function: Function, classes: Mapping[str, ast.ClassDef]) -> Signature:
    docstring = ast.get_docstring(function) or ""
    described = _parameters(docstring)
    given = function.args
    for wrong in (given.vararg, given.kwarg, *given.posonlyargs):
        if wrong is not None:
            raise _problem(wrong, f"The parameter {wrong.arg} cannot be given by name.")
    defaults = [None] * (len(given.args) - len(given.defaults)) + list(given.defaults)
    named = [*zip(given.args, defaults, strict=True)]
    named += zip(given.kwonlyargs, given.kw_defaults, strict=True)
    properties: dict[str, Any] = {}
    for parameter, default in named:
        schema = dict(_schema(parameter.annotation, classes, inputs=True))
        if default is not None:
            schema["default"] = _value(default)
        if parameter.arg in described:
            schema["description"] = described[parameter.arg]
        properties[parameter.arg] = schema
    required = [parameter.arg for parameter, default in named if default is None]
    inputs: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        inputs["required"] = required
    inputs["additionalProperties"] = False
    output = _schema(function.returns, classes, inputs=False)
    summary = " ".join(docstring.partition("\n\n")[0].split())
    waits = isinstance(function, ast.AsyncFunctionDef)
    told = None if output in _TEXTS else output
    return Signature(function.name, waits, summary, inputs, told)


def _schema(
    written: ast.expr | None,
    classes: Mapping[str, ast.ClassDef],
    *,
    inputs: bool,
    depth: int = 0,
) -> Mapping[str, Any]:
    """Return the JSON Schema of an annotation; {} where there is none. Raises ScriptProblem.

    Dataclasses are for results only: an argument arrives as plain JSON.
    """
    if depth > MOST_DEPTH:
        raise ScriptProblem("The annotation is nested too deep.", getattr(written, "lineno", 1))

    def inner(one: ast.expr) -> Mapping[str, Any]:
        return _schema(one, classes, inputs=inputs, depth=depth + 1)

    match written:
        case None:
            return {}
        case ast.Constant(value=None):
            return _PLAIN["None"]
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _PLAIN:
            return _PLAIN[name]
        case ast.Name(id=name) if name in classes and not inputs:
            return _dataclass(classes[name], inner)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _any_of([inner(left), inner(right)])
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=part):
            return _generic(written, name, _parts(part), inner)
        case _:
            raise _problem(written, f"{ast.unparse(written)[:100]} has no JSON Schema here.")


def _generic(written: ast.expr, name: str, parts: list[ast.expr], inner: Any) -> Mapping[str, Any]:
    match name, parts:
        case "list", [item]:
            return {"type": "array", "items": inner(item)}
        case "dict", [ast.Name(id="str"), value]:
            return {"type": "object", "additionalProperties": inner(value)}
        case "Optional", [one]:
            return _any_of([inner(one), _PLAIN["None"]])
        case "Union", _:
            return _any_of([inner(one) for one in parts])
        case "Literal", _:
            return {"enum": [_value(one) for one in parts]}
        case _:
            raise _problem(written, f"{ast.unparse(written)[:100]} has no JSON Schema here.")


def _dataclass(definition: ast.ClassDef, inner: Any) -> Mapping[str, Any]:
    """Return the schema of a result's class, by its annotated fields."""
    fields = [
        one
        for one in definition.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    ]
    properties = {ast.unparse(one.target): inner(one.annotation) for one in fields}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _any_of(choices: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    flat: list[Any] = []
    for choice in choices:
        flat += choice.get("anyOf", [choice])
    return {} if {} in flat else {"anyOf": flat}


def _parts(part: ast.expr) -> list[ast.expr]:
    return list(part.elts) if isinstance(part, ast.Tuple) else [part]


def _value(written: ast.expr) -> Any:
    """Return the value of a literal. Raises ScriptProblem for anything else."""
    try:
        value = ast.literal_eval(written)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise _problem(written, "Only a literal can be here, for the input schema.") from None
    if isinstance(value, bytes | complex | set | tuple) or value is Ellipsis:
        raise _problem(written, "This literal is not JSON.")
    return value


def _parameters(docstring: str) -> dict[str, str]:
    """Return the descriptions of parameters in the section `Args:` of a docstring."""
    described: dict[str, str] = {}
    inside, name = False, ""
    for line in docstring.splitlines():
        if _SECTION.match(line):
            inside = True
        elif inside and line and not line[0].isspace():
            inside = False
        elif inside and (found := _PARAMETER.match(line)):
            name = found[1]
            described[name] = found[2].strip()
        elif inside and name and line.strip():
            described[name] += f" {line.strip()}"
    return described


def _problem(at: ast.expr | ast.arg, message: str) -> ScriptProblem:
    return ScriptProblem(message, at.lineno, at.col_offset + 1)
