"""`manage.py worker`: a process that runs rounds of tasks."""

import gc
import socket
from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from mcphost.observability import logs
from mcphost.serving.process.worker import work
from mcphost.transport.server.operations_port import HOST, OperationsPort
from mcphost.transport.wiring import wakeups


class Command(BaseCommand):
    """Works until SIGTERM or Ctrl-C; then drains, and ends with status 0."""

    help = "Run rounds of tasks in a process that serves no requests. Needs PostgreSQL."
    requires_system_checks = ["mcphost"]  # Django's own load all pages of the console

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--metrics-port",
            type=int,
            help=f"serve /healthz, /readyz and /metrics on this port of {HOST}",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.MCPHOST_ALONE:
            raise CommandError(
                "With SQLite, one process serves and runs all tasks. Workers need PostgreSQL "
                "(DATABASE_URL)."
            )
        port = options["metrics_port"]
        operations = nullcontext() if port is None else OperationsPort(_listening(port))
        logs.configure(settings.MCPHOST_LOG_FORMAT, settings.MCPHOST_LOG_LEVEL)
        gc.freeze()  # as in `serve`: what was loaded at the start is never freed
        work(settings.MCPHOST_DRAIN_SECONDS, wakeups, operations=operations)


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        raise CommandError(
            f"Could not listen on {HOST}:{port}. If the port is taken, choose another one."
        ) from error
