"""Invalid input requests of a service are refused with their path, and no user sees them."""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from mcphost.kinds.http.asking import MAX_BYTES, MAX_REQUESTS, MAX_STATE, MAX_VALUES
from mcphost.kinds.http.replies import ASKS
from tests.egress.conftest import Arrived, Handler, write
from tests.kinds.http.http_tool_calls import REFUND, DrivenHttp, asking
from tests.kinds.loopback_http import base, outgoing
from tests.kinds.rounds_with_client import accept

ONE: Mapping[str, Any] = {"message": "Why?", "requestedSchema": REFUND}
READ = "The service asked for input in a form that cannot be read: "
FORMS = "a service may ask with forms only"


def asks(one: Any, **others: Any) -> bytes:
    return orjson.dumps({"requests": {"why": one}, **others})


def with_(**members: Any) -> bytes:
    """Return a document whose request has other members than `ONE`."""
    return asks({**ONE, **members})


def schema(**field: Any) -> bytes:
    return with_(requestedSchema={"type": "object", "properties": {"reason": field}})


def requesting(number: int, **others: Any) -> bytes:
    return orjson.dumps({"requests": {f"k{n}": ONE for n in range(number)}, **others})


WHOLE = asks(ONE)
ALSO = WHOLE[:-1] + b", "
"""The beginning of a document with one more member."""
DOCUMENT, NO_JSON, NO_UTF_8 = (
    "the document: ",
    "the document: it is not JSON",
    "the document: it is not UTF-8",
)
WHY = "requests.why"
MESSAGE, SCHEMA = f"{WHY}.message: ", f"{WHY}.requestedSchema"
CONTROL = "it has control characters"
SECRET = "do-not-quote"
TWICE = "it is there twice"
PAGE = {"mode": "url", "message": "Pay", "url": "https://evil.example/"}
SAMPLING = {"method": "sampling/createMessage", "params": {"messages": []}}
WHOLE_REQUEST = {"method": "elicitation/create", "params": dict(ONE)}
PASSWORD = {**REFUND, "properties": {"password": {"type": "string"}}}
UNREADABLE: Mapping[str, tuple[bytes, str]] = {
    "empty": (b"", NO_JSON),
    "no JSON": (b"do-not-quote", NO_JSON),
    "cut": (WHOLE[:-1], NO_JSON),
    "not Unicode": (b'{"requests": "\xff"}', NO_UTF_8),
    "list": (b"[]", DOCUMENT),
    "nothing asked": (b"{}", "requests: "),
    "no request": (asks(SECRET), f"{WHY}: "),
    "unknown member": (asks(ONE, more=SECRET), "more: "),
    "member twice": (b'{"requests": {}, ' + WHOLE[1:], f"requests: {TWICE}"),
    "member twice, escaped": (ALSO + b'"\\u0072equests": {}}', f"requests: {TWICE}"),
    "bad key": (WHOLE.replace(b"why", b"a b"), "requests.…: "),
    "long key": (WHOLE.replace(b"why", b"a" * 49), f"requests.{'a' * 49}: "),
    "too many": (requesting(MAX_REQUESTS + 1), "requests: "),
    "no message": (asks({"requestedSchema": REFUND}), MESSAGE),
    "long message": (with_(message=SECRET * 400), MESSAGE),
    "control characters": (with_(message="a\x00b"), f"{MESSAGE}{CONTROL}"),
    "raw control characters": (WHOLE.replace(b"Why?", b"W\x01"), NO_JSON),
    "state of no text": (asks(ONE, state={"a": SECRET}), "state: "),
    "huge state": (asks(ONE, state="x" * (MAX_STATE + 1)), "state: "),
    "no schema": (asks({"message": "Why?"}), f"{SCHEMA}: "),
    "number beyond 64 bits": (
        schema(type="integer", maximum=1).replace(b":1}", b":1" + b"0" * 30 + b"}"),
        f"{SCHEMA}.properties.reason.maximum: it is a number of more",
    ),
    "number of thousands of digits": (ALSO + b'"state": 1' + b"0" * 5000 + b"}", NO_JSON),
    "NaN": (
        schema(type="number", minimum=1).replace(b":1}", b":NaN}"),
        f"{SCHEMA}.properties.reason.minimum: it is NaN",
    ),
    "page": (asks(PAGE), f"{WHY}.mode: {FORMS}"),
    "sampling": (asks(SAMPLING), f"{WHY}.method: {FORMS}"),
    "a whole request of MCP": (
        asks(WHOLE_REQUEST),
        f"{WHY}.method: give message and requestedSchema themselves",
    ),
    "nested too deep": (b'{"requests": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001, ""),
    "many values": (
        b'{"requests": [' + b"0," * MAX_VALUES + b"0]}",
        f"{DOCUMENT}it has more than {MAX_VALUES} values",
    ),
    "many bytes": (
        asks(ONE, state="x" * MAX_BYTES),
        f"{DOCUMENT}it has more than {MAX_BYTES} bytes",
    ),
}
NO_FORM: Mapping[str, bytes] = {
    "schema without a type": with_(requestedSchema={}),
    "an address": with_(message="See https://evil.example/"),
    "a message for a password": with_(message="Your password?"),
    "nested form": schema(type="object"),
    "reference": with_(requestedSchema={"$ref": "https://evil.example/schema"}),
    "a required field that is not there": with_(requestedSchema={**REFUND, "required": ["other"]}),
    "a password": with_(requestedSchema=PASSWORD),
}
LIES: Mapping[str, tuple[bytes, str]] = {
    **{name: (body, READ + words) for name, (body, words) in UNREADABLE.items()},
    **{name: (body, "The service asked what no form may ask: ") for name, body in NO_FORM.items()},
}


def saying(*bodies: bytes, media_type: str = ASKS) -> Handler:
    left = list(bodies)

    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        write(writer, 200, left.pop(0), Content_Type=media_type)

    return handler


def config(port: str) -> dict[str, Any]:
    body = {"type": "json", "value": {"id": 7}}
    return {"request": {"url": f"{port}/refund", "method": "POST", "body": body}}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("when", ["first", "after an answer"])
async def test_an_invalid_input_request_of_a_service_is_refused_with_its_path(lie: str, when: str):
    body, words = LIES[lie]
    bodies = (body,) if when == "first" else (asking(before="Sure?"), body)
    async with outgoing(saying(*bodies)) as (service, http):
        driven = DrivenHttp(config(base(service)), http)
        answers: dict[str, Any] = {}
        if when != "first":
            assert await driven.asks() == ["before"]
            answers = {"before": accept(reason="so")}
        refused = await driven.refuses(**answers)
        assert len(service.arrived) == len(bodies)
    assert refused.startswith(words)
    assert len(refused) < 1000
    assert "evil.example" not in refused and SECRET not in refused


async def test_the_largest_valid_input_request_document_is_accepted():
    body = requesting(MAX_REQUESTS, state="x" * MAX_STATE)
    async with outgoing(saying(body)) as (service, http):
        asked = await DrivenHttp(config(base(service)), http).asks()
    assert asked == [f"k{n}" for n in range(MAX_REQUESTS)]
