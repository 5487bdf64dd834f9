"""Bodies that are large and wrong: what a refusal costs the server, and what other clients notice of it.

Each is compared with a body that is as large and made of the same, but stands where nothing looks at it.
The costs of every method and place are held to the rule by `tests/protocol/test_bodies.py`.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.bodies import KIBIBYTE, MEBIBYTE, encoded
from tests.e2e import raw
from tests.e2e.processes import Server
from tests.e2e.raw_sessions import Session, begin, calling

LEGACY = "2025-11-25"
TIMES = 2
TRIES = 12
AT_ONCE = 10
FEW = 20
"""Echoes that may run beside: housekeeping, the feed, the records."""
HERE = "<here>"
MARK = json.dumps(HERE).encode()
SIZE = 2 * MEBIBYTE

Send = Callable[[], raw.Reply]


def posting(
    server: Server, message: Mapping[str, Any], junk: str, size: int, tenant: str = "demo"
) -> Send:
    """Sends a message with junk at its mark; without a credential to a public tenant."""
    body = json.dumps(message).encode().replace(MARK, encoded(junk, size))
    fields = raw.headers(message, server.token if tenant == "demo" else None)
    return lambda: raw.exchange(server, "POST", f"/t/{tenant}/mcp", body, fields)


def harmless(server: Server, junk: str, size: int, tenant: str = "demo") -> Send:
    """The same where nothing looks at it: the request is answered."""
    return posting(server, raw.request("tools/list", {"unknown": HERE}), junk, size, tenant)


def recorded(server: Server, size: int) -> Send:
    """A call that is answered, and whose arguments go into the record: as large, too."""
    message = raw.call("echo", {"text": HERE})
    body = json.dumps(message).replace(HERE, "x" * (size - KIBIBYTE)).encode()
    fields = raw.headers(message, server.token)
    return lambda: raw.exchange(server, "POST", "/t/demo/mcp", body, fields)


def sampled(content: Any) -> dict[str, Any]:
    answer = {"role": "assistant", "content": content, "model": "m"}
    return raw.request("tools/call", {"name": "echo", "inputResponses": {"key": answer}})


COMPLETION = raw.request(
    "completion/complete",
    {
        "ref": {"type": "ref/prompt", "name": "plan_trip"},
        "argument": {"name": "city", "value": "x"},
        "context": {"arguments": HERE},
    },
)
BODIES: Mapping[str, tuple[dict[str, Any], str, str]] = {
    "an answer of zeros": (sampled(HERE), "zeros", "demo"),
    "an answer of zeros, without a credential": (sampled(HERE), "zeros", "conformance"),
    "an answer of blocks and a zero": (sampled(HERE), "blocks and a zero", "demo"),
    "an answer within an answer": (
        sampled([{"type": "tool_result", "toolUseId": "1", "content": HERE}]),
        "blocks and a zero",
        "conformance",
    ),
    "a completion of zeros": (COMPLETION, "zeros", "conformance"),
    "a completion of members": (COMPLETION, "members", "demo"),
    "a prompt's arguments": (
        raw.request("prompts/get", {"name": "plan_trip", "arguments": HERE}),
        "members",
        "demo",
    ),
    "a tool's arguments": (raw.call("add", {"a": 1, "b": HERE}), "zeros", "demo"),
    "a tool's unknown arguments": (
        raw.request("tools/call", {"name": "add", "arguments": HERE}),
        "members",
        "demo",
    ),
    "a subscription": (
        raw.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": HERE}}),
        "zeros",
        "conformance",
    ),
}


@pytest.fixture(params=BODIES)
def sends(sqlite_server: Server, request: pytest.FixtureRequest) -> tuple[Send, Send]:
    """A body that is refused, before any database is asked, and one as large that is not."""
    message, junk, tenant = BODIES[request.param]
    wrong = posting(sqlite_server, message, junk, SIZE, tenant)
    right = harmless(sqlite_server, junk, SIZE, tenant)
    assert right().status == 200
    refused(wrong())
    return wrong, right


def refused(reply: raw.Reply) -> None:
    """In words, and in few of them."""
    assert reply.status in (200, 400), reply.status
    assert len(reply.body) < 2_000
    said = reply.json
    assert said["error"]["code"] == -32602 if "error" in said else said["result"]["isError"]


def cpu_of(server: Server, act: Callable[[], Any]) -> float:
    """Seconds of CPU that the server spent meanwhile, in all its threads."""
    before = _spent(server)
    act()
    return _spent(server) - before


def _spent(server: Server) -> float:
    threads = Path(f"/proc/{server.pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


def growth_of(server: Server, act: Callable[[], Any]) -> int:
    """By how many bytes the server's memory grew at most meanwhile."""
    status = Path(f"/proc/{server.pid}/status")
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # the peak begins anew
    before = _field(status, "VmRSS")
    act()
    return max(0, _field(status, "VmHWM") - before)


def _field(status: Path, name: str) -> int:
    line = next(each for each in status.read_text().splitlines() if each.startswith(name))
    return int(line.split()[1]) * 1024


def echo(server: Server) -> raw.Reply:
    reply = raw.post(server, raw.call("echo", {"text": "still here"}), server.token)
    assert reply.message["result"]["content"][0]["text"] == "still here"
    return reply


def test_a_refusal_costs_the_server_at_most_twice_what_reading_costs(
    sqlite_server: Server, sends: tuple[Send, Send]
) -> None:
    wrong, right = sends
    spent = reading = beside = float("inf")
    for _ in range(TRIES):
        reading = min(reading, cpu_of(sqlite_server, right))
        spent = min(spent, cpu_of(sqlite_server, wrong))
        beside = min(beside, cpu_of(sqlite_server, lambda: echo(sqlite_server)))
        if spent <= TIMES * reading + FEW * beside:
            break
    assert spent <= TIMES * reading + FEW * beside


def test_a_refusal_takes_at_most_twice_the_memory_that_reading_takes(
    sqlite_server: Server, sends: tuple[Send, Send]
) -> None:
    wrong, right = sends
    reading = max(growth_of(sqlite_server, right) for _ in range(3))
    spent = min(growth_of(sqlite_server, wrong) for _ in range(3))
    assert spent <= TIMES * reading + 4 * SIZE


def test_other_clients_calls_go_on_while_bodies_are_refused(
    sqlite_server: Server, sends: tuple[Send, Send]
) -> None:
    """They wait no longer than while as many bodies of that size are accepted and recorded."""
    wrong, right = sends
    answered = recorded(sqlite_server, SIZE)
    assert "error" not in answered().json
    worst = longest = 0.0
    for _ in range(TRIES):
        longest = max(longest, *(_longest_echo(sqlite_server, each) for each in (right, answered)))
        worst = _longest_echo(sqlite_server, wrong)
        if worst <= TIMES * longest:
            break
    assert worst <= TIMES * longest


def _longest_echo(server: Server, attack: Send) -> float:
    """How long the slowest of a client's calls took while another sent some bodies one by one."""
    over, took = threading.Event(), [0.0]

    def attacking() -> None:
        try:
            for _ in range(AT_ONCE):
                attack()
        finally:
            over.set()

    with ThreadPoolExecutor(1) as other:
        running = other.submit(attacking)
        while not over.is_set():
            began = time.monotonic()
            assert echo(server).status == 200
            took.append(time.monotonic() - began)
        running.result(raw.PATIENCE)
    return max(took)


def test_many_at_once_are_all_refused_and_the_server_stays_ready(attacked: Server) -> None:
    message, junk, tenant = BODIES["an answer of zeros, without a credential"]
    send = posting(attacked, message, junk, SIZE, tenant)
    with ThreadPoolExecutor(AT_ONCE) as clients:
        for running in [clients.submit(send) for _ in range(AT_ONCE * 2)]:
            refused(running.result(raw.PATIENCE * 2))
    assert raw.send(attacked, "GET", "/readyz").status == 200


def asked(server: Server) -> tuple[Session, str]:
    """A session whose call waits for the answer to a form, and the id of the question."""
    session = begin(server, LEGACY, elicitation={"form": {}})
    with session.stream(calling("arrange_meeting", topic="x")) as events:
        question = events.message()
    assert question["method"] == "elicitation/create"
    return session, question["id"]


@pytest.mark.parametrize("junk", ["zeros", "members", "blocks and a zero"])
def test_an_answer_in_a_session_costs_no_more(attacked: Server, junk: str) -> None:
    """It is accepted and does not fit its form, so the call asks again."""
    right = harmless(attacked, junk, SIZE)
    reading, spent, beside = float("inf"), float("inf"), float("inf")
    for _ in range(4):
        session, id = asked(attacked)
        sent = {
            "jsonrpc": "2.0",
            "id": id,
            "result": {"action": "accept", "content": {"day": HERE}},
        }
        body = json.dumps(sent).encode().replace(MARK, encoded(junk, SIZE))

        def answer(session: Session = session, body: bytes = body) -> None:
            reply = raw.exchange(session.server, "POST", "/t/demo/mcp", body, session.headers())
            assert reply.status == 202
            for _ in range(3):
                echo(session.server)

        reading = min(reading, cpu_of(attacked, right))
        beside = min(beside, cpu_of(attacked, lambda: echo(attacked)))
        spent = min(spent, cpu_of(attacked, answer))
    assert spent <= 3 * TIMES * reading + FEW * beside


def test_large_bodies_that_are_valid_are_served(attacked: Server) -> None:
    text = "x" * SIZE
    reply = raw.post(attacked, raw.call("echo", {"text": text}), attacked.token)
    assert reply.message["result"]["content"][0]["text"] == text
    block = {"type": "text", "text": "x" * 100}
    message = sampled([block] * 10_000)
    message["params"]["arguments"] = {"text": "here"}
    reply = raw.post(attacked, message, attacked.token)
    assert reply.message["result"]["content"][0]["text"] == "here"
