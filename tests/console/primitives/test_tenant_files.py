"""A tenant as one file in the console: downloaded, compared, and applied as it was shown."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.catalogue import services as catalogue
from mcphost.catalogue.models import KeptDocument, Primitive
from mcphost.console.primitives import planned_changes
from mcphost.serving.user_slots import IMPORTS
from mcphost.tenant_file.documents import MAX_BYTES
from mcphost.tenant_file.exports import export
from mcphost.tenants.models import Membership, Tenant
from tests.console.concurrent_changes import before_the_change
from tests.console.tenant_data import ACTOR, tool_fields

pytestmark = pytest.mark.django_db

PAGE = "/admin/t/acme/file/"
PLAN = f"{PAGE}plan/"
READING = """
tools:
  read_order:
    kind: http
    description: Reads an order.
    config:
      input_schema: {type: object, properties: {id: {type: string}}}
      request: {method: GET, url: "https://api.example.com/orders/{arguments.id}"}
"""
SENDING = READING.replace(
    'arguments.id}"}', 'arguments.id}", headers: [{name: X-Key, value: "{secrets.orders_key}"}]}'
)


def file(*sections: str) -> str:
    return "\n".join(["format: 1", *sections])


def compare(client: Client, content: str) -> Any:
    return client.post(PLAN, {"content": content})


def shown_plan(page: Any) -> Mapping[str, str]:
    """Return what the button of a plan sends."""
    review = page.context["review"]
    return {"kept": str(review.kept), "digest": review.plan.digest, "_apply": "1"}


def text_of(page: Any) -> str:
    text: str = page.content.decode()
    return text


def apply(client: Client, page: Any) -> str:
    return text_of(client.post(PLAN, shown_plan(page), follow=True))


def test_readers_download_the_file_that_the_command_exports(auditor, acme):
    page = text_of(auditor.get(PAGE))
    assert f"{PAGE}download/" in page
    assert "Compare a file" not in page
    sent = auditor.get(f"{PAGE}download/")
    assert sent.content.decode() == export(acme.tenant)
    assert sent["Content-Disposition"] == 'attachment; filename="acme.yaml"'
    assert compare(auditor, export(acme.tenant)).status_code == 403


def test_the_tenants_own_file_changes_nothing(operator, acme):
    page = compare(operator, export(acme.tenant).replace("\n", "\r\n"))
    assert "The tenant is as the file says." in text_of(page)
    assert not KeptDocument.objects.exists()


def test_a_plan_shows_each_difference_and_what_is_applied_is_what_was_shown(owner, acme, cast):
    content = file("prune: true", "tenant: {title: Orders}", READING)
    page = compare(owner, content)
    text = text_of(page)
    assert "1 added, 1 changed, 4 archived" in text
    assert "<del>canary-acme-title</del>" in text
    assert "<ins>Orders</ins>" in text
    assert "<ins>Reads an order.</ins>" in text
    assert f"/admin/t/acme/tools/{acme.tool}/" in text
    assert Tenant.objects.get(pk=acme.tenant).title == "canary-acme-title"
    digest = page.context["review"].plan.digest
    assert "The file was applied: 1 added, 1 changed, 4 archived." in apply(owner, page)
    assert Tenant.objects.get(pk=acme.tenant).title == "Orders"
    states = dict(Primitive.objects.filter(primitive_type="tool").values_list("name", "state"))
    assert states == {"canary-acme-tool": "archived", "read_order": "published"}
    applied = Entry.objects.get(action="tenant.applied")
    assert applied.facts == {"digest": digest, "changes": 6}
    assert applied.actor_label == cast.owner.user.username
    assert not KeptDocument.objects.exists()


def test_a_plan_that_no_longer_holds_is_not_applied_and_the_new_one_is_shown(operator, acme):
    page = compare(operator, file(READING))
    catalogue.create(acme.tenant, tool_fields("meanwhile"), ACTOR)
    again = operator.post(PLAN, shown_plan(page))
    assert "Nothing was applied: the tenant has changed" in text_of(again)
    assert not Primitive.objects.filter(name="read_order").exists()
    assert shown_plan(again)["digest"] != shown_plan(page)["digest"]
    assert "The file was applied: 1 added." in apply(operator, again)


def test_a_change_during_the_application_is_noticed(operator, acme):
    page, changed = compare(operator, file(READING)), []

    def change() -> None:
        if not changed:
            changed.append(Primitive.objects.filter(pk=acme.tool).update(state="disabled"))

    with before_the_change(change):
        again = operator.post(PLAN, shown_plan(page))
    assert "Nothing was applied: the tenant has changed" in text_of(again)
    assert not Primitive.objects.filter(name="read_order").exists()


def test_nothing_is_applied_without_the_digest_of_a_plan(operator, acme):
    sent = {"content": file(READING), "_apply": "1"}
    assert "Nothing was applied" in text_of(operator.post(PLAN, sent))
    assert not Primitive.objects.filter(name="read_order").exists()


def test_a_user_who_lost_the_right_meanwhile_applies_nothing(operator, acme, cast):
    page = compare(operator, file(READING))
    rows = Membership.objects.filter(user=cast.operator.user)
    with before_the_change(partial(rows.update, role="auditor")):
        assert operator.post(PLAN, shown_plan(page)).status_code == 403
    assert not Primitive.objects.filter(name="read_order").exists()


def test_a_kept_file_is_the_users_own(operator, owner, acme):
    page = compare(operator, file(READING))
    assert "The file is not kept any more" in text_of(owner.post(PLAN, shown_plan(page)))


def test_problems_are_shown_with_line_member_reason_and_text(operator, acme, monkeypatch):
    monkeypatch.setattr(planned_changes, "MAX_PROBLEMS", 2)
    content = file("tenant: {title: Mine}", "functions: [no.such]", READING.replace("GET", "FETCH"))
    text = text_of(compare(operator, content))
    for part in (
        "line 2",
        "Only owners may change the settings of the tenant.",
        "tenant: {title: Mine}",
        "<code>functions.0</code>",
        "1 more problem.",
    ):
        assert part in text
    assert "_apply" not in text
    assert content in text.replace("&quot;", '"')


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "Choose a file, or paste its content below."),
        ({"content": "a: [\n"}, "This is not YAML"),
        ({"content": file(), "kept": "no id"}, "Nothing was saved"),
    ],
)
def test_what_is_no_file_is_refused_with_the_reason(operator, acme, fields, problem):
    assert problem in text_of(operator.post(PLAN, fields))


def test_a_file_that_is_too_large_is_refused_with_both_sizes(operator, acme):
    large = SimpleUploadedFile("acme.yaml", b"#" * (MAX_BYTES + 512 * 1024))
    text = text_of(operator.post(PLAN, {"file": large}))
    assert "The file has 16.5 MiB. It may have 16 MiB." in text


def test_an_uploaded_file_is_compared(operator, acme):
    upload = SimpleUploadedFile("acme.yaml", file(READING).encode())
    assert "1 added" in text_of(operator.post(PLAN, {"file": upload}))


def test_missing_secrets_are_named_with_the_way_to_store_them(operator, acme):
    secrets = "secrets: {orders_key: {hosts: [api.example.com], places: [header]}}"
    text = text_of(compare(operator, file(secrets, SENDING)))
    assert text.count("/admin/t/acme/secrets/new/?name=orders_key") == 2
    assert "Not published: there is no secret" in text


def test_a_draft_beside_what_is_published_is_shown(operator, acme):
    draft = READING + "    draft: {description: Reads one order.}\n"
    text = text_of(compare(operator, file(draft)))
    assert "The draft that is not published" in text
    assert "Reads one order." in text


def test_a_page_compares_no_more_lines_than_it_can_hold(operator, acme, monkeypatch):
    monkeypatch.setattr(planned_changes, "MAX_COMPARED", 20)
    two = READING + READING.replace("tools:\n", "").replace("read_order", "read_orders")
    text = text_of(compare(operator, file(two)))
    assert text.count("Its lines are not shown") == 1
    assert text.count("<ins>Reads an order.</ins>") == 1


def test_users_compare_one_file_at_a_time(operator, acme, cast):
    with IMPORTS.of(cast.operator.user.pk, acme.tenant):
        text = text_of(compare(operator, file(READING)))
    assert "Another file or document of yours is being read." in text


def test_staff_apply_grants_and_others_are_told_to_ask(staff, operator, acme):
    content = file("functions: [probe.echo, probe.write]")
    assert "Ask platform staff." in text_of(compare(operator, content))
    page = compare(staff, content)
    assert "Python function probe.write" in " ".join(text_of(page).split())
    assert "The file was applied: 1 added." in apply(staff, page)
