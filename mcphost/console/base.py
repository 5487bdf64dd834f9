"""Parts that all pages share: access checks, the page's tenant, and the frame around the content.

The URL of a tenant's page contains the tenant's slug. `of_tenant` passes the tenant to the view
after asking `tenants.access`; the view then reads and changes only data of that tenant. So data
that the user may not see is never looked up, and another tenant's id is treated as unknown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
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
from django.utils.html import format_html
from django.utils.safestring import SafeString

from mcphost.audit.records import Actor
from mcphost.console import navigation, return_links
from mcphost.console.purposes import PURPOSES
from mcphost.console.signin import may_enter
from mcphost.console.site import site
from mcphost.console.templatetags.console import format_sentence
from mcphost.identity.oauth.addresses import public_url
from mcphost.tenants.access import permissions, require, tenant_for, visible_tenants
from mcphost.tenants.errors import InvalidError, UnknownTenantError
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


class SignedInRequest(HttpRequest):
    """A request of a signed-in user; `tenant` is set on the pages of a tenant."""

    user: User
    tenant: Tenant
    framing: bool


View = Callable[..., HttpResponseBase]
CONFIRMED = "confirmed"
"""The field that confirms what a form asks for, beside the form's own fields."""


def of_tenant(permission: Permission) -> Callable[[View], View]:
    """Guard a page of a tenant: resolve `slug` from the URL and require `permission` there.

    A tenant that does not exist, one that the user may not see, and one that is closed while the
    view changes it get the same 403, and so does a change whose user lost the permission meanwhile
    (`access.lock_tenant`).
    """
    # Returns the 403 page instead of raising: Django would log a traceback for each refusal.

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: SignedInRequest, slug: str, **rest: Any) -> HttpResponseBase:
            try:
                request.tenant = tenant_for(request.user, slug, permission)
                return view(request, request.tenant, **rest)
            except (PermissionDenied, UnknownTenantError):
                # Without a tenant if the right was lost since: its title and menu may be lost, too.
                lost = vars(request).pop("tenant", None)
                return refuse(request, slug if lost is None else "")

        guarded.permission = permission  # type: ignore[attr-defined]  # the tests walk by it
        return guarded

    return decorate


def of_platform(permission: Permission) -> Callable[[View], View]:
    """Guard a page of the platform: require `permission` on the platform itself."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: SignedInRequest, **rest: Any) -> HttpResponseBase:
            try:
                require(request.user, None, permission)
                return view(request, **rest)
            except PermissionDenied:  # or it was taken away before the change (`users.changes`)
                return refuse(request)

        guarded.permission = permission  # type: ignore[attr-defined]
        return guarded

    return decorate


def of_account(view: View) -> View:
    """Guard a page of any signed-in account: redirect to the sign-in before anything is read.

    A change whose user lost the account or the role meanwhile gets the 403 page.
    """

    @wraps(view)
    def guarded(request: SignedInRequest, **rest: Any) -> HttpResponseBase:
        if not request.user.is_active:
            return redirect_to_login(request.get_full_path())
        try:
            return view(request, **rest)
        except (PermissionDenied, UnknownTenantError):
            return refuse(request)

    return guarded


@dataclass(frozen=True)
class Can:
    """`{% if can.edit_tools %}`: the user's permissions, looked up at the first use of one."""

    user: User
    tenant: Tenant | None

    def __getitem__(self, name: str) -> bool:
        return Permission(name) in self._granted

    @cached_property
    def _granted(self) -> frozenset[Permission]:
        return permissions(self.user, self.tenant)


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
    framing: bool = False,
    at_row: str = "",
    **context: Any,
) -> TemplateResponse:
    """Render a page in its frame; `template` is a name in `templates/console`.

    A `framing` page may frame others of this site. The page of a row of a list, which is its first
    breadcrumb, names the row: its way back leads there (see `returning`).
    """
    request.framing = framing
    tenant: Tenant | None = getattr(request, "tenant", None)
    path = []
    if tenant is not None:
        overview = Crumb(tenant.title, reverse("admin:tenant", args=[tenant.slug]))
        path = [overview] if overview.url != request.path else []
    if at_row and crumbs:
        back = replace(crumbs[0], url=return_links.list_url(request, crumbs[0].url, row=at_row))
        if context.get("back") == crumbs[0].url:
            context["back"] = back.url
        crumbs = (back, *crumbs[1:])
    frame = {
        **site.each_context(request),
        "menu": navigation.menu(request),
        "title": title,
        "purpose": _purpose(request),
        "crumbs": [*path, *crumbs],
        "tenant": tenant,
        "can": Can(request.user, tenant),
        "kept": return_links.carried(request),
        **context,
    }
    return TemplateResponse(request, f"console/{template}", frame, status=status)


def confirm_form(
    request: SignedInRequest,
    title: str,
    *crumbs: Crumb,
    points: Sequence[str],
    back: str,
    **more: Any,
) -> TemplateResponse:
    """Ask before what a form was sent for is done. The form goes on in hidden fields, with CONFIRMED."""
    sent = [
        (name, value)
        for name, values in request.POST.lists()
        for value in values
        if name not in ("csrfmiddlewaretoken", CONFIRMED)
    ]
    context = {"verb": title, "repeated": [*sent, (CONFIRMED, "on")], **more}
    return show(request, "confirm.html", title, *crumbs, points=points, back=back, **context)


def _purpose(request: HttpRequest) -> str:
    match = request.resolver_match
    return "" if match is None else PURPOSES.get(match.url_name or "", "")


def refuse(request: SignedInRequest, slug: str = "") -> TemplateResponse:
    """Return the page for 403: the same for what does not exist and what the user may not see.

    It has the title and menu of the tenant with this slug only if the user may see the tenant.
    """
    tenant = visible_tenants(request.user).filter(slug=slug).first()
    if tenant is not None:
        request.tenant = tenant
    return show(
        request,
        "refused.html",
        "Page not available",
        status=403,
        purpose="This page does not exist, or you have no access to it.",
        enters=may_enter(request.user),
        needs_role=not request.user.is_staff,
    )


def page_of(tenant: Tenant, name: str, title: str) -> Crumb:
    """Return the breadcrumb of one of a tenant's pages."""
    return Crumb(title, reverse(f"admin:{name}", args=[tenant.slug]))


def blocked_by(
    pages: Sequence[tuple[str, str]], singular: str, plural: str, *values: object
) -> dict[str, Any]:
    """Return what a confirmation page shows instead of its button; nothing without `pages`.

    `pages` are the titles and URLs of what has to be changed before. A single one is a link in the
    sentence `singular`, after the other `values`; several are a list below `plural`.
    """
    if not pages:
        return {}
    if len(pages) == 1:
        return {"blocked": format_sentence(singular, *values, link_to(*pages[0]))}
    return {"blocked": plural.format(*values), "blockers": pages}


def link_to(title: str, url: str) -> SafeString:
    """Return a link for a formatted sentence."""
    return format_html('<a href="{}">{}</a>', url, title)


def actor(request: SignedInRequest) -> Actor:
    """Return the signed-in user as the actor of audit entries."""
    return Actor.person(request.user.pk, request.user.get_username())


def show_refusal(request: HttpRequest, refusal: InvalidError) -> None:
    """Show the reasons of a refusal on the next page."""
    for sentence in chain.from_iterable(refusal.problems.values()):
        messages.error(request, sentence)


def mcp_url(request: HttpRequest, slug: str) -> str:
    """Return the URL at which MCP clients connect to a tenant."""
    return public_url(request, f"/t/{slug}/mcp")


def form_input(request: HttpRequest) -> tuple[QueryDict | None, MultiValueDict[str, Any] | None]:
    """Return a form's first two arguments: the posted fields and files, or None twice."""
    return (request.POST, request.FILES) if request.method == "POST" else (None, None)


def query_text(query: QueryDict, name: str, limit: int = 200) -> str:
    """Return a short text of a query string or button, without NUL, which PostgreSQL refuses."""
    return query.get(name, "").replace("\0", "").strip()[:limit]
