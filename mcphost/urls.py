"""Django's URLs. The MCP endpoint, `.well-known` and health come before Django: see routing.py."""

from django.urls import include, path

from mcphost.console.consent import authorize
from mcphost.console.dashboard import home
from mcphost.transport.links import callback, done
from mcphost.transport.oauth.endpoints import register, revoke, token

handler400 = "mcphost.console.error_pages.bad_request"
handler403 = "mcphost.console.error_pages.forbidden"
handler404 = "mcphost.console.error_pages.not_found"
handler500 = "mcphost.console.unavailable.failed"
urlpatterns = [
    path("", home, name="home"),
    path("authorize", authorize, name="authorize"),
    path("t/<str:slug>/done/<str:link>", done, name="done"),
    path("t/<str:slug>/callback/<str:link>", callback, name="callback"),
    path("token", token, name="token"),
    path("revoke", revoke, name="revoke"),
    path("register", register, name="register"),
    path("api/", include("mcphost.api.urls", namespace="api")),
    path("admin/", include("mcphost.console.urls", namespace="admin")),
]
