"""The addresses of the sockets: those of the lists that they feed, with `changes/`."""

from collections.abc import Awaitable, Callable
from typing import Any

from django.urls import path, re_path

from mcphost.console.live.consumers import LiveListConsumer, QuestionsConsumer


async def refused(
    scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """Refuse a socket at any other address."""
    await receive()
    await send({"type": "websocket.close"})


def _at(route: str, application: Any, name: str) -> Any:
    """Return a route to an ASGI application; Django's types allow only views."""
    return path(route, application, name=name)


_anything: Any = refused
sockets = [
    _at("admin/t/<slug:slug>/calls/changes/", LiveListConsumer.as_asgi(), "calls_changes"),
    _at("admin/calls/changes/", LiveListConsumer.as_asgi(), "all_calls_changes"),
    _at(
        "admin/t/<slug:slug>/input-requests/changes/",
        QuestionsConsumer.as_asgi(),
        "input_requests_changes",
    ),
    _at("admin/input-requests/changes/", QuestionsConsumer.as_asgi(), "all_input_requests_changes"),
]
urlpatterns = [*sockets, re_path("", _anything)]
