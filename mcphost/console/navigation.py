"""The sidebar: the pages that the user may open, and the pages of the current tenant."""

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse

from mcphost.catalogue.selectors import counts
from mcphost.console.signin import may_enter
from mcphost.console.words import WORDS
from mcphost.tenants.access import allowed, visible_tenants
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

MOST_TENANTS = 8

# Unfold renders item titles unescaped, so they are our own words or slugs, never user input;
# group titles are escaped.
_TENANT_PAGES = (
    ("Overview", "space_dashboard", "tenant", Permission.VIEW_TOOLS),
    *(
        (words.title, words.icon, f"{words.sort.value}s", Permission.VIEW_TOOLS)
        for words in WORDS.values()
    ),
    ("Secrets", "lock", "secrets", Permission.VIEW_TOOLS),
    ("Tokens", "key", "tokens", Permission.MANAGE_TOKENS),
    ("Service accounts", "smart_toy", "service_accounts", Permission.MANAGE_TOKENS),
    ("Records", "receipt_long", "records", Permission.VIEW_RECORDS),
    ("Tasks", "hourglass_top", "tasks", Permission.VIEW_RECORDS),
    ("Changes", "history", "changes", Permission.VIEW_RECORDS),
    ("Members", "group", "members", Permission.MANAGE_MEMBERS),
    ("Functions", "code", "functions", Permission.VIEW_TOOLS),
    ("Settings", "tune", "settings", Permission.MANAGE_TENANT),
)
_PLATFORM_PAGES = (
    ("All tenants", "apartment", "tenants", Permission.MANAGE_TENANT),
    ("All records", "receipt_long", "all_records", Permission.VIEW_RECORDS),
    ("All changes", "history", "all_changes", Permission.VIEW_RECORDS),
    ("Users", "group", "users", Permission.MANAGE_MEMBERS),
    ("Code", "code", "code", Permission.GRANT_FUNCTIONS),
    ("Keys", "encrypted", "keys", Permission.MANAGE_KEYS),
)

Group = dict[str, Any]


def groups(request: HttpRequest) -> list[Group]:
    """Return the sidebar's groups in the format of unfold's templates."""
    user = request.user
    if not isinstance(user, User):
        return []
    visible = visible_tenants(user).order_by("slug")
    # The open ones, one more than is shown; the closed ones if none is open.
    tenants = list(visible.filter(closed_at=None)[: MOST_TENANTS + 1])
    tenants = tenants or list(visible[:MOST_TENANTS])
    here: Tenant | None = getattr(request, "tenant", None)
    if here is None and len(tenants) == 1:
        here = tenants[0]
    own = [_item("Your access", "badge", reverse("admin:you"), request)]
    if may_enter(user):
        own.insert(0, _item("Dashboard", "home", reverse("admin:index"), request))
    found = [_group("", own)]
    if here is not None:
        numbers = {f"{sort.value}s": number for sort, number in counts(here.pk).items()}
        of_tenant = []
        for title, icon, name, permission in _TENANT_PAGES:
            if allowed(user, here, permission):
                item = _item(title, icon, reverse(f"admin:{name}", args=[here.slug]), request)
                of_tenant.append({**item, "badge": numbers.get(name, 0)})
        found.append(_group(here.title, of_tenant))
    if len(tenants) > 1:
        found.append(_group("Tenants", _switch(tenants, here, user, request)))
    platform = [
        _item(title, icon, reverse(f"admin:{name}"), request)
        for title, icon, name, permission in _PLATFORM_PAGES
        if allowed(user, None, permission)
    ]
    found.append(_group("Platform", platform))
    return [group for group in found if group["items"]]


def _switch(
    tenants: list[Tenant], here: Tenant | None, user: User, request: HttpRequest
) -> list[Group]:
    others = [tenant for tenant in tenants[:MOST_TENANTS] if here is None or tenant.pk != here.pk]
    items = [
        _item(tenant.slug, "domain", reverse("admin:tenant", args=[tenant.slug]), request)
        for tenant in others
    ]
    if len(tenants) > MOST_TENANTS and not user.is_staff:
        items.append(_item("More…", "more_horiz", reverse("admin:tenants"), request))
    return items


def _group(title: str, items: list[Group]) -> Group:
    return {"title": title, "items": items}


def _item(title: str, icon: str, link: str, request: HttpRequest) -> Group:
    # A list is highlighted also on pages below it, an overview only on its own.
    overview = link == reverse("admin:index") or link.strip("/").count("/") == 2
    below = not overview and request.path.startswith(link)
    return {
        "title": title,
        "icon": icon,
        "link": link,
        "active": request.path == link or below,
        "has_permission": True,
    }
