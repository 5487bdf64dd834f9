"""The messages of a call as they were on the wire, as far as the record keeps them.

Arguments, input requests, input responses and results are kept, redacted. JSON-RPC ids, most of
`_meta` and sealed states are not: NOT_KEPT stands for them.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from mcphost.audit.entries import EntryView, PayloadView
from mcphost.audit.records import INPUT_REQUIRED
from mcphost.audit.timeline import (
    Timeline,
    TimelineAttempt,
    TimelineQuestion,
    TimelineRound,
    key_of,
)
from mcphost.protocol.legacy.questions import NotCarriedError, question_params_for
from mcphost.protocol.legacy.results import convert_result
from mcphost.protocol.params import NAME_FIELDS
from mcphost.protocol.revisions import REVISIONS, Era
from mcphost.runtime.call import Delivery
from mcphost.runtime.outcomes import FailureKind

NOT_KEPT = "[not kept]"
ERASED = "[erased]"
LEFT_OUT = "[not shown here]"

Json = dict[str, Any]
Payloads = Mapping[UUID, PayloadView]


@dataclass(frozen=True, slots=True)
class WireMessage:
    """One message. `sender` is `client` or `server`; without a `body`, `note` says why."""

    sender: str
    title: str
    body: Any = None
    note: str = ""


def messages_of_call(call: Timeline, payloads: Payloads) -> Mapping[UUID, tuple[WireMessage, ...]]:
    """Return the messages of each run that has a payload, by the id of the run's last entry."""
    messages = {}
    for round in call.rounds:
        for attempt in round.attempts:
            end = attempt.finished
            kept = None if end is None else payloads.get(end.id)
            if end is not None and kept is not None and isinstance(kept.content, Mapping):
                messages[end.id] = tuple(_messages_of_run(round, attempt, kept.content, payloads))
    return messages


def _messages_of_run(
    round: TimelineRound, attempt: TimelineAttempt, content: Mapping[str, Any], payloads: Payloads
) -> Iterable[WireMessage]:
    entry = attempt.entry
    responses = {
        key_of(answer.entry): _part(payloads, answer.entry, "answer")
        for answer in round.answers
        if answer.entry.http_request_id == attempt.http_request_id
    }
    if entry.era == Era.LEGACY and round.number > 1:
        for key, answer in responses.items():
            yield WireMessage("client", f"Answer to {key}", _reply(answer))
    else:
        yield WireMessage("client", "Request", _request(entry, content.get("arguments"), responses))
    yield from _replies(attempt, round.questions, content, payloads)


def _request(entry: EntryView, arguments: Any, responses: Mapping[str, Any]) -> Json:
    """The request of a round as a client sends it."""
    params: Json = {}
    if entry.era != Era.LEGACY:
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": entry.revision,
            "io.modelcontextprotocol/clientInfo": {
                "name": entry.client_name,
                "version": entry.client_version,
            },
            "io.modelcontextprotocol/clientCapabilities": NOT_KEPT,
        }
    if (entry.round or 0) > 1 and entry.delivery == Delivery.TASK:
        task = {**params, "taskId": NOT_KEPT, "inputResponses": dict(responses)}
        return {"jsonrpc": "2.0", "id": NOT_KEPT, "method": "tasks/update", "params": task}
    params[NAME_FIELDS.get(entry.method, "name")] = entry.target
    if entry.method != "resources/read":
        params["arguments"] = arguments
    if (entry.round or 0) > 1:
        params |= {"inputResponses": dict(responses), "requestState": NOT_KEPT}
    return {"jsonrpc": "2.0", "id": NOT_KEPT, "method": entry.method, "params": params}


def _replies(
    attempt: TimelineAttempt,
    questions: Iterable[TimelineQuestion],
    content: Mapping[str, Any],
    payloads: Payloads,
) -> Iterable[WireMessage]:
    entry = attempt.entry
    if attempt.outcome == INPUT_REQUIRED:
        entry_by_key = {key_of(question.entry): question.entry for question in questions}
        requests = {
            key: _input_request(requested, payloads) for key, requested in entry_by_key.items()
        }
        if entry.era == Era.LEGACY:
            for key, input_request in requests.items():
                body = {"jsonrpc": "2.0", "id": NOT_KEPT, **input_request}
                yield WireMessage("server", f"Question {key}", body)
        elif any(requested.delivery == Delivery.TASK for requested in entry_by_key.values()):
            yield WireMessage(
                "server", "Questions of the task", {"inputRequests": requests}, _BY_TASK
            )
        else:
            result = {
                "resultType": INPUT_REQUIRED,
                "inputRequests": requests,
                "requestState": NOT_KEPT,
            }
            yield WireMessage("server", "Response", _reply(result))
    elif "result" in content:
        note = _BY_TASK if entry.delivery == Delivery.TASK else ""
        yield WireMessage("server", "Response", _reply(_result(entry, content["result"])), note)
    elif attempt.is_final and attempt.outcome in set(FailureKind):
        yield WireMessage("server", "Response", note="An error. Its body is not kept.")
    else:
        yield WireMessage("server", "Response", note="None to this round is recorded.")


_BY_TASK = "The client gets it with tasks/get."


def _input_request(entry: EntryView, payloads: Payloads) -> Json:
    """One input request, in the form of the call's revision."""
    method, params = str(entry.facts.get("method", "")), _part(payloads, entry, "question")
    revision = REVISIONS.get(entry.revision)
    if revision is not None and isinstance(params, Mapping):
        # What is redacted may have no form in the revision.
        with suppress(NotCarriedError, KeyError, TypeError, AttributeError):
            params = question_params_for(revision, method, params)
    return {"method": method, "params": params}


def _result(entry: EntryView, result: Any) -> Any:
    """The result in the form of the call's revision."""
    if not isinstance(result, Mapping):
        return result
    revision = REVISIONS.get(entry.revision)
    if revision is None:
        return {"resultType": "complete", **result}
    try:
        return convert_result(revision, entry.method, result)
    except (KeyError, TypeError, AttributeError, ValueError):
        return result  # redacted in a way that has no form in the revision


def _reply(result: Any) -> Json:
    return {"jsonrpc": "2.0", "id": NOT_KEPT, "result": result}


def _part(payloads: Payloads, entry: EntryView, name: str) -> Any:
    """What an entry's payload has under a name, or why it has nothing."""
    kept = payloads.get(entry.id)
    if kept is None:
        return NOT_KEPT
    if kept.erased_at is not None:
        return ERASED
    if kept.left_out:
        return LEFT_OUT
    return kept.content.get(name) if isinstance(kept.content, Mapping) else NOT_KEPT
