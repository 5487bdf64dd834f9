"""The hop from the event loop to the database, written once.

Django's ORM is synchronous here. What the event loop does not find in a cache is fetched in a
small pool of threads of its own, so that neither tools nor the record writer wait behind it.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 4
STRANGERS_THREADS = 2
_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="mcphost-database")
_strangers = ThreadPoolExecutor(STRANGERS_THREADS, thread_name_prefix="mcphost-strangers")


async def in_database(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` in the pool. What it raises is raised here."""
    return await _in(_pool, partial(function, *args, **kwargs))


async def for_a_stranger(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same on behalf of somebody of whom nothing is known, in a pool of its own.

    Anybody can make up thousands of tokens that have to be looked for. Those who are known, and
    what takes away authority, do not wait behind them.
    """
    return await _in(_strangers, partial(function, *args, **kwargs))


async def _in(pool: ThreadPoolExecutor, function: Callable[[], T]) -> T:
    def run() -> T:
        close_old_connections()
        try:
            return function()
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(pool, run)
