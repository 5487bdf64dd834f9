"""Tests of every URL of the console, requested by users who have no access there.

The tests are generated from the URL patterns, so a new page is tested from its first day.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, reverse

from mcphost.audit.models import Entry, Payload
from mcphost.audit.records import ANSWER_RECEIVED
from mcphost.audit.summaries.selectors import newest
from mcphost.calls.models import CancelledCall, Claim
from mcphost.catalogue.models import Grant, Primitive, PrimitiveVersion
from mcphost.console.live.routing import sockets
from mcphost.console.models import SavedFilter
from mcphost.console.urls import urlpatterns
from mcphost.identity.models import ServiceAccount, Token
from mcphost.serving.database import in_database
from mcphost.tasks.models import Task, TaskQuestion
from mcphost.tenants.models import Invitation, Membership, Tenant
from mcphost.vault.models import RingKey, StoredSecret, TenantSecret
from tests.audit.asking import Story
from tests.cast import Cast
from tests.console.conftest import Browser
from tests.console.live.reading import Reader, ended, session_of
from tests.console.things import Things, asking, recorded
from tests.console.things import told as put
from tests.tasks.rows import a_question, a_task

pytestmark = pytest.mark.django_db

OPEN_TO_ANYBODY = {"login", "sign_in", "logout"}
PERSONAL = {
    "you",
    "password_change",
    "own_token_add",
    "own_token_revoke",
    "leave",
    "invitation",
    "glossary",
}
"""Pages of any signed-in account about itself."""
OWN = {"index", "tenants", "search", *PERSONAL, *OPEN_TO_ANYBODY}
"""Pages for all users who may enter the console, which show only the user's own data."""
CHANGING_ONESELF = {"calls_filter_add", "own_token_add", "leave", "connect"}

SOCKETS = [str(pattern.name) for pattern in sockets]
NAMES = [str(pattern.name) for pattern in urlpatterns]
MODELS = (
    Tenant,
    Membership,
    Primitive,
    PrimitiveVersion,
    Grant,
    Token,
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


def address(pattern: URLPattern, things: Things, slug: str) -> str:
    """Return the page's URL, with the ids of `things` in it."""
    known: dict[str, Any] = {
        "slug": slug,
        "primitive_id": getattr(things, pattern.default_args.get("sort", "tool")),
        "version_id": things.version,
        "token_id": things.token,
        "call_id": things.call,
        "entry_id": things.entry,
        "user_id": things.user,
        "verb": "disable",
        "account_id": things.account,
        "secret_id": things.secret,
        "invitation_id": things.invitation,
        "link": things.link,
        "filter_id": things.filter,
        "key_id": RingKey.objects.values_list("id", flat=True).first() or "k1",
    }
    names = pattern.pattern.converters
    assert set(names) <= set(known), f"say here what {set(names) - set(known)} of a tenant is"
    return reverse(f"admin:{pattern.name}", kwargs={name: known[name] for name in names})


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
        for model in MODELS
    }
    kept["entries"] = list(Entry.objects.filter(tenant=tenant.tenant).values_list("id"))
    for person in kept["User"]:
        del person["last_login"]
    return kept


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Convert memoryviews to bytes: two memoryviews of PostgreSQL do not compare as equal."""
    return {
        name: bytes(value) if isinstance(value, memoryview) else value
        for name, value in row.items()
    }


def visits(client: Client, path: str, things: Things) -> Iterator[tuple[Any, str]]:
    """Request a page by every method, with everything in form and query; yield also the input."""
    fields = body(things)
    yield client.get(path), path
    yield client.get(path, fields), f"{path} {fields}"
    yield client.post(path, fields), f"{path} {fields}"
    for method in ("put", "delete"):
        yield getattr(client, method)(path), path


def busy(acme: Things) -> tuple[Things, Story]:
    """Give the tenant a call that asks and waits for answers, as a task too; return its story."""
    story = asking(acme)
    story.refuse(f"canary-{acme.slug}-refusal")
    put(story)
    a_question(a_task(acme.tenant, story.call.id, tool=f"canary-{acme.slug}-task"))
    answer = next(each for each in story.made if each.action == ANSWER_RECEIVED)
    return replace(acme, call=story.call.id, entry=answer.id), story


@pytest.fixture
def acme(acme: Things) -> Things:
    """Acme, with a call that asks and waits for answers."""
    return busy(acme)[0]


@pytest.fixture
def by_name() -> dict[str, URLPattern]:
    return {str(pattern.name): pattern for pattern in urlpatterns}


@pytest.mark.parametrize("name", NAMES)
def test_a_stranger_learns_nothing_of_another_tenant(
    name: str,
    by_name: dict[str, URLPattern],
    cast: Cast,
    acme: Things,
    globex: Things,
    browse: Browser,
) -> None:
    before = rows_of(acme)
    for slug in (acme.slug, globex.slug):
        path = address(by_name[name], acme, slug)
        for response, typed in visits(browse(cast.stranger), path, acme):
            if slug == acme.slug and name not in OWN:
                assert response.status_code == 403, (path, response.status_code)
            if slug == acme.slug and name in PERSONAL - {"you", "password_change", "glossary"}:
                assert response.status_code in (404, 405), (path, response.status_code)
            text = response.content.decode()
            # Input of the visitors may be shown to them again.
            assert not [word for word in acme.canaries if word in text and word not in typed]
    after = rows_of(acme)
    assert _of(acme, before) == _of(acme, after)


def _of(things: Things, rows: dict[str, Any]) -> dict[str, Any]:
    """Return the tenant's rows among all rows, and all users and entries."""
    own = {things.tool, things.prompt, things.resource, things.template}
    versions = [row for row in rows["PrimitiveVersion"] if row["primitive_id"] in own]
    mine = {
        name: [row for row in found if row.get("tenant_id", row.get("tenant")) == things.tenant]
        for name, found in rows.items()
        if name not in ("User", "entries", "PrimitiveVersion", "Tenant")
    }
    tenants = [row for row in rows["Tenant"] if row["id"] == things.tenant]
    people = [row for row in rows["User"] if row["username"] != "stranger"]
    return {
        **mine,
        "versions": versions,
        "tenants": tenants,
        "people": people,
        "entries": rows["entries"],
    }


def test_the_texts_that_are_looked_for_are_on_the_pages_of_who_may_see_them(
    by_name: dict[str, URLPattern], cast: Cast, acme: Things, browse: Browser
) -> None:
    """Otherwise the tests of refusals would prove nothing."""
    sorts = ("tool", "prompt", "resource", "template")
    read = (
        *sorts,
        *(f"{sort}s" for sort in sorts),
        "tokens",
        "calls",
        "refusals",
        "call",
        "tasks",
        "task",
        "audit_log",
        "members",
        "service_accounts",
        "secrets",
    )
    owner = browse(cast.owner)
    pages = [owner.get(address(by_name[name], acme, acme.slug)) for name in read]
    assert [page.status_code for page in pages] == [200] * len(read)
    together = "".join(page.content.decode() for page in pages)
    assert [word for word in acme.canaries if word not in together] == [str(acme.tenant)]
    for name in ("payload", "call_payloads"):
        told = browse(cast.auditor).get(address(by_name[name], acme, acme.slug))
        assert "canary-acme-answer" in told.content.decode()


FRAMED = {"tool_try", "tool_try_saved", "tool_try_end"}
"""Pages in a frame, which shows no sign-in: without a session they have a link to it, and without
a role that enters they say so."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OPEN_TO_ANYBODY])
def test_who_may_not_enter_is_led_to_the_sign_in(
    name: str,
    by_name: dict[str, URLPattern],
    cast: Cast,
    acme: Things,
    browse: Browser,
) -> None:
    before = rows_of(acme)
    path = address(by_name[name], acme, acme.slug)
    door = "/admin/sign-in/" if name in PERSONAL else "/admin/login/"
    clients = [Client()] if name in PERSONAL else [Client(), browse(cast.member)]
    for client in clients:
        in_frame, signed_in = name in FRAMED, "_auth_user_id" in client.session
        for response, _ in visits(client, path, acme):
            assert response.status_code == (403 if in_frame else 302), path
            if in_frame and signed_in:
                assert b"You have no access here" in response.content
            elif in_frame:
                assert f'<a href="{door}?next='.encode() in response.content
            else:
                assert response["Location"].startswith(door)
            assert b"canary" not in response.content
    assert rows_of(acme) == before


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CHANGING_ONESELF])
def test_nobody_without_the_permission_changes_anything(
    name: str,
    by_name: dict[str, URLPattern],
    cast: Cast,
    acme: Things,
    browse: Browser,
) -> None:
    """An auditor may only read; the only form that accepts their input is their own password's."""
    before = rows_of(acme)
    path = address(by_name[name], acme, acme.slug)
    response = browse(cast.auditor).post(path, body(acme))
    assert response.status_code in (200, 302, 403, 404, 405)
    assert rows_of(acme) == before


def test_no_address_leads_around_our_own_pages() -> None:
    """Django's own views of rows do not exist: redirect by type, autocomplete, command palette."""
    for path in ("r/1/1/", "autocomplete/", "jsi18n/", "auth/user/", "tenants/tenant/"):
        assert Client().get(f"/admin/{path}").status_code == 404


def test_unknown_and_foreign_tenants_are_refused_alike(cast: Cast, browse: Browser) -> None:
    stranger = browse(cast.stranger)
    foreign = stranger.get("/admin/t/acme/tools/")
    unknown = stranger.get("/admin/t/nowhere/tools/")
    assert foreign.status_code == unknown.status_code == 403
    secret = re.compile(rb'name="csrfmiddlewaretoken" value="[^"]*"')  # differs in each response
    assert secret.sub(b"", foreign.content) == secret.sub(b"", unknown.content)


def test_forms_need_the_token_that_only_our_pages_have(cast: Cast, acme: Things) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.owner.user)
    path = reverse("admin:tool_move", args=[acme.slug, acme.tool, "disable"])
    assert client.post(path).status_code == 403
    assert Primitive.objects.get(pk=acme.tool).state == "published"


def test_a_nul_in_an_address_or_a_button_is_no_servers_error(cast: Cast) -> None:
    """PostgreSQL refuses NUL in a query."""
    client = Client(raise_request_exception=False)
    client.force_login(cast.staff.user)
    for page in (
        "tenants/?q=%00",
        "tenants/?after=%00",
        "users/?q=%00&after=%00",
        "calls/?tool=%00",
    ):
        assert client.get(f"/admin/{page}").status_code == 200
    fields = {"verb": "revoke", "function": "a\0b"}
    assert client.post("/admin/t/acme/functions/change/", fields).status_code == 302


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", SOCKETS)
@pytest.mark.parametrize("who", ["owner", "operator", "auditor", "member", "staff", "stranger", ""])
async def test_a_socket_opens_for_whom_its_page_opens(
    name: str, who: str, by_name: dict[str, URLPattern], cast: Cast, acme: Things, browse: Browser
) -> None:
    client = await in_database(browse, getattr(cast, who)) if who else Client()
    path = await in_database(address, by_name[name], acme, acme.slug)
    page = await in_database(client.get, f"{path}?cursor=0")
    allowed = {"calls_changes": {"owner", "operator", "auditor", "staff"}}.get(name, {"staff"})
    assert (page.status_code == 200) is (who in allowed)
    since = await in_database(newest)
    await in_database(lambda: recorded(acme.tenant, uuid4(), target="canary-acme-live"))
    reader = Reader(path, session_of(client) if who else "", f"cursor={since}")
    assert await reader.connect() is (who in allowed)
    if who in allowed:
        assert "canary-acme" in "".join(await reader.rows())
    await reader.leave()
    await ended()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("who", ["stranger", "member", "auditor"])
async def test_sockets_of_unknown_and_foreign_tenants_are_refused_alike(
    who: str, cast: Cast, acme: Things, globex: Things, browse: Browser
) -> None:
    client = await in_database(browse, getattr(cast, who))
    foreign = "acme" if who == "stranger" else "globex"
    for slug in (foreign, "nowhere"):
        reader = Reader(f"/admin/t/{slug}/calls/changes/", session_of(client), "cursor=0")
        assert not await reader.connect()
    await ended()
