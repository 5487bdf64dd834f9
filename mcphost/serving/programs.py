"""What programs use of this process: the pool of threads that synchronous tools run in."""

from functools import cache

from django.conf import settings

from mcphost.runtime.threads import ToolThreads


@cache
def threads() -> ToolThreads:
    """The process's one pool, capped per tenant by `MCPHOST_THREADS_PER_TENANT`."""
    return ToolThreads(settings.MCPHOST_THREADS_PER_TENANT)
