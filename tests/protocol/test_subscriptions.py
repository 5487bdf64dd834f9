"""Tests of the messages of a subscription, each validated against the schema."""

from typing import Any

import orjson
import pytest

from mcphost.protocol import messages, subscriptions
from mcphost.protocol.exchange import Exchange, Meta
from mcphost.protocol.revisions import REVISION, Era
from mcphost.protocol.subscriptions import LISTS, SUBSCRIPTION_ID, Filter
from tests.wire import check_message, check_response

SERVER = {"name": "tests", "version": "1"}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, Filter()),
        ({"toolsListChanged": True}, Filter(("tool",))),
        (
            {"resourcesListChanged": True, "promptsListChanged": True},
            Filter(("prompt", "resource")),
        ),
        ({"resourceSubscriptions": ["b:1", "a:1", "b:1"]}, Filter((), ("b:1", "a:1"))),
        ({"taskIds": []}, Filter()),
        ({"taskIds": ["b", "a", "b"]}, Filter((), (), ("b", "a"))),
    ],
)
def test_a_subscription_filter_contains_each_requested_entry_once(
    asked: dict[str, Any], found: Filter
) -> None:
    assert Filter.read(asked) == found
    assert bool(found) is bool(found.wire())
    assert Filter.read(found.wire()) == found


def test_only_the_subscription_filter_is_kept_from_a_listen_request() -> None:
    junk = [[]] * 3
    params = {
        "_meta": {"tracestate": "a=b", "clientInfo": junk, "more": junk},
        "notifications": {
            "toolsListChanged": True,
            "resourceSubscriptions": ["a:1", "a:1"],
            "taskIds": ["t", "t"],
            "more": junk,
        },
        "more": junk,
    }
    meta = Meta("t" * 1000, "info", {"name": junk}, {"more": junk}, "00-1-2-00")
    asked = Exchange(7, "subscriptions/listen", params, meta, Era.MODERN, REVISION)
    assert subscriptions.lasting(asked) == asked._replace(
        params={
            "_meta": {"tracestate": "a=b"},
            "notifications": {
                "toolsListChanged": True,
                "resourceSubscriptions": ["a:1"],
                "taskIds": ["t"],
            },
        },
        meta=Meta(traceparent="00-1-2-00"),
    )
    del params["_meta"]["tracestate"]  # type: ignore[attr-defined]
    assert subscriptions.lasting(asked).params["_meta"] == {}


@pytest.mark.parametrize("id", [1, "1", "", -(2**63), "ünïcode"])
def test_every_message_of_a_subscription_has_its_id_in_the_same_type(id: str | int) -> None:
    told = [
        subscriptions.acknowledged(id, Filter(tuple(LISTS), ("a:1",), ("t",))),
        *(subscriptions.list_changed(id, name) for name in LISTS),
        subscriptions.resource_updated(id, "a:1"),
    ]
    for message in map(check_message, told):
        named = message["params"]["_meta"][SUBSCRIPTION_ID]
        assert (type(named), named) == (type(id), id)
    ended = messages.response(id, subscriptions.ended(id, SERVER))
    check_response("subscriptions/listen", ended)
    assert orjson.loads(ended)["result"]["_meta"][SUBSCRIPTION_ID] == id
