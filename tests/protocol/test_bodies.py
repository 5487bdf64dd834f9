"""Refusing a large body costs little more than parsing it, whatever is wrong with it, and where."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from mcphost.protocol.effort import EXPLAINED_BYTES
from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.legacy.opening import LegacyBody, fitting
from mcphost.protocol.nesting import MAX_DEPTH
from mcphost.protocol.opening import open_post
from mcphost.protocol.params import _RESPONSES, _SHAPES
from mcphost.protocol.revisions import REVISIONS
from mcphost.serving.legacy.methods import OF_TASKS, OWN, SHARED
from mcphost.serving.methods.dispatch import HANDLERS, LONG_LIVED
from tests.bodies import (
    JUNK,
    KIBIBYTE,
    MEBIBYTE,
    MODERN,
    SESSION,
    TIMES,
    Act,
    Place,
    answers,
    cost_of,
    growth_of,
    in_session,
    is_shallow,
    modern,
    places,
)
from tests.protocol.requests import REVISION as MODERN_REVISION
from tests.protocol.requests import call, headers_of, raw

REVISION = "2025-11-25"
LOOKS = 8
"""The cost of one validation against the wire schemas, as a multiple of parsing. Short texts are the
fastest values to parse: it is 3 to 5 for them, by machine."""
SIZE = 75 * KIBIBYTE
BODY_LIMIT = 4 * MEBIBYTE
DEEP = ("zeros", "blocks and a zero", "members")
IN_FULL = ("tools/call", "initialize")
"""The methods that are tested with junk in every place, also in `_meta` and input responses, which
are the same for all methods."""


def opening(message: Any) -> Act:
    """Return a function that opens a body with the headers of `message`."""
    session = "io.modelcontextprotocol/protocolVersion" not in message.get("params", {}).get(
        "_meta", {}
    )
    headers = raw({"mcp-protocol-version": REVISION}) if session else headers_of(message)

    def act(body: bytes) -> None:
        try:
            opened = open_post(headers, body)
            if isinstance(opened, LegacyBody):
                fitting(opened, REVISIONS[REVISION])
        except ProtocolError as error:
            assert len(error.message) < 2_000

    return act


def spoiled(message: Any) -> Iterator[tuple[str, Place]]:
    """Yield junk and the places for it. Places that all methods have are tested for `IN_FULL` only."""
    for place in places(message):
        deep = len(place.steps) > 2
        if "result" in place.steps and deep:
            continue  # the contents of results are not checked here
        own = place.steps[1:2] not in {(), ("_meta",)} and not (
            deep and "inputResponses" in place.steps
        )
        if own or message.get("method") in IN_FULL:
            yield from ((name, place) for name in (DEEP if deep else JUNK))


def look_at(parsed: Any) -> None:
    """Validate a message once against the wire schemas."""
    is_shallow(parsed)
    method, params = parsed.get("method"), parsed.get("params")
    if isinstance(params, dict) and "inputResponses" in params:
        _RESPONSES.fits(params["inputResponses"])
    if isinstance(method, str) and (method, MODERN_REVISION) in _SHAPES:
        _SHAPES[method, MODERN_REVISION].fits(parsed)


def check(message: Any) -> None:
    small, act = orjson.dumps(message), opening(message)
    dear = {}
    for name, place in spoiled(message):
        body = place.filled(message, name, SIZE)
        assert len(body) > EXPLAINED_BYTES, name
        cost = cost_of(act, body, small, look_at, LOOKS)
        if cost.times > TIMES or cost.looks > LOOKS:
            dear[f"{name} at {place}"] = cost.times, cost.looks
    assert dear == {}


@pytest.mark.cost
@pytest.mark.parametrize("method", MODERN)
def test_a_large_request_costs_at_most_twice_parsing_it(method: str) -> None:
    check(modern(method))


@pytest.mark.cost
@pytest.mark.parametrize("method", SESSION)
def test_a_large_message_of_a_session_costs_at_most_twice_parsing_it(method: str) -> None:
    check(in_session(method))


@pytest.mark.cost
@pytest.mark.parametrize("answer", dict(answers()).values(), ids=dict(answers()))
def test_a_large_answer_in_a_session_costs_at_most_twice_parsing_it(answer: Any) -> None:
    check(answer)


def test_every_method_is_tried() -> None:
    assert MODERN.keys() == HANDLERS.keys() | LONG_LIVED.keys()
    notifications = {name for name in SESSION if name.startswith("notifications/")}
    assert SESSION.keys() - notifications - {"initialize"} == OWN.keys() | OF_TASKS.keys() | SHARED


WORST = {
    "zeros for blocks": (
        "tools/call",
        Place(("params", "inputResponses", "sampling", "content")),
        "zeros",
    ),
    "blocks and a zero": (
        "prompts/get",
        Place(("params", "inputResponses", "tools", "content", 1, "content")),
        "blocks and a zero",
    ),
    "arguments that are no texts": (
        "completion/complete",
        Place(("params", "context", "arguments")),
        "members",
    ),
    "URIs that are none": (
        "subscriptions/listen",
        Place(("params", "notifications", "resourceSubscriptions")),
        "zeros",
    ),
    "icons that are none": (
        "completion/complete",
        Place(("params", "_meta", "io.modelcontextprotocol/clientInfo", "icons")),
        "empty objects",
    ),
}


@pytest.mark.cost
@pytest.mark.parametrize(("method", "place", "junk"), WORST.values(), ids=WORST)
def test_the_worst_bodies_cost_as_little_in_time_and_memory_at_the_limit(
    method: str, place: Place, junk: str
) -> None:
    message = modern(method)
    body = place.filled(message, junk, BODY_LIMIT)
    size = len(body)
    assert BODY_LIMIT * 0.8 < size < BODY_LIMIT * 1.2
    act = opening(message)
    cost = cost_of(act, body, orjson.dumps(message), look_at, LOOKS)
    assert cost.times <= TIMES
    assert cost.looks <= LOOKS
    parsing = max(growth_of(orjson.loads, body) for _ in range(2))
    assert min(growth_of(act, body) for _ in range(3)) <= TIMES * parsing + size + MEBIBYTE


# --- messages and validity ---


def message_of(message: Any) -> str:
    with pytest.raises(ProtocolError) as caught:
        opening_of(message)
    assert caught.value.code == -32602
    return caught.value.message


def opening_of(message: Any) -> Any:
    return open_post(headers_of(message), orjson.dumps(message))


@pytest.mark.parametrize("name", ["extensions", "experimental"])
def test_a_long_name_of_a_capability_is_not_repeated(name: str) -> None:
    message = modern("tools/call")
    capabilities = message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    capabilities[name] = {"a" * MEBIBYTE: 0}
    assert len(message_of(message)) < 300


@pytest.mark.parametrize("count", [10, EXPLAINED_BYTES])
def test_below_64_kib_the_first_thing_that_does_not_fit_is_named(count: int) -> None:
    message = modern("completion/complete")
    message["params"]["context"]["arguments"] = {"b" * count: "c", "wrong": 5}
    said = message_of(message)
    if count < EXPLAINED_BYTES:
        assert said == "params.context.arguments.wrong: input should be a valid string"
    else:
        assert said == "params are not valid for completion/complete"


@pytest.mark.cost
def test_a_large_body_that_is_valid_stays_valid() -> None:
    text = {"type": "text", "text": "a" * 100}
    message = modern("tools/call")
    message["params"]["inputResponses"]["sampling"]["content"] = [text] * 2_000
    assert len(opening_of(message).params["inputResponses"]["sampling"]["content"]) == 2_000
    message = modern("completion/complete")
    message["params"]["context"]["arguments"] = {f"a{n}": "v" for n in range(50_000)}
    assert len(opening_of(message).params["context"]["arguments"]) == 50_000


@pytest.mark.parametrize(
    ("size", "fits"), [(1, True), (0, True), (None, True), (1.0, False), (1.5, False), ("1", False)]
)
def test_a_size_is_a_whole_number_written_as_one(size: Any, fits: bool) -> None:
    link = {"type": "resource_link", "name": "a", "uri": "a:b", "size": size}
    result = {"type": "tool_result", "toolUseId": "1", "content": [link]}
    message = modern("tools/call")
    message["params"]["inputResponses"]["tools"]["content"] = [result]
    if fits:
        assert opening_of(message)
    else:
        assert "inputResponses.tools must be the result" in message_of(message)


@pytest.mark.parametrize("padding", [0, 2_000])
@pytest.mark.parametrize("brackets", [0, 100])
@pytest.mark.parametrize("depth", [1, 60, 61, 62, 200])
def test_what_nests_deeper_than_64_levels_is_refused_whatever_is_beside_it(
    depth: int, brackets: int, padding: int
) -> None:
    nested: Any = []
    for _ in range(depth - 1):
        nested = [nested]
    arguments = {"nested": nested, "wide": [[]] * brackets, "long": "[" * padding}
    message = call(arguments=arguments)
    if depth + 3 <= MAX_DEPTH:  # the message, its params and the arguments are levels, too
        assert opening_of(message).params["arguments"] == arguments
    else:
        with pytest.raises(ProtocolError, match="nested deeper"):
            opening_of(message)
