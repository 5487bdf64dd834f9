"""Pages for people who are not signed in, and have a link."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse

from mcphost.console.forms import forms
from mcphost.console.site import site


def door(
    request: HttpRequest, template: str, title: str, form: forms.ConsoleForm, **context: Any
) -> HttpResponseBase:
    """Render a page with a form; `template` is a name in `templates/console`."""
    frame = {**site.each_context(request), "title": title, "form": form, **context}
    return TemplateResponse(request, f"console/{template}", frame)


def signed_in(request: HttpRequest, user: User, message: str) -> HttpResponseBase:
    """Sign in a person who has just chosen a password."""
    login(request, user)
    messages.success(request, message)
    return redirect("admin:you")


def unknown_link(template: str, username: str = "") -> HttpResponseBase:
    """Return the page for every link that offers nothing, to a person who may be signed in."""
    response = HttpResponse(
        render_to_string(f"console/{template}", {"username": username}), status=404
    )
    # Keeps Django from logging the URL, which contains the link.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response
