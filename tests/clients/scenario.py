"""What every client does: a line of JSON for each step, and what has to come of it."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.e2e.client_process import Talk, conversing
from tests.e2e.test_python_client import DEMO_TOOLS

TEXT: Final = "grüße, 世界"
LOG: Final = "counting down from 2"
ANSWER: Final = {"action": "accept", "content": {"deploy": True}}
LINES: Final[Sequence[tuple[str, Mapping[str, Any], str]]] = (
    ("call", {"call": "echo", "arguments": {"text": TEXT}}, TEXT),
    (
        "question",
        {"call": "deploy", "arguments": {"service": "shop", "version": "v2"}},
        "shop v2 is deployed.",
    ),
    ("resource", {"read": "demo://about"}, "# The demo tenant"),
    ("prompt", {"get": "plan_trip", "arguments": {"city": "Oslo"}}, "Plan 3 relaxed days in Oslo"),
    ("error", {"call": "weather", "arguments": {"city": "Atlantis"}}, "Atlantis has no weather"),
)
"""The steps of one request: its name, what the client is told, and the text that has to come of it."""
COUNTDOWN: Final = {"call": "countdown", "arguments": {"start": 2, "seconds": 0.05}}
STEPS: Final = (
    *("connect", "list", *(step for step, *_ in LINES), "progress", "log", "slash", "close"),
)


def run(argv: Sequence[str], folder: Path, asked: Mapping[str, Any]) -> dict[str, str]:
    """Return what went wrong at each step, in one line; an empty text if nothing did.

    If the client ends or falls silent, that is what went wrong at all steps that are left.
    """
    problems: dict[str, str] = {}
    ended = ""
    for steps in (_walk(argv, folder, asked), _connect_with_slash(argv, folder, asked)):
        try:
            problems.update(steps)
        except (AssertionError, OSError, ValueError, subprocess.TimeoutExpired) as error:
            words = (folder / "client.err").read_text(errors="replace").strip()
            ended = ended or (words or str(error)).splitlines()[-1]
    return {step: problems.get(step, ended) for step in STEPS}


def _walk(argv: Sequence[str], folder: Path, asked: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    with conversing(argv, folder, **asked) as talk:
        tools = talk.hear("met")["tools"]
        yield "connect", ""
        missing = sorted(DEMO_TOOLS - set(tools))
        yield "list", f"missing: {', '.join(missing)}" if missing else ""
        for step, line, text in LINES:
            message = exchange(talk, line)
            yield step, problem(step, message, text)
        message = exchange(talk, COUNTDOWN)
        done = message.get("done", {})
        yield "progress", "" if done.get("progress") == [0, 1, 2] else f"no progress: {message}"
        yield "log", "" if LOG in done.get("logs", []) else f"no log message: {message}"
        status = talk.end()
        yield "close", f"status {status}" if status else ""


def _connect_with_slash(
    argv: Sequence[str], folder: Path, asked: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    with_slash = json.loads(json.dumps(asked).replace(asked["url"], f"{asked['url']}/"))
    with conversing(argv, folder, **with_slash) as talk:
        talk.hear("met")
        yield "slash", ""


def exchange(talk: Talk, line: Mapping[str, Any]) -> dict[str, Any]:
    """Tell a client what to do, answer what it is asked meanwhile, and return what came of it."""
    talk.say(line)
    while True:
        message = talk.receive()
        if "asked" in message:
            talk.say(ANSWER)
        elif "done" in message or "raised" in message:
            return message


def problem(step: str, message: Mapping[str, Any], text: str) -> str:
    """Return why a message is not what has to come of a step; an empty text if it is.

    An error result may be a result or an exception: that is the client's choice. Other steps may be neither.
    """
    dumped = json.dumps(message, ensure_ascii=False)
    is_error = "raised" in message or bool(message["done"].get("isError"))
    return "" if text in dumped and is_error is (step == "error") else dumped
