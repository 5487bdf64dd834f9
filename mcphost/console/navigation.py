"""The sidebar: the pages that the user may open, and the tenants, which can be searched where there are many."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse

from mcphost.catalogue.selectors import counts
from mcphost.catalogue.states import PrimitiveState
from mcphost.console.primitive_words import WORDS
from mcphost.console.signin import may_enter
from mcphost.tenants.access import permissions, visible_tenants
from mcphost.tenants.models import TENANTS_BY_TITLE, Tenant
from mcphost.tenants.roles import Permission

MAX_TENANTS = 100
"""Tenants in the switcher. Others are found by the search of the list of tenants."""
SEARCHED = 8
"""From so many tenants on, the switcher has a search field."""

TENANT_PAGES = (
    ("Overview", "space_dashboard", "tenant", Permission.VIEW_TOOLS),
    ("Connect", "cable", "connect", Permission.VIEW_TOOLS),
    *(
        (words.title, words.icon, f"{words.primitive_type.value}s", Permission.VIEW_TOOLS)
        for words in WORDS.values()
    ),
    ("Secrets", "lock", "secrets", Permission.VIEW_TOOLS),
    ("Tokens", "key", "tokens", Permission.MANAGE_TOKENS),
    ("Connected apps", "apps", "connections", Permission.MANAGE_TOKENS),
    ("Service accounts", "smart_toy", "service_accounts", Permission.MANAGE_TOKENS),
    ("Calls", "receipt_long", "calls", Permission.VIEW_RECORDS),
    ("Questions", "contact_support", "input_requests", Permission.VIEW_RECORDS),
    ("Tasks", "hourglass_top", "tasks", Permission.VIEW_RECORDS),
    ("Audit log", "history", "audit_log", Permission.VIEW_RECORDS),
    ("Members", "group", "members", Permission.MANAGE_MEMBERS),
    ("Python functions", "code", "functions", Permission.VIEW_TOOLS),
    ("Tenant as a file", "draft", "tenant_file", Permission.VIEW_TOOLS),
    ("Settings", "tune", "settings", Permission.MANAGE_TENANT),
)
PLATFORM_PAGES = (
    ("All tenants", "apartment", "tenants", Permission.MANAGE_TENANT),
    ("All calls", "receipt_long", "all_calls", Permission.VIEW_RECORDS),
    ("All questions", "contact_support", "all_input_requests", Permission.VIEW_RECORDS),
    ("Platform audit log", "history", "all_audit_log", Permission.VIEW_RECORDS),
    ("Users", "group", "users", Permission.MANAGE_MEMBERS),
    ("All Python functions", "code", "all_functions", Permission.GRANT_FUNCTIONS),
    ("Keys", "encrypted", "keys", Permission.MANAGE_KEYS),
    ("Status", "monitor_heart", "status", Permission.MANAGE_TENANT),
)

LISTED_UNDER: Mapping[str, str] = {
    "refusals": "calls",
    "all_refusals": "all_calls",
    "payload": "calls",
    "payload_erase": "calls",
    "salt": "settings",
    "close": "settings",
    "password_change": "you",
}
"""Pages without an item of their own, by their names: the item that is highlighted on them."""

Group = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Menu:
    """The sidebar: its groups, and the tenants that the user may switch to."""

    groups: Sequence[Group]
    tenants: Sequence[Tenant] = ()
    here: Tenant | None = None
    more: bool = False

    @property
    def switches(self) -> bool:
        """Whether there is another tenant to switch to."""
        return any(self.here is None or tenant.pk != self.here.pk for tenant in self.tenants)

    @property
    def home(self) -> str:
        """The page behind the name of the site: the dashboard, or else the account's own page."""
        link: str = self.groups[0]["items"][0]["link"]
        return link

    @property
    def searched(self) -> bool:
        return self.more or len(self.tenants) >= SEARCHED


def menu(request: HttpRequest) -> Menu:
    """Return the sidebar, for `templates/console/parts/`."""
    user = request.user
    if not isinstance(user, User):
        return Menu(())
    visible = visible_tenants(user).only("slug", "title", "closed_at").order_by(*TENANTS_BY_TITLE)
    # The open ones, one more than is shown; the closed ones if none is open.
    tenants = list(visible.filter(closed_at=None)[: MAX_TENANTS + 1])
    tenants = tenants or list(visible[:MAX_TENANTS])
    here: Tenant | None = getattr(request, "tenant", None)
    if here is None and len(tenants) == 1:
        here = tenants[0]
    own = [_item("Your access", "badge", reverse("admin:you"), request, "you")]
    if may_enter(user):
        own.insert(0, _item("Dashboard", "home", reverse("admin:index"), request))
    groups = [_group("", own)]
    if here is not None:
        numbers: Counter[str] = Counter()
        for (primitive_type, state), number in counts([here.pk]).get(here.pk, {}).items():
            if state is not PrimitiveState.ARCHIVED:  # their lists leave them out, too
                numbers[f"{primitive_type.value}s"] += number
        granted, of_tenant = permissions(user, here), []
        for title, icon, name, permission in TENANT_PAGES:
            if permission in granted:
                link = reverse(f"admin:{name}", args=[here.slug])
                item = _item(title, icon, link, request, name)
                of_tenant.append({**item, "badge": numbers[name]})
        groups.append(_group(here.title, of_tenant))
    granted = permissions(user, None)
    platform = [
        _item(title, icon, reverse(f"admin:{name}"), request, name)
        for title, icon, name, permission in PLATFORM_PAGES
        if permission in granted
    ]
    groups.append(_group("Platform", platform))
    shown = [group for group in groups if group["items"]]
    return Menu(shown, tenants[:MAX_TENANTS], here, more=len(tenants) > MAX_TENANTS)


def _group(title: str, items: list[Group]) -> Group:
    return {"title": title, "items": items}


def _item(title: str, icon: str, link: str, request: HttpRequest, name: str = "") -> Group:
    # A list is highlighted also on pages below it, an overview only on its own.
    overview = link == reverse("admin:index") or link.strip("/").count("/") == 2
    below = not overview and request.path.startswith(link)
    page = request.resolver_match.url_name if request.resolver_match else None
    under = bool(name) and LISTED_UNDER.get(page or "") == name
    return {
        "title": title,
        "icon": icon,
        "link": link,
        "active": request.path == link or below or under,
    }
