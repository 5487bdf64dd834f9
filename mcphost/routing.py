"""Routes paths to applications. MCP, `.well-known`, health and metrics come before Django."""

import re
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import import_module
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import get_resolver, re_path

from mcphost.api.front import ApiFront
from mcphost.protocol.headers import Headers
from mcphost.serving import first_use
from mcphost.serving.process.lifecycle import ServerProcess
from mcphost.transport import visitors
from mcphost.transport.django_requests import Limited
from mcphost.transport.endpoint import endpoint
from mcphost.transport.guard import JSON
from mcphost.transport.oauth.metadata import well_known
from mcphost.transport.oauth.programs import FORM, FORM_BYTES, REGISTRATION_BYTES, ForPrograms
from mcphost.transport.oauth.refusals import browsers_only
from mcphost.transport.operations import healthz, metrics, not_found, readyz, status
from mcphost.transport.server.lifespan import Lifespan
from mcphost.transport.wiring import wakeups

LINK = re.compile(r"/t/[^/]+/(done|callback)/")


class Front:
    """Sends paths below `/t/` directly to the MCP endpoint, all others through the router.

    Channels' router matches patterns and copies the scope for each request; one prefix needs
    neither, and every tool call has it. Links that users open (`LINK`) are pages of Django.
    """

    def __init__(self, process: ServerProcess, router: Any) -> None:
        self._process = process
        self._router = router

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        if self._process.loop is None:
            self._process.start()
        path = scope["path"]
        mcp = path.startswith("/t/") and (path.endswith("/mcp") or not LINK.match(path))
        serve: Callable[..., Awaitable[None]] = endpoint if mcp else self._router
        return serve(scope, receive, send)


class ForBrowsers:
    """An application that has only pages: `programs` answers programs instead, with a 404 in JSON."""

    def __init__(self, pages: Any, programs: Any = not_found) -> None:
        self._pages = pages
        self._programs = programs

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        is_browser = visitors.names_html(Headers(scope["headers"]))
        application: Callable[..., Awaitable[None]] = self._pages if is_browser else self._programs
        return application(scope, receive, send)


class LoadedAtFirstUse:
    """An ASGI application that is loaded when its first request arrives.

    Loading the console takes a third of a second, and many processes never serve a page of it.
    """

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = cache(load)  # in one thread: requests that come together load it once
        self._application: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._application is None:
            self._application = await first_use.load(self._load)
        await self._application(scope, receive, send)


def django_application() -> Any:
    """Load Django's application with all its pages, which it would import at the first request, on
    the event loop."""
    loaded = get_asgi_application()
    _ = get_resolver().url_patterns
    return loaded


def _sockets() -> Any:
    return URLRouter(import_module("mcphost.console.live.routing").urlpatterns)


def _at(pattern: str, application: Any) -> Any:
    """Return a route to an ASGI application; Django's types allow only views."""
    return re_path(pattern, application)


def _routes() -> list[Any]:
    pages = Limited(LoadedAtFirstUse(django_application))
    return [
        _at(r"^\.well-known/", well_known),
        _at(r"^healthz$", healthz),
        _at(r"^readyz$", readyz),
        _at(r"^metrics$", metrics),
        _at(r"^status\.json$", status),
        _at(r"^authorize$", ForBrowsers(pages, browsers_only)),
        _at(r"^(token|revoke)$", ForPrograms(pages, FORM, FORM_BYTES)),
        _at(r"^register$", ForPrograms(pages, JSON, REGISTRATION_BYTES)),
        _at(r"^api/docs/$", pages),
        _at(r"^api(/|$)", ApiFront(pages)),
        _at(rf"^$|^admin(/|$)|^{settings.STATIC_URL.lstrip('/')}", pages),
        _at("^" + LINK.pattern.removeprefix("/"), pages),
        _at(r"", ForBrowsers(pages)),
    ]


process = ServerProcess(wakeups)
application = ProtocolTypeRouter(
    {
        "http": Front(process, URLRouter(_routes())),
        "websocket": LoadedAtFirstUse(_sockets),
        "lifespan": Lifespan(process),
    }
)
