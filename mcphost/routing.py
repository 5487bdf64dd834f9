"""Which application answers which path. MCP, `.well-known`, health and metrics come before Django."""

from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import re_path

from mcphost.transport.endpoint import endpoint
from mcphost.transport.health import healthz, readyz
from mcphost.transport.lifespan import lifespan
from mcphost.transport.limited import Limited
from mcphost.transport.metrics import metrics
from mcphost.transport.wellknown import not_found


class Front:
    """Sends what is below `/t/` straight to the MCP endpoint, everything else through the router.

    Channels' router matches patterns and copies the scope for each request; one prefix needs
    neither, and every call to a tool has it. Links that people open are pages, and so Django's.
    """

    def __init__(self, router: Any) -> None:
        self._router = router

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        serve = endpoint if path.startswith("/t/") and "/done/" not in path else self._router
        await serve(scope, receive, send)


def _at(pattern: str, application: Any) -> Any:
    """A route to an ASGI application; Django's types know only of views."""
    return re_path(pattern, application)


application = ProtocolTypeRouter(
    {
        "http": Front(
            URLRouter(
                [
                    _at(r"^\.well-known/", not_found),
                    _at(r"^healthz$", healthz),
                    _at(r"^readyz$", readyz),
                    _at(r"^metrics$", metrics),
                    _at(r"", Limited(get_asgi_application())),
                ]
            )
        ),
        "lifespan": lifespan,
    }
)
