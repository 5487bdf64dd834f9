"""Tests that the kinds' parts of forms return what was stored unchanged."""

from base64 import b64encode
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from mcphost.console.forms.kind_parts import (
    MAX_BYTES,
    Part,
    PromptPart,
    ResourcePart,
    TemplatePart,
)

PNG = b"\x89PNG\r\n\x1a\n of a kind"
PDF = b"%PDF-1.4"
NOTHING = (None, None)


def sent(fields: dict[str, str], **files: Any) -> tuple[QueryDict, MultiValueDict[str, Any]]:
    query = QueryDict(mutable=True)
    query.update(fields)
    named = {name.replace("__", "-"): [file] for name, file in files.items()}
    return query, MultiValueDict(named)


def uploaded(data: bytes, says: str) -> SimpleUploadedFile:
    return SimpleUploadedFile("a", data, says)


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def config(part: Part) -> dict[str, Any]:
    assert part.is_valid()
    assert not part.wrong
    return part.config()


def posted(rows: Any) -> dict[str, str]:
    """Return what a browser posts for rows as they are on the page."""
    fields = {}
    for row in rows.shown:
        for field in row:
            value = row.carried if field.name == "kept" else field.value()
            if value is not None and value is not False:
                fields[field.html_name] = "on" if value is True else str(value)
    return fields


def said(role: str, type_: str, **content: Any) -> dict[str, Any]:
    return {"role": role, "content": {"type": type_, **content}}


PICTURE = {"data": base64(PNG), "mimeType": "image/png"}
FILE = {"uri": "docs://d", "mimeType": "application/pdf", "blob": base64(PDF)}
CITY = {
    "title": "City",
    "description": "Where",
    "required": True,
    "choices": ["Bonn", "New York, NY"],
}
CONVERSATION: dict[str, Any] = {
    "arguments": [
        {"name": "city", **CITY},
        {"name": "day", "title": "", "description": "", "required": False, "choices": []},
    ],
    "messages": [
        said("user", "text", text="In {city}\non {day}?"),
        said("assistant", "image", **PICTURE),
        said("user", "audio", data=base64(b"RIFF"), mimeType="audio/wav"),
        said("user", "resource_link", uri="docs://a", name="a", mimeType="text/plain"),
        said("user", "resource_link", uri="docs://b", name="b"),
        said("user", "resource", resource={"uri": "docs://c", "text": "{city}"}),
        said("user", "resource", resource=FILE),
    ],
}


def test_the_form_of_a_prompt_returns_a_stored_conversation_unchanged() -> None:
    first = PromptPart(NOTHING, CONVERSATION)
    fields = {**posted(first.arguments), **posted(first.messages)}
    assert not [value for value in fields.values() if base64(PNG) in value]
    assert config(PromptPart(sent(fields), CONVERSATION)) == CONVERSATION


def test_empty_rows_of_a_prompt_form_are_ignored() -> None:
    fields = {
        "arguments-0-name": "who",
        "arguments-0-choices": " Ada \r\n\r\nAlan",
        "messages-4-role": "assistant",
        "messages-4-type": "text",
        "messages-4-text": "Hello\r\n{who}",
        "messages-1-role": "user",
        "messages-1-type": "image",
        "messages-2-role": "user",
        "messages-2-type": "text",
    }
    part = PromptPart(sent(fields, messages__1__file=uploaded(PNG, "image/x-odd")), {})
    who = {"name": "who", "title": "", "description": "", "required": False}
    assert config(part) == {
        "arguments": [{**who, "choices": ["Ada", "Alan"]}],
        "messages": [
            said("assistant", "text", text="Hello\n{who}"),
            said("user", "image", **PICTURE),
        ],
    }


@pytest.mark.parametrize(
    ("path", "rows", "number", "field"),
    [
        (("arguments", "0", "name"), "arguments", 0, "name"),
        (("arguments", "1", "choices", "3"), "arguments", 1, "choices"),
        (("messages", "0", "content", "text"), "messages", 0, "text"),
        (("messages", "1", "content", "data"), "messages", 1, "file"),
        (("messages", "3", "content", "uri"), "messages", 3, "uri"),
        (("messages", "6", "content", "resource", "blob"), "messages", 6, "file"),
        (("messages", "6", "content", "resource", "mimeType"), "messages", 6, "mime_type"),
        (("messages", "2"), "messages", 2, "__all__"),
    ],
)
def test_a_problem_is_shown_in_the_row_that_it_concerns(path, rows, number, field):
    fields = posted(PromptPart(NOTHING, CONVERSATION).arguments)
    fields |= posted(PromptPart(NOTHING, CONVERSATION).messages)
    part = PromptPart(sent(fields), CONVERSATION)
    config(part)
    part.show_problems_at(path, ["No."])
    assert part.wrong
    assert getattr(part, rows).filled[number].errors == {field: ["No."]}


def test_the_resource_form_accepts_a_text_or_a_file() -> None:
    uri = {"uri": "docs://a"}
    text = {**uri, "holds": "text", "text": "a\r\nb"}
    assert config(ResourcePart(sent(text), {})) == {**uri, "text": "a\nb"}
    typed = {**text, "mime_type": "text/markdown"}
    assert config(ResourcePart(sent(typed), {}))["mime_type"] == "text/markdown"
    file = {**uri, "holds": "file", "text": "forgotten"}
    part = ResourcePart(sent(file, file=uploaded(PDF, "application/pdf; q=1")), {})
    stored = {**uri, "mime_type": "application/pdf", "blob": base64(PDF)}
    assert config(part) == stored
    again = ResourcePart(NOTHING, stored)
    assert again["holds"].value() == "file"
    assert again["mime_type"].value() == ""
    kept = {**uri, "holds": "file", "kept": again.carried}
    assert config(ResourcePart(sent(kept), stored)) == stored
    other = ResourcePart(sent(kept, file=uploaded(PNG, "image/png")), stored)
    assert config(other)["mime_type"] == "image/png"


def test_an_oversized_file_is_refused_at_its_field() -> None:
    large = uploaded(b"0" * (MAX_BYTES + 1), "")
    part = ResourcePart(sent({"holds": "file"}, file=large), {})
    assert not part.is_valid()
    assert part.errors == {"file": ["The file is larger than 1 MiB."]}


def test_the_template_form_has_a_text_and_suggestions_for_its_variables() -> None:
    stored = {"uri": "docs://{a}", "text": "{a}", "choices": {"a": ["1", "2"]}}
    first = TemplatePart(NOTHING, stored)
    fields = {**posted(first.variables), "uri": "docs://{a}", "text": "{a}"}
    part = TemplatePart(sent(fields), stored)
    assert config(part) == stored
    twice = {**fields, "variables-9-name": "a", "variables-9-choices": "3"}
    assert config(TemplatePart(sent(twice), stored))["choices"] == {"a": ["1", "2", "3"]}
    part.show_problems_at(["choices", "a", "0"], ["No."])
    part.show_problems_at(["choices", "b"], ["Unknown."])
    part.show_problems_at(["text"], ["Empty."])
    assert part.variables.filled[0].errors == {"choices": ["No."]}
    assert (part.variables.errors, part.errors) == (["Unknown."], {"text": ["Empty."]})
