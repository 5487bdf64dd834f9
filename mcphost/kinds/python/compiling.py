"""Compiles an inspected function: all that its author declares (title, annotations, icons, meta), as plain JSON."""

import re
from dataclasses import replace
from typing import Any

import orjson
from pydantic import BaseModel

from mcphost.kinds.functions.program import FunctionProgram
from mcphost.kinds.functions.returns import Returns
from mcphost.kinds.functions.schemas import SignatureError
from mcphost.kinds.kind import Compiled
from mcphost.kinds.python.completers import completer_of
from mcphost.kinds.python.function import PythonFunction
from mcphost.sdk import PromptDefinition, ResourceDefinition, ToolDefinition

_TEXTS = ("name", "title", "description", "author_version", "uri", "mime_type", "annotations")
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""U+0000 in JSON, which PostgreSQL cannot store: after an even number of backslashes."""


def compile_function(offered: PythonFunction) -> Compiled:
    """Compile a function, with texts and schemas that can be sent and stored. Raises SignatureError."""
    return _plain(_compiled(offered))


def _compiled(offered: PythonFunction) -> Compiled:
    definition = offered.definition
    compiled = Compiled(
        name=offered.name,
        primitive_type=offered.primitive_type,
        input_schema=offered.parameters.schema,
        title=definition.title,
        description=offered.description,
        author_version=definition.version,
        requires=tuple(definition.requires),
        time_limit=definition.time_limit,
        program=FunctionProgram(offered),
        arguments=offered.arguments,
        completer=completer_of(offered),
        answer_within=definition.answer_within,
        claims=definition.claims,
        unasked=definition.unasked,
    )
    match definition:
        case ToolDefinition():
            schema = offered.returns.schema if isinstance(offered.returns, Returns) else None
            hints = _json(definition.annotations)
            tasks = definition.task_support
            compiled = replace(compiled, task_support=tasks, retries=definition.retries)
            return replace(compiled, output_schema=schema, annotations=hints)
        case ResourceDefinition():
            hints = _json(definition.annotations) if definition.annotations else {}
            uri, mime_type = definition.uri, definition.mime_type
            return replace(compiled, uri=uri, mime_type=mime_type, annotations=hints)
        case PromptDefinition():
            return compiled


def _json(annotations: object) -> dict[str, Any]:
    if not isinstance(annotations, BaseModel):  # authors of other frameworks pass a dict
        raise SignatureError(
            "annotations are an object of mcphost.sdk: annotations=ToolAnnotations(…) for a tool, "
            "Annotations(…) for a resource"
        )
    return annotations.model_dump(mode="json", by_alias=True, exclude_none=True)


def _plain(compiled: Compiled) -> Compiled:
    """Return the same with texts of Python's own types, or raise SignatureError."""
    declared_texts = {name: getattr(compiled, name) for name in _TEXTS}
    declared_texts["requires"] = compiled.requires
    schemas = [compiled.input_schema, compiled.output_schema]
    try:
        encoded = orjson.dumps([declared_texts, schemas])
    except TypeError as error:
        raise SignatureError(f"its texts cannot be sent as JSON: {error}") from None
    if _NUL.search(encoded):
        raise SignatureError("its texts and schemas must not contain U+0000: it cannot be stored")
    plain = orjson.loads(encoded)[0]
    return replace(compiled, **{**plain, "requires": tuple(plain["requires"])})
