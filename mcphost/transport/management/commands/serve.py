"""`manage.py serve`: one uvicorn process."""

import gc
import resource
from contextlib import suppress
from typing import Any

from channels.routing import get_default_application
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from mcphost.transport.leaving import Leave
from mcphost.transport.listening import cannot_listen
from mcphost.transport.server import Patience, build


class Command(BaseCommand):
    """Serves until SIGTERM or Ctrl-C; then drains, and ends with status 0."""

    help = "Serve MCP, the admin and health on HOST and PORT, with uvicorn."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.MCPHOST_HOST)
        parser.add_argument("--port", type=int, default=settings.MCPHOST_PORT)

    def handle(self, *args: Any, **options: Any) -> None:
        application = get_default_application()
        host, port = options["host"], options["port"]
        _settle_memory()
        allow_files()
        leave = Leave(settings.MCPHOST_NOTICE_SECONDS, settings.MCPHOST_DRAIN_SECONDS)
        server = build(application, host, port, _patience(), leave, settings.MCPHOST_PROXIES)
        with suppress(SystemExit):  # how uvicorn gives up; what it cannot do is said below
            server.run()
        if not server.started:
            raise CommandError(cannot_listen(host, port))


def _patience() -> Patience:
    """For bodies a little more than the endpoint has, so that its refusal is what clients hear."""
    headers, body = settings.MCPHOST_HEADER_SECONDS, settings.MCPHOST_BODY_SECONDS
    return Patience(
        header_seconds=headers,
        body_seconds=headers + body,
        idle_seconds=settings.MCPHOST_KEEPALIVE_SECONDS,
    )


def _settle_memory() -> None:
    """Keep the garbage collector off what was loaded at start and lives as long as the process.

    A full collection over it takes most of a second, and all calls wait for it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def allow_files() -> None:
    """Have as many files open as we may: each listener is a connection, and most systems let a
    process begin with room for a thousand."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # where the system names no bound that it would keep to
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
