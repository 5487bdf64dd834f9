"""The rounds of a trial as a conversation: what was said, when, and the message that said it.

A page carries the rounds before, so they are plain values, and long messages are cut. All texts are
foreign.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcphost.console.forms.json_texts import json_text
from mcphost.console.templatetags.console import beginning, shortened
from mcphost.serving.execution.trials import CLIENT, TrialMessage, TrialResult

MAX_MESSAGES: Final = 30
"""The most messages of a round that the page carries on; the last ones."""
MAX_TEXT: Final = 300
"""Characters of a question or a response that are shown beside its message."""
_BY_METHOD: Final[Mapping[str, str]] = {
    "initialize": "The client begins a session.",
    "sampling/createMessage": "The tool asks for a message of the client's model.",
    "roots/list": "The tool asks for the client's folders.",
}

Json = Mapping[str, Any]


def written(trial_result: TrialResult, outcome: str, began: float) -> dict[str, Any]:
    """Return a round as its page shows it; its times are in seconds since `began`."""
    start = max(trial_result.began - began, 0.0)
    messages = trial_result.exchanged
    state = trial_result.sealed
    return {
        "number": trial_result.number,
        "outcome": outcome,
        "seconds": round(trial_result.seconds, 4),
        "left_out": max(len(messages) - MAX_MESSAGES, 0) + trial_result.dropped,
        "lines": [_line(message, start) for message in messages[-MAX_MESSAGES:]],
        "state": None
        if state is None
        else {
            "size": state.size,
            "key": state.key,
            "seconds": round(state.expires_at - trial_result.began - trial_result.seconds),
        },
    }


def _line(message: TrialMessage, start: float) -> dict[str, Any]:
    is_notification = str(message.body.get("method", "")).startswith("notifications/")
    return {
        "sender": message.sender,
        "at": round(start + message.at, 4),
        "text": "\n".join(_texts(message.sender, message.body)),
        "json": beginning(json_text(shortened(message.body))),
        "is_aside": is_notification or message.body.get("id") == 0,
    }


def _texts(sender: str, body: Json) -> Iterator[str]:
    """Yield what a message says, a line each."""
    if "method" in body:
        yield from _of_request(body["method"], body.get("params", {}))
    elif "error" in body:
        subject = "You refuse" if sender == CLIENT else "The call is refused"
        yield f"{subject}: {_cut(body['error'].get('message', ''))}"
    elif sender == CLIENT:
        yield f"You answer: {_answer(body['result'])}"
    else:
        yield from _of_result(body["result"])


def _of_request(method: str, params: Json) -> Iterator[str]:
    if method == "tools/call" and "inputResponses" in params:
        for key, response in params["inputResponses"].items():
            yield f"You answer {key}: {_answer(response)}"
    elif method == "tools/call":
        yield f"The client calls {params['name']}."
    elif method == "notifications/progress":
        total = f" of {params['total']:g}" if "total" in params else ""
        yield f"Progress: {params['progress']:g}{total} {params.get('message', '')}".rstrip()
    elif method == "notifications/message":
        data = params.get("data")
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        yield f"Log, {params.get('level')}: {_cut(text)}"
    elif method == "elicitation/create":
        yield f"The tool asks: {_cut(params.get('message', ''))}"
    else:
        yield _BY_METHOD.get(method, f"The server sends {method}.")


def _of_result(result: Json) -> Iterator[str]:
    requests = result.get("inputRequests")
    if requests:
        for input_request in requests.values():
            yield from _of_request(input_request["method"], input_request.get("params", {}))
    elif "protocolVersion" in result:
        yield f"The session has revision {result['protocolVersion']}."
    elif result.get("isError"):
        yield "The result is an error."
    else:
        yield "The call is complete."


def _answer(response: Json) -> str:
    if "error" in response:
        return "refused"
    content = response.get("content")
    values = f" {_cut(json.dumps(content, ensure_ascii=False))}" if content else ""
    return f"{response.get('action', '')}{values}"


def _cut(text: object) -> str:
    whole = str(text)
    return whole if len(whole) <= MAX_TEXT else f"{whole[:MAX_TEXT]}…"
