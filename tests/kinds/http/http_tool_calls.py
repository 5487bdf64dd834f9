"""Calls of HTTP tools, round by round, to services on loopback."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from mcphost.kinds.http.kind import HttpKind
from mcphost.kinds.http.program import Search
from mcphost.kinds.http.replies import ASKS
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Complete, Failed, Failure
from mcphost.runtime.ports import FixedPorts, Http, RoundLimits
from mcphost.runtime.threads import ToolThreads
from tests.egress.conftest import Arrived, Handler, write
from tests.kinds.rounds_with_client import Driven, asking_call

REFUND: Mapping[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}},
    "required": ["reason"],
}


LIMITS = RoundLimits(20)


async def no_search(tenant: str, expression: str, data: Any) -> Any:
    raise AssertionError("nothing is to be mapped")


class DrivenHttp(Driven):
    """One call of an HTTP tool. Every outcome is converted to JSON and back."""

    def __init__(
        self,
        config: Mapping[str, Any],
        http: Http,
        arguments: Mapping[str, Any] | None = None,
        search: Search = no_search,
        limits: RoundLimits = LIMITS,
    ) -> None:
        anything = {"type": "object", "anyOf": [{}]}
        compiled = HttpKind(search).compile({"input_schema": anything, **config})
        self._program = compiled.program  # type: ignore[assignment]
        self.call = asking_call(arguments)
        self.outside = FixedPorts(ToolThreads(1), http=http, limits=limits)
        self.journal = EMPTY
        self.asked: dict[str, str] = {}

    async def result(self, **answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the result of the next round, which must complete."""
        outcome = await self.advance(**answers)
        assert isinstance(outcome, Complete), outcome
        return outcome.result

    async def refuses(self, **answers: Mapping[str, Any]) -> str:
        """Return the text of a result that must be an error."""
        result = await self.result(**answers)
        assert result["isError"] is True, result
        text: str = result["content"][0]["text"]
        return text

    async def fails(self, **answers: Mapping[str, Any]) -> Failure:
        outcome = await self.advance(**answers)
        assert isinstance(outcome, Failed), outcome
        return outcome.error


def asking(state: str = "", **requests: Any) -> bytes:
    """Return the body of a service that asks: a message or a whole request by key."""
    whole = {
        key: one if isinstance(one, dict) else {"message": one, "requestedSchema": REFUND}
        for key, one in requests.items()
    }
    return orjson.dumps({"requests": whole, "state": state})


def in_turn(*answers: bytes | int) -> Handler:
    """Return a handler that answers each request with the next: a body that asks if it has
    `requests`, other JSON, or a status without a body. The last one is repeated."""
    left = list(answers)

    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        body = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(body, int):
            write(writer, body, b"")
        else:
            asks = body.startswith(b'{"requests"')
            write(writer, 200, body, Content_Type=ASKS if asks else "application/json")

    return handler


def by_body(make: Callable[[Arrived], bytes]) -> Handler:
    """Return a handler that answers with the JSON that `make` returns for a request."""

    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        write(writer, 200, make(request), Content_Type="application/json")

    return handler
