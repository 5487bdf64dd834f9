"""`manage.py serve`: one uvicorn process."""

import gc
import resource
from contextlib import suppress
from typing import Any

from channels.routing import get_default_application
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from mcphost.transport.server.graceful_shutdown import ShutdownTimes
from mcphost.transport.server.port_check import MAX_PORT, cannot_listen
from mcphost.transport.server.uvicorn import ClientTimeouts, build


class Command(BaseCommand):
    """Serves until SIGTERM or Ctrl-C; then drains, and ends with status 0."""

    help = "Serve MCP, the console and health on HOST and PORT, with uvicorn."
    requires_system_checks = ["mcphost"]  # Django's own load all pages of the console

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.MCPHOST_HOST)
        parser.add_argument("--port", type=int, default=settings.MCPHOST_PORT)

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        if port > MAX_PORT:  # the system would listen on another port: on its last 16 bits
            raise CommandError(cannot_listen(host, port))
        application = get_default_application()
        # The objects that were loaded at start are never freed. A full garbage collection over them
        # takes most of a second, and all calls wait for it.
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        allow_files()
        headers, body = settings.MCPHOST_HEADER_SECONDS, settings.MCPHOST_BODY_SECONDS
        timeouts = ClientTimeouts(
            header_seconds=headers,
            body_seconds=headers + body,  # longer than the endpoint's, which answers
            idle_seconds=settings.MCPHOST_KEEPALIVE_SECONDS,
        )
        shutdown_times = ShutdownTimes(
            settings.MCPHOST_NOTICE_SECONDS, settings.MCPHOST_DRAIN_SECONDS
        )
        server = build(application, host, port, timeouts, shutdown_times, settings.MCPHOST_PROXIES)
        with suppress(SystemExit):  # uvicorn exits if it cannot listen; reported below
            server.run()
        if not server.started:
            raise CommandError(cannot_listen(host, port))


def allow_files() -> None:
    """Raise the limit of open files to the hard limit: each listener is a connection, and on most
    systems a process starts with a limit of about a thousand."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # systems that refuse the hard limit they report
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
