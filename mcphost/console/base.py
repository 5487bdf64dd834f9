"""What every page is made with: who may see it, of which tenant, and the frame around it.

A page of a tenant has the tenant's slug in its address and is handed the tenant by `of_tenant`,
which asks `tenants.access`; whatever it then reads or changes, it reads or changes in that tenant.
So what a person may not see is never looked up, and a foreign id is an unknown one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.datastructures import MultiValueDict
from django.views.defaults import permission_denied

from mcphost.audit.records import Actor
from mcphost.console.site import site
from mcphost.tenants.access import allowed, require, tenant_for
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


class Visit(HttpRequest):
    """A request of somebody who is signed in; `tenant` is set on the pages of one."""

    user: User
    tenant: Tenant


View = Callable[..., HttpResponseBase]


def of_tenant(permission: Permission) -> Callable[[View], View]:
    """A page of one tenant: `slug` in its address becomes the tenant.

    A tenant that is not there and one that is not one's own are refused alike.
    """
    # Refused here and not by raising: Django would write a traceback for each into the log.

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: Visit, slug: str, **rest: Any) -> HttpResponseBase:
            try:
                request.tenant = tenant_for(request.user, slug, permission)
            except PermissionDenied as refusal:
                return permission_denied(request, refusal)
            return view(request, request.tenant, **rest)

        return guarded

    return decorate


def of_platform(permission: Permission) -> Callable[[View], View]:
    """A page of the platform's own people."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: Visit, **rest: Any) -> HttpResponseBase:
            try:
                require(request.user, None, permission)
            except PermissionDenied as refusal:
                return permission_denied(request, refusal)
            return view(request, **rest)

        return guarded

    return decorate


@dataclass(frozen=True, slots=True)
class Can:
    """`{% if can.edit_tools %}`: what the person may do, asked when a template first asks."""

    user: User
    tenant: Tenant | None
    _known: dict[str, bool] = field(default_factory=dict)

    def __getitem__(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = allowed(self.user, self.tenant, Permission(name))
        return self._known[name]


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step of the path to a page."""

    title: str
    url: str


def show(
    request: Visit,
    template: str,
    title: str,
    *crumbs: Crumb,
    status: int = 200,
    **context: Any,
) -> TemplateResponse:
    """A page in its frame; `template` is a name in `templates/console`."""
    tenant: Tenant | None = getattr(request, "tenant", None)
    path = (
        [] if tenant is None else [Crumb(tenant.title, reverse("admin:tenant", args=[tenant.slug]))]
    )
    frame = {
        **site.each_context(request),
        "title": title,
        "crumbs": [*path, *crumbs],
        "tenant": tenant,
        "can": Can(request.user, tenant),
        **context,
    }
    return TemplateResponse(request, f"console/{template}", frame, status=status)


def page_of(tenant: Tenant, name: str, title: str) -> Crumb:
    """The step to one of a tenant's pages."""
    return Crumb(title, reverse(f"admin:{name}", args=[tenant.slug]))


def actor(request: Visit) -> Actor:
    """Whoever is signed in, as records name them."""
    return Actor.person(request.user.pk, request.user.get_username())


def mcp_url(request: HttpRequest, slug: str) -> str:
    """Where MCP clients connect to a tenant."""
    return request.build_absolute_uri(f"/t/{slug}/mcp")


def sent(request: HttpRequest) -> tuple[QueryDict | None, MultiValueDict[str, Any] | None]:
    """What a form takes first: fields and files that were sent, if this is a form sent at all."""
    return (request.POST, request.FILES) if request.method == "POST" else (None, None)


def word(query: QueryDict, name: str, limit: int = 200) -> str:
    """A short text from a page's address or a form's button; PostgreSQL takes no NUL in one."""
    return query.get(name, "").replace("\0", "").strip()[:limit]
