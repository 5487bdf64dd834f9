"""The error for a missing capability, for each type of primitive and each revision."""

import logging
from typing import Any

import pytest

from tests.cast import Cast
from tests.legacy import begin
from tests.mcp import ask
from tests.wire import SESSION_BASED

pytestmark = pytest.mark.django_db(transaction=True)

CALLS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("tools/call", {"name": "survey"}, "tool"),
    ("prompts/get", {"name": "letter", "arguments": {"to": "Ada"}}, "prompt"),
    ("resources/read", {"uri": "asking://page"}, "resource"),
)


@pytest.mark.parametrize(("method", "params", "primitive"), CALLS)
async def test_a_missing_capability_error_names_the_primitive_and_logs_no_warning(
    asking: Cast, caplog: pytest.LogCaptureFixture, method: str, params: Any, primitive: str
) -> None:
    caplog.set_level(logging.INFO, "mcphost")
    text = f"This {primitive} needs a client with the capability 'elicitation.form'."
    token = asking.owner.mcp_token
    reply = await ask("acme", method, params, token)
    assert (reply.error["code"], reply.error["message"]) == (-32021, text)
    for revision in SESSION_BASED:
        session = await begin("acme", token, revision)
        last = (await session.ask(method, params)).last
        if method == "tools/call":
            assert last["result"]["content"][0]["text"].startswith(text)
        else:
            assert last["error"]["message"].startswith(text)
    records = [record for record in caplog.records if text in record.getMessage()]
    assert records
    assert {record.levelname for record in records} == {"INFO"}
