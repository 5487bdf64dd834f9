"""Tests of a token's last use: noted without a query, written at most once a minute."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mcphost.audit import last_use
from mcphost.audit.last_use import LastUse
from mcphost.identity.models import Token
from tests.cast import Cast

pytestmark = pytest.mark.django_db

CountQueries = Callable[[int], AbstractContextManager[Any]]
NOW = datetime(2026, 7, 28, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def _ids(cast: Cast) -> tuple[str, str]:
    return cast.owner.mcp_token.split("_")[1], cast.member.mcp_token.split("_")[1]


def _written(token_id: str) -> datetime | None:
    return Token.objects.values_list("last_used_at", flat=True).get(pk=token_id)


def test_only_the_last_of_several_uses_is_written(
    cast: Cast, django_assert_num_queries: CountQueries
) -> None:
    uses, (one, two) = LastUse(Token), _ids(cast)
    with django_assert_num_queries(0):
        assert last_use.flush(NOW) == 0
        uses.note(one, NOW)
        last_use.discard_unwritten()
        assert last_use.flush(NOW) == 0
        uses.note(one, NOW)
        uses.note(two, NOW + SECOND)
        uses.note(one, NOW + 2 * SECOND)
    assert last_use.flush(NOW + 3 * SECOND) == 2
    assert _written(one) == NOW + 2 * SECOND
    assert _written(two) == NOW + SECOND
    assert last_use.flush(NOW + 2 * MINUTE) == 0


def test_the_last_use_is_written_at_most_once_a_minute(cast: Cast) -> None:
    uses, (one, two) = LastUse(Token), _ids(cast)
    uses.note(one, NOW)
    last_use.flush(NOW)
    uses.note(one, NOW + SECOND)
    uses.note(two, NOW + SECOND)
    assert last_use.flush(NOW + 2 * SECOND) == 1
    assert _written(one) == NOW
    assert _written(two) == NOW + SECOND
    uses.note(one, NOW + MINUTE)
    assert last_use.flush(NOW + MINUTE) == 1
    assert _written(one) == NOW + MINUTE


def test_a_later_use_written_by_another_process_is_not_overwritten(cast: Cast) -> None:
    uses, (one, _) = LastUse(Token), _ids(cast)
    later = NOW + timedelta(microseconds=1)
    Token.objects.filter(pk=one).update(last_used_at=later)
    uses.note(one, NOW)
    last_use.flush(NOW)
    assert _written(one) == later
