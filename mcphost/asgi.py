"""The ASGI application that servers load. Loading it fails with a wrong master key."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mcphost.settings")
django.setup()

from django.conf import settings  # noqa: E402 - Django is set up first

from mcphost.observability import logs  # noqa: E402
from mcphost.routing import application, process  # noqa: E402

__all__ = ["application"]

logs.configure(settings.MCPHOST_LOG_FORMAT, settings.MCPHOST_LOG_LEVEL)
process.prepare()
