import base64
from collections.abc import Callable, Iterator

import pytest
from pytest_django import Settings

from mcphost.audit import last_use
from mcphost.vault import selectors
from mcphost.vault.secrets import selectors as secrets


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    _forget()
    yield
    _forget()


def _forget() -> None:
    selectors.forget_everything()
    secrets.forget_everything()
    last_use.discard_unwritten()


@pytest.fixture
def give_master_key(settings: Settings) -> Callable[[bytes], None]:
    """Replace the master key that the tests began with."""

    def give(key: bytes) -> None:
        settings.MCPHOST_MASTER_KEY = lambda: key

    return give


@pytest.fixture
def lose_master_key(settings: Settings) -> Callable[[], None]:
    """Remove the master key, as if the operator forgot to set it."""

    def missing() -> bytes:
        raise LookupError("no master key: set MCPHOST_MASTER_KEY")

    def lose() -> None:
        settings.MCPHOST_MASTER_KEY = missing

    return lose


@pytest.fixture
def spoil() -> Callable[[str], str]:
    """Flip one bit in the middle of a wrapped secret."""

    def change(wrapped: str) -> str:
        head, _, body = wrapped.rpartition(".")
        raw = bytearray(base64.urlsafe_b64decode(body))
        raw[len(raw) // 2] ^= 1
        return f"{head}.{base64.urlsafe_b64encode(raw).decode()}"

    return change
