"""Our own admin site: who may enter, and what the frame of every page holds.

Its pages are in `urls.py`. No model is registered: every page reads through selectors and writes
through services, so there is no list, filter, dropdown or palette that knows of rows by itself.
"""

from typing import Any

from django.http import HttpRequest
from unfold.sites import UnfoldAdminSite

from mcphost.console import navigation
from mcphost.console.signin import SignInForm, may_enter


class ConsoleSite(UnfoldAdminSite):
    """The frame around the pages."""

    login_form = SignInForm
    login_template = "console/login.html"
    logout_template = "console/signed_out.html"

    def has_permission(self, request: HttpRequest) -> bool:
        return may_enter(request.user)

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        return navigation.groups(request)


site = ConsoleSite(name="admin")
