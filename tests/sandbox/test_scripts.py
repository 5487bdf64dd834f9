"""The worker's side of a script, without a worker around it."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_monty import Monty

from mcphost.sandbox.frames import HEAD, MAX_FRAME, BrokenFrameError, frame, length_of, message_of
from mcphost.sandbox.scripts import (
    MAX_DEPTH,
    LastMessageError,
    NotPlainError,
    ScriptJob,
    check,
    plain,
)

LIMITS = {
    "max_feed_duration_secs": 1.0,
    "max_memory": 32 * 1024 * 1024,
    "max_recursion_depth": 100,
    "max_suspensions": 20,
}


@pytest.fixture(scope="module")
def monty() -> Iterator[Monty]:
    with Monty(min_processes=1, max_processes=1) as pool:
        yield pool


class Talk:
    """The server's side: replies in order, and what the worker has sent."""

    def __init__(self, *replies: dict[str, Any]) -> None:
        self._replies = list(replies)
        self.sent: list[dict[str, Any]] = []

    def run(self, monty: Monty, source: str, **more: Any) -> dict[str, Any]:
        job = {
            "source": source,
            "entry": "f()",
            "prelude": "",
            "arguments": {},
            "now": ["now"],
            "later": ["later"],
            "limits": LIMITS,
            "time": "2026-01-01T00:00:00+00:00",
            "seed": "seed",
            "printed": 100,
            **more,
        }
        return ScriptJob(job, self.sent.append, lambda: self._replies.pop(0)).run(monty)


def test_a_function_call_of_a_script_is_sent_and_its_result_returned(monty: Monty):
    talk = Talk({"answers": {"0": {"return_value": 5}}})
    done = talk.run(monty, "def f():\n g = now\n return g(1, a=int) + 1")
    assert done == {"is": "done", "value": 6}
    (sent,) = talk.sent
    assert sent["calls"] == [{"id": 0, "name": "now", "args": [[1], {"a": {"type": "int"}}]}]


@pytest.mark.parametrize("waits", [False, True])
def test_a_paused_script_continues_in_another_session(monty: Monty, waits: bool):
    source = "def f():\n x = 4\n return x + now()"
    entry = "f()"
    if waits:
        source, entry = "async def f():\n x = 4\n return x + await later()", "await f()"
    paused = Talk({"answers": None, "dump": True}).run(monty, source, entry=entry)
    assert paused["is"] == "paused"
    talk = Talk({"answers": {"0": {"return_value": 3}}})
    assert talk.run(monty, source, image=paused["image"])["value"] == 7


@pytest.mark.parametrize("image", ["AAAA", "*"])
def test_an_invalid_image_of_a_paused_script_is_reported_as_unloadable(monty: Monty, image: str):
    with pytest.raises(LastMessageError) as last:
        Talk().run(monty, "", image=image)
    assert last.value.message["is"] == "unloadable"


FAILURES = {
    "raise ValueError('x')": "error",
    "return f()": "recursion",
    "while True: pass": "time",
    "return 'x' * 10**9": "memory",
    "return b'x'": "result",
    "open('/etc/passwd')": "error",
}


@pytest.mark.parametrize("body", FAILURES)
def test_a_failed_script_reports_its_reason(monty: Monty, body: str):
    failed = Talk().run(monty, f"def f():\n {body}")
    assert (failed["is"], failed["why"]) == ("failed", FAILURES[body]), failed


def test_a_script_that_makes_too_many_calls_is_stopped(monty: Monty):
    talk = Talk(*[{"answers": {str(n): {"return_value": None}}} for n in range(30)])
    failed = talk.run(monty, "def f():\n while True: now()")
    assert failed["why"] == "calls"
    assert len(talk.sent) <= 20


def test_output_is_sent_up_to_its_limit_and_then_the_script_stops(monty: Monty):
    talk = Talk()
    assert talk.run(monty, "def f():\n print('a' * 20)")["is"] == "done"
    assert talk.sent == [{"is": "printed", "text": "a" * 20 + "\n"}]
    with pytest.raises(LastMessageError) as last:
        Talk().run(monty, "def f():\n while True: print('a' * 200)")
    assert last.value.message["why"] == "output"


def test_a_script_is_checked(monty: Monty):
    job = {
        "source": "def f() -> int:\n return g()",
        "stubs": "def g() -> str: ...",
        "most": 100,
        "limits": LIMITS,
    }
    (problem,) = check(job, monty)["value"]
    assert (problem["line"], problem["column"]) == (2, 9)
    (problem,) = check({**job, "source": "class A(int): pass"}, monty)["value"]
    assert "inheritance" in problem["message"]
    assert check({**job, "source": "print('x')"}, monty)["value"] == []


def test_values_that_are_not_json_are_refused():
    deep: list[Any] = []
    for _ in range(MAX_DEPTH + 2):
        deep = [deep]
    for value in (deep, 2**64, float("inf"), {1: 2}, b"x"):
        with pytest.raises(NotPlainError):
            plain(value)


def test_a_message_has_a_length_prefix_and_is_an_object():
    written = frame({"a": 1})
    assert length_of(written[:HEAD]) == len(written) - HEAD
    assert message_of(written[HEAD:]) == {"a": 1}
    with pytest.raises(BrokenFrameError):
        length_of((MAX_FRAME + 1).to_bytes(HEAD))
    for broken in (b"{", b"[]"):
        with pytest.raises(BrokenFrameError):
            message_of(broken)
