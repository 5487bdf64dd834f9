"""Search everything that any test logs for secrets, in the format in which the product writes it.

Tests use `CANARY` as a secret (a password, a credential, a write-only argument). The tests' own
keys and all API tokens are searched for, too.
"""

import logging
import os
import re
from collections.abc import Generator

import pytest

from mcphost.observability import logs

CANARY = "canary-4b1f9c2e77d0"
"""The secret that tests use. No line of the log may ever contain it."""

_TOKEN = re.compile(r"mcph_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}")


class Grep(logging.Handler):
    """Formats every record with the product's formatter and keeps lines that contain a secret."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logs.formatter("json"))
        self.found: list[str] = []
        self.lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        self.lines += 1
        if holds_a_secret(line):
            self.found.append(line)


def holds_a_secret(line: str) -> bool:
    keys = (os.environ.get("MCPHOST_SECRET_KEY"), os.environ.get("MCPHOST_MASTER_KEY"))
    planted = (CANARY, *filter(None, keys))
    return any(secret in line for secret in planted) or _TOKEN.search(line) is not None


grep = Grep()


def pytest_sessionstart() -> None:
    logging.getLogger().addHandler(grep)
    # Debug messages must not contain secrets either.
    logging.getLogger("mcphost").setLevel(logging.DEBUG)


def pytest_sessionfinish() -> None:
    logging.getLogger().removeHandler(grep)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    yield
    found, grep.found = grep.found, []
    if found:
        pytest.fail("a secret was logged:\n" + "\n".join(found), pytrace=False)
