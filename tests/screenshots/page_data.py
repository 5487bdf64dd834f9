"""What the pictures of all pages show besides calls, and the addresses of these pages.

`python -m tests.screenshots.page_data create FOLDER` adds, over `MCPHOST_HOME`, a thing of each type to the tenant
`support`, and writes the links that are shown once into FOLDER. `… addresses FOLDER` writes `addresses.json`
there: the address of each page by the name of its URL, once calls were made.
"""

import json
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402 - what follows needs django.setup()
from django.urls import reverse  # noqa: E402
from django.utils import timezone  # noqa: E402
from django.utils.module_loading import autodiscover_modules  # noqa: E402

from mcphost import home  # noqa: E402
from mcphost.audit.models import CallSummary, Payload, QuestionSummary  # noqa: E402
from mcphost.audit.records import Actor  # noqa: E402
from mcphost.catalogue import saved_calls  # noqa: E402
from mcphost.catalogue import services as catalogue  # noqa: E402
from mcphost.catalogue.fields import PrimitiveFields  # noqa: E402
from mcphost.catalogue.models import Primitive, PrimitiveVersion  # noqa: E402
from mcphost.catalogue.saved_calls import Expectation, SavedRequest  # noqa: E402
from mcphost.console.models import SavedFilter  # noqa: E402
from mcphost.console.records.filter_store import FilterFields, save  # noqa: E402
from mcphost.console.urls import urlpatterns  # noqa: E402
from mcphost.identity import account_links, service_accounts  # noqa: E402
from mcphost.identity import services as identity  # noqa: E402
from mcphost.identity.models import Connection, ServiceAccount, Token  # noqa: E402
from mcphost.identity.services import TokenRequest  # noqa: E402
from mcphost.kinds.primitive_types import PrimitiveType  # noqa: E402
from mcphost.tasks.models import Task  # noqa: E402
from mcphost.tasks.states import TaskState  # noqa: E402
from mcphost.tenants import invitations  # noqa: E402
from mcphost.tenants import services as tenants  # noqa: E402
from mcphost.tenants.fields import TenantFields  # noqa: E402
from mcphost.tenants.models import Invitation, Tenant  # noqa: E402
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, Role  # noqa: E402
from mcphost.vault.models import RingKey, StoredSecret  # noqa: E402
from mcphost.vault.secrets.services import create_secret  # noqa: E402
from mcphost.vault.states import KeyState  # noqa: E402

SUPPORT, NEW_TENANT = "support", "finance"
NEWCOMER, AUDITOR = "lena", "auditor"
SYSTEM = Actor.system("manage.py init")
SCOPES = (LIST_TOOLS, CALL_TOOLS)
SCRIPT = '''\
def book_visit(customer: str, visits: int = 1) -> str:
    """Book a technician's visit, after asking for the day.

    Args:
        customer: Name of the customer.
    """
    answer = elicit("day", f"Which day suits {customer}?", {"day": ["Monday", "Thursday"]})
    return f"{visits} visit for {customer} on {answer['day']}"
'''
SCRIPT_TOOL, HTTP_TOOL, TASK_TOOL = "book_visit", "read_order", "export_orders"
FORMER_TOOL = "book_call"
"""Archived, and so the only one that can be deleted."""
REQUEST: Mapping[str, Any] = {
    "input_schema": {
        "type": "object",
        "properties": {"id": {"type": "string", "description": "Number of the order."}},
        "required": ["id"],
    },
    "request": {
        "method": "GET",
        "url": "https://orders.example.com/orders/{arguments.id}",
        "headers": [{"name": "X-Api-Key", "value": "{secrets.orders_key}"}],
    },
}
TEXTS: Mapping[PrimitiveType, tuple[str, str, Mapping[str, Any]]] = {
    PrimitiveType.PROMPT: (
        "reply_to_customer",
        "A reply to a customer, in a tone of your choice.",
        {
            "arguments": [{"name": "tone", "choices": ["friendly", "formal"]}],
            "messages": [
                {
                    "role": "user",
                    "content": {"type": "text", "text": "Write a {tone} reply to the customer."},
                }
            ],
        },
    ),
    PrimitiveType.RESOURCE: (
        "returns",
        "Which goods customers may return.",
        {
            "uri": "docs://returns",
            "text": "Customers return goods within 30 days.",
            "mime_type": "text/plain",
        },
    ),
    PrimitiveType.TEMPLATE: (
        "policy",
        "The policy for a country.",
        {
            "uri": "docs://policies/{country}",
            "text": "Customers in {country} return goods within 30 days.",
            "choices": {"country": ["Norway", "Denmark"]},
        },
    ),
}


def create(folder: Path) -> None:
    """Add the data, and write `links.json`."""
    admin, tenant = User.objects.get(username="admin"), Tenant.objects.get(slug=SUPPORT)
    owner = Actor.person(admin.pk, admin.username)
    _create_primitives(tenant.id, owner)
    _create_credentials(tenant.id, owner)
    save(
        admin,
        tenant,
        FilterFields("Resolved by Mara", shared=True),
        "tool=resolve_ticket&principal=mara",
    )
    newcomer = User.objects.create_user(NEWCOMER, first_name="Lena", email="lena@example.com")
    fields = TenantFields(title="Finance", instructions="Tools for invoices and payments.")
    finance = tenants.create_tenant(NEW_TENANT, fields, actor=SYSTEM).id
    tenants.set_member(finance, admin, Role.OWNER, actor=SYSTEM)
    invitations.invite(tenant.id, NEWCOMER, Role.OPERATOR, actor=owner)
    invited = invitations.invite(finance, AUDITOR, Role.AUDITOR, actor=owner)
    set_up = invitations.invite(finance, "noor", Role.OPERATOR, actor=owner, sets_up=True)
    links = {
        "invitation": reverse("admin:invitation", args=[invited.link]),
        "invitation:set-up": reverse("admin:invitation", args=[set_up.link]),
        "account_link": reverse(
            "admin:account_link", args=[account_links.issue(newcomer, actor=owner).link]
        ),
    }
    (folder / "links.json").write_text(json.dumps(links))


def _create_primitives(tenant: UUID, owner: Actor) -> None:
    create_secret(
        tenant,
        "orders_key",
        "a-key-of-the-order-service",
        hosts=["orders.example.com"],
        places=["header"],
        actor=owner,
    )
    function = f"exports.{TASK_TOOL}"
    catalogue.grant_function(tenant, function, owner)
    tools = (
        PrimitiveFields(HTTP_TOOL, REQUEST, kind="http", description="Reads an order."),
        PrimitiveFields(SCRIPT_TOOL, {"code": SCRIPT}, kind="script", title="Book a visit"),
        PrimitiveFields(TASK_TOOL, {"function": function}),
    )
    texts = (
        PrimitiveFields(name, config, primitive_type, "text", description=about)
        for primitive_type, (name, about, config) in TEXTS.items()
    )
    for fields in (*tools, *texts):
        catalogue.publish(catalogue.create(tenant, fields, owner).id, owner, note="First version")
    former = PrimitiveFields(
        FORMER_TOOL, {"code": SCRIPT.replace(SCRIPT_TOOL, FORMER_TOOL)}, kind="script"
    )
    catalogue.archive(
        catalogue.publish(catalogue.create(tenant, former, owner).id, owner).id, owner
    )
    answered = {"day": {"action": "accept", "content": {"day": "Monday"}}}
    calls = {
        "Ada on Monday": Expectation("complete", contains="Monday"),
        "Ada on Thursday": Expectation("complete", contains="Thursday"),
    }
    tool = Primitive.objects.get(tenant=tenant, name=SCRIPT_TOOL).id
    for name, expectation in calls.items():
        sent = SavedRequest({}, {"customer": "Ada"}, [answered])
        saved_calls.save_call(tool, name, sent, expectation, owner)


def _create_credentials(tenant: UUID, owner: Actor) -> None:
    nightly = service_accounts.create(tenant, "nightly", "Sends the report", actor=owner)
    former = service_accounts.create(tenant, "crm-sync", "Before the move", actor=owner)
    soon = timezone.now() + timedelta(days=12)
    identity.issue_for_service(
        tenant, nightly, TokenRequest("cron", SCOPES, expires_at=soon), actor=owner
    )
    ended = identity.issue_for_service(tenant, former, TokenRequest("crm", SCOPES), actor=owner)
    identity.revoke(tenant, ended.id, actor=owner)
    service_accounts.disable(tenant, former, actor=owner)
    admin = User.objects.get(username="admin")
    issued = identity.issue(tenant, admin, TokenRequest("laptop", SCOPES), actor=owner)
    home.write_secret(home.locate().path / "token-support-admin", issued.plaintext)


def write_addresses(folder: Path) -> None:
    """Write the addresses of all pages, and of pages that show another thing of the same type."""
    links: dict[str, str] = json.loads((folder / "links.json").read_text())
    usual = _usual_ids()
    addresses = {}
    for pattern in urlpatterns:
        name = str(pattern.name)
        own = _ids_of_type(pattern.default_args.get("primitive_type", PrimitiveType.TOOL))
        ids = {**usual, **own, **_other_ids().get(name, {})}
        wanted = {each: ids[each] for each in pattern.pattern.converters}
        addresses[name] = reverse(f"admin:{name}", kwargs=wanted)
    for name, (url, ids) in _variants().items():
        addresses[name] = reverse(f"admin:{url}", kwargs=ids)
    (folder / "addresses.json").write_text(json.dumps(addresses | links))


def _usual_ids() -> dict[str, Any]:
    tenant = Tenant.objects.get(slug=SUPPORT).id
    calls = CallSummary.objects.filter(tenant=tenant, target="resolve_ticket")
    answered = QuestionSummary.objects.filter(tenant=tenant, target="resolve_ticket")
    call = calls.filter(state="complete").order_by("-last")[0].call
    return {
        "slug": SUPPORT,
        "call_id": call,
        "question_id": answered.filter(call=call).order_by("-id")[0].id,
        "entry_id": Payload.objects.filter(tenant=tenant).order_by("-entry")[0].entry,
        "token_id": Token.objects.get(tenant=tenant, name="cron").pk,
        "connection_id": Connection.objects.order_by("-pk")[0].pk,
        "user_id": User.objects.get(username="mara").pk,
        "account_id": ServiceAccount.objects.get(name="nightly").pk,
        "secret_id": StoredSecret.objects.get(tenant=tenant).pk,
        "invitation_id": Invitation.objects.get(tenant=tenant).pk,
        "filter_id": SavedFilter.objects.get(tenant=tenant).pk,
        "saved_id": saved_calls.saved_calls(_tool(SCRIPT_TOOL))[0].id,
        "key_id": RingKey.objects.get(state=KeyState.RETIRING).pk,
        "verb": "disable",
        "link": "a-link-that-does-not-exist",
    }


def _ids_of_type(primitive_type: PrimitiveType) -> dict[str, Any]:
    name = TEXTS[primitive_type][0] if primitive_type in TEXTS else "resolve_ticket"
    primitive = _tool(name)
    versions = PrimitiveVersion.objects.filter(primitive=primitive).order_by("-number")
    return {"primitive_id": primitive, "version_id": versions[0].id}


def _tool(name: str) -> UUID:
    return Primitive.objects.get(tenant__slug=SUPPORT, name=name).id


def _other_ids() -> dict[str, dict[str, Any]]:
    """Return what some pages need other than the usual ids."""
    own = Token.objects.get(tenant__slug=SUPPORT, name="laptop").pk
    first = PrimitiveVersion.objects.get(primitive=_tool("resolve_ticket"), number=1)
    script = {"primitive_id": _tool(SCRIPT_TOOL)}
    retired = RingKey.objects.filter(state=KeyState.RETIRED).order_by("created_at")[0].pk
    tasks = Task.objects.filter(tenant=Tenant.objects.get(slug=SUPPORT).id)
    waiting = QuestionSummary.objects.filter(target="resolve_ticket", state="open").order_by("-id")
    working = {"call_id": tasks.filter(state=TaskState.WORKING).order_by("created_at")[0].call}
    return {
        "connections": {"slug": "demo"},
        "connection_end": {"slug": "demo"},
        "own_token_renew": {"token_id": own},
        "own_token_revoke": {"token_id": own},
        "leave": {"slug": NEW_TENANT},
        "close": {"slug": NEW_TENANT},
        "call_cancel": {"call_id": waiting[0].call},
        "key_destroy": {"key_id": retired},
        "saved_call_delete": script,
        "tool_delete": {"primitive_id": _tool(FORMER_TOOL)},
        "tool_roll_back": {"version_id": first.id},
        "task": working,
        "task_cancel": working,
        "task_retry": working,
    }


def _variants() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return more addresses by a name, each with the URL's name and its ids."""
    support = {"slug": SUPPORT}
    return {
        "tenant:new": ("tenant", {"slug": NEW_TENANT}),
        "tools:none": ("tools", {"slug": NEW_TENANT}),
        "connect:demo": ("connect", {"slug": "demo"}),
        "member_scopes:auditor": (
            "member_scopes",
            {**support, "user_id": User.objects.get(username=AUDITOR).pk},
        ),
        "tool:script": ("tool", {**support, "primitive_id": _tool(SCRIPT_TOOL)}),
        "tool_edit:script": ("tool_edit", {**support, "primitive_id": _tool(SCRIPT_TOOL)}),
        "tool_edit:http": ("tool_edit", {**support, "primitive_id": _tool(HTTP_TOOL)}),
    }


if __name__ == "__main__":
    autodiscover_modules("wiring")
    {"create": create, "addresses": write_addresses}[sys.argv[1]](Path(sys.argv[2]))
