"""Act between the beginning of a request and the transaction of its change."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection


@contextmanager
def before_the_change(act: Callable[[], object]) -> Iterator[None]:
    """Let another user act after a request was admitted, and before its transaction reads anything."""

    def act_first(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("SAVEPOINT"):
            act()
        return execute(sql, *rest)

    with connection.execute_wrapper(act_first):
        yield
