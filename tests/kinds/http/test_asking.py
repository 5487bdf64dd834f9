"""Input requests of HTTP tools: before the HTTP request, and on behalf of the service."""

import asyncio
from typing import Any

import orjson
import pytest

from mcphost.kinds.http.program import MAX_TURNS
from mcphost.kinds.http.replies import ANSWERS, ASKS
from tests.egress.conftest import Arrived, Service, write
from tests.kinds.http.http_tool_calls import REFUND, DrivenHttp, asking, in_turn
from tests.kinds.loopback_http import base, outgoing
from tests.kinds.rounds_with_client import CANCEL, DECLINE, accept

OK = b'{"ok": true}'


def tool(service: Service, **others: Any) -> dict[str, Any]:
    body = {"type": "json", "value": {"id": "{arguments.id}"}}
    request = {"url": f"{base(service)}/refund", "method": "POST", "body": body}
    return {**others, "request": {**request, **others.pop("request", {})}}


def body(service: Service, number: int) -> Any:
    return orjson.loads(service.arrived[number].body)


QUESTIONS = [
    {
        "key": "reason",
        "message": "Why {arguments.id}?",
        "requested_schema": REFUND,
        "when": {"arguments.state": ["paid", "sent"]},
    },
    {
        "key": "sure",
        "message": "Sure, because of {answers.reason.reason}?",
        "requested_schema": REFUND,
        "when": {"answers.reason.reason": ["broken"], "arguments.state": ["sent"]},
    },
]


@pytest.mark.parametrize(
    ("state", "reason", "asked"),
    [
        ("new", "", []),
        (None, "", []),
        ("sent", "late", ["reason"]),
        ("sent", "broken", ["reason", "sure"]),
    ],
)
async def test_input_requests_before_the_http_request_have_conditions(state, reason, asked):
    value = {"why": "{answers.reason.reason}", "sure": "{answers.sure.reason}"}
    async with outgoing(in_turn(OK)) as (service, http):
        config = tool(
            service, questions=QUESTIONS, request={"body": {"type": "json", "value": value}}
        )
        driven = DrivenHttp(config, http, {"id": 7, "state": state})
        answers: dict[str, Any] = {}
        for key in asked:
            assert await driven.asks(**answers) == [key]
            answers = {key: accept(reason=reason)}
        assert await driven.completes(**answers) == {"ok": True}
    names = {"reason": "why", "sure": "sure"}
    assert [body(service, 0)] == [{names[key]: reason for key in asked}]


async def test_an_input_request_contains_argument_and_answer_values_in_its_message():
    async with outgoing(in_turn(OK)) as (service, http):
        driven = DrivenHttp(tool(service, questions=QUESTIONS), http, {"id": 7, "state": "sent"})
        first = await driven.advance()
        assert first.requests[0].params["message"] == "Why 7?"  # type: ignore[union-attr]
        second = await driven.advance(reason=accept(reason="broken"))
        assert second.requests[0].params["message"] == "Sure, because of broken?"  # type: ignore[union-attr]


async def test_the_service_requests_input_and_receives_the_response_with_its_state():
    async with outgoing(in_turn(asking("s-1", why="Why?"), OK)) as (service, http):
        driven = DrivenHttp(tool(service), http, {"id": 7})
        assert await driven.asks() == ["why"]
        assert await driven.completes(why=accept(reason="late")) == {"ok": True}
    first, second = service.arrived
    assert body(service, 0) == {"id": 7}
    assert second.headers["content-type"] == ANSWERS
    assert body(service, 1) == {
        "state": "s-1",
        "responses": {"why": {"action": "accept", "content": {"reason": "late"}}},
        "request": {"id": 7},
    }
    assert first.path == second.path
    assert first.headers["idempotency-key"] != second.headers["idempotency-key"]


async def answered(answer: Any, why: Any = "Why?", **config: Any) -> Service:
    """Answer the only question of a service, which then responds."""
    secrets = config.pop("secrets", {})
    async with outgoing(in_turn(asking("s", why=why), OK), **secrets) as (service, http):
        driven = DrivenHttp(tool(service, **config), http)
        assert await driven.asks() == ["why"]
        assert not any(value in str(driven.journal) for value in secrets.values())
        assert await driven.completes(why=answer) == {"ok": True}
    return service


@pytest.mark.parametrize("answer", [DECLINE, CANCEL])
async def test_the_service_receives_declined_and_cancelled_input_requests(answer: dict[str, Any]):
    assert body(await answered(answer), 1)["responses"] == {"why": answer}


async def test_the_service_receives_only_valid_responses_and_only_their_declared_fields():
    async with outgoing(in_turn(asking("s", why="Why?"), OK)) as (service, http):
        driven = DrivenHttp(tool(service), http)
        await driven.asks()
        assert await driven.asks(why=accept(reason=7)) == ["why"]
        assert len(service.arrived) == 1
        await driven.completes(why=accept(reason="late", more="not asked for"))
    assert body(service, 1)["responses"]["why"]["content"] == {"reason": "late"}


@pytest.mark.parametrize("status", [201, 409])
async def test_input_requests_are_recognised_by_media_type_whatever_the_status(status: int):
    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        write(writer, status, asking("s", why="Why?"), Content_Type=ASKS)

    async with outgoing(handler) as (service, http):
        assert await DrivenHttp(tool(service), http).asks() == ["why"]


async def test_the_service_may_use_the_same_key_again():
    turns = [asking(f"s-{n}", why=f"Why {n}?") for n in range(3)]
    async with outgoing(in_turn(*turns, OK)) as (service, http):
        driven = DrivenHttp(tool(service), http)
        assert await driven.asks() == ["why"]
        assert await driven.asks(why=accept(reason="0")) == ["why-2"]
        assert await driven.asks(**{"why-2": accept(reason="1")}) == ["why-3"]
        await driven.completes(**{"why-3": accept(reason="2")})
    sent = [body(service, number) for number in (1, 2, 3)]
    assert [each["state"] for each in sent] == ["s-0", "s-1", "s-2"]
    assert [each["responses"]["why"]["content"]["reason"] for each in sent] == ["0", "1", "2"]
    assert len({each.headers["idempotency-key"] for each in service.arrived}) == 4


async def test_a_service_that_requests_input_too_often_ends_the_call():
    async with outgoing(in_turn(asking("s", why="Why?"))) as (service, http):
        driven = DrivenHttp(tool(service), http)
        (key,) = await driven.asks()
        for _ in range(MAX_TURNS - 1):
            (key,) = await driven.asks(**{key: accept(reason="x")})
        refused = await driven.refuses(**{key: accept(reason="x")})
    assert refused == f"The service asked more than {MAX_TURNS} times"
    assert len(service.arrived) == MAX_TURNS + 1


@pytest.mark.parametrize("method", ["GET"])
async def test_a_safe_request_cannot_be_answered(method: str):
    async with outgoing(in_turn(asking("s", why="Why?"))) as (service, http):
        config = {"request": {"url": base(service), "method": method}}
        assert "use POST" in await DrivenHttp(config, http).refuses()


@pytest.mark.parametrize(
    ("method", "repeatable", "sent"),
    [("POST", None, 2), ("PUT", None, 2), ("POST", True, 4)],
)
async def test_responses_are_resent_only_if_the_author_allows_it(method, repeatable, sent):
    async with outgoing(in_turn(asking("s", why="Why?"), 503)) as (service, http):
        config = tool(service, request={"method": method, "repeatable": repeatable})
        driven = DrivenHttp(config, http)
        await driven.asks()
        assert "status 503" in await driven.refuses(why=accept(reason="late"))
    assert len(service.arrived) == sent
    keys = [each.headers["idempotency-key"] for each in service.arrived]
    assert len(set(keys)) == 2 and len(set(keys[1:])) == 1
    assert len({each.body for each in service.arrived[1:]}) == 1
