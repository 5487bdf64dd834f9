"""Tests of every URL by every role, and of another tenant's ids in every field of every form.

Generated from the URL patterns and from the permission that guards each view: a new page is covered
from its first day. What a role may not see is refused with 403, whatever the method, and changes
nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any, Final

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern

from mcphost.console.primitives.trials import SIGN_IN_FROM
from mcphost.console.urls import urlpatterns
from mcphost.identity.services import TokenRequest, issue_for_service
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS
from mcphost.tenants.services import remove_member
from tests.cast import ACTOR, Cast
from tests.console.conftest import Browser
from tests.console.test_walk import OWN, address, body, busy, rows_of
from tests.console.things import Things

pytestmark = pytest.mark.django_db

ROLES: Final = ("owner", "operator", "auditor", "member", "staff", "stranger", "former member")
REPORTS: Final = {"status_json"}
"""Pages whose status is what they report."""


@contextmanager
def undone() -> Iterator[None]:
    """Undo what a request changed."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def acme(acme: Things) -> Things:
    return busy(acme)[0]


def test_every_page_is_guarded_by_a_permission_or_is_about_the_user() -> None:
    assert {str(each.name) for each in urlpatterns if _permission(each) is None} == OWN


def _permission(pattern: URLPattern) -> Any:
    return getattr(pattern.callback, "permission", None)


def _expected(cast: Cast, role: str, pattern: URLPattern) -> int:
    if role in ("member", "former member"):
        return 403 if pattern.name in SIGN_IN_FROM else 302  # in a frame, or to the sign-in
    of_tenant = "slug" in pattern.pattern.converters
    tenant = Tenant.objects.get(slug="acme") if of_tenant else None
    person = getattr(cast, role)
    return 200 if allowed(person.user, tenant, _permission(pattern)) else 403


@pytest.mark.parametrize("role", ROLES)
def test_each_role_sees_the_pages_of_its_permissions_and_no_others(
    role: str, cast: Cast, acme: Things, browse: Browser
) -> None:
    person = getattr(cast, "auditor" if role == "former member" else role)
    client = browse(person)
    if role == "former member":
        remove_member(acme.tenant, person.user, actor=ACTOR)
    before = rows_of(acme)
    wrong = []
    for pattern in (each for each in urlpatterns if _permission(each) is not None):
        path, expected = address(pattern, acme, "acme"), _expected(cast, role, pattern)
        with undone():
            seen = {client.get(path).status_code}
        if expected == 200:
            # A page, an action that takes POST only, or a redirect to where the action is.
            fine = seen <= {200, 302, 400, 404, 405} or pattern.name in REPORTS
        else:
            for send in (client.post, client.put, client.delete):
                seen.add(send(path, body(acme)).status_code)
            fine = seen == {expected}
        wrong += [] if fine else [(path, expected, seen)]
    assert wrong == []
    assert rows_of(acme) == before


def test_a_service_accounts_token_opens_no_page(cast: Cast, acme: Things) -> None:
    wanted = TokenRequest("program", (LIST_TOOLS, CALL_TOOLS))
    issued = issue_for_service(acme.tenant, acme.account, wanted, actor=ACTOR)
    client = Client(headers={"authorization": f"Bearer {issued.plaintext}"})
    for pattern in urlpatterns:
        if pattern.name not in ("login", "sign_in", "logout"):
            in_frame = pattern.name in SIGN_IN_FROM  # they say that the session has ended
            response = client.get(address(pattern, acme, "acme"))
            assert response.status_code == (403 if in_frame else 302), pattern.name


class Fields(HTMLParser):
    """The forms of a page: where each posts to, and the names of its fields."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.forms: list[tuple[str, set[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "form" and (values.get("method") or "").lower() == "post":
            self.forms.append((values.get("action") or self.path, set()))
        elif tag in ("input", "select", "textarea", "button") and values.get("name") and self.forms:
            self.forms[-1][1].add(str(values["name"]))


def forms_of(client: Client, acme: Things) -> dict[str, set[str]]:
    """Return the fields of all forms on all pages that the client may see, by their address."""
    found: dict[str, set[str]] = {}
    for pattern in urlpatterns:
        path = address(pattern, acme, "acme")
        with undone():
            page = client.get(path)
        if page.status_code == 200 and page["Content-Type"].startswith("text/html"):
            fields = Fields(path)
            fields.feed(page.content.decode())
            for action, names in fields.forms:
                found.setdefault(action, set()).update(names - {"csrfmiddlewaretoken"})
    return {action: names for action, names in found.items() if "logout" not in action}


@pytest.mark.parametrize("role", ["owner", "operator", "auditor"])
def test_ids_of_another_tenant_in_every_field_change_and_show_nothing_of_it(
    role: str, cast: Cast, acme: Things, globex: Things, browse: Browser
) -> None:
    client = browse(getattr(cast, role))
    ids = (globex.tool, globex.version, globex.token, globex.entry, globex.account, globex.secret)
    foreign = [*map(str, (*ids, globex.invitation, globex.user)), f"canary-{globex.slug}-tool"]
    before = rows_of(globex)
    posted = 0
    for action, names in forms_of(client, acme).items():
        for each in foreign:
            client.cookies.pop("messages", None)  # of what was accepted, and undone, before
            with undone():
                response = client.post(action, dict.fromkeys(names, each))
                text = response.content.decode()
                shown = [word for word in globex.canaries if word in text and word not in each]
                assert shown == [], (action, each)
                assert response.status_code < 500, (action, each)
                if response.status_code == 302:  # something was accepted
                    after = rows_of(globex)
                    assert _of(globex, after) == _of(globex, before), (action, each)
                posted += 1
    assert posted > {"owner": 200, "operator": 100, "auditor": 10}[role]


def _of(things: Things, rows: dict[str, Any]) -> list[Any]:
    """Return the rows that belong to the tenant, or name its id."""
    flat = [(name, row) for name, found in rows.items() if name != "entries" for row in found]
    return [each for each in flat if str(things.tenant) in str(each)] + rows["entries"]
