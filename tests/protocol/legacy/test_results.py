"""Tests of results in each session-based revision: they have no fields of later revisions."""

import copy

import pytest

from mcphost.protocol.legacy.results import convert_result, list_entry
from mcphost.protocol.revisions import REVISIONS
from tests.wire import SESSION_BASED, check_message

OLDEST, FIRST, SECOND, LAST = SESSION_BASED
ICONS = [{"src": "data:image/png;base64,AA==", "mimeType": "image/png"}]
OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}}
NOTES = {"audience": ["user"], "lastModified": "2026-01-01T00:00:00Z"}
OURS = {
    "resultType": "complete",
    "ttlMs": 1000,
    "cacheScope": "private",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "a", "version": "1"}},
}
TOOL = {
    "name": "t",
    "title": "T",
    "description": "d",
    "inputSchema": {"type": "object"},
    "outputSchema": OBJECT,
    "icons": ICONS,
    "_meta": {"a/b": 1},
}
LISTS = {
    "tools/list": {"tools": [TOOL]},
    "prompts/list": {
        "prompts": [
            {
                "name": "p",
                "title": "P",
                "arguments": [{"name": "x", "title": "X", "required": True}],
                "icons": ICONS,
            }
        ]
    },
    "resources/list": {
        "resources": [
            {"uri": "a://b", "name": "r", "title": "R", "annotations": NOTES, "icons": ICONS}
        ]
    },
    "resources/templates/list": {
        "resourceTemplates": [{"uriTemplate": "a://{x}", "name": "r", "title": "R"}]
    },
}
LINK = {"type": "resource_link", "uri": "a://b", "name": "b", "title": "B", "icons": ICONS}
TEXT = {"type": "text", "text": "hello", "annotations": NOTES, "_meta": {"a/b": 1}}
EMBEDDED = {"type": "resource", "resource": {"uri": "a://b", "text": "x", "_meta": {"a/b": 1}}}
CALLED = {"content": [TEXT, LINK, EMBEDDED], "structuredContent": {"n": 1}, "isError": False}
GOT = {"description": "d", "messages": [{"role": "user", "content": TEXT}]}
READ = {"contents": [{"uri": "a://b", "text": "x", "_meta": {"a/b": 1}}]}
COMPLETED = {"completion": {"values": ["a"], "total": 1, "hasMore": False}}
RESULTS = {
    **LISTS,
    "tools/call": CALLED,
    "prompts/get": GOT,
    "resources/read": READ,
    "completion/complete": COMPLETED,
}


def dressed(revision: str, method: str, result: dict | None = None):
    """The result as a session gets it: lists are made of entries that are converted one by one."""
    known, result = REVISIONS[revision], RESULTS[method] if result is None else result
    for field in LISTS.get(method, ()):
        result = {**result, field: [list_entry(known, one) for one in result[field]]}
    return convert_result(known, method, result)


def entry(revision: str, method: str = "tools/list", **changes):
    (field,) = LISTS[method]
    (one,) = LISTS[method][field]
    return dressed(revision, method, {field: [{**one, **changes}]})[field][0]


@pytest.mark.parametrize("revision", SESSION_BASED)
@pytest.mark.parametrize("method", RESULTS)
def test_every_result_is_valid_for_its_revision(method: str, revision: str) -> None:
    result = dressed(revision, method, {**RESULTS[method], **OURS})
    check_message({"jsonrpc": "2.0", "id": 1, "result": result}, method, revision)


@pytest.mark.parametrize("revision", SESSION_BASED)
@pytest.mark.parametrize("method", RESULTS)
def test_converting_a_result_does_not_change_the_argument(method: str, revision: str) -> None:
    given = {**copy.deepcopy(RESULTS[method]), **OURS}
    before = copy.deepcopy(given)
    dressed(revision, method, given)
    assert given == before


def test_meta_entries_beside_the_server_name_are_kept() -> None:
    meta = {**OURS["_meta"], "acme.example/a": 1}
    result = dressed(LAST, "completion/complete", {**COMPLETED, "_meta": meta})
    assert result == {**COMPLETED, "_meta": {"acme.example/a": 1}}


def test_a_tool_has_only_the_fields_of_its_revision() -> None:
    hints = {"annotations": {"readOnlyHint": True}}
    assert set(entry(OLDEST, **hints)) == {"name", "description", "inputSchema"}
    assert set(entry(FIRST, **hints)) == {"name", "description", "inputSchema", "annotations"}
    assert set(entry(SECOND)) == set(TOOL) - {"icons"}
    assert entry(LAST) == TOOL


@pytest.mark.parametrize("revision", SESSION_BASED)
@pytest.mark.parametrize("schema", [{"type": "array"}, {"anyOf": [OBJECT]}, {}])
def test_an_output_schema_that_is_not_an_object_is_left_out(revision: str, schema: dict) -> None:
    assert "outputSchema" not in entry(revision, outputSchema=schema)


def test_structured_content_is_an_object_or_left_out() -> None:
    assert "structuredContent" not in dressed(FIRST, "tools/call")
    assert dressed(SECOND, "tools/call")["structuredContent"] == {"n": 1}
    listed = {"content": [TEXT], "structuredContent": [1]}
    assert dressed(LAST, "tools/call", listed) == {"content": [TEXT]}


AUDIO = {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}


def test_audio_becomes_text_in_revisions_without_audio() -> None:
    got = {"messages": [{"role": "user", "content": AUDIO}]}
    text = {
        "type": "text",
        "text": "Audio (audio/wav), which protocol revision 2024-11-05 does not support",
    }
    for revision, block in ((OLDEST, text), (FIRST, AUDIO)):
        assert dressed(revision, "tools/call", {"content": [AUDIO]})["content"] == [block]
        (message,) = dressed(revision, "prompts/get", got)["messages"]
        assert message["content"] == block


def test_the_oldest_revision_keeps_the_annotations_of_resources() -> None:
    listed = entry(OLDEST, "resources/list")
    assert listed["annotations"] == {"audience": ["user"]}


def test_resource_links_become_text_in_revisions_without_links() -> None:
    text, link, embedded = dressed(FIRST, "tools/call")["content"]
    assert text == {"type": "text", "text": "hello", "annotations": {"audience": ["user"]}}
    assert link == {"type": "text", "text": "B: a://b"}
    assert embedded == {"type": "resource", "resource": {"uri": "a://b", "text": "x"}}
    untitled = {name: value for name, value in LINK.items() if name != "title"}
    (told,) = dressed(FIRST, "tools/call", {"content": [untitled]})["content"]
    assert told["text"] == "b: a://b"
