"""`manage.py check --deploy` refuses what cannot work in production."""

from collections.abc import Sequence
from typing import Any

from django.apps.config import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from mcphost.observability.deployment import Deployment, findings


@register(Tags.security, deploy=True)
def check_deployment(
    app_configs: Sequence[AppConfig] | None = None, **options: Any
) -> list[CheckMessage]:
    """What the settings and the data folder say that cannot work, or is not safe, when deployed."""
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
    )
