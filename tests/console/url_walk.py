"""Every URL of the console, with the ids of a tenant's data in it, and what must stay unchanged.

Walks are generated from the URL patterns: a new page is walked from its first day.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.urls import URLPattern, reverse

from mcphost.audit.models import Entry, Payload
from mcphost.audit.records import ANSWER_RECEIVED, QUESTION_ASKED
from mcphost.calls.models import CancelledCall, Claim
from mcphost.catalogue.models import Grant, Primitive, PrimitiveVersion
from mcphost.console.models import SavedFilter
from mcphost.console.urls import urlpatterns
from mcphost.identity.models import Connection, ServiceAccount, Token
from mcphost.tasks.models import Task, TaskQuestion
from mcphost.tenants.models import Invitation, Membership, Tenant
from mcphost.vault.models import RingKey, StoredSecret, TenantSecret
from tests.audit.recorded_calls import Story
from tests.console.tenant_data import Things, asking, told
from tests.tasks.rows import a_question, a_task

PATTERNS: Final = sorted(urlpatterns, key=lambda pattern: str(pattern.pattern))
BY_NAME: Final = {str(pattern.name): pattern for pattern in PATTERNS}
CHUNKS: Final = [PATTERNS[at : at + 17] for at in range(0, len(PATTERNS), 17)]
"""The URLs by their paths, in parts: a walk of one part pays for the data once."""

OPEN_TO_ANYBODY: Final = {"login", "logout", "account_link"}
PERSONAL: Final = {
    "you", "password_change", "own_token_add", "own_token_revoke", "own_token_renew",
    "own_connection_end", "leave", "invitation", "glossary",
}  # fmt: skip
"""Pages of any signed-in account about itself."""
OWN: Final = {"index", "tenants", "search", *PERSONAL, *OPEN_TO_ANYBODY}
"""Pages for all users who may enter the console, which show only the user's own data."""

_MODELS = (
    Tenant,
    Membership,
    Primitive,
    PrimitiveVersion,
    Grant,
    Token,
    Connection,
    Payload,
    User,
    RingKey,
    TenantSecret,
    StoredSecret,
    Invitation,
    ServiceAccount,
    Task,
    TaskQuestion,
    SavedFilter,
    CancelledCall,
    Claim,
)


_CHANGES_NOTHING: Final = re.compile(r"SELECT|SAVEPOINT|RELEASE|ROLLBACK|.*\bdjango_session\b")


def chunk_name(patterns: list[URLPattern]) -> str:
    return f"{patterns[0].name} to {patterns[-1].name}"


def permission_of(pattern: URLPattern) -> Any:
    """Return the permission that guards a page; None for pages about the user."""
    return getattr(pattern.callback, "permission", None)


def guard_of(pattern: URLPattern) -> tuple[str, bool]:
    """Return the permission that guards a page, "" for none, and whether it is one in a tenant."""
    return str(permission_of(pattern) or ""), "slug" in pattern.pattern.converters


def by_guard() -> Iterator[list[URLPattern]]:
    """Yield the pages of each guard."""
    for _, pages in groupby(sorted(PATTERNS, key=guard_of), guard_of):
        yield list(pages)


ONE_OF_EACH_GUARD: Final = [pages[0] for pages in by_guard()]


def address(pattern: URLPattern, things: Things, slug: str) -> str:
    """Return the page's URL, with the ids of `things` in it."""
    questions = Entry.objects.filter(tenant=things.tenant, action=QUESTION_ASKED)
    ids: dict[str, Any] = {
        "slug": slug,
        "question_id": questions.values_list("id", flat=True).first() or UUID(int=1),
        "primitive_id": getattr(things, pattern.default_args.get("primitive_type", "tool")),
        "version_id": things.version,
        "token_id": things.token,
        "connection_id": things.connection,
        "call_id": things.call,
        "entry_id": things.entry,
        "user_id": things.user,
        "verb": "disable",
        "account_id": things.account,
        "secret_id": things.secret,
        "invitation_id": things.invitation,
        "link": things.link,
        "filter_id": things.filter,
        "saved_id": things.saved_call,
        "key_id": RingKey.objects.values_list("id", flat=True).first() or "k1",
    }
    names = pattern.pattern.converters
    assert set(names) <= set(ids), f"say here what {set(names) - set(ids)} of a tenant is"
    return reverse(f"admin:{pattern.name}", kwargs={name: ids[name] for name in names})


def body(things: Things) -> dict[str, Any]:
    """Return a form with the fields of all forms, which names everything of a tenant."""
    return {
        "slug": things.slug,
        "tenant": things.slug,
        "name": "stolen",
        "title": "stolen",
        "function": "probe.write",
        "verb": "grant",
        "owner": str(things.user),
        "user": str(things.user),
        "tool": str(things.tool),
        "uri": f"docs://canary-{things.slug}",
        "text": "stolen",
        "holds": "text",
        "kind": "text",
        "messages-0-text": "stolen",
        "description": "stolen",
        "token": things.token,
        "username": "owner",
        "role": "owner",
        "audience": "mcp",
        "scopes": ["mcp:list", "mcp:call"],
        "password": "a-password-that-is-long",
        "value": "a-value-that-is-stolen",
        "hosts": "stolen.example.com",
        "places": "body",
        "present": "wrong",
        "reason": "stolen",
        "target_seconds": "1",
        "is_active": "on",
        "document": (
            '{"openapi": "3.1.0", "servers": [{"url": "https://stolen.example.com"}], '
            '"paths": {"/stolen": {"get": {}}}}'
        ),
        "chosen": "GET /stolen",
        "name-0": "stolen",
        "_create": "1",
        "_publish": "1",
        "_accept": "1",
        "_delete": "1",
    }


def rows_of(tenant: Things) -> dict[str, Any]:
    """Return all rows that must stay unchanged."""
    kept: dict[str, Any] = {
        model.__name__: [_plain(row) for row in model.objects.order_by("pk").values()]
        for model in _MODELS
    }
    kept["entries"] = list(Entry.objects.filter(tenant=tenant.tenant).values_list("id"))
    for person in kept["User"]:
        del person["last_login"]
    return kept


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert memoryviews to bytes: two memoryviews of PostgreSQL do not compare as equal."""
    return {
        name: bytes(value) if isinstance(value, memoryview) else value
        for name, value in row.items()
    }


def own_rows(things: Things, visitor: str) -> dict[str, Any]:
    """Return the tenant's rows and entries, and all users but the visitor."""
    rows = rows_of(things)
    own = {things.tool, things.prompt, things.resource, things.template}
    users, versions, tenants = (rows.pop(name) for name in ("User", "PrimitiveVersion", "Tenant"))
    entries, connections = rows.pop("entries"), rows.pop("Connection")
    return {
        **{
            name: [row for row in table if row.get("tenant_id", row.get("tenant")) == things.tenant]
            for name, table in rows.items()
        },
        "versions": [row for row in versions if row["primitive_id"] in own],
        "tenants": [row for row in tenants if row["id"] == things.tenant],
        "users": [row for row in users if row["username"] != visitor],
        "entries": entries,
        "connections": [row for row in connections if row["id"] == things.connection],
    }


def busy(acme: Things) -> tuple[Things, Story]:
    """Give the tenant a call that asks and waits for answers, as a task too; return its story."""
    story = asking(acme)
    story.refuse(f"canary-{acme.slug}-refusal")
    told(story)
    a_question(a_task(acme.tenant, story.call.id, tool=f"canary-{acme.slug}-task"))
    answer = next(record for record in story.made if record.action == ANSWER_RECEIVED)
    return replace(acme, call=story.call.id, entry=answer.id), story


@contextmanager
def undone() -> Iterator[None]:
    """Undo what a request changed. Requests see the transaction as that of a test case."""
    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined]
    with block:
        yield
        transaction.set_rollback(True)


@contextmanager
def writes() -> Iterator[list[str]]:
    """Yield the statements that may change rows meanwhile: without any, rows need not be compared.

    Those of sessions are left out: each page may write the visitor's.
    """
    statements: list[str] = []

    def note(execute: Any, sql: str, *others: Any) -> Any:
        if not _CHANGES_NOTHING.match(sql):
            statements.append(sql)
        return execute(sql, *others)

    with connection.execute_wrapper(note):
        yield statements
