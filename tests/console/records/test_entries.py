from uuid import UUID, uuid4

import pytest
from django.test import Client
from django.utils.html import escape

from mcphost.audit import selectors, windows
from mcphost.audit.models import Entry, Payload
from mcphost.audit.records import STATE_REFUSED, Actor
from mcphost.audit.services import record
from mcphost.console.records.filters import AREAS
from mcphost.identity.models import Token
from tests.console.tenant_data import Things, recorded
from tests.test_reference import actions

CALLS = "/admin/t/acme/calls/"
PAYLOADS = "/admin/t/acme/payloads/"

pytestmark = pytest.mark.django_db


def targets(client: Client, query: str = "", path: str = CALLS) -> list[str]:
    page = client.get(f"{path}{query}")
    return [row.entry.target for row, _ in page.context["calls"]]


def test_each_filter_narrows_the_list_of_calls(operator: Client, acme: Things) -> None:
    call = uuid4()
    named = {"actor_id": "t1", "token_id": "t1", "actor_label": "ted (desk)"}
    recorded(acme.tenant, call, target="other", outcome="crashed", client_name="curl", **named)
    for query in (
        "?tool=other",
        "?outcome=crashed",
        "?principal=t1",
        "?principal=TED",
        "?client=curl",
        f"?call={str(call)[:8]}",
        "?tool=other&period=hour",
    ):
        assert targets(operator, query) == ["other"], query
    assert targets(operator, "?outcome=nonsense&period=nonsense&after=nonsense") == []
    assert targets(operator, "?tool=none%00") == []
    assert "No matching calls" in operator.get(f"{CALLS}?tool=none").content.decode()


def test_long_lists_are_paged_with_their_filter(operator: Client, acme: Things) -> None:
    for number in range(selectors.PAGE + 3):
        recorded(acme.tenant, uuid4(), target="many", reason=str(number))
    first = operator.get(f"{CALLS}?tool=many")
    assert len(first.context["calls"]) == selectors.PAGE
    assert first.context["older"].startswith("tool=many&after=")
    last = operator.get(f"{CALLS}?{first.context['older']}")
    assert [row.entry.reason for row, _ in last.context["calls"]] == ["2", "1", "0"]
    assert last.context["older"] == ""


def test_staff_see_the_calls_of_every_tenant_or_of_one(staff: Client, acme: Things, globex: Things):
    path = "/admin/calls/"
    assert set(targets(staff, path=path)) == {"canary-acme-tool", "canary-globex-tool"}
    assert targets(staff, "?tenant=globex", path) == ["canary-globex-tool"]
    assert targets(staff, "?tenant=nowhere", path) == []


def test_a_call_shows_all_of_its_entries(operator: Client, acme: Things) -> None:
    page = operator.get(f"{CALLS}{acme.call}/")
    text = page.content.decode()
    assert [entry.id for entry in page.context["call"].entries] == [acme.entry]
    for part in ("olga (laptop)", "1.5 ms", "2.0 KiB", "Round finished"):
        assert part in text


def test_an_auditor_reads_a_payload_and_the_view_is_recorded(auditor: Client, acme: Things):
    assert f"{PAYLOADS}{acme.entry}/" in auditor.get(f"{CALLS}{acme.call}/").content.decode()
    assert "auditors can read it" not in auditor.get(f"{CALLS}{acme.call}/").content.decode()
    assert "canary-acme-said" in auditor.get(f"{PAYLOADS}{acme.entry}/").content.decode()
    viewed = Entry.objects.get(action="payload.viewed")
    assert (viewed.tenant, viewed.target) == (acme.tenant, str(acme.entry))
    assert viewed.actor_label == "auditor"
    assert viewed.facts == {
        "tool": "canary-acme-tool",
        "call": str(acme.call),
        "payloads": [str(acme.entry)],
    }
    page = auditor.get("/admin/t/acme/audit-log/?area=payload").content.decode()
    assert f'<a href="{CALLS}{acme.call}/">Call of canary-acme-tool</a>' in page
    Payload.objects.filter(entry=acme.entry).update(key_id="gone")
    assert "The payload cannot be read" in auditor.get(f"{PAYLOADS}{acme.entry}/").content.decode()


def test_an_owner_erases_a_payload_and_its_entry_stays(owner, auditor, acme):
    path = f"{PAYLOADS}{acme.entry}/erase/"
    assert (
        "This will erase from this server: the content (arguments"
        in owner.get(path).content.decode()
    )
    assert owner.post(path)["Location"] == f"{CALLS}{acme.call}/"
    row = Payload.objects.get(entry=acme.entry)
    assert (bytes(row.ciphertext), row.erased_by) == (b"", "owner")
    assert "erased" in owner.get(f"{CALLS}{acme.call}/").content.decode()
    page = auditor.get(f"{PAYLOADS}{acme.entry}/").content.decode()
    assert "owner erased this payload" in page
    assert "canary-acme-said" not in page


def test_the_audit_log_shows_the_actor_and_the_changed_fields(
    owner: Client, staff: Client, acme: Things
) -> None:
    owner.post("/admin/t/acme/settings/", {"title": "Other"})
    page = owner.get("/admin/t/acme/audit-log/")
    entry = page.context["entries"][0][0]
    assert (entry.action, entry.actor_label) == ("tenant.updated", "owner")
    assert "<dt>changed:</dt> <dd>instructions and title</dd>" in page.content.decode()
    assert all(each.tenant == acme.tenant for each, _ in page.context["entries"])
    assert owner.get("/admin/audit-log/").status_code == 403
    everywhere = staff.get("/admin/audit-log/?tool=acme").context["entries"]
    assert next(slug for _, slug in everywhere) == "acme"


OF_CALLS = ("answer.", "callback.", "link.", "message.", "question.", "round.", "state.")


def test_every_action_outside_calls_belongs_to_one_area() -> None:
    for action in actions():
        areas = [name for name, (_, starts) in AREAS.items() if action.startswith(starts)]
        assert len(areas) == (0 if action.startswith(OF_CALLS) else 1), (action, areas)


def test_the_audit_log_is_filtered_by_area(staff: Client, acme: Things) -> None:
    for action in ("salt.destroyed", "secrets.created", "secret.created", "key.rotated"):
        recorded(acme.tenant, None, action=action, target="it", outcome="")
    for area, found in (
        ("key", ["key.rotated", "secrets.created", "salt.destroyed"]),
        ("secret", ["secret.created"]),
    ):
        page = staff.get(f"/admin/audit-log/?tool=it&area={area}")
        assert [entry.action for entry, _ in page.context["entries"]] == found
    page = staff.get("/admin/audit-log/?area=nonsense").content.decode()
    assert "The filter “Area” has no value “nonsense”." in page


@pytest.mark.parametrize(
    "page", ["calls/?call=ffff", "audit-log/?principal=zzz", "refusals/?principal=zzz"]
)
def test_a_search_that_stops_early_links_to_its_next_page(operator, acme, monkeypatch, page):
    for number in range(4):
        recorded(acme.tenant, UUID(int=number))
        for action in ("key.rotated", STATE_REFUSED):
            record(action, actor=Actor.system(), tenant=acme.tenant)
    path, more = f"/admin/t/acme/{page}", "Nothing found so far"
    text = operator.get(path).content.decode()
    assert "No matching " in text
    assert more not in text
    monkeypatch.setattr(windows, "MAX_WINDOW", 2)
    monkeypatch.setattr(windows, "COMPARING_SECONDS", 0.0)
    early = operator.get(path)
    text = early.content.decode()
    assert more in text
    assert "No matching " not in text
    assert f'href="?{escape(early.context["older"])}"' in text


def test_readings_in_a_row_are_folded_on_their_page(auditor: Client, acme: Things) -> None:
    """A change is never folded, nor is what another user did."""
    ada, ben = (Actor("user", name, name) for name in ("ada", "ben"))
    actors = [ada, ben, ben, ada, ada, ada]
    for actor in actors:
        record("payload.viewed", actor=actor, tenant=acme.tenant, target="read")
    for _ in range(3):
        record("tool.published", actor=ada, tenant=acme.tenant, target="read")
    page = auditor.get("/admin/t/acme/audit-log/?tool=read")
    assert len(page.context["entries"]) == len(actors) + 3
    groups = [
        (group.entry.action, group.entry.actor_label, len(group.rest))
        for group in page.context["groups"]
    ]
    assert groups == [
        *[("tool.published", "ada", 0)] * 3,
        ("payload.viewed", "ada", 2),
        *[("payload.viewed", "ben", 0)] * 2,
        ("payload.viewed", "ada", 0),
    ]
    text = page.content.decode()
    assert "2 more like this: Payload viewed by ada" in text
    assert text.count('title="payload.viewed"') == len(actors)


@pytest.mark.parametrize(
    ("path", "listed"),
    [("/admin/t/acme/refusals/", CALLS), ("/admin/refusals/", "/admin/calls/")],
)
def test_refusals_are_reached_from_calls_and_lead_back(
    staff: Client, acme: Things, path: str, listed: str
) -> None:
    page = staff.get(path).content.decode()
    assert f'<a href="{listed}" aria-current="true">' in page
    crumbs = page.partition('aria-label="Breadcrumb"')[2].partition("</nav>")[0]
    assert f'<a href="{listed}">' in crumbs


def test_the_audit_log_names_a_revoked_token_and_links_it_for_those_who_manage_tokens(
    owner: Client, operator: Client, acme: Things
) -> None:
    token = Token.objects.filter(tenant=acme.tenant).first()
    assert token is not None
    by = Actor("user", "1", "ada")
    record("token.revoked", actor=by, tenant=acme.tenant, target=token.pk, facts={})
    link = f'<a href="/admin/t/acme/tokens/?at={token.pk}#token-{token.pk}">{token.name}</a>'
    query = "/admin/t/acme/audit-log/?tool=" + token.pk
    assert link in owner.get(query).content.decode()
    page = operator.get(query).content.decode()
    assert (token.name in page, link in page) == (True, False)


def test_the_audit_log_leaves_out_a_target_that_repeats_the_action(
    owner: Client, acme: Things
) -> None:
    record(
        "questions.viewed",
        actor=Actor("user", "1", "ada"),
        tenant=acme.tenant,
        target="questions",
        facts={},
    )
    page = owner.get("/admin/t/acme/audit-log/").content.decode()
    assert "Questions viewed" in page
    assert ">questions<" not in page
