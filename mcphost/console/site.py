"""The console's admin site: who may enter, and the frame of every page.

Its pages are in `urls.py`. No model is registered: every page reads through selectors and writes
through services, so no built-in list, filter, dropdown or command palette reads rows by itself.
"""

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from unfold.sites import UnfoldAdminSite

from mcphost.console import navigation
from mcphost.console.signin import SignInForm, may_enter, with_status_of_form


class ConsoleSite(UnfoldAdminSite):
    """The frame around the pages."""

    login_form = SignInForm
    login_template = "console/login.html"
    logout_template = "console/signed_out.html"

    def has_permission(self, request: HttpRequest) -> bool:
        return may_enter(request.user)

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        """Show the sign-in; 429 or 503 with Retry-After when the password was not checked."""
        return with_status_of_form(super().login(request, extra_context))

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        return navigation.groups(request)


site = ConsoleSite(name="admin")
