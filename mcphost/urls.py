"""Django's URLs. The MCP endpoint, `.well-known` and health are answered before Django, in asgi.py."""

from django.urls import include, path

from mcphost.console.dashboard import home

urlpatterns = [
    path("", home, name="home"),
    path("admin/", include("mcphost.console.urls", namespace="admin")),
]
