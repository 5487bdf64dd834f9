"""Tests that the examples of HTTP tools and scripts in the documents work."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from mcphost.catalogue.kinds import http_kind
from mcphost.egress.client import EgressLimits
from mcphost.egress.messages import FormBody, OutgoingRequest, ReceivedResponse
from mcphost.egress.secret_values import SecretHandle, Template
from mcphost.kinds.http.asking import AskingReply
from mcphost.kinds.http.configs import HttpToolConfig
from mcphost.kinds.script.kind import ScriptKind
from mcphost.runtime.outcomes import Complete
from mcphost.runtime.ports import FixedPorts
from mcphost.sandbox.pool import Sandbox
from mcphost.testing import Answers, a_call, accept, in_memory, run_through

DOCS = Path(__file__).resolve().parent.parent / "docs"


def blocks(document: str, language: str) -> list[str]:
    found = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return found.findall((DOCS / document).read_text())


@pytest.fixture(scope="module")
def kind() -> Iterator[ScriptKind]:
    pool = Sandbox(2, wait_seconds=30)
    yield ScriptKind(pool)
    pool.close()


def test_the_documented_http_tools_and_replies_are_valid() -> None:
    tool, asking, answers, order = blocks("http-tools.md", "json")
    compiled = http_kind.compile(json.loads(tool))
    assert compiled.annotations["destructiveHint"]
    assert http_kind.secrets_of(json.loads(tool)) == {"api_key"}
    assert HttpToolConfig.model_validate_json(tool).response.select == "order.state"
    reply = AskingReply.model_validate_json(asking)
    assert set(json.loads(answers)["responses"]) == set(reply.requests)
    http_kind.compile(json.loads(order))
    assert http_kind.secrets_of(json.loads(order)) == {"orders_token"}


class Shop:
    """A service that wants a secret."""

    async def send(self, request: OutgoingRequest, limits: EgressLimits) -> ReceivedResponse:
        secrets = [Template(("Bearer ", SecretHandle("shop"))), Template((SecretHandle("shop"),))]
        sent = dict(request.headers)
        if isinstance(request.content, FormBody):
            assert request.url == "https://shop.example.com/customers/7%2Fnotes/notes"
            assert request.content.fields == (
                ("text", "Hi"), ("tags", "a"), ("tags", "b"), ("key", secrets[1])
            )  # fmt: skip
        else:
            assert sent["authorization"] == secrets[0]
        return ReceivedResponse(200, (("content-type", "x/y"),), b'{"left": 7}', request.url)


async def test_the_documented_scripts_run(kind: ScriptKind) -> None:
    bill, rename, stock, note = blocks("scripts.md", "python")
    for code in (bill, rename, stock, note):
        assert kind.inspect({"code": code}, "acme") == {}
    assert await result(kind, bill, {"total": 10.0, "guests": 4}, {}) == '{"each":2.5}'
    answers = {"new": accept(name="new", sure=True)}
    assert await result(kind, rename, {"name": "old"}, answers) == "old is now new."
    assert await result(kind, stock, {"item": "ink"}, {}) == '{"left":14}'
    arguments: dict[str, object] = {"customer": "7/notes", "text": "Hi", "tags": ["a", "b"]}
    assert await result(kind, note, arguments, {}) == '{"left":7,"type":"x/y"}'


async def result(
    kind: ScriptKind, code: str, arguments: dict[str, object], answers: Answers
) -> str:
    program = kind.compile({"code": code}).program
    ports = cast(FixedPorts, in_memory())._replace(http=Shop())
    tried = await run_through(program, a_call(arguments), answers, ports)
    assert isinstance(tried.outcome, Complete), tried
    return str(tried.outcome.result["content"][0]["text"])
