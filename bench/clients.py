"""Real clients in one process: `python -m bench.clients URL REVISION COUNT`, with the token in BENCH_TOKEN.

Each is the official Python client over streamable HTTP. It reads a line with a number of seconds, and
for that long each of COUNT clients has one session after another: it connects, lists the tools, calls
`ask_twice`, answers both questions, looks at the result and closes. Sessions that were begun are ended.
Then it writes a line of JSON: how many `sessions` were right and how many `errors` there were, the
`seconds` that all took, the `cpu` seconds of this process, and the milliseconds of each step in `steps`.
"""

import asyncio
import json
import os
import ssl
import sys
import time
import traceback
from dataclasses import dataclass, field
from typing import Any

import httpx2
import uvloop
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

TOOL = "ask_twice"
QUESTIONS = 2
PATIENCE = 60.0
# `auto` finds out whether the server knows the stateless revision; `legacy` opens a session.
MODES = {"2025-11-25": "legacy", "2026-07-28": "auto"}
STEPS = ("initialize", "list", "question", "answer")


@dataclass
class Crowd:
    """Clients of one server, and what they have seen since the last line."""

    url: str
    revision: str
    token: str
    # One for all: to make it costs more than a session.
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    sessions: int = 0
    errors: int = 0
    steps: dict[str, list[float]] = field(default_factory=lambda: {step: [] for step in STEPS})

    async def client(self, number: int, until: float) -> None:
        """One session after another until that moment."""
        while time.monotonic() < until:
            number += 1
            try:
                async with asyncio.timeout(PATIENCE):
                    await self.session(f"hello {number}")
                self.sessions += 1
            except Exception:  # noqa: BLE001 - whatever it was, it is counted and shown
                self.errors += 1
                traceback.print_exc()
                return

    async def session(self, text: str) -> None:
        """One session from its beginning to its end."""
        questions, began = 0, time.perf_counter()

        def step(name: str) -> None:
            nonlocal began
            now = time.perf_counter()
            self.steps[name].append((now - began) * 1000)
            began = now

        async def answer(_: Any, _question: Any) -> ElicitResult:
            nonlocal questions
            step("answer" if questions else "question")
            questions += 1
            return ElicitResult(action="accept", content={"sure": True})

        headers = {"Authorization": f"Bearer {self.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE, verify=self.tls) as http,
            Client(
                streamable_http_client(self.url, http_client=http),
                mode=MODES[self.revision],
                elicitation_callback=answer,
            ) as client,
        ):
            step("initialize")
            listed = await client.list_tools()
            step("list")
            result: Any = await client.call_tool(TOOL, {"text": text})
            step("answer")
            assert client.protocol_version == self.revision, client.protocol_version
            assert TOOL in [tool.name for tool in listed.tools], listed
            assert questions == QUESTIONS, questions
            assert [block.text for block in result.content] == [text], result


async def main(url: str, revision: str, count: int) -> None:
    token = os.environ["BENCH_TOKEN"]
    print(flush=True)  # ready
    while line := await asyncio.to_thread(sys.stdin.readline):
        crowd = Crowd(url, revision, token)
        began, spent = time.monotonic(), time.process_time()
        until = began + float(line)
        await asyncio.gather(*(crowd.client(number * 1000, until) for number in range(count)))
        report = {
            "sessions": crowd.sessions,
            "errors": crowd.errors,
            "seconds": time.monotonic() - began,
            "cpu": time.process_time() - spent,
            "steps": crowd.steps,
        }
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
