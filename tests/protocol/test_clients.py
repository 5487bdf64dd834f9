"""What large clients refuse about a tool."""

from typing import Any

import pytest

from mcphost.protocol.clients import (
    OfferedTool,
    add_items,
    client_warnings,
    fits_argument,
    fitting_argument,
)


def warnings(name: str = "tool", **schema: Any) -> str:
    return " ".join(client_warnings(OfferedTool(name, {"type": "object", **schema})))


@pytest.mark.parametrize("name", ["$top", "ip address", "a:b", "é", "", "x" * 65, "a/b", "a[b]"])
def test_an_argument_name_that_a_client_refuses_is_reported_with_the_client(name: str) -> None:
    said = warnings(properties={name: {}, "fine_1.x-y": {}})
    assert repr(name) in said
    assert "Claude" in said
    assert "fine" not in said
    assert not fits_argument(name)
    assert fits_argument(fitting_argument(name))


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_a_top_level_composition_is_reported_and_a_nested_one_is_not(keyword: str) -> None:
    assert keyword in warnings(**{keyword: [{}]})
    assert not warnings(properties={"a": {keyword: [{}]}})


@pytest.mark.parametrize("kind", ["array", ["null", "array"]])
def test_a_list_without_items_is_reported_at_any_depth(kind: Any) -> None:
    bare = {"type": kind}
    said = warnings(properties={"a": {"anyOf": [bare]}}, **{"$defs": {"b": bare}})
    assert "/properties/a/anyOf/0" in said
    assert "/$defs/b" in said
    assert "VS Code" in said
    for own in ({"items": {}}, {"prefixItems": [{}]}):
        assert not warnings(properties={"a": {**bare, **own}})
    add_items(bare)
    assert bare["items"] == {}
    text = {"type": "string"}
    add_items(text)
    assert text == {"type": "string"}


def test_a_dot_in_a_tool_name_is_reported() -> None:
    assert "orders.list" in warnings("orders.list")
    assert not warnings("orders-list_2")


def test_the_number_of_reported_names_is_limited() -> None:
    assert "and 3 more" in warnings(properties={f"${number}": {} for number in range(8)})
