"""Parts that all pages share: access checks, the page's tenant, and the frame around the content.

The URL of a tenant's page contains the tenant's slug. `of_tenant` passes the tenant to the view
after asking `tenants.access`; the view then reads and changes only data of that tenant. So data
that the user may not see is never looked up, and another tenant's id is treated as unknown.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from itertools import chain
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.datastructures import MultiValueDict
from django.views.defaults import permission_denied

from mcphost.audit.records import Actor
from mcphost.console.site import site
from mcphost.tenants.access import allowed, require, tenant_for
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


class SignedInRequest(HttpRequest):
    """A request of a signed-in user; `tenant` is set on the pages of a tenant."""

    user: User
    tenant: Tenant


View = Callable[..., HttpResponseBase]


def of_tenant(permission: Permission) -> Callable[[View], View]:
    """Guard a page of a tenant: resolve `slug` from the URL and require `permission` there.

    A tenant that does not exist and one that the user may not see get the same 403.
    """
    # Returns the 403 page instead of raising: Django would log a traceback for each refusal.

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: SignedInRequest, slug: str, **rest: Any) -> HttpResponseBase:
            try:
                request.tenant = tenant_for(request.user, slug, permission)
            except PermissionDenied as refusal:
                return permission_denied(request, refusal)
            return view(request, request.tenant, **rest)

        return guarded

    return decorate


def of_platform(permission: Permission) -> Callable[[View], View]:
    """Guard a page of the platform: require `permission` on the platform itself."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: SignedInRequest, **rest: Any) -> HttpResponseBase:
            try:
                require(request.user, None, permission)
            except PermissionDenied as refusal:
                return permission_denied(request, refusal)
            return view(request, **rest)

        return guarded

    return decorate


def of_account(view: View) -> View:
    """Guard a page of any signed-in account: redirect to the sign-in before anything is read."""

    @wraps(view)
    def guarded(request: SignedInRequest, **rest: Any) -> HttpResponseBase:
        if not request.user.is_active:
            return redirect_to_login(request.get_full_path(), reverse("admin:sign_in"))
        return view(request, **rest)

    return guarded


@dataclass(frozen=True, slots=True)
class Can:
    """`{% if can.edit_tools %}`: the user's permissions, each looked up at its first use."""

    user: User
    tenant: Tenant | None
    _known: dict[str, bool] = field(default_factory=dict)

    def __getitem__(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = allowed(self.user, self.tenant, Permission(name))
        return self._known[name]


@dataclass(frozen=True, slots=True)
class Crumb:
    """One breadcrumb on the path to a page."""

    title: str
    url: str


def show(
    request: SignedInRequest,
    template: str,
    title: str,
    *crumbs: Crumb,
    status: int = 200,
    nonced: bool = False,
    **context: Any,
) -> TemplateResponse:
    """Render a page in its frame; `template` is a name in `templates/console`.

    On a `nonced` page, style elements need the nonce of the page (`request.style_nonce`).
    """
    tenant: Tenant | None = getattr(request, "tenant", None)
    path = (
        [] if tenant is None else [Crumb(tenant.title, reverse("admin:tenant", args=[tenant.slug]))]
    )
    around = site.each_context(request)
    frame = {
        **around,
        # Unfold's is empty for users who may not enter the console, but some pages are for them.
        "sidebar_navigation": around["sidebar_navigation"] or site.get_sidebar_list(request),
        "title": title,
        "crumbs": [*path, *crumbs],
        "tenant": tenant,
        "can": Can(request.user, tenant),
        **context,
    }
    if nonced:  # Unfold writes the colours without a nonce: our frame writes them instead.
        frame |= {"colors": None, "nonced_colors": around["colors"]}
    return TemplateResponse(request, f"console/{template}", frame, status=status)


def page_of(tenant: Tenant, name: str, title: str) -> Crumb:
    """Return the breadcrumb of one of a tenant's pages."""
    return Crumb(title, reverse(f"admin:{name}", args=[tenant.slug]))


def actor(request: SignedInRequest) -> Actor:
    """Return the signed-in user as the actor of audit entries."""
    return Actor.person(request.user.pk, request.user.get_username())


def show_refusal(request: HttpRequest, refusal: InvalidError) -> None:
    """Show the reasons of a refusal on the next page."""
    for sentence in chain.from_iterable(refusal.problems.values()):
        messages.error(request, sentence)


def mcp_url(request: HttpRequest, slug: str) -> str:
    """Return the URL at which MCP clients connect to a tenant."""
    return request.build_absolute_uri(f"/t/{slug}/mcp")


def form_input(request: HttpRequest) -> tuple[QueryDict | None, MultiValueDict[str, Any] | None]:
    """Return a form's first two arguments: the posted fields and files, or None twice."""
    return (request.POST, request.FILES) if request.method == "POST" else (None, None)


def query_text(query: QueryDict, name: str, limit: int = 200) -> str:
    """Return a short text of a query string or button, without NUL, which PostgreSQL refuses."""
    return query.get(name, "").replace("\0", "").strip()[:limit]
