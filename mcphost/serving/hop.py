"""The hop from the event loop to the database, written once.

Django's ORM is synchronous here. What the event loop does not find in a cache is fetched in a
small pool of threads of its own, so that neither tools nor the record writer wait behind it.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 4
_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="mcphost-database")


async def in_database(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` in the pool. What it raises is raised here."""

    def run() -> T:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(_pool, run)
