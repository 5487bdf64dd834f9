"""What an editor suggests while a script is written: functions of the server, and names of the sandbox."""

import ast
from collections.abc import Mapping
from typing import Any, Final

from mcphost.kinds.script.library import MODULES
from mcphost.kinds.script.surroundings import DESCRIBED, declarations

_KEYWORDS: Final = """
    False None True and as assert async await break class continue def elif else except finally for
    from global if import in is lambda match nonlocal not or pass raise return try while with
"""
_BUILTINS: Final = """
    abs all any bin bool bytes chr dict divmod enumerate filter float frozenset getattr hasattr hash hex
    int isinstance iter len list map max min next oct ord pow print range repr reversed round set
    setattr slice sorted str sum tuple type zip
    Exception AssertionError AttributeError IndexError KeyError LookupError NotImplementedError
    OverflowError RuntimeError StopIteration TimeoutError TypeError ValueError ZeroDivisionError
"""
KEYWORDS: Final = tuple(_KEYWORDS.split())
"""Those that the sandbox accepts: it has no `del` and no `yield`."""
BUILTINS: Final = tuple(_BUILTINS.split())
"""Those that the sandbox has and its type checker knows."""


def offered() -> Mapping[str, Any]:
    """Return what scripts can use, as JSON.

    `functions` have `name`, `signature` and `about`. `objects` are variables; `members` are theirs
    and those of classes such as `Response`, by name. `keywords`, `builtins` and `modules` are names.
    """
    about = {call.partition("(")[0]: text for call, text in DESCRIBED}
    functions: list[Mapping[str, str]] = []
    members: dict[str, list[Mapping[str, str]]] = {}
    objects: list[str] = []
    for node in ast.parse(declarations(waits=False)).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                functions += _described(node, about.get(node.name, ""))
            case ast.ClassDef(name=name, body=body):
                members[name] = [member for statement in body for member in _described(statement)]
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id=kind)):
                objects.append(name)
                members[name] = [
                    {**method, "about": f"Send a {method['name'].upper()} request."}
                    for method in members.pop(kind)
                ]
            case _:  # imports
                pass
    return {
        "functions": functions,
        "objects": objects,
        "members": members,
        "keywords": KEYWORDS,
        "builtins": BUILTINS,
        "modules": tuple(MODULES),
    }


def _described(node: ast.stmt, about: str = "") -> list[Mapping[str, str]]:
    """Return the name, the signature and the description of a function or an attribute."""
    match node:
        case (
            ast.FunctionDef(name=name, args=parameters)
            | ast.AsyncFunctionDef(name=name, args=parameters)
        ):
            parameters.args = [
                parameter for parameter in parameters.args if parameter.arg != "self"
            ]
            returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
            signature = f"({ast.unparse(parameters).replace('=', ' = ')}){returns}"
        case ast.AnnAssign(target=ast.Name(id=name), annotation=written):
            signature = ast.unparse(written)
        case _:
            return []
    return [{"name": name, "signature": signature, "about": about}]
