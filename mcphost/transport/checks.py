"""`manage.py check --deploy`: report settings that cannot work in production."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.apps.config import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError, connection

from mcphost.feed import nodes
from mcphost.observability.deployment import Connections, Deployment, findings
from mcphost.serving.process import lifecycle
from mcphost.serving.tasks import job_worker


@register("mcphost", Tags.security, deploy=True)
def check_deployment(
    app_configs: Sequence[AppConfig] | None = None, **options: Any
) -> list[CheckMessage]:
    """Report settings and data folder contents that cannot work, or are unsafe, when deployed."""
    return [
        (Error if finding.fatal else Warning)(finding.message, hint=finding.hint, id=finding.id)
        for finding in findings(_facts())
    ]


def _facts() -> Deployment:
    return Deployment(
        host=settings.MCPHOST_HOST,
        loopback=settings.MCPHOST_LOOPBACK,
        https=settings.MCPHOST_HTTPS,
        allowed_hosts=tuple(settings.ALLOWED_HOSTS),
        trusted_origins=tuple(settings.CSRF_TRUSTED_ORIGINS),
        tools=settings.MCPHOST_TOOLS,
        exposed=settings.MCPHOST_EXPOSED(),
        expose_demo=settings.MCPHOST_EXPOSE_DEMO,
        conformance=settings.MCPHOST_CONFORMANCE,
        alone=settings.MCPHOST_ALONE,
        redis=settings.MCPHOST_REDIS,
        connections=None if settings.MCPHOST_ALONE else _connections(),
    )


def _connections() -> Connections:
    """How many connections all processes may open at once, and how many PostgreSQL allows."""
    available, serving = None, 0
    with suppress(DatabaseError):
        with connection.cursor() as cursor:
            cursor.execute(_AVAILABLE)
            available = int(cursor.fetchone()[0])
        serving = len(nodes.living())
    queued = settings.MCPHOST_TASK_ENGINE == "procrastinate"
    of_queue = job_worker.CONNECTIONS if queued and settings.MCPHOST_TASK_WORKER_IN_SERVER else 0
    return Connections(
        per_process=lifecycle.CONNECTIONS + settings.MCPHOST_DJANGO_REQUESTS + of_queue,
        processes=max(settings.MCPHOST_PROCESSES, serving),
        available=available,
    )


# Reserved connections are not available to us; a role and a database may have lower limits.
_AVAILABLE = """
SELECT least(
    current_setting('max_connections')::int
    - current_setting('superuser_reserved_connections')::int
    - coalesce(current_setting('reserved_connections', true)::int, 0),
    (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
    (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())
)
"""
