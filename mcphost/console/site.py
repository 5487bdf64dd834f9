"""The site of the console: who may enter, and how users sign in and out.

Its pages are in `urls.py`. No model is registered: every page reads through selectors and writes
through services, so no built-in list, filter or dropdown reads rows by itself.
"""

from typing import Any, cast

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse

from mcphost.console.signin import SignInView, may_enter, with_status_of_form


class ConsoleSite(AdminSite):
    """The guard of the pages, and their sign-in."""

    site_title = site_header = "mcphost"
    logout_template = "console/signed_out.html"

    def has_permission(self, request: HttpRequest) -> bool:
        return may_enter(request.user)

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the sign-in; 429 or 503 with Retry-After when the password was not checked."""
        context = {**super().each_context(request), "app_path": request.get_full_path()}
        view = SignInView.as_view(extra_context=context)
        return cast(HttpResponse, with_status_of_form(view(request)))


site = ConsoleSite(name="admin")
