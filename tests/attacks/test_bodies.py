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
    "an answer of zeros, without a credential": (sampled(HERE), "zeros", "conformance"),
    "an answer of blocks and a zero": (sampled(HERE), "blocks and a zero", "demo"),
    "a completion of members": (COMPLETION, "members", "demo"),
    "a tool's unknown arguments": (
        raw.request("tools/call", {"name": "add", "arguments": HERE}),
        "members",
        "demo",
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
    assert reply.status in (200, 400), reply.status
    assert len(reply.body) < 2_000
    said = reply.json
    assert said["error"]["code"] == -32602 if "error" in said else said["result"]["isError"]


def cpu_of(server: Server, act: Callable[[], Any]) -> float:
    before = _spent(server)
    act()
    return _spent(server) - before


def _spent(server: Server) -> float:
    threads = Path(f"/proc/{server.pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


def echo(server: Server) -> raw.Reply:
    reply = raw.post(server, raw.call("echo", {"text": "still here"}), server.token)
    assert reply.message["result"]["content"][0]["text"] == "still here"
    return reply


def test_refusing_a_body_costs_at_most_twice_the_cpu_of_reading_a_valid_one(
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


def test_calls_of_other_clients_continue_while_bodies_are_refused(
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


def test_many_concurrent_bad_bodies_are_refused_and_the_server_stays_ready(
    attacked: Server,
) -> None:
    message, junk, tenant = BODIES["an answer of zeros, without a credential"]
    send = posting(attacked, message, junk, SIZE, tenant)
    with ThreadPoolExecutor(AT_ONCE) as clients:
        for running in [clients.submit(send) for _ in range(AT_ONCE * 2)]:
            refused(running.result(raw.PATIENCE * 2))
    assert raw.send(attacked, "GET", "/readyz").status == 200


def test_large_bodies_that_are_valid_are_served(attacked: Server) -> None:
    text = "x" * SIZE
    reply = raw.post(attacked, raw.call("echo", {"text": text}), attacked.token)
    assert reply.message["result"]["content"][0]["text"] == text
    block = {"type": "text", "text": "x" * 100}
    message = sampled([block] * 10_000)
    message["params"]["arguments"] = {"text": "here"}
    reply = raw.post(attacked, message, attacked.token)
    assert reply.message["result"]["content"][0]["text"] == "here"
