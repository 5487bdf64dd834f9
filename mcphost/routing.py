"""Which application answers which path. MCP, `.well-known` and health come before Django."""

from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import re_path

from mcphost.transport.endpoint import endpoint
from mcphost.transport.health import healthz, readyz
from mcphost.transport.lifespan import lifespan
from mcphost.transport.wellknown import not_found


def _at(pattern: str, application: Any) -> Any:
    """A route to an ASGI application; Django's types know only of views."""
    return re_path(pattern, application)


application = ProtocolTypeRouter(
    {
        "http": URLRouter(
            [
                _at(r"^t/", endpoint),
                _at(r"^\.well-known/", not_found),
                _at(r"^healthz$", healthz),
                _at(r"^readyz$", readyz),
                _at(r"", get_asgi_application()),
            ]
        ),
        "lifespan": lifespan,
    }
)
