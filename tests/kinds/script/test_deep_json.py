"""Deeply nested JSON of services: a script returns it, or fails without quoting it."""

import pytest

from mcphost.runtime.outcomes import Complete, Failed
from mcphost.sandbox.scripts import MAX_DEPTH
from tests.egress.conftest import answer
from tests.kinds.loopback_http import base, outgoing
from tests.kinds.rounds_with_client import asking_call
from tests.kinds.script.script_calls import DrivenScript

SOURCE = """
def f(base: str) -> object:
    return http.get(base).json()
"""


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1, 250, 5000])
async def test_a_script_returns_deep_json_or_fails_without_quoting_it(sandbox, depth):
    body = b"[" * depth + b'"canary"' + b"]" * depth
    async with outgoing(answer(body=body)) as (service, http):
        driven = DrivenScript(SOURCE, sandbox, asking_call({"base": base(service)}), http=http)
        outcome = await driven.advance()
    if depth <= MAX_DEPTH:
        assert isinstance(outcome, Complete)
    else:
        assert isinstance(outcome, Failed)
        assert "canary" not in str(outcome)
