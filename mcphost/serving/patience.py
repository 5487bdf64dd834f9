"""Waiting for a database that is away, where what is asked for can wait."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError

from mcphost.serving.hop import in_database

P = ParamSpec("P")
T = TypeVar("T")

AWAY: Final = (OperationalError, InterfaceError)
"""What the ORM raises when there is no database to ask."""
RETRY_SECONDS: Final = 0.5

log = logging.getLogger(__name__)


async def patiently(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `function` gives, run in a thread that may wait, again and again until there is a database.

    It may have been done although nobody was told: it has to bear being done twice.
    """
    while True:
        try:
            return await in_database(function, *args, **kwargs)
        except AWAY as error:
            log.warning("the database is waited for: %s", type(error).__name__)
        await asyncio.sleep(RETRY_SECONDS)
