"""Tests of the three-way merge of a tool and its operation."""

from typing import Any

from mcphost.kinds.http.openapi_merge import ToolContent, changes, merged


def said(title: str = "", **request: Any) -> ToolContent:
    """Return a tool; `arguments` and `required` are those of its schema."""
    arguments, required = request.pop("arguments", {}), request.pop("required", [])
    schema = {"type": "object", "properties": arguments, "required": required}
    url = request.pop("url", "https://api.example.com/a")
    return ToolContent(
        title,
        "Does it.",
        {"input_schema": schema, "request": {"method": "POST", "url": url, **request}},
    )


def told(
    base: ToolContent | None, mine: ToolContent, theirs: ToolContent
) -> list[tuple[str, str, bool]]:
    return [(each.label, each.verb, each.is_conflict) for each in changes(base, mine, theirs)]


def test_only_changes_of_the_document_count_as_changes() -> None:
    base = said("old", arguments={"kept": {}, "gone": {}, "same": {}})
    mine = said("mine", arguments={"kept": {"maxLength": 3}, "gone": {}, "same": {}, "own": {}})
    theirs = said("old", arguments={"new": {}, "kept": {}, "same": {"type": "string"}})
    assert told(base, mine, theirs) == [
        ("Argument new", "new", False),
        ("Argument same", "changed", False),
        ("Argument gone", "removed", False),
    ]
    now = merged(mine, theirs, changes(base, mine, theirs))
    assert now.title == "mine"
    assert now.config["input_schema"]["properties"] == {
        "new": {},
        "kept": {"maxLength": 3},
        "same": {"type": "string"},
        "own": {},
    }
    assert list(now.config["input_schema"]["properties"]) == ["new", "kept", "same", "own"]


def test_a_change_on_both_sides_is_a_conflict_unless_it_is_the_same_change() -> None:
    base, mine = said("old"), said("mine")
    assert told(base, mine, said("theirs")) == [("Title", "changed", True)]
    assert told(base, mine, said("mine")) == []
    assert told(base, mine, said("")) == [("Title", "removed", True)]


def test_lists_bodies_and_addresses_are_merged_by_their_parts() -> None:
    base = said(query=[{"name": "a", "value": "1"}, {"name": "a", "value": "2"}])
    mine = base._replace(config={**base.config, "response": {"select": "x"}})
    theirs = said(
        query=[{"name": "a", "value": "1"}, {"name": "a", "value": "3"}],
        headers=[{"name": "X-A", "value": "b"}],
        body={"type": "json", "value": {"a": 1}},
        url="https://api.example.com/b",
        required=["a"],
        arguments={"a": {}},
    )
    assert [label for label, *_ in told(base, mine, theirs)] == [
        "Address",
        "Argument a",
        "Parameter of the query a (2)",
        "Header X-A",
        "Body",
    ]
    now = merged(mine, theirs, changes(base, mine, theirs)).config
    assert now["response"] == {"select": "x"}
    assert [each["value"] for each in now["request"]["query"]] == ["1", "3"]
    assert now["request"]["url"] == "https://api.example.com/b"
    assert now["request"]["body"] == {
        "type": "json",
        "value": {"a": 1},
        "media_type": "application/json",
    }
    assert now["input_schema"]["required"] == ["a"]
    assert changes(theirs, ToolContent(theirs.title, theirs.description, now), theirs) == []
