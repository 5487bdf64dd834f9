"""Django's URLs. The MCP endpoint, `.well-known` and health are answered before Django, in asgi.py."""

from django.urls import include, path

from mcphost.console.dashboard import home
from mcphost.transport.done import done

urlpatterns = [
    path("", home, name="home"),
    path("t/<str:slug>/done/<str:link>", done, name="done"),
    path("admin/", include("mcphost.console.urls", namespace="admin")),
]
