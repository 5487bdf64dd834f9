"""Requests and rounds as spans of a trace."""

import pytest
from opentelemetry.trace import StatusCode

from mcphost.observability import tracing
from tests.cast import Cast
from tests.legacy import begin
from tests.mcp import ask, call, request, send
from tests.observability.spans import Seen, said, seen, trace_of
from tests.served import entries

__all__ = ["seen"]

pytestmark = pytest.mark.django_db(transaction=True)

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
PROXY = "11111111111111111111111111111111"
AROUND = f"00-{PROXY}-2222222222222222-01"


async def test_a_call_is_a_span_with_its_round_as_a_child(served: Cast, seen: Seen) -> None:
    await call("acme", "echo", {"text": "a"}, served.owner.mcp_token)
    server, ran = seen.server(), seen.round()
    assert (server.name, ran.name) == ("tools/call", "execute_tool echo")
    assert ran.parent is not None and server.context is not None
    assert ran.parent.span_id == server.context.span_id
    assert server.parent is None
    assert said(server)["mcphost.tenant"] == "acme"
    assert said(server)["gen_ai.tool.name"] == "echo"
    assert said(ran)["mcphost.outcome"] == "complete"
    assert {server.status.status_code, ran.status.status_code} == {StatusCode.UNSET}


async def test_spans_logs_and_records_have_one_trace_id(served: Cast, seen: Seen) -> None:
    await call("acme", "echo", {"text": "a"}, served.owner.mcp_token)
    (entry,) = [entry for entry in await entries("echo") if entry.action == "round.finished"]
    assert {trace_of(span) for span in seen.all()} == {entry.trace_id}
    assert said(seen.server())["mcphost.request"] == str(entry.http_request_id)
    assert said(seen.round())["mcphost.call"] == str(entry.call)


@pytest.mark.parametrize(
    ("in_meta", "in_header", "trace", "parent"),
    [
        (PARENT, "", TRACE, SPAN),
        (PARENT, AROUND, TRACE, SPAN),
        ("", AROUND, PROXY, "2222222222222222"),
        ("00-nonsense", AROUND, PROXY, "2222222222222222"),
    ],
)
async def test_a_span_continues_the_trace_of_the_message_or_else_of_the_http_request(
    served: Cast, seen: Seen, in_meta: str, in_header: str, trace: str, parent: str
) -> None:
    extra = {"traceparent": in_meta, "tracestate": "vendor=1"} if in_meta else {}
    body = request("tools/call", {"name": "echo", "arguments": {"text": "a"}}, **extra)
    await send("acme", body, served.owner.mcp_token, {"traceparent": in_header})
    server = seen.server()
    assert trace_of(server) == trace
    assert server.parent is not None
    assert f"{server.parent.span_id:016x}" == parent
    links = [f"{link.context.trace_id:032x}" for link in server.links]
    assert links == ([PROXY] if in_meta == PARENT and in_header else [])
    (entry,) = [entry for entry in await entries("echo") if entry.action == "round.finished"]
    assert entry.trace_id == trace


@pytest.mark.parametrize(
    ("tool", "outcome"),
    [("fail", "crashed"), ("refuse", "tool_error"), ("wrong", "invalid_result"), ("missing", "")],
)
async def test_a_failure_is_an_error_status_of_its_spans(
    served: Cast, seen: Seen, tool: str, outcome: str
) -> None:
    await call("acme", tool, {}, served.owner.mcp_token)
    server = seen.server()
    assert server.status.status_code is StatusCode.ERROR
    if outcome:
        assert said(seen.round())["error.type"] == said(server)["error.type"] == outcome
        assert seen.round().status.status_code is StatusCode.ERROR
    else:
        assert said(server)["error.type"] == said(server)["rpc.response.status_code"] == "-32602"


async def test_spans_contain_no_arguments_results_or_messages(served: Cast, seen: Seen) -> None:
    token, canary = served.owner.mcp_token, "canary7f3a"
    for tool in ("echo", "fail", "refuse", "threaded_steps", "wrong"):
        await call("acme", tool, {"text": canary, "reason": canary}, token, progressToken=canary)
    await call("acme", "echo", {"text": canary}, token)
    await ask("acme", "tools/list", {"cursor": canary}, token)
    assert len(seen.all()) > 8
    text = "".join(str(span.to_json()) for span in seen.all())
    for secret in (canary, token, token.split("_")[2], "127.0.0.1"):
        assert secret not in text


async def test_without_a_collector_no_span_is_created(served: Cast) -> None:
    assert tracing.tracer is None
    reply = await call("acme", "echo", {"text": "a"}, served.owner.mcp_token, traceparent=PARENT)
    assert reply.text == "a"
    (entry,) = [entry for entry in await entries("echo") if entry.action == "round.finished"]
    assert entry.trace_id == TRACE


async def test_a_session_call_is_a_span_with_its_rounds_as_children(
    served: Cast, seen: Seen
) -> None:
    session = await begin("acme", served.owner.mcp_token, "2025-11-25")
    await session.call("echo", {"text": "a"}, traceparent=PARENT, tracestate="vendor=1")
    ran = seen.round()
    (server,) = [span for span in seen.all() if span.name == "tools/call"]
    assert ran.parent is not None and server.context is not None
    assert ran.parent.span_id == server.context.span_id
    assert trace_of(server) == TRACE
    assert said(server)["mcp.protocol.version"] == "2025-11-25"
    (entry,) = [entry for entry in await entries("echo") if entry.action == "round.finished"]
    assert entry.trace_id == TRACE
