"""Import rarely needed modules in a thread, at their first use, so that the event loop does not
wait for imports.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from mcphost.protocol.shapes import NotLoadedError, wire_shapes

P = ParamSpec("P")
T = TypeVar("T")

_thread: Final = ThreadPoolExecutor(1, thread_name_prefix="mcphost-load")
"""One thread, so that requests that arrive together load a thing once. Not a thread of asyncio's
pool: tools that never return may block all of those."""


async def load(loader: Callable[[], T]) -> T:
    """Run `loader` in the loading thread."""
    return await asyncio.get_running_loop().run_in_executor(_thread, loader)


async def with_shapes(check: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `check`, again if it turns out to need the wire models: it must change nothing before."""
    try:
        return check(*args, **kwargs)
    except NotLoadedError:
        await load(wire_shapes.load)
    return check(*args, **kwargs)
