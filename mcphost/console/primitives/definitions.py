"""How a primitive is defined, for its page, and its problems by the labels of its form."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from pydantic import ValidationError

from mcphost.catalogue import kinds
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.console.forms.json_texts import json_text
from mcphost.console.primitive_words import WORDS
from mcphost.console.primitives.form import PrimitiveForm
from mcphost.kinds.http.configs import (
    BytesBodyConfig,
    FormBodyConfig,
    HttpToolConfig,
    JsonBodyConfig,
    MultipartBodyConfig,
    RequestConfig,
    TextBodyConfig,
)
from mcphost.kinds.primitive_types import PrimitiveType

_LABELS: Final = {"config": "Content", "icons": "Icons", "kind": "Kind", "": "Content"}
_CONFIG_LABELS: Final = {"mime_type": "MIME type"}
_ROWS: Final = {
    "query": "Query parameter",
    "headers": "Header",
    "fields": "Form field",
    "files": "File",
    "questions": "Question",
    "arguments": "Argument",
    "messages": "Message",
    "variables": "Variable",
}
_ROW: Final = re.compile(r"([a-z]+)-([0-9]+)-")


class FieldProblem(NamedTuple):
    """A problem of a field: its label, a sentence, and the id of its control in the form, if any."""

    label: str
    text: str
    anchor: str = ""

    def __str__(self) -> str:
        return f"{self.label}: {self.text}"


class DefinitionPart(NamedTuple):
    """A part of a definition: its label, and a text, or JSON."""

    label: str
    value: Any

    @property
    def is_text(self) -> bool:
        return isinstance(self.value, str)


def labelled(
    tenant: UUID, fields: PrimitiveFields, problems: Mapping[str, Sequence[str]]
) -> list[FieldProblem]:
    """Return problems, which are by the paths of fields, by the labels that the form shows."""
    if not problems:
        return []
    form = PrimitiveForm(WORDS[fields.primitive_type], tenant, fields.kind, (None, None), fields)
    field_problems = []
    for path, sentences in problems.items():
        label, anchor = _label_and_anchor(form, path)
        field_problems += [FieldProblem(label, sentence, anchor) for sentence in sentences]
    return field_problems


def _label_and_anchor(form: PrimitiveForm, path: str) -> tuple[str, str]:
    field = form.field_at(path)
    if field is None:
        root = path.partition(".")[0]
        return _LABELS.get(root, root.replace("_", " ").capitalize()), ""
    row = _ROW.match(field.html_name)
    row_label = f"{_ROWS[row[1]]} {int(row[2]) + 1}, " if row and row[1] in _ROWS else ""
    return f"{row_label}{field.label}", field.auto_id


def definition_of(
    primitive_type: PrimitiveType, kind: str, config: Mapping[str, Any]
) -> list[DefinitionPart]:
    """Return how a configuration defines its primitive; secrets are in it by name only."""
    function = kinds.function_of(kind, config)
    if function:
        return [DefinitionPart("Python function", function)]
    match kind:
        case "script":
            return [DefinitionPart("Script", str(config.get("code", "")))]
        case "http":
            return list(_http(config))
        case _:
            return list(_fields(primitive_type, kind, config))


def _http(config: Mapping[str, Any]) -> Iterator[DefinitionPart]:
    try:
        read = HttpToolConfig.model_validate(config)
    except ValidationError:
        yield DefinitionPart("Configuration", config)
        return
    if read.source:
        yield DefinitionPart("Imported from", read.source)
    for question in read.questions:
        condition = f"\nOnly if {json_text(question.when)}" if question.when else ""
        yield DefinitionPart(f"Question {question.key}", f"{question.message}{condition}")
        yield DefinitionPart(f"Answer {question.key}", question.requested_schema)
    yield DefinitionPart("Request", "\n".join(_request(read.request)))
    if read.response.select:
        yield DefinitionPart("Expression", read.response.select)


def _request(request: RequestConfig) -> Iterator[str]:
    yield f"{request.method} {request.url}"
    for number, parameter in enumerate(request.query):
        yield f"  {'&' if number else '?'}{parameter.name}={parameter.value}"
    yield from (f"{header.name}: {header.value}" for header in request.headers)
    if isinstance(request.body, JsonBodyConfig | TextBodyConfig | BytesBodyConfig):
        yield f"Content-Type: {request.body.media_type}"
    match request.body:
        case JsonBodyConfig(value=value):
            yield f"\n{json_text(value)}"
        case TextBodyConfig(text=text):
            yield f"\n{text}"
        case BytesBodyConfig(content=content):
            yield f"\n{content}"
        case FormBodyConfig(fields=fields):
            yield from ("", *(f"{field.name}={field.value}" for field in fields))
        case MultipartBodyConfig(fields=fields, files=files):
            yield from ("", *(f"{field.name}={field.value}" for field in fields))
            for file in files:
                about = ", ".join(text for text in (file.file_name, file.media_type) if text)
                yield f"{file.name}=file {file.content}{f' ({about})' if about else ''}"
        case None:
            return


def _fields(
    primitive_type: PrimitiveType, kind: str, config: Mapping[str, Any]
) -> Iterator[DefinitionPart]:
    """Yield the fields of a configuration by the titles in its schema."""
    registered = kinds.KINDS.get(kind)
    schema = (
        {} if registered is None else registered.config_model(primitive_type).model_json_schema()
    )
    properties = schema.get("properties", {})
    for name, value in config.items():
        if name == "uri":
            continue  # the page has it among what clients see
        title = _CONFIG_LABELS.get(name) or properties.get(name, {}).get("title", name)
        file = f"{len(value)} characters of Base64" if name == "blob" and value else value
        yield DefinitionPart(title, file)
