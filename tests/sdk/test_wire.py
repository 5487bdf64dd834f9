"""Large results of a client: a valid one is read, an invalid one is refused without a path."""

from typing import Any

import pytest
from mcp_types import ListRootsResult
from pydantic import BaseModel

from mcphost.protocol.effort import EXPLAINED_BYTES
from mcphost.runtime.questions import InvalidAnswerError
from mcphost.sdk.wire import read_as, read_roots

LONG = "a" * EXPLAINED_BYTES


class Open(BaseModel):
    """A result whose members only pydantic can validate."""

    sizes: dict[str, int] = {}
    note: str = ""


class Even(BaseModel):
    """A result with a member whose rule JSON Schema cannot express."""

    days: dict[str, "Day"] = {}
    note: str = ""


class Day(BaseModel):
    at: str

    def model_post_init(self, _: Any) -> None:
        if self.at == "never":
            raise ValueError("is no day")


def test_a_large_valid_result_is_read() -> None:
    roots = [{"uri": f"file:///{n}"} for n in range(10_000)]
    assert len(read_roots({"roots": roots})) == 10_000
    assert read_as(Open, {"sizes": {"a": 1}, "note": LONG}).sizes == {"a": 1}


@pytest.mark.parametrize("sizes", [{"a": "b"}, {"a": 1.5}, []])
def test_a_large_invalid_result_is_refused_without_a_path(sizes: Any) -> None:
    with pytest.raises(InvalidAnswerError, match="it is not valid"):
        read_as(Open, {"sizes": sizes, "note": LONG})


def test_a_large_result_that_only_pydantic_refuses_is_refused_without_a_path() -> None:
    days = {f"d{n}": {"at": "never"} for n in range(5_000)}
    with pytest.raises(InvalidAnswerError, match="it is not valid"):
        read_as(Even, {"days": days, "note": LONG})


def test_a_small_invalid_result_is_refused_with_its_path() -> None:
    with pytest.raises(InvalidAnswerError, match="its roots is missing"):
        read_as(ListRootsResult, {})
