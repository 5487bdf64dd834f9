"""One round of an HTTP tool: questions, the request, and the questions of the service."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

import orjson

from mcphost.egress.client import EgressLimits
from mcphost.egress.errors import EgressError
from mcphost.egress.messages import JsonBody, OutgoingRequest
from mcphost.kinds.functions.program import FunctionProgram, Parameters
from mcphost.kinds.functions.returns import InvalidResultError, Returns
from mcphost.kinds.http import asking, replies
from mcphost.kinds.http.configs import QuestionConfig, RequestConfig, ResponseConfig, condition
from mcphost.kinds.http.replies import BadReplyError, Response
from mcphost.kinds.http.requests import RequestTemplate
from mcphost.kinds.http.templates import ANSWERS, ARGUMENTS, TextTemplate
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Outcome
from mcphost.runtime.ports import Http, Ports
from mcphost.runtime.questions import QuestionRefusedError
from mcphost.sandbox.pool import SandboxFullError, SearchFailedError
from mcphost.sdk import Context, ToolDefinition, ToolError
from mcphost.sdk.content import NOTHING
from mcphost.sdk.context import accepted
from mcphost.sdk.questions import FormAnswer

MAX_TURNS: Final = 16
"""How often a service may ask in one call."""
MAPPING_SECONDS: Final = 30.0
"""How long the response to an unsafe request waits for a worker that maps it."""
MAPPING_PAUSE: Final = 0.1

Answered = Mapping[str, FormAnswer[dict[str, Any]]]


Search = Callable[[str, str, Any], Awaitable[Any]]
"""Evaluates a JMESPath expression: of a tenant, the expression, and the JSON. Raises SearchFailedError,
SandboxFullError."""


class Asked(NamedTuple):
    """A question before the request, parsed once."""

    config: QuestionConfig
    message: TextTemplate
    conditions: tuple[tuple[Any, list[Any]], ...]

    @classmethod
    def of(cls, config: QuestionConfig) -> "Asked":
        conditions = tuple((condition(path), values) for path, values in config.when.items())
        return cls(config, TextTemplate(config.message), conditions)

    def applies(self, values: Mapping[str, Any]) -> bool:
        return all(path.value(values) in expected for path, expected in self.conditions)

    def text(self, values: Mapping[str, Any]) -> str:
        return self.message.read(values)


@dataclass(frozen=True, slots=True)
class HttpTool:
    """An HTTP tool, parsed once. `returns` checks structured content against the output schema."""

    definition: ToolDefinition
    parameters: Parameters
    returns: Returns
    questions: tuple[Asked, ...]
    request: RequestTemplate
    sending: RequestConfig
    response: ResponseConfig
    search: Search


class HttpProgram:
    """Runs an HTTP tool. Has no state of any call."""

    __slots__ = ("_tool",)

    def __init__(self, tool: HttpTool) -> None:
        self._tool = tool

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        """Ask what is to be asked before the request, send it, and ask what the service asks."""
        function = HttpFunction(self._tool, call, ports)
        return await FunctionProgram(function).advance(call, journal, ports)


class FinishedResult:
    """The encoder of a result that is encoded already."""

    def encode(self, value: Any, limit: int, target: str = "") -> Complete:
        """Return the outcome. Raises InvalidResultError for a result that is too large."""
        size = len(orjson.dumps(value))
        if size > limit:
            message = f"The result is too large: more than {limit} bytes."
            raise InvalidResultError(f"the result has {size} bytes, more than {limit}", message)
        return Complete(value, size)


class HttpFunction:
    """Implements `functions.program.RunnableFunction` for one call."""

    waits = True
    primitive_type = PrimitiveType.TOOL
    reference = "http"
    returns = FinishedResult()

    def __init__(self, tool: HttpTool, call: Call, ports: Ports) -> None:
        self._tool = tool
        self._tenant = str(call.tenant)
        self._http: Http = ports.http
        self._max_bytes = ports.limits.result_bytes
        self.definition = tool.definition
        self.parameters = tool.parameters

    async def function(self, ctx: Context, arguments: dict[str, Any]) -> Any:
        """Run the tool; return its result as `CallToolResult`."""
        values = {ARGUMENTS: arguments, ANSWERS: await self._ask_before(ctx, arguments)}
        turn, state, answered = 0, "", None
        keys = set(values[ANSWERS])
        while True:
            exchange = partial(self._exchange, values)
            reply = await ctx.step("request", exchange, turn, state, answered)
            if "result" in reply:
                return reply["result"]
            turn += 1
            if turn > MAX_TURNS:
                raise ToolError(f"The service asked more than {MAX_TURNS} times")
            state = reply["state"]
            answered = await self._ask_for(ctx, reply["requests"], keys)

    async def _ask_before(self, ctx: Context, arguments: Mapping[str, Any]) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for question in self._tool.questions:
            values = {ARGUMENTS: arguments, ANSWERS: answers}
            if question.applies(values):
                key, schema = question.config.key, question.config.requested_schema
                answers[key] = accepted(key, await ctx.ask_form(key, question.text(values), schema))
        return answers

    async def _ask_for(
        self, ctx: Context, requests: Mapping[str, Any], keys: set[str]
    ) -> dict[str, Any]:
        """Ask a service's questions side by side; return the answers as the service gets them."""
        names = {key: _unused(key, keys) for key in requests}
        try:
            answers = await asyncio.gather(
                *(
                    ctx.ask_form(names[key], request["message"], request["requestedSchema"])
                    for key, request in requests.items()
                )
            )
        except QuestionRefusedError as error:
            raise ToolError(f"The service asked what no form may ask: {error}") from None
        return {key: _answer_as_json(answer) for key, answer in zip(requests, answers, strict=True)}

    async def _exchange(
        self,
        values: Mapping[str, Any],
        turn: int,
        state: str,
        answered: Mapping[str, Any] | None,
        idempotency_key: str,
    ) -> dict[str, Any]:
        """Send the request, or the answers; return the result, or what the service asks."""
        request = self._tool.request.fill(values, idempotency_key)
        if answered is not None:
            request = self._with_answers(request, values, state, answered)
        try:
            received = await self._http.send(request, self._limits())
            media_type, charset = replies.media_type_of(received.header("content-type") or "")
            url = received.url.partition("?")[0]
            response = Response(received.status, media_type, charset, received.body, url)
            if response.media_type == replies.ASKS:
                return self._asking(response)
            asking.refuse_answers(response)
            return {"result": await self._result(response)}
        except (EgressError, BadReplyError) as error:
            raise ToolError(str(error)) from None
        except SearchFailedError as error:
            raise ToolError(f"The service's response cannot be mapped: {error}") from None
        except SandboxFullError:
            sent = "" if self._tool.sending.is_safe else " The request was sent."
            raise ToolError(f"The server is too busy to map the response.{sent}") from None

    async def _selected(self, expression: str, data: Any) -> Any:
        """Evaluate the expression. Raises SearchFailedError, SandboxFullError.

        What came of a request that may have changed something must not be lost, so this waits longer.
        """
        end = time.monotonic() + (0 if self._tool.sending.is_safe else MAPPING_SECONDS)
        while True:
            try:
                return await self._tool.search(self._tenant, expression, data)
            except SandboxFullError:
                if time.monotonic() >= end:
                    raise
            await asyncio.sleep(MAPPING_PAUSE)

    def _limits(self) -> EgressLimits:
        sending = self._tool.sending
        return EgressLimits(
            total_seconds=sending.timeout_seconds,
            read_seconds=sending.timeout_seconds,
            response_bytes=self._tool.response.most_bytes,
            redirects=sending.redirects,
            attempts=sending.retries + 1,
        )

    def _asking(self, response: Response) -> dict[str, Any]:
        if self._tool.sending.is_safe:
            raise BadReplyError(
                "A service may ask for input only if the request has a body: use POST"
            )
        reply = asking.read_asking(response)
        return {"requests": reply.model_dump()["requests"], "state": reply.state}

    def _with_answers(
        self,
        request: OutgoingRequest,
        values: Mapping[str, Any],
        state: str,
        answered: Mapping[str, Any],
    ) -> OutgoingRequest:
        body = {
            "state": state,
            "responses": answered,
            "request": self._tool.request.json_body(values),
        }
        headers = [header for header in request.headers if header[0].lower() != "content-type"]
        headers.append(("Content-Type", replies.ANSWERS))
        # Answers of people: idempotent methods are not enough to repeat them, because the service may
        # have used up its state. The author may say that it recognises the Idempotency-Key.
        return replace(
            request,
            headers=tuple(headers),
            content=JsonBody(body),
            repeatable=self._tool.sending.repeatable,
        )

    async def _result(self, response: Response) -> Mapping[str, Any]:
        config = self._tool.response
        if config.is_error(response.status):
            value = replies.error_of(response)
        else:
            selected = NOTHING
            if config.select:
                selected = await self._selected(config.select, response.json)
            value = replies.result_of(response, config, selected)
        try:
            return self._tool.returns.encode(value, self._max_bytes).result
        except InvalidResultError as error:
            raise ToolError(
                error.message or f"The service's response is not what was promised: {error.detail}"
            ) from None


def _answer_as_json(answer: FormAnswer[dict[str, Any]]) -> dict[str, Any]:
    if answer.content is None:
        return {"action": answer.action}
    return {"action": answer.action, "content": answer.content}


def _unused(key: str, keys: set[str]) -> str:
    """Return a key that the call has not used: a service may ask under one key again."""
    number, unused = 1, key
    while unused in keys:
        number += 1
        unused = f"{key}-{number}"
    keys.add(unused)
    return unused
