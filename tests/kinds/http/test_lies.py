"""Services that lie when they ask: each is refused with words that say where, and no one is asked."""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from mcphost.kinds.http.asking import MOST_BYTES, MOST_REQUESTS, MOST_STATE, MOST_VALUES
from mcphost.kinds.http.replies import ANSWERS, ASKS
from tests.egress.conftest import Arrived, Handler, write
from tests.kinds.asking import accept
from tests.kinds.http.driving import REFUND, DrivenHttp, asking
from tests.kinds.outgoing import base, outgoing

ONE: Mapping[str, Any] = {"message": "Why?", "requestedSchema": REFUND}
READ = "The service asked for input in a form that cannot be read: "
FORMS = "a service may ask with forms only"


def asks(one: Any, **others: Any) -> bytes:
    return orjson.dumps({"requests": {"why": one}, **others})


def schema(**field: Any) -> bytes:
    return asks({**ONE, "requestedSchema": {"type": "object", "properties": {"reason": field}}})


WHOLE = asks(ONE)
LIES: Mapping[str, tuple[bytes, str]] = {
    "empty": (b"", f"{READ}the document: it is not JSON"),
    "no JSON": (b"<html>", f"{READ}the document: it is not JSON"),
    "cut": (WHOLE[:-1], f"{READ}the document: it is not JSON"),
    "two documents": (WHOLE * 2, f"{READ}the document: it is not JSON"),
    "byte order mark": (b"\xef\xbb\xbf" + WHOLE, f"{READ}the document: it is not JSON"),
    "UTF-16": (WHOLE.decode().encode("utf-16"), f"{READ}the document: it is not UTF-8"),
    "not Unicode": (b'{"requests": "\xff"}', f"{READ}the document: it is not UTF-8"),
    "list": (b"[]", f"{READ}the document: "),
    "nothing asked": (b"{}", f"{READ}requests: "),
    "empty requests": (b'{"requests": {}}', f"{READ}requests: "),
    "requests in a list": (b'{"requests": []}', f"{READ}requests: "),
    "no request": (b'{"requests": {"why": null}}', f"{READ}requests.why: "),
    "unknown member": (asks(ONE, more=1), f"{READ}more: "),
    "unknown member of a request": (asks({**ONE, "more": 1}), f"{READ}requests.why.more: "),
    "member twice": (
        b'{"requests": {}, ' + WHOLE[1:],
        f"{READ}requests: it is there twice",
    ),
    "key twice": (
        b'{"requests": {"why": 1, "why": %s}}' % orjson.dumps(ONE),
        f"{READ}requests.why: it is there twice",
    ),
    "member twice, escaped": (
        WHOLE[:-1] + b', "\\u0072equests": {}}',
        f"{READ}requests: it is there twice",
    ),
    "bad key": (orjson.dumps({"requests": {"a b": ONE}}), f"{READ}requests.…: "),
    "key with a line break": (orjson.dumps({"requests": {"a\n": ONE}}), f"{READ}requests.…: "),
    "long key": (orjson.dumps({"requests": {"a" * 49: ONE}}), f"{READ}requests.{'a' * 49}: "),
    "too many": (
        orjson.dumps({"requests": {f"k{n}": ONE for n in range(MOST_REQUESTS + 1)}}),
        f"{READ}requests: ",
    ),
    "no message": (asks({"requestedSchema": REFUND}), f"{READ}requests.why.message: "),
    "empty message": (asks({**ONE, "message": ""}), f"{READ}requests.why.message: "),
    "message of no text": (asks({**ONE, "message": 7}), f"{READ}requests.why.message: "),
    "long message": (asks({**ONE, "message": "x" * 4001}), f"{READ}requests.why.message: "),
    "control characters": (
        asks({**ONE, "message": "a\x00b"}),
        f"{READ}requests.why.message: it has control characters",
    ),
    "escape sequence": (
        asks({**ONE, "message": "\x1b[2J"}),
        f"{READ}requests.why.message: it has control characters",
    ),
    "raw control characters": (
        WHOLE.replace(b"Why?", b"W\x01"),
        f"{READ}the document: it is not JSON",
    ),
    "lone surrogate": (
        WHOLE.replace(b"Why?", b"\\ud800"),
        f"{READ}requests.why.message: it is not Unicode text",
    ),
    "state with a surrogate": (
        WHOLE[:-1] + b', "state": "\\udfff"}',
        f"{READ}state: it is not Unicode text",
    ),
    "state of no text": (asks(ONE, state=7), f"{READ}state: "),
    "null state": (asks(ONE, state=None), f"{READ}state: "),
    "huge state": (asks(ONE, state="x" * (MOST_STATE + 1)), f"{READ}state: "),
    "no schema": (asks({"message": "Why?"}), f"{READ}requests.why.requestedSchema: "),
    "schema of no object": (
        asks({**ONE, "requestedSchema": True}),
        f"{READ}requests.why.requestedSchema: ",
    ),
    "number beyond 64 bits": (
        schema(type="integer").replace(b'"integer"', b'"integer", "maximum": 1' + b"0" * 30),
        f"{READ}requests.why.requestedSchema.properties.reason.maximum: it is a number of more",
    ),
    "number of thousands of digits": (
        WHOLE[:-1] + b', "state": 1' + b"0" * 5000 + b"}",
        f"{READ}the document: it is not JSON",
    ),
    "NaN": (
        schema(type="number").replace(b'"number"', b'"number", "minimum": NaN'),
        f"{READ}requests.why.requestedSchema.properties.reason.minimum: it is NaN",
    ),
    "infinite": (
        schema(type="number").replace(b'"number"', b'"number", "maximum": 1e999'),
        f"{READ}requests.why.requestedSchema.properties.reason.maximum: it is NaN",
    ),
    "page": (
        asks({"mode": "url", "message": "Pay", "url": "https://evil.example/"}),
        f"{READ}requests.why.mode: {FORMS}",
    ),
    "page beside a form": (
        asks({**ONE, "url": "https://evil.example/"}),
        f"{READ}requests.why.url: {FORMS}",
    ),
    "sampling": (
        asks({"method": "sampling/createMessage", "params": {"messages": []}}),
        f"{READ}requests.why.method: {FORMS}",
    ),
    "roots": (asks({"method": "roots/list"}), f"{READ}requests.why.method: {FORMS}"),
    "unknown method": (asks({"method": "x/y"}), f"{READ}requests.why.method: {FORMS}"),
    "a whole request of MCP": (
        asks({"method": "elicitation/create", "params": dict(ONE)}),
        f"{READ}requests.why.method: give message and requestedSchema themselves",
    ),
    "nested too deep": (
        b'{"requests": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
        f"{READ}",
    ),
    "lists nested too deep": (b"[" * 15000 + b"]" * 15000, f"{READ}"),
    "many values": (
        b'{"requests": [' + b"0," * MOST_VALUES + b"0]}",
        f"{READ}the document: it has more than {MOST_VALUES} values",
    ),
    "many bytes": (
        asks(ONE, state="x" * MOST_BYTES),
        f"{READ}the document: it has more than {MOST_BYTES} bytes",
    ),
    "schema of a list": (
        asks({**ONE, "requestedSchema": {"type": "array"}}),
        "The service asked what no form may ask: ",
    ),
    "nested form": (schema(type="object"), "The service asked what no form may ask: "),
    "reference": (
        asks({**ONE, "requestedSchema": {"$ref": "https://evil.example/schema"}}),
        "The service asked what no form may ask: ",
    ),
    "unknown type": (schema(type="secret"), "The service asked what no form may ask: "),
    "a required field that is not there": (
        asks({**ONE, "requestedSchema": {**REFUND, "required": ["other"]}}),
        "The service asked what no form may ask: ",
    ),
    "a password": (
        asks(
            {**ONE, "requestedSchema": {**REFUND, "properties": {"password": {"type": "string"}}}}
        ),
        "The service asked what no form may ask: ",
    ),
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
async def test_a_lie_is_refused_with_its_place(lie: str, when: str):
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
    assert "evil.example" not in refused


async def test_the_media_type_of_answers_is_no_response():
    async with outgoing(saying(WHOLE, media_type=ANSWERS)) as (service, http):
        refused = await DrivenHttp(config(base(service)), http).refuses()
    assert refused.startswith(f"{READ}the document: its media type is")


async def test_what_is_asked_in_plain_json_is_a_result():
    async with outgoing(saying(WHOLE, media_type="application/json")) as (service, http):
        result = await DrivenHttp(config(base(service)), http).result()
    assert result["structuredContent"] == orjson.loads(WHOLE)


async def test_the_largest_document_that_is_honest_is_asked():
    most = {f"k{n}": ONE for n in range(MOST_REQUESTS)}
    body = orjson.dumps({"requests": most, "state": "x" * MOST_STATE})
    async with outgoing(saying(body)) as (service, http):
        asked = await DrivenHttp(config(base(service)), http).asks()
    assert asked == list(most)
