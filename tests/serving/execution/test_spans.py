"""Spans of prompts, resources and completions: with names, never with the caller's arguments."""

from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from tests.cast import Cast
from tests.mcp import ask
from tests.observability.spans import Seen, said, seen

__all__ = ["seen"]

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "canary7f3a"


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("prompts/get", {"name": "review", "arguments": {"code": CANARY}}, "get_prompt review"),
        ("resources/read", {"uri": "docs:handbook"}, "read_resource handbook"),
        ("resources/read", {"uri": f"users://{CANARY}/notes"}, "read_resource notes"),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "review"},
                "argument": {"name": "code", "value": CANARY},
            },
            "complete review",
        ),
    ],
)
async def test_spans_contain_names_and_no_arguments(
    offered: Cast, seen: Seen, method: str, params: Any, name: str
) -> None:
    assert (await ask("acme", method, params, offered.owner.mcp_token)).status == 200
    assert (seen.server().name, seen.round().name) == (method, name)
    assert said(seen.round())["mcphost.outcome"] == "complete"
    assert seen.server().status.status_code is StatusCode.UNSET
    assert CANARY not in "".join(str(span.to_json()) for span in seen.all())
