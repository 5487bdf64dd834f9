"""The search over what the user may open: pages, primitives, calls, tokens, apps and people.

Everything is looked for in the tenants where the user has the permission to see it, so what another
tenant has costs and shows the same as what does not exist.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.db.models import Q
from django.http import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_safe
from psycopg.errors import QueryCanceled

from mcphost.audit import selectors as audit
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import Can, SignedInRequest, query_text, show
from mcphost.console.navigation import PLATFORM_PAGES, TENANT_PAGES
from mcphost.console.primitive_words import WORDS
from mcphost.console.purposes import PURPOSES
from mcphost.console.return_links import list_with
from mcphost.console.tenants.tokens import token_url
from mcphost.identity import selectors as identity
from mcphost.identity.oauth.connections import matching_connections
from mcphost.tenants.access import allowed, tenants_where, visible_tenants
from mcphost.tenants.models import ROLES_BY_TITLE, TENANTS_BY_TITLE, Membership, Tenant
from mcphost.tenants.roles import Permission
from mcphost.tenants.selectors import slugs

MAX_HITS: Final = 6
"""Hits shown of each type."""
MAX_TEXT: Final = 100
SECONDS: Final = 2
"""The longest that PostgreSQL may work on one of the questions; the groups after it are left out."""
_LEAST_DIGITS: Final = 8
"""Of a call's id. Fewer are the beginning of the ids of hours and days."""
_OWN_PAGES: Final = (
    ("Dashboard", "home", "index"),
    ("Your access", "badge", "you"),
    ("Change password", "lock_reset", "password_change"),
    ("Glossary", "menu_book", "glossary"),
)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One thing that was found."""

    title: str
    detail: str
    icon: str
    url: str


@dataclass(frozen=True, slots=True)
class SearchGroup:
    """The hits of one type. `more`: there are others."""

    name: str
    hits: tuple[SearchHit, ...]
    more: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for, by whom, and the tenant whose page it began on."""

    user: User
    text: str
    here: Tenant | None


@require_safe
def page(request: SignedInRequest) -> HttpResponseBase:
    """Search, on a page of its own; with `part`, only the hits, for the palette."""
    search = Search(request.user, query_text(request.GET, "q", MAX_TEXT), _here(request))
    groups, late = _search_groups(search)
    context: dict[str, Any] = {"search": search, "groups": groups, "late": late}
    if query_text(request.GET, "part"):
        return TemplateResponse(request, "console/search_hits.html", context)
    return show(request, "search.html", "Search", **context)


def _here(request: SignedInRequest) -> Tenant | None:
    tenants = visible_tenants(request.user)
    named = tenants.filter(slug=query_text(request.GET, "t")).first()
    if named is not None:
        return named
    few = list(tenants[:2])
    return few[0] if len(few) == 1 else None


def _search_groups(search: Search) -> tuple[list[SearchGroup], bool]:
    """Return the groups that have hits, and whether the database took too long for the rest."""
    groups: list[SearchGroup] = []
    kinds = (_pages, _primitives, _calls, _tenants, _tokens, _connections, _people)
    try:
        with _bounded():
            for kind in kinds if search.text else kinds[:1]:
                name, hits = kind(search)
                if hits:
                    groups.append(SearchGroup(name, tuple(hits[:MAX_HITS]), len(hits) > MAX_HITS))
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            return groups, True
        raise
    return groups, False


@contextmanager
def _bounded() -> Iterator[None]:
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = '{SECONDS}s'")
        yield


Hits = tuple[str, list[SearchHit]]


def _pages(search: Search) -> Hits:
    """Pages whose title or purpose has all words; those whose title has them come first."""
    hits = [
        (PURPOSES.get(name, ""), SearchHit(title, "", icon, reverse(f"admin:{name}")))
        for title, icon, name in _OWN_PAGES
    ]
    if search.here is not None:
        hits += _guarded(TENANT_PAGES, Can(search.user, search.here), search.here.slug)
    hits += _guarded(PLATFORM_PAGES, Can(search.user, None), "")
    words = search.text.lower().split()
    named = [hit for _, hit in hits if all(term in hit.title.lower() for term in words)]
    about = [
        hit
        for purpose, hit in hits
        if all(
            any(purpose_word.startswith(term) for purpose_word in purpose.lower().split())
            for term in words
        )
    ]
    return "Pages", named + [hit for hit in about if hit not in named]


def _guarded(
    pages: tuple[tuple[str, str, str, Permission], ...], can: Can, slug: str
) -> list[tuple[str, SearchHit]]:
    args = [slug] if slug else []
    return [
        (PURPOSES.get(name, ""), SearchHit(title, slug, icon, reverse(f"admin:{name}", args=args)))
        for title, icon, name, permission in pages
        if can[permission]
    ]


def _tenants(search: Search) -> Hits:
    named = Q(slug__icontains=search.text) | Q(title__icontains=search.text)
    rows = visible_tenants(search.user).filter(named).order_by(*TENANTS_BY_TITLE)[: MAX_HITS + 1]
    return "Tenants", [
        SearchHit(
            row.title or row.slug, row.slug, "domain", reverse("admin:tenant", args=[row.slug])
        )
        for row in rows
    ]


def _primitives(search: Search) -> Hits:
    tenants = tenants_where(search.user, Permission.VIEW_TOOLS)
    rows = catalogue.matching(tenants, search.text, MAX_HITS + 1)
    slugs_of_rows = {row.tenant_slug for row in rows}
    titles = dict(tenants.filter(slug__in=slugs_of_rows).values_list("slug", "title"))
    hits = []
    for row in rows:
        words = WORDS[row.primitive_type]
        tenant_name = titles.get(row.tenant_slug) or row.tenant_slug
        detail = f"{tenant_name} · {words.singular} · {row.state}"
        url = reverse(words.detail, args=[row.tenant_slug, row.id])
        hits.append(SearchHit(row.uri or row.name, detail, words.icon, url))
    return "Tools, prompts and resources", hits


def _calls(search: Search) -> Hits:
    digits = search.text.replace("-", "").lower()
    if not _LEAST_DIGITS <= len(digits) <= 32 or set(digits) - set("0123456789abcdef"):
        return "Calls", []
    tenants: frozenset[UUID] | None = None
    if not allowed(search.user, None, Permission.VIEW_RECORDS):
        read = tenants_where(search.user, Permission.VIEW_RECORDS)
        tenants = frozenset(read.values_list("id", flat=True))
    calls = audit.calls_beginning(digits, tenants, MAX_HITS + 1)
    slug_by_tenant = slugs(tenant for _, tenant, _ in calls)
    return "Calls", [
        SearchHit(
            str(call),
            f"{target} · {slug_by_tenant[tenant]}",
            "receipt_long",
            reverse("admin:call", args=[slug_by_tenant[tenant], call]),
        )
        for call, tenant, target in calls
        if tenant in slug_by_tenant
    ]


def _tokens(search: Search) -> Hits:
    """Tokens by name or id: those of tenants whose tokens the user manages, and the user's own."""
    managed = tenants_where(search.user, Permission.MANAGE_TOKENS)
    hits = []
    for token in identity.matching_tokens(managed, search.user.pk, search.text, MAX_HITS + 1):
        own_page = list_with(reverse("admin:you"), token.id)
        page = own_page if token.own else token_url(token.slug, token.id)
        detail = f"{token.id} · {token.slug}"
        hits.append(SearchHit(token.name, detail, "key", f"{page}#token-{token.id}"))
    return "Tokens", hits


def _connections(search: Search) -> Hits:
    """Connected apps by the client's name, as far as `_tokens` shows tokens."""
    managed = tenants_where(search.user, Permission.MANAGE_TOKENS)
    hits = []
    for row in matching_connections(managed, search.user.pk, search.text, MAX_HITS + 1):
        own = row.owner == search.user.get_username()
        page = reverse("admin:connections", args=[row.slug])
        page = f"{reverse('admin:you')}?app_at={row.id}" if own else list_with(page, str(row.id))
        detail = f"{row.owner} · {row.slug}"
        hits.append(SearchHit(row.client, detail, "apps", f"{page}#connection-{row.id}"))
    return "Connected apps", hits


def _people(search: Search) -> Hits:
    """Accounts, for staff; otherwise members of the tenants whose members the user manages."""
    if Can(search.user, None)[Permission.MANAGE_MEMBERS]:
        rows = User.objects.filter(_name_contains("", search.text)).order_by("username")[
            : MAX_HITS + 1
        ]
        return "People", [
            SearchHit(
                row.username, row.get_full_name(), "person", reverse("admin:user", args=[row.pk])
            )
            for row in rows
        ]
    tenants = tenants_where(search.user, Permission.MANAGE_MEMBERS)
    members = Membership.objects.filter(_name_contains("user__", search.text), tenant__in=tenants)
    memberships = members.select_related("user", "tenant").order_by(
        "user__username", *ROLES_BY_TITLE
    )
    return "People", [
        SearchHit(
            membership.user.username,
            f"{membership.role} · {membership.tenant.slug}",
            "person",
            reverse("admin:members", args=[membership.tenant.slug]),
        )
        for membership in memberships[: MAX_HITS + 1]
    ]


def _name_contains(before: str, text: str) -> Q:
    condition = Q()
    for column in ("username", "first_name", "last_name"):
        condition |= Q(**{f"{before}{column}__icontains": text})
    return condition
