"""Fixtures of the audit tests."""

import logging
import threading
from collections.abc import Callable, Iterator

import pytest

from mcphost.audit.ports import payload_cipher, set_payload_cipher
from mcphost.audit.writer.writer import Writer, WriterLimits
from tests.audit.ciphers import GateCipher, XorCipher


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Listening(logging.Handler):
    """Lets a test wait until the writer has logged that it could not write."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = threading.Semaphore(0)

    def emit(self, record: logging.LogRecord) -> None:
        if "writing records failed" in record.getMessage():
            self.heard.release()

    def wait(self) -> None:
        assert self.heard.acquire(timeout=20), "the writer never met the failure"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def failures() -> Iterator[Listening]:
    """Notes every failed attempt to write."""
    handler = Listening()
    logger = logging.getLogger("mcphost.audit.writer.writer")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.setLevel(level)
    logger.removeHandler(handler)


@pytest.fixture(autouse=True)
def _cipher() -> Iterator[None]:
    before = payload_cipher()
    set_payload_cipher(XorCipher())
    yield
    set_payload_cipher(before)


@pytest.fixture
def gate() -> Iterator[GateCipher]:
    """A cipher that blocks the writer's thread until it is opened."""
    cipher = GateCipher()
    set_payload_cipher(cipher)
    yield cipher
    cipher.open_gate()


Start = Callable[..., Writer]


@pytest.fixture
def start(clock: HandClock) -> Iterator[Start]:
    """`start(**limits)`: start a writer with the fake clock; it is stopped at the end."""
    writers: list[Writer] = []

    def starting(**limits: float) -> Writer:
        writer = Writer(WriterLimits(**{"pause": 0.001, **limits}), clock)  # type: ignore[arg-type]
        writers.append(writer)
        writer.start()
        return writer

    yield starting
    for writer in writers:
        clock.now += 1_000_000
        writer.stop(20)


@pytest.fixture
def writer() -> Iterator[Writer]:
    """A running writer on the machine's clock."""
    made = Writer()
    made.start()
    yield made
    assert made.stop(20)
