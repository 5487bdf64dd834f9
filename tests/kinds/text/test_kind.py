"""Tests of text prompts, resources and templates."""

import base64
from typing import Any

import pytest

from mcphost.kinds.kind import KindError
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.text.content import MAX_BYTES
from mcphost.kinds.text.kind import text_kind
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.runtime.call import Call
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Complete
from mcphost.runtime.program import Program
from tests.kinds.rounds import a_call, ports

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
GREETING: dict[str, Any] = {
    "arguments": [
        {"name": "who", "title": "Who", "description": "Whom to greet.", "choices": ["Ada", "Bob"]},
        {"name": "how", "required": False},
    ],
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "Greet {who} {how}"}},
        {"role": "assistant", "content": {"type": "image", "data": PNG, "mimeType": "image/png"}},
        {
            "role": "user",
            "content": {"type": "resource", "resource": {"uri": "a:b", "text": "for {who}"}},
        },
    ],
}


def problems(config: Any, sort: PrimitiveType = PrimitiveType.PROMPT) -> dict[str, list[str]]:
    with pytest.raises(KindError) as refusal:
        text_kind.compile(config, sort)
    return dict(refusal.value.problems)


async def outcome(program: Program | None, call: Call) -> Any:
    done = await program.advance(call, EMPTY, ports())
    assert isinstance(done, Complete)
    return done.result


def saying(text: str) -> dict[str, Any]:
    return {"messages": [{"content": {"type": "text", "text": text}}]}


async def test_a_prompt_inserts_its_arguments_into_its_texts() -> None:
    compiled = text_kind.compile(GREETING, PrimitiveType.PROMPT)
    result = await outcome(compiled.program, a_call({"who": "{how}"}))
    contents = [message["content"] for message in result["messages"]]
    assert contents[0]["text"] == "Greet {how} "
    assert contents[1] == {"type": "image", "data": PNG, "mimeType": "image/png"}
    assert contents[2]["resource"]["text"] == "for {how}"
    assert [(a.name, a.required) for a in compiled.arguments] == [("who", True), ("how", False)]
    assert compiled.primitive_type is PrimitiveType.PROMPT


@pytest.mark.parametrize(("typed", "values"), [("", ["Ada", "Bob"]), ("b", ["Bob"]), ("x", [])])
async def test_choices_of_a_prompt_complete_its_arguments(typed: str, values: list[str]) -> None:
    completer = text_kind.compile(GREETING, PrimitiveType.PROMPT).completer
    asked = {"argument": {"name": "who", "value": typed}, "context": {"arguments": {}}}
    done = await outcome(completer, a_call(asked))
    assert done == {"completion": {"values": values, "total": len(values), "hasMore": False}}
    other = {"argument": {"name": "how", "value": ""}, "context": {"arguments": {}}}
    assert (await outcome(completer, a_call(other)))["completion"]["values"] == []


async def test_a_resource_is_returned_as_written() -> None:
    config = {"uri": "docs://readme", "mime_type": "text/markdown", "text": "# {x} ü"}
    compiled = text_kind.compile(config, PrimitiveType.RESOURCE)
    done = await outcome(compiled.program, a_call({})._replace(target="docs://readme"))
    assert done == {
        "contents": [{"uri": "docs://readme", "mimeType": "text/markdown", "text": "# {x} ü"}]
    }
    assert (compiled.uri, compiled.mime_type, compiled.size) == (
        "docs://readme", "text/markdown", 8,
    )  # fmt: skip


async def test_a_template_inserts_the_values_of_its_variables() -> None:
    config = {"uri": "users://{id}/card{?lang}", "text": "User {id}, {lang}."}
    compiled = text_kind.compile(config, PrimitiveType.TEMPLATE)
    call = a_call({"id": "7"})._replace(target="users://7/card")
    assert (await outcome(compiled.program, call))["contents"][0]["text"] == "User 7, ."
    none = await outcome(compiled.program, a_call({})._replace(target="users://7/card"))
    assert none["contents"][0]["text"] == "User , ."
    assert UriTemplate(compiled.uri).variables == ("id", "lang")


@pytest.mark.parametrize(
    ("config", "field", "said"),
    [
        ({}, "messages", "is required"),
        ({**saying("x"), "more": 1}, "more", "no such field"),
        (saying("nul\0"), "messages.0.content", "U+0000"),
        (saying("x" * (MAX_BYTES + 1)), "messages.0.content", "more than"),
        ({**saying("x"), "arguments": [{"name": "a b"}]}, "arguments.0.name", "match the pattern"),
        (
            {**saying("x"), "arguments": [{"name": "a"}] * 2},
            "arguments",
            "two arguments called 'a'",
        ),
    ],
)
def test_an_invalid_prompt_is_refused_with_the_field(config: Any, field: str, said: str) -> None:
    found = problems(config)
    assert said in " ".join(found[next(name for name in found if name.startswith(field))])


def image(data: str, mime_type: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": mime_type}


def embedded(**resource: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "a:b", **resource}}


WAV = base64.b64encode(b"RIFF....WAVE").decode()
BLOCKS: list[dict[str, Any]] = [
    {"type": "text", "text": "a", "annotations": {"audience": ["user"], "priority": 0.5}},
    image(PNG),
    {"type": "audio", "data": WAV, "mimeType": "audio/wav"},
    embedded(mimeType="text/html", text="<p>"),
    embedded(mimeType="image/png", blob=PNG),
    {"type": "resource_link", "uri": "a:b", "name": "b", "title": "B", "size": 3},
]


@pytest.mark.parametrize("block", BLOCKS)
async def test_content_of_every_type_is_returned_as_written(block: dict[str, Any]) -> None:
    compiled = text_kind.compile({"messages": [{"role": "assistant", "content": block}]})
    done = await outcome(compiled.program, a_call({}))
    assert done == {"messages": [{"role": "assistant", "content": block}]}


@pytest.mark.parametrize(
    ("block", "found"),
    [
        (None, {"": "must be an object"}),
        ({}, {"": "Content has a type"}),
        ({"type": "text", "text": 5}, {".text": "must be a string"}),
        ({"type": "text", "text": "{a}"}, {".text": "no argument 'a'"}),
        ({"type": "text", "text": "a", "more": 1}, {".more": "no such field"}),
        (
            {"type": "text", "text": "a", "annotations": {"priority": 2}},
            {".annotations.priority": "at most 1"},
        ),
        (image("?"), {".data": "not Base64"}),
        (image(WAV), {".data": "does not match its MIME type"}),
        (image("", "text/html"), {".mimeType": "image/"}),
        (embedded(), {".resource": "either a text or"}),
        (embedded(uri="b", text=""), {".resource.uri": "begin with a scheme"}),
        (embedded(mimeType="image/png", blob=WAV), {".resource.blob": "does not match its MIME"}),
        (
            {"type": "resource_link", "uri": "a b", "name": ""},
            {".uri": "percent-encoded", ".name": "at least 1"},
        ),
    ],
)
def test_problems_of_content_are_reported_at_their_path(block: Any, found: dict[str, str]):
    said = problems({"messages": [{"content": block}]})
    assert set(said) == {f"messages.0.content{place}" for place in found}
    for place, words in found.items():
        assert words in " ".join(said[f"messages.0.content{place}"])


DOCS = {"uri": "docs://a", "text": ""}
EITHER, MISMATCH = "either a text or binary", "does not match its MIME type"


@pytest.mark.parametrize(
    ("sort", "config", "said"),
    [
        (PrimitiveType.RESOURCE, {**DOCS, "mime_type": "image/png"}, MISMATCH),
        (PrimitiveType.RESOURCE, {"uri": "docs://a"}, EITHER),
        (PrimitiveType.RESOURCE, {**DOCS, "uri": "docs"}, "begin with a scheme"),
        (
            PrimitiveType.RESOURCE,
            {"uri": "docs://a", "blob": "AAAA", "mime_type": "image/png"},
            MISMATCH,
        ),
        (PrimitiveType.RESOURCE, {"uri": "docs://a", "blob": "A" * (MAX_BYTES * 2)}, "more than"),
        (PrimitiveType.TEMPLATE, {"uri": "docs://{a}", "text": "{b}"}, "no variable 'b'"),
        (
            PrimitiveType.TEMPLATE,
            {"uri": "docs://{a}", "text": "", "choices": {"b": []}},
            "no variable 'b'",
        ),
        (PrimitiveType.TOOL, {}, "does not support tools"),
    ],
)
def test_an_invalid_resource_is_refused(sort: PrimitiveType, config: Any, said: str) -> None:
    assert said in str(problems(config, sort))
