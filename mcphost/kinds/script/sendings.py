"""Find the secrets and addresses that the source of a script names literally.

A script may also compute them, so this only serves early notices: `egress` decides at each request.
"""

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, TypeGuard

from mcphost.egress.addresses import Target
from mcphost.egress.errors import EgressError
from mcphost.kinds.kind import Sending
from mcphost.kinds.script.signature import ScriptProblemError, in_characters, parsed
from mcphost.kinds.script.surroundings import METHODS

FIELD: Final = "code"
_PLACES: Final = {"headers": "header", "params": "query", "json": "body", "data": "body"}
"""Where the arguments of a request put a secret."""
_TEXTS: Final = (ast.Call, ast.BinOp, ast.JoinedStr)


@lru_cache(maxsize=1024)
def sendings_in(source: str) -> tuple[Sending, ...]:
    """Return each address and each secret once; nothing if the code cannot be parsed.

    A script that binds the name `http` or `secret` itself means something else by it.
    """
    try:
        module = parsed(source)
    except ScriptProblemError:
        return ()
    bound = frozenset(name for node in ast.walk(module) for name in _bound(node))
    requests = [node for node in ast.walk(module) if "http" not in bound and _is_request(node)]
    sendings = [Sending(FIELD, url) for request in requests if (url := _url(request))]
    named: set[int] = set()
    if "secret" not in bound:
        for request in requests:
            for call, sending in _secrets_of(request):
                named.add(id(call))
                sendings.append(sending)
        rest = (node for node in ast.walk(module) if id(node) not in named)
        sendings += [Sending(FIELD, secret=name) for node in rest if (name := _secret(node))]
    return tuple(dict.fromkeys(sendings))


def misplaced_secrets(source: str) -> Iterator[ScriptProblemError]:
    """Yield the secrets that are literally where none is sent: in a text as body, and in an address
    before its query. Raises ScriptProblemError for code that cannot be parsed."""
    module = parsed(source)
    bound = frozenset(name for node in ast.walk(module) for name in _bound(node))
    if bound & {"http", "secret"}:
        return
    for request in filter(_is_request, ast.walk(module)):
        for written in _addresses_of(request):
            if (call := _secret_in(written)) and not _has_query(written):
                yield _misplaced(source, call, "in the query of an address, not before it")
        for keyword in request.keywords:
            is_text = keyword.arg == "data" and isinstance(keyword.value, _TEXTS)
            if is_text and (call := _secret_in(keyword.value)):
                where = 'a field of a form, data={"name": secret("…")}, not a part of a text'
                yield _misplaced(source, call, where)


def _misplaced(source: str, call: ast.expr, where: str) -> ScriptProblemError:
    column = in_characters(source, call.lineno, call.col_offset + 1)
    return ScriptProblemError(f"A secret is {where}.", call.lineno, column)


def _secret_in(written: ast.AST) -> ast.expr | None:
    calls = (node for node in ast.walk(written) if isinstance(node, ast.Call))
    return next((call for call in calls if _secret(call)), None)


def _has_query(written: ast.AST) -> bool:
    """Whether a text that an expression contains begins a query, or may do so."""
    return any(
        (isinstance(node, ast.Name) and node.id != "secret")
        or (isinstance(node, ast.Constant) and "?" in str(node.value))
        for node in ast.walk(written)
    )


def _secrets_of(request: ast.Call) -> Iterator[tuple[ast.AST, Sending]]:
    """Yield the calls of `secret` in the arguments of a request, with what they send."""
    for keyword in request.keywords:
        secret_place = _PLACES.get(keyword.arg or "")
        for node in ast.walk(keyword.value) if secret_place else ():
            if name := _secret(node):
                yield node, Sending(FIELD, _url(request), name, secret_place or "")


def _is_request(node: ast.AST) -> TypeGuard[ast.Call]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="http"), attr=method)):
            return method in METHODS
        case _:
            return False


def _secret(node: ast.AST) -> str:
    """Return the name in a call of `secret`; empty for another node, and for a computed name."""
    match node:
        case (
            ast.Call(func=ast.Name(id="secret"), args=[ast.Constant(value=str(name))], keywords=[])
            | ast.Call(
                func=ast.Name(id="secret"),
                args=[],
                keywords=[ast.keyword(arg="name", value=ast.Constant(value=str(name)))],
            )
        ):
            return name
        case _:
            return ""


def _url(request: ast.Call) -> str:
    """Return the address of a request, or its origin if only that is literal; empty if neither is."""
    written = _addresses_of(request)
    text, whole = _beginning(written[0]) if written else ("", False)
    if not whole:
        scheme, _, rest = text.partition("://")
        host, slash, _ = rest.partition("/")
        text = f"{scheme}://{host}/" if slash else ""
    try:
        return Target.parse(text).url
    except EgressError:
        return ""


def _addresses_of(request: ast.Call) -> list[ast.expr]:
    return [
        *request.args[:1],
        *(keyword.value for keyword in request.keywords if keyword.arg == "url"),
    ]


def _beginning(written: ast.expr) -> tuple[str, bool]:
    """Return the literal text that an expression begins with, and whether it is all of it."""
    whole = True
    while isinstance(written, ast.BinOp) and isinstance(written.op, ast.Add):
        written, whole = written.left, False
    match written:
        case ast.Constant(value=str(text)):
            return text, whole
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text, False
        case _:
            return "", False


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=alias):
            yield alias or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
        case _:
            pass
