"""Tests of every URL of the console, requested by users who have no access there."""

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern

from mcphost.audit.summaries.selectors import newest
from mcphost.console.live.routing import sockets
from mcphost.console.primitives.trials import SIGN_IN_FROM
from mcphost.serving.database import in_database
from mcphost.tenants.roles import ROLE_PERMISSIONS, Role
from tests.cast import Cast
from tests.console.conftest import Browser
from tests.console.live.live_client import Reader, ended, session_of
from tests.console.tenant_data import Things, asking, told
from tests.console.url_walk import (
    BY_NAME,
    CHUNKS,
    ONE_OF_EACH_GUARD,
    OPEN_TO_ANYBODY,
    PATTERNS,
    PERSONAL,
    address,
    body,
    busy,
    chunk_name,
    own_rows,
    permission_of,
    rows_of,
    undone,
    writes,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme(acme: Things) -> Things:
    """Acme, with a call that asks and waits for answers."""
    return busy(acme)[0]


def visits(
    client: Client, pattern: URLPattern, path: str, things: Things, allowed: set[int]
) -> Iterator[tuple[Any, str]]:
    """Request a page, with everything in form and query; yield also the input.

    Before that without any, where it may be shown: the audit log may show what was sent. By other methods only one page of each guard, which refuses
    before it looks at the method, and each page without a guard.
    """
    fields = body(things)
    if 200 in allowed:
        yield client.get(path), path
    yield client.get(path, fields), f"{path} {fields}"
    yield client.post(path, fields), f"{path} {fields}"
    is_unguarded = permission_of(pattern) is None
    if f"/t/{things.slug}/" in path and (is_unguarded or pattern in ONE_OF_EACH_GUARD):
        for send in (client.get, client.put, client.delete):
            yield send(path), path


def statuses(pattern: URLPattern, slug: str) -> set[int]:
    """Return how a page may answer the owner of globex; all other ids in its address are of acme."""
    ids = set(pattern.pattern.converters) - {"verb"}
    permission = permission_of(pattern)
    is_own = slug == "globex" and permission in ROLE_PERMISSIONS[Role.OWNER]
    if permission is not None and not (is_own and "slug" in ids):
        return {403}
    if not (ids - {"slug"} if slug == "globex" else ids):
        return {200, 204, 302, 400, 405}
    return {404, 405}


@pytest.mark.parametrize("patterns", CHUNKS, ids=chunk_name)
def test_no_url_reveals_data_of_another_tenant(patterns, cast, acme, globex, browse):
    before, faults = own_rows(acme, "stranger"), []
    client = browse(cast.stranger)
    signed_in = client.cookies.copy()
    for pattern, slug in product(patterns, (acme.slug, globex.slug)):
        is_tools = (
            pattern.default_args.get("primitive_type", "tool") == "tool"
        )  # one view has all sorts
        if slug == acme.slug and not ("slug" in pattern.pattern.converters and is_tools):
            continue
        path, allowed = address(pattern, acme, slug), statuses(pattern, slug)
        client.cookies = signed_in.copy()
        # What is accepted in the own tenant is undone: later pages need the tenant and the role.
        with undone(), writes() as statements:
            for response, typed in visits(client, pattern, path, acme, allowed):
                text = response.content.decode()
                # Input of the visitors may be shown to them again.
                shown = [word for word in acme.canaries if word in text and word not in typed]
                if shown or response.status_code not in allowed:
                    faults.append((path, response.status_code, shown))
            if statements and own_rows(acme, "stranger") != before:
                faults.append((path, 200, ["changed"]))
    assert faults == []
    assert own_rows(acme, "stranger") == before


def test_permitted_users_see_the_texts_that_the_walk_searches_for(cast, acme, browse):
    """Otherwise the tests of refusals would prove nothing."""
    sorts = ("tool", "prompt", "resource", "template")
    read = (
        *sorts,
        *(f"{sort}s" for sort in sorts),
        "tokens",
        "connections",
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
    pages = [owner.get(address(BY_NAME[name], acme, acme.slug)) for name in read]
    assert [page.status_code for page in pages] == [200] * len(read)
    together = "".join(page.content.decode() for page in pages)
    assert [word for word in acme.canaries if word not in together] == [str(acme.tenant)]
    for name in ("payload", "call_payloads"):
        page = browse(cast.auditor).get(address(BY_NAME[name], acme, acme.slug))
        assert "canary-acme-answer" in page.content.decode()


def test_users_without_console_access_are_redirected_to_the_sign_in(
    cast: Cast, acme: Things, browse: Browser
) -> None:
    """Pages in a frame show no sign-in: without a session they have a link to it, and without a
    role that enters they say so."""
    before, faults = rows_of(acme), []
    visitor, member, fields = Client(), browse(cast.member), body(acme)
    for pattern in PATTERNS:
        if pattern.name in OPEN_TO_ANYBODY:
            continue
        path = address(pattern, acme, acme.slug)
        door = "/admin/login/"
        for client in [visitor] if pattern.name in PERSONAL else [visitor, member]:
            for response in (client.get(path, fields), client.post(path, fields)):
                if pattern.name in SIGN_IN_FROM:
                    part = (
                        f'<a href="{door}?next=' if client is visitor else "You have no access here"
                    )
                    framed = response["X-Frame-Options"] == "SAMEORIGIN"
                    led = (
                        response.status_code == 403 and part in response.content.decode() and framed
                    )
                else:
                    led = response.status_code == 302 and response["Location"].startswith(door)
                if not led or b"canary" in response.content:
                    faults.append((path, response.status_code))
    assert faults == []
    assert rows_of(acme) == before


def test_built_in_admin_views_of_django_are_not_found() -> None:
    """Django's own views of rows do not exist: redirect by type, autocomplete, command palette."""
    for path in ("r/1/1/", "autocomplete/", "jsi18n/", "auth/user/", "tenants/tenant/"):
        assert Client().get(f"/admin/{path}").status_code == 404


def test_unknown_and_foreign_tenants_get_the_same_refusal(cast: Cast, browse: Browser) -> None:
    stranger = browse(cast.stranger)
    foreign = stranger.get("/admin/t/acme/tools/")
    unknown = stranger.get("/admin/t/nowhere/tools/")
    assert foreign.status_code == unknown.status_code == 403
    secret = re.compile(rb'name="csrfmiddlewaretoken" value="[^"]*"')  # differs in each response
    assert secret.sub(b"", foreign.content) == secret.sub(b"", unknown.content)


def test_every_form_requires_a_csrf_token(cast: Cast, acme: Things) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.owner.user)
    before = rows_of(acme)
    for pattern in PATTERNS:
        assert client.post(address(pattern, acme, acme.slug)).status_code == 403, pattern.name
    assert rows_of(acme) == before


def test_a_nul_in_a_url_or_a_form_causes_no_server_error(cast: Cast) -> None:
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
    fields = {"verb": "revoke", "function": "a\0b", "confirmed": "on"}
    assert client.post("/admin/t/acme/functions/change/", fields).status_code == 302


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", [str(pattern.name) for pattern in sockets])
async def test_a_live_socket_opens_for_the_same_users_as_its_page(name, cast, acme, browse):
    readers = {"staff"} if name.startswith("all_") else {"owner", "operator", "auditor", "staff"}
    path = await in_database(address, BY_NAME[name], acme, acme.slug)
    for who in ("owner", "operator", "auditor", "member", "staff", "stranger", ""):
        client = await in_database(browse, getattr(cast, who)) if who else Client()
        page = await in_database(client.get, f"{path}?cursor=0")
        assert (page.status_code == 200) is (who in readers), who
        since = await in_database(newest)
        await in_database(told, asking(acme))
        reader = Reader(path, session_of(client) if who else "", f"cursor={since}")
        assert await reader.connect() is (who in readers), who
        if who in readers:
            assert "canary-acme" in "".join(await reader.rows())
        await reader.leave()
    await ended()


@pytest.mark.django_db(transaction=True)
async def test_sockets_of_unknown_and_foreign_tenants_are_refused_the_same_way(
    cast, acme, globex, browse
):
    for person, foreign in (
        (cast.stranger, "acme"),
        (cast.member, "globex"),
        (cast.auditor, "globex"),
    ):
        client = await in_database(browse, person)
        for slug in (foreign, "nowhere"):
            path = f"/admin/t/{slug}/calls/changes/"
            assert not await Reader(path, session_of(client), "cursor=0").connect()
    await ended()
