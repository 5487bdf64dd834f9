"""Tests of every URL by every role, and of another tenant's ids in every field of every form.

Generated from the URL patterns and from the permission that guards each view: a new page is covered
from its first day. What a role may not see is refused with 403, and changes nothing.
"""

from collections.abc import Iterable
from html.parser import HTMLParser
from typing import Final

import pytest
from django.contrib.auth import SESSION_KEY
from django.test import Client
from django.urls import URLPattern

from mcphost.console.primitives.trials import SIGN_IN_FROM
from mcphost.identity.services import TokenRequest, issue_for_service
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, Permission
from mcphost.tenants.services import remove_member
from tests.cast import ACTOR, Cast
from tests.console.tenant_data import Things
from tests.console.url_walk import (
    BY_NAME,
    ONE_OF_EACH_GUARD,
    OPEN_TO_ANYBODY,
    OWN,
    PATTERNS,
    address,
    body,
    busy,
    by_guard,
    own_rows,
    permission_of,
    rows_of,
    undone,
    writes,
)

pytestmark = pytest.mark.django_db

ROLES: Final = ("owner", "operator", "auditor", "member", "staff", "former member")
NO_ROLE: Final = ("member", "former member")
"""The walks of the stranger, and of those who may not enter, are in test_access_to_urls.py."""
REPORTS: Final = {"status_json"}
"""Pages whose status is what they report."""
CHANGING_ONESELF: Final = {"calls_filter_add", "connect", "own_token_add", "leave"}
"""Forms that an auditor may send."""
OF_PRIMITIVES: Final = {
    Permission.VIEW_TOOLS: ("{}s", "{}", "{}_version"),
    Permission.EDIT_TOOLS: (
        "{}_add", "{}_edit", "{}_move", "{}_delete", "{}s_bulk", "{}_roll_back",
    ),
}  # fmt: skip
PAGES: Final = {
    Permission.VIEW_TOOLS: "tenant first_steps connect functions secrets tenant_file tenant_file_download",
    Permission.EDIT_TOOLS: (
        "connect_doctor tenant_file_plan tool_import tool_try tool_try_saved tool_try_end saved_calls_run "
        "saved_call_delete script_check http_check http_check_saved resource_announce template_announce"
    ),
    Permission.VIEW_RECORDS: (
        "all_calls all_calls_filter_add all_calls_filter all_calls_changes all_calls_export "
        "all_calls_part_csv all_calls_part_jsonl all_calls_csv all_calls_jsonl all_input_requests "
        "all_input_request_funnel all_input_requests_changes all_input_requests_export "
        "all_input_requests_part_csv all_input_requests_part_jsonl all_input_requests_csv "
        "all_input_requests_jsonl all_input_requests_filter_add all_input_requests_filter "
        "input_requests_changes input_requests_export input_requests_part_csv "
        "input_requests_part_jsonl input_requests_csv input_requests_jsonl "
        "input_requests_filter_add input_requests_filter all_refusals all_audit_log input_requests input_request input_request_funnel "
        "calls calls_filter_add calls_filter calls_changes calls_export calls_part_csv "
        "calls_part_jsonl calls_csv calls_jsonl call tasks task refusals audit_log "
        "audit_log_export audit_log_part_csv audit_log_part_jsonl audit_log_csv audit_log_jsonl "
        "all_audit_log_export all_audit_log_part_csv all_audit_log_part_jsonl all_audit_log_csv "
        "all_audit_log_jsonl"
    ),
    Permission.VIEW_PAYLOADS: "call_payloads payload input_requests_payloads input_request_payloads "
    "input_request_search input_request_search_part",
    Permission.MANAGE_MEMBERS: (
        "users user_add user user_password members member_role member_scopes member_remove "
        "member_password "
        "invitation_withdraw"
    ),
    Permission.MANAGE_TOKENS: (
        "tokens token_add token_renew token_revoke connections connection_end service_accounts service_account_disable "
        "service_account_add service_account_enable service_account_remove"
    ),
    Permission.MANAGE_TENANT: "tenant_add status status_json settings close salt payload_erase",
    Permission.MANAGE_TASKS: "task_cancel task_retry",
    Permission.CANCEL_CALLS: "call_cancel input_requests_cancel all_input_requests_cancel",
    Permission.MANAGE_SECRETS: "secret_add secret_rotate secret_edit secret_delete",
    Permission.GRANT_FUNCTIONS: "all_functions functions_change",
    Permission.MANAGE_KEYS: "keys key_rotate key_compromise key_retire key_destroy",
}
"""The permission that each page asks for. Pages without one are about the user."""


@pytest.fixture
def acme(acme: Things) -> Things:
    return busy(acme)[0]


def test_each_page_requires_its_permission_or_concerns_only_the_user() -> None:
    guards: dict[str, Permission | None] = dict.fromkeys(OWN)
    for permission, names in PAGES.items():
        guards |= dict.fromkeys(names.split(), permission)
    for permission, forms in OF_PRIMITIVES.items():
        for sort in ("tool", "prompt", "resource", "template"):
            guards |= dict.fromkeys((form.format(sort) for form in forms), permission)
    assert {name: permission_of(pattern) for name, pattern in BY_NAME.items()} == guards


def _expected(cast: Cast, role: str, pattern: URLPattern) -> int:
    if role in NO_ROLE:
        return 403 if pattern.name in SIGN_IN_FROM else 302  # in a frame, or to the sign-in
    of_tenant = "slug" in pattern.pattern.converters
    tenant = Tenant.objects.get(slug="acme") if of_tenant else None
    person = getattr(cast, role)
    return 200 if allowed(person.user, tenant, permission_of(pattern)) else 403


def _opened_by(cast: Cast, role: str) -> list[URLPattern]:
    """Return which of the pages that a role sees it opens in the test: one of each guard, and its
    share of all others, so that each is opened by one of the roles that see it."""
    opened = []
    for first, *others in by_guard():
        seeing = [each for each in ROLES if _expected(cast, each, first) == 200]
        if permission_of(first) is not None and role in seeing:
            opened += [first, *others[seeing.index(role) :: len(seeing)]]
    return opened


@pytest.mark.parametrize("role", ROLES)
def test_each_role_sees_only_the_pages_of_its_permissions(role, cast, acme, browse):
    person = getattr(cast, "auditor" if role == "former member" else role)
    client = browse(person)
    if role == "former member":
        remove_member(acme.tenant, person.user, actor=ACTOR)
    before, fields, wrong = rows_of(acme), body(acme), []
    opened = _opened_by(cast, role)
    walked = ONE_OF_EACH_GUARD if role in NO_ROLE else PATTERNS
    for pattern in [each for each in walked if permission_of(each) is not None]:
        path, expected = address(pattern, acme, "acme"), _expected(cast, role, pattern)
        if expected == 200 and pattern not in opened:
            continue
        seen = set()
        if expected == 200 or pattern in ONE_OF_EACH_GUARD:  # which refuses each method
            with undone():
                seen.add(client.get(path).status_code)
        if expected == 200:
            # A page, an action that takes POST only, or a redirect to where the action is.
            fine = seen <= {200, 302, 400, 404, 405} or pattern.name in REPORTS
        else:
            seen.add(client.post(path, fields).status_code)
            fine = seen == {expected}
        wrong += [] if fine else [(path, expected, seen)]
    assert wrong == []
    assert rows_of(acme) == before


def test_an_auditor_can_change_only_the_own_account(
    cast: Cast, acme: Things, auditor: Client
) -> None:
    """What refuses them is posted to above."""
    before, fields = rows_of(acme), body(acme)
    for pattern in PATTERNS:
        is_open = permission_of(pattern) is None or _expected(cast, "auditor", pattern) == 200
        if is_open and pattern.name not in CHANGING_ONESELF:
            status = auditor.post(address(pattern, acme, "acme"), fields).status_code
            assert status in (200, 302, 400, 403, 404, 405), pattern.name
            if SESSION_KEY not in auditor.session:  # it signed out
                auditor.force_login(cast.auditor.user)
    assert rows_of(acme) == before


def test_the_token_of_a_service_account_opens_no_page(cast: Cast, acme: Things) -> None:
    program = TokenRequest("program", (LIST_TOOLS, CALL_TOOLS))
    issued = issue_for_service(acme.tenant, acme.account, program, actor=ACTOR)
    client = Client(headers={"authorization": f"Bearer {issued.plaintext}"})
    for pattern in PATTERNS:
        if pattern.name not in OPEN_TO_ANYBODY:
            in_frame = pattern.name in SIGN_IN_FROM  # they say that the session has ended
            response = client.get(address(pattern, acme, "acme"))
            assert response.status_code == (403 if in_frame else 302), pattern.name


class Fields(HTMLParser):
    """The forms of a page: where each posts to, the names of its fields, and the ids in it."""

    def __init__(self, path: str, ids: Iterable[str]) -> None:
        super().__init__()
        self.path, self.ids = path, ids
        self.forms: dict[str, tuple[set[str], set[str]]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form" and values.get("method", "").lower() == "post":
            self.form = self.forms.setdefault(values.get("action") or self.path, (set(), set()))
            self.form[1].update(id for id in self.ids if id in f"{self.path} {values}")
        elif self.forms and tag in ("input", "select", "textarea", "button", "option"):
            self.form[0].update({values.get("name", "")} - {"", "csrfmiddlewaretoken"})
            self.form[1].update(id for id in self.ids if id in values.get("value", ""))


def forms_of(
    client: Client, acme: Things, ids: Iterable[str]
) -> dict[str, tuple[set[str], set[str]]]:
    """Return the forms of all pages that the client may see, by their address: the names of the
    fields, and which of the ids the form or its page is about."""
    forms: dict[str, tuple[set[str], set[str]]] = {}
    for pattern in PATTERNS:
        path = address(pattern, acme, "acme")
        with undone():
            page = client.get(path)
        if page.status_code == 200 and page["Content-Type"].startswith("text/html"):
            fields = Fields(path, ids)
            fields.feed(page.content.decode())
            for action, form in fields.forms.items():
                for found, more in zip(forms.setdefault(action, (set(), set())), form, strict=True):
                    found |= more
    return {action: form for action, form in forms.items() if "logout" not in action}


def test_ids_of_another_tenant_in_any_form_field_change_and_show_none_of_its_data(
    cast: Cast, acme: Things, globex: Things, owner: Client
) -> None:
    """The owner has the forms of all roles but those of payloads, which change nothing. Each form
    gets an id of each form that ids have, and the counterparts of those that it is about."""
    kinds = ("version", "token", "entry", "account", "secret", "invitation")
    counterparts = {str(getattr(acme, kind)): str(getattr(globex, kind)) for kind in kinds}
    always = [str(globex.tool), str(globex.user), f"canary-{globex.slug}-tool"]
    before, posted = own_rows(globex, "owner"), 0
    for action, (names, about) in forms_of(owner, acme, counterparts).items():
        foreign = [*always, *(counterparts[id] for id in sorted(about))]
        for text in foreign if names else foreign[:1]:
            owner.cookies.pop("messages", None)  # of what was accepted, and undone, before
            with undone(), writes() as statements:
                response = owner.post(action, dict.fromkeys(names, text))
                page = response.content.decode()
                shown = [word for word in globex.canaries if word in page and word not in text]
                assert shown == [], (action, text)
                assert response.status_code < 500, (action, text)
                if statements:
                    assert own_rows(globex, "owner") == before, (action, text)
                posted += 1
    assert posted > 120
