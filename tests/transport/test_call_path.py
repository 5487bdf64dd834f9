"""The number of functions that an ordinary call executes. Lower the limits with every change that
shortens the path."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import mcphost
from mcphost.serving.database import in_database
from tests.cast import Cast
from tests.credentials import CREDENTIALS, MakeCredential
from tests.mcp import call

pytestmark = pytest.mark.django_db(transaction=True)

HERE = str(Path(mcphost.__file__).parent)
LIMITS = (113, 99, 49)
"""Calls, functions and files, on the event loop's thread: the writer's thread is not counted."""


@pytest.mark.parametrize("credential", CREDENTIALS)
async def test_a_plain_call_executes_a_limited_number_of_functions_and_reads_no_row(
    served: Cast, credential: MakeCredential
) -> None:
    presented = await in_database(credential, served, served.owner)

    async def once() -> None:
        assert (await call("acme", "echo", {"text": "a"}, presented.bearer)).text == "a"

    for _ in range(3):  # what is remembered, is remembered now
        await once()
    # Timers and the poll of the change log may run beside a call: the shortest is the call alone.
    seen = min([await _traced(once) for _ in range(7)], key=len)
    functions = set(seen)
    counts = len(seen), len(functions), len({code.co_filename for code in functions})
    assert all(count <= limit for count, limit in zip(counts, LIMITS, strict=True)), counts
    assert in_database.__code__ not in functions


async def _traced(act: Callable[[], Awaitable[None]]) -> list[CodeType]:
    """Our functions that were called meanwhile on this thread."""
    seen: list[CodeType] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HERE):
            seen.append(frame.f_code)

    sys.setprofile(note)
    try:
        await act()
    finally:
        sys.setprofile(None)
    return seen
