"""Find mistakes in the source of a function that would only show when it is called.

It reads the uses of the parameter that receives the call's context, and each `raise` of an exception whose
message callers never see. Source that cannot be parsed gets no advice.
"""

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from mcphost.kinds.functions.schemas import SignatureError
from mcphost.sdk import Context, ToolAnnotations, ToolError

_QUESTIONS: Final = ("elicit", "ask_form", "ask_url", "sample", "list_roots")
_GIVEN_ELSEWHERE: Final = ("self", "cls", "ctx", "context")
_FORMS: Final = ("elicit", "ask_form")


class Note(NamedTuple):
    """Advice for the author, about a line of the file."""

    line: int
    message: str


def notes_on(
    function: Callable[..., Any], contexts: Collection[str], annotations: object = None
) -> tuple[Note, ...]:
    """Return advice on a function. `contexts` are the parameters that get the call's context,
    `annotations` those that its decorator has.

    Raises SignatureError for a question that can only fail.
    """
    line = getattr(getattr(function, "__code__", None), "co_firstlineno", 1)
    notes = [Note(line, text) for text in surprises_of(function, annotations)]
    return (*notes, *notes_on_code(function, contexts))


def surprises_of(function: Callable[..., Any], annotations: object) -> Iterator[str]:
    """Yield what clients do not know of the hints of a tool that are a dict, and the parameters that only
    seem to be given by the platform."""
    fields = ToolAnnotations.model_fields
    names = {*fields, *(field.alias for field in fields.values())}
    for name in annotations if isinstance(annotations, Mapping) else ():
        if name not in names:
            hints = ", ".join(str(field.alias or name) for name, field in fields.items())
            yield f"annotations: {name!r} means nothing to clients, which know {hints}"

    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.annotation is parameter.empty and name in _GIVEN_ELSEWHERE:
            use = "a function has none" if name in ("self", "cls") else f"write {name}: Context"
            yield f"{name!r} is an argument, which callers have to give: {use}"


def notes_on_code(function: Callable[..., Any], contexts: Collection[str]) -> tuple[Note, ...]:
    inner = inspect.unwrap(function)
    try:
        lines, first = inspect.getsourcelines(inner)
        (tree,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, TypeError, ValueError, SyntaxError):
        return ()
    names = {**vars(builtins), **inner.__globals__}
    stored = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    # Of what the function itself names so, nothing is known here.
    visible = {name: value for name, value in names.items() if name not in stored | classes}
    reader = _CodeReader(visible, set(contexts) - stored)
    reader.visit(tree)
    for line, text in reader.refused:
        raise SignatureError(f"line {first + line - 1}: {text}")
    return tuple(Note(first + note.line - 1, note.message) for note in sorted(reader.notes))


def is_unseen(error: Any) -> bool:
    """Whether callers do not see the text of an exception: it is built in, or one of the author's that
    is no ToolError."""
    is_exception = isinstance(error, type) and issubclass(error, Exception)
    return is_exception and not issubclass(error, ToolError | NotImplementedError)


class _CodeReader(ast.NodeVisitor):
    """Collects the notes on a function. `names` are those that its code sees."""

    def __init__(self, names: Mapping[str, Any], contexts: Collection[str]) -> None:
        self._names = names
        self._contexts = contexts
        self.notes: set[Note] = set()
        self.refused: list[Note] = []

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        """Read a `try`: what it raises may be caught by it."""
        for part in (*(() if node.handlers else node.body), *node.orelse, *node.finalbody):
            self.visit(part)
        for handler in node.handlers:
            self.visit(handler)
        if node.handlers:
            caught = _CodeReader(self._names, self._contexts)
            for part in node.body:
                caught.visit(part)
            self.notes |= {note for note in caught.notes if not note.message.startswith("raise")}
            self.refused += caught.refused

    visit_TryStar = visit_Try  # noqa: N815 - the name of ast

    def visit_Raise(self, node: ast.Raise) -> None:
        """Note a built-in exception with words."""
        match node.exc:
            case ast.Call(
                func=ast.Name(id=name), args=[ast.Constant(value=str()) | ast.JoinedStr()]
            ):
                error = self._names.get(name)
                if is_unseen(error):
                    text = f"raise {name}(…): callers do not get its text; ToolError is for them"
                    self.notes.add(Note(node.lineno, text))
            case _:
                pass
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Note a member that contexts do not have."""
        if self._is_context(node.value) and not hasattr(Context, node.attr):
            text = f"a context has no {node.attr!r}: docs/writing-tools.md has what there is"
            self.notes.add(Note(node.lineno, text))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Note a call of a member with other arguments than it takes; refuse a question of that sort."""
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if self._is_context(value):
                member = getattr(Context, name, None)
                if callable(member) and (problem := self._problem(node, name, member)):
                    if name in _QUESTIONS:
                        self.refused.append(Note(node.lineno, problem))
                    else:
                        self.notes.add(Note(node.lineno, problem))
            case _:
                pass

    def _is_context(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self._contexts

    def _problem(self, node: ast.Call, name: str, member: Callable[..., Any]) -> str:
        """Return what is wrong with a call; empty if that cannot be said."""
        keywords = {argument.arg: argument.value for argument in node.keywords if argument.arg}
        if len(keywords) < len(node.keywords) or any(
            isinstance(argument, ast.Starred) for argument in node.args
        ):
            return ""
        parameters = [*inspect.signature(member).parameters][1:]
        shown = f"{name}({', '.join(parameters)})"
        if name in _FORMS:
            shown = f"{name}(key, message, Model)"
        try:
            bound = inspect.signature(member).bind(None, *node.args, **keywords)
        except TypeError as error:
            return f"it is ctx.{shown}: {error}"
        if name in _FORMS and (wrong := self._no_model(bound.arguments["model"], name)):
            return f"it is ctx.{shown}: {wrong} is no pydantic model"
        return ""

    def _no_model(self, written: ast.expr, name: str) -> str:
        """Return the text of an expression that is certainly no form; empty for any other."""
        if isinstance(written, ast.Constant | ast.List | ast.Tuple | ast.JoinedStr):
            return ast.unparse(written)
        if not isinstance(written, ast.Name) or written.id not in self._names:
            return ""
        value = self._names[written.id]
        is_form = isinstance(value, type) and issubclass(value, BaseModel)
        is_schema = name == "ask_form" and isinstance(value, Mapping)
        return "" if is_form or is_schema else written.id
