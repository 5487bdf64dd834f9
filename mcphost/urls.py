"""Django's URLs. The MCP endpoint, `.well-known` and health are answered before Django, in asgi.py."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
