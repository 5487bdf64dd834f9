from collections.abc import AsyncIterator

import pytest

from mcphost.routing import process
from mcphost.serving.legacy import stream
from tests.cast import Cast
from tests.serving.legacy.callers import true
from tests.serving.legacy.tasks.client import TaskClient, client_of
from tests.serving.tasks.conftest import tasks

__all__ = ["tasks"]


@pytest.fixture(autouse=True)
async def _stopped(tasks: Cast) -> AsyncIterator[None]:
    """After a test all streams have ended; stop the threads that wake the event loop."""
    yield
    await true(lambda: not stream.live)
    await process.stop()


@pytest.fixture
async def client(tasks: Cast) -> TaskClient:
    """The owner's client at `acme`, in a session."""
    return await client_of(tasks.owner)
