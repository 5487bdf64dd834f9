"""`tools/call` (spec: server/tools), and its records."""

import asyncio

import pytest
from pytest_django import Settings

from mcphost.audit import selectors
from mcphost.audit.writer.writer import writer
from mcphost.serving.database import in_database
from mcphost.serving.execution import audit_records
from tests.cast import Cast
from tests.mcp import Reply, begun, call, request, send
from tests.served import entries, probes

pytestmark = pytest.mark.django_db(transaction=True)


async def _call(served: Cast, tool: str, arguments: object = None, **extra: object) -> Reply:
    return await call("acme", tool, arguments, served.owner.mcp_token, **extra)


@pytest.mark.requirement("tools.call.served")
async def test_a_call_returns_the_result_of_the_tool(served: Cast) -> None:
    reply = await _call(served, "echo", {"text": "hello"})
    assert reply.status == 200
    assert not reply.streamed
    assert reply.result["content"] == [{"type": "text", "text": "hello"}]
    assert reply.result["resultType"] == "complete"


@pytest.mark.requirement("tools.call.without-arguments")
async def test_absent_arguments_mean_no_arguments(served: Cast) -> None:
    assert (await _call(served, "refuse")).text == "no"


@pytest.mark.requirement("tools.call.invalid-arguments")
async def test_invalid_arguments_are_an_error_result_that_names_the_field(served: Cast) -> None:
    for arguments in ({}, {"text": 5}, {"text": "a", "other": 1}):
        reply = await _call(served, "echo", arguments)
        assert reply.status == 200
        assert reply.result["isError"] is True
        assert "other" in reply.text if "other" in arguments else "text" in reply.text
    for entry in await entries("echo"):
        assert (entry.outcome, entry.reason) == ("invalid_arguments", audit_records.BAD_ARGUMENTS)


async def test_arguments_of_an_expensive_schema_have_a_lower_size_limit(
    served: Cast, settings: Settings
) -> None:
    settings.MCPHOST_BODY_LIMIT = 500_000
    few, many = {"prices": [0.25] * 100}, {"prices": [0.25] * 1_000}
    assert (await _call(served, "add_prices", few)).result["structuredContent"] == 25
    error = (await _call(served, "add_prices", many)).error
    assert (error["code"], error["data"]) == (-32602, {"limit": 1998})
    assert "params.arguments has more than 1998 bytes" in error["message"]
    reply = await send(
        "acme",
        request("tools/call", {"name": "add_prices", "arguments": few, "padding": "x" * 5_000}),
        served.owner.mcp_token,
    )
    assert reply.result["structuredContent"] == 25


@pytest.mark.requirement("tools.call.failure")
async def test_a_tool_error_reaches_the_model(served: Cast) -> None:
    reply = await _call(served, "refuse", {"reason": "the printer is out of paper"})
    assert (reply.result["isError"], reply.text) == (True, "the printer is out of paper")


@pytest.mark.requirement("tools.call.sanitized")
async def test_a_crashing_tool_reveals_no_details(served: Cast) -> None:
    reply = await _call(served, "fail")
    assert reply.result["isError"] is True
    assert b"canary" not in reply.raw
    assert b"Traceback" not in reply.raw


@pytest.mark.requirement("cancellation.timeout")
async def test_a_tool_that_exceeds_its_time_limit_is_stopped(served: Cast) -> None:
    reply = await _call(served, "late")
    assert reply.result["isError"] is True
    assert "0.05" in reply.text


@pytest.mark.requirement("tools.call.structured")
async def test_a_result_that_does_not_fit_the_schema_is_an_error(served: Cast) -> None:
    reply = await _call(served, "wrong")
    assert reply.result["isError"] is True
    assert "structuredContent" not in reply.result


async def test_a_result_of_megabytes_is_an_error(served: Cast, settings: Settings) -> None:
    settings.MCPHOST_RESULT_LIMIT = 10_000
    assert len((await _call(served, "big", {"size": 1_000})).text) == 1_000
    reply = await _call(served, "big", {"size": 20_000})
    assert reply.result["isError"] is True
    assert len(reply.raw) < 1_000


@pytest.mark.requirement("tools.call.unknown")
async def test_an_unknown_tool_is_a_protocol_error(served: Cast) -> None:
    reply = await _call(served, "no_such_tool", {})
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert "no_such_tool" in reply.error["message"]


@pytest.mark.requirement("base.undeclared-capability")
async def test_a_capability_that_was_not_declared_is_named_in_the_error(served: Cast) -> None:
    reply = await _call(served, "needs_sampling")
    assert (reply.status, reply.error["code"]) == (400, -32021)
    assert reply.error["data"] == {"requiredCapabilities": {"sampling": {}}}
    able = await _call(served, "needs_sampling", capabilities={"sampling": {}})
    assert able.text == "sampled"


@pytest.mark.requirement("headers.param-matches")
async def test_a_mirrored_argument_must_match_its_header(served: Cast) -> None:
    body = request("tools/call", {"name": "regional", "arguments": {"region": "eu-west"}})
    token = served.owner.mcp_token
    good = await send("acme", body, token, {"mcp-param-region": "eu-west"})
    assert good.check().text == "eu-west"
    for headers in ({}, {"mcp-param-region": "us-east"}):
        reply = await send("acme", body, token, headers)
        assert (reply.status, reply.check().error["code"]) == (400, -32020)


@pytest.mark.requirement("http.response-ends-stream")
@pytest.mark.requirement("http.no-buffering")
@pytest.mark.requirement("http.related-notifications")
@pytest.mark.requirement("logging.own-stream")
@pytest.mark.requirement("progress.asked-for")
async def test_progress_and_logs_arrive_in_order_before_the_result(served: Cast) -> None:
    reply = await _call(served, "steps", {}, progressToken="p1", logLevel="info")
    assert reply.streamed
    assert reply.headers["x-accel-buffering"] == "no"
    methods = [message.get("method", "result") for message in reply.messages]
    assert methods == ["notifications/progress", "notifications/message"] * 3 + ["result"]
    progress = [m["params"] for m in reply.messages if m.get("method") == "notifications/progress"]
    assert [p["progress"] for p in progress] == [1, 2, 3]
    assert {p["progressToken"] for p in progress} == {"p1"}
    assert reply.text == "done"


@pytest.mark.requirement("logging.asked-for")
@pytest.mark.requirement("progress.asked-for")
async def test_notifications_that_were_not_requested_are_not_sent(served: Cast) -> None:
    plain = await _call(served, "steps", {})
    assert not plain.streamed
    progress = await _call(served, "steps", {}, progressToken=0)
    assert {m.get("method") for m in progress.messages} == {"notifications/progress", None}
    logs = await _call(served, "steps", {}, logLevel="debug")
    assert {m.get("method") for m in logs.messages} == {"notifications/message", None}
    assert len(logs.messages) == 5


@pytest.mark.requirement("cancellation.hang-up")
async def test_a_disconnect_cancels_the_call_and_is_recorded(served: Cast) -> None:
    body = request("tools/call", {"name": "hang"})
    async with begun("acme", body, served.owner.mcp_token) as exchange:
        async with asyncio.timeout(10):
            await probes().running.wait()
        exchange.hang_up()
        async with asyncio.timeout(10):
            await probes().cancelled.wait()
    assert exchange.reply.raw == b""
    await asyncio.to_thread(writer.stop, 10)
    recorded = [(entry.action, entry.outcome) for entry in await entries("hang")]
    assert recorded == [("round.started", ""), ("round.finished", "cancelled")]


async def test_a_client_that_reads_nothing_is_disconnected(
    served: Cast, settings: Settings
) -> None:
    settings.MCPHOST_UNREAD_LIMIT = 100_000
    body = request("tools/call", {"name": "flood"}, progressToken="f")
    async with begun("acme", body, served.owner.mcp_token) as exchange:
        exchange.reading.clear()
        async with asyncio.timeout(10):
            await probes().running.wait()
            await probes().cancelled.wait()
        exchange.reading.set()


async def test_a_read_only_call_writes_one_record_and_any_other_two(served: Cast) -> None:
    await _call(served, "echo", {"text": "hello"})
    await _call(served, "write", {"text": "secret"})
    echoed = await entries("echo")
    written = await entries("write")
    assert [entry.action for entry in echoed] == ["round.finished"]
    assert [entry.action for entry in written] == ["round.started", "round.finished"]
    entry = echoed[0]
    assert (entry.outcome, entry.round, entry.method) == ("complete", 1, "tools/call")
    assert (entry.era, entry.delivery, entry.revision) == ("modern", "modern", "2026-07-28")
    assert (entry.client_name, entry.source) == ("tests", "127.0.0.1")
    assert entry.tenant == served.acme.id
    assert (entry.bytes_in or 0) > 100
    assert entry.bytes_out == len('{"content":[{"type":"text","text":"hello"}]}')
    assert entry.token_id == served.owner.mcp_token.split("_")[1]
    assert len({entry.call for entry in written}) == 1


async def test_an_argument_that_the_schema_marks_as_secret_is_not_recorded(served: Cast) -> None:
    await _call(served, "write", {"text": "a secret text"})
    _, finished = await entries("write")
    recorded = await in_database(selectors.payload, finished.id, served.acme.id)
    assert recorded is not None
    assert recorded.content["arguments"] == {"text": "[redacted]"}


@pytest.mark.requirement("base.trace-context")
async def test_the_trace_id_of_the_client_is_recorded(served: Cast) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    await _call(served, "echo", {"text": "a"}, traceparent=f"00-{trace}-b7ad6b7169203331-01")
    assert [entry.trace_id for entry in await entries("echo")] == [trace]


async def test_a_call_that_cannot_be_recorded_is_not_run(served: Cast) -> None:
    await _call(served, "echo", {"text": "x"})
    await asyncio.to_thread(writer.stop, 10)
    reply = await _call(served, "write", {"text": "x"})
    assert reply.status == 503
    assert reply.headers["retry-after"]
    assert probes().ran == []
