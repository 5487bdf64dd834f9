"""Run a function in several threads that start together, each with its own connection."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connections

PROCESSES = 4
PATIENCE = 30


def at_once(work: Callable[[], Any], times: int = PROCESSES) -> list[Any]:
    """Run `work` in each thread; return all results."""
    barrier = Barrier(times)

    def run() -> Any:
        try:
            barrier.wait(PATIENCE)
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(times) as pool:
        futures = [pool.submit(run) for _ in range(times)]
        return [future.result(PATIENCE) for future in futures]
