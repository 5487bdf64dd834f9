"""Any request gets a status below 500, and never a traceback."""

import asyncio
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcphost.routing import process
from tests.cast import build_cast
from tests.legacy import Session, begin
from tests.mcp import PREFIX, Reply, headers_for, meta, send
from tests.served import publish_probes
from tests.wire import SESSION_BASED, check_batch

pytestmark = pytest.mark.django_db(transaction=True)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner),
    max_leaves=12,
)
METHODS = st.sampled_from(["server/discover", "tools/list", "tools/call", "ping", ""]) | st.text()
META = st.fixed_dictionaries(
    {},
    optional={
        f"{PREFIX}protocolVersion": st.sampled_from(["2026-07-28", "2025-11-25", "x"]) | ANYTHING,
        f"{PREFIX}clientInfo": ANYTHING,
        f"{PREFIX}clientCapabilities": st.just({}) | ANYTHING,
        f"{PREFIX}logLevel": st.sampled_from(["debug", "loud"]) | ANYTHING,
        "progressToken": ANYTHING,
        "traceparent": ANYTHING,
    },
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "_meta": st.just(meta()) | META | ANYTHING,
        "name": st.sampled_from(["echo", "write", "nothing"]) | ANYTHING,
        "arguments": st.fixed_dictionaries({}, optional={"text": ANYTHING}) | ANYTHING,
        "cursor": ANYTHING,
    },
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | ANYTHING,
        "id": st.integers(0, 9) | ANYTHING,
        "method": METHODS | ANYTHING,
        "params": PARAMS | ANYTHING,
        "result": ANYTHING,
    },
)

METHODS_IN_A_SESSION = (
    "tools/list",
    "tools/call",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "completion/complete",
    "logging/setLevel",
    "notifications/cancelled",
    "initialize",
    "ping",
)
PARAMS_IN_A_SESSION = st.fixed_dictionaries(
    {},
    optional={
        "_meta": st.fixed_dictionaries({}, optional={"progressToken": ANYTHING}) | SCALARS,
        "name": st.sampled_from(["echo", "nothing"]) | ANYTHING,
        "arguments": st.fixed_dictionaries({}, optional={"text": ANYTHING}) | ANYTHING,
        "uri": st.just("docs:a") | ANYTHING,
        "level": st.just("info") | ANYTHING,
        "ref": ANYTHING,
        "requestId": st.integers(0, 9) | ANYTHING,
    },
)
IN_A_SESSION = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": st.integers(0, 9) | ANYTHING,
        "method": st.sampled_from(METHODS_IN_A_SESSION) | ANYTHING,
        "params": PARAMS_IN_A_SESSION | SCALARS,
        "result": st.just({}) | ANYTHING,
        "error": ANYTHING,
    },
)


def _encoded(message: Any) -> bytes:
    try:
        return orjson.dumps(message)
    except (TypeError, ValueError):
        return repr(message).encode("utf-8", "surrogatepass")


def _check(reply: Reply) -> None:
    assert 200 <= reply.status < 500
    assert b"Traceback" not in reply.raw
    if reply.status != 202:
        reply.check()


def test_no_body_causes_a_5xx_or_a_traceback(transactional_db: None) -> None:
    cast = build_cast()
    publish_probes(cast.acme.id, "echo", "write")
    token = cast.owner.mcp_token

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=200) | MESSAGES.map(_encoded) | ANYTHING.map(_encoded))
    def sends(body: bytes) -> None:
        try:
            guessed = headers_for(orjson.loads(body), token)
        except orjson.JSONDecodeError:
            guessed = headers_for({}, token)
        plain = {name: value.encode("ascii", "ignore").decode() for name, value in guessed.items()}
        runner.run(_send(body, token, plain))

    with asyncio.Runner() as runner:
        sends()
        runner.run(process.stop())


@pytest.mark.parametrize("revision", SESSION_BASED)
def test_no_session_body_causes_a_response_outside_the_revision(
    transactional_db: None, revision: str
) -> None:
    cast = build_cast()
    publish_probes(cast.acme.id, "echo", "write")

    @settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
    @given(IN_A_SESSION.map(_encoded) | st.lists(IN_A_SESSION, max_size=4).map(_encoded))
    def sends(body: bytes) -> None:
        runner.run(_send_in(session, body))

    with asyncio.Runner() as runner:
        session = runner.run(begin("acme", cast.owner.mcp_token, revision))
        sends()
        runner.run(session.end())
        runner.run(process.stop())


async def _send_in(session: Session, body: bytes) -> None:
    reply = await session.exchange(body).done()
    assert reply.status in (200, 202, 400)
    assert b"Traceback" not in reply.raw
    if reply.raw.startswith(b"["):
        check_batch(reply.raw, session.revision)
    elif reply.raw:
        reply.check()


async def _send(body: bytes, token: str, headers: dict[str, str]) -> None:
    reply = await send("acme", body, token, headers)
    reply.method = "tools/call" if b"tools/call" in body else "tools/list"
    if b"server/discover" in body:
        reply.method = "server/discover"
    _check(reply)
