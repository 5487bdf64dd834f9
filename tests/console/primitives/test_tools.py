from typing import Any

import pytest
from django.test import Client

from mcphost.catalogue import kinds, selectors, services
from mcphost.catalogue.models import Grant, Primitive, PrimitiveVersion
from tests.console.things import ACTOR, Things, tool_fields

TOOLS = "/admin/t/acme/tools/"
NEW = f"{TOOLS}new/"

pytestmark = pytest.mark.django_db


def form(**changes: Any) -> dict[str, Any]:
    return {"function": "probe.echo", "name": "say", "title": "", "description": "", **changes}


def row(name: str) -> Primitive:
    return Primitive.objects.get(tenant__slug="acme", name=name)


def served(things: Things) -> list[str]:
    return [tool.name for tool in selectors.offering(things.tenant).tools]


def test_a_tool_is_registered_as_a_draft_and_published_then_or_at_once(operator, acme):
    response = operator.post(NEW, form(scopes="mcp:a, mcp:b", time_limit_seconds="2.5"))
    tool = row("say")
    assert response["Location"] == f"{TOOLS}{tool.id}/"
    assert (tool.state, tool.scopes, tool.time_limit_seconds) == ("draft", ["mcp:a", "mcp:b"], 2.5)
    assert "Never published" in operator.get(response["Location"]).content.decode()
    operator.post(f"{TOOLS}{tool.id}/publish/")
    assert "say" in served(acme)
    assert row("say").live is not None
    operator.post(NEW, form(name="other", _publish=""))
    assert "other" in served(acme)
    page = operator.get(f"{TOOLS}{row('other').id}/")
    assert "other is published" in page.content.decode()
    assert page.context["offer"].argument_limit is None
    assert "expensive to check" not in page.content.decode()
    assert PrimitiveVersion.objects.get(primitive=row("other")).published_by == "operator"


def test_how_long_a_tools_questions_wait_is_set_published_and_shown(operator, acme, settings):
    assert "at most 86400." in operator.get(NEW).content.decode()
    operator.post(NEW, form(answer_within_seconds="90", _publish=""))
    tool = row("say")
    assert tool.live is not None
    assert tool.live.snapshot["answer_within_seconds"] == 90
    (snapshot,) = [each for each in selectors.offering(acme.tenant).tools if each.name == "say"]
    assert snapshot.answer_within == 90
    page = f"{TOOLS}{tool.id}/"
    assert operator.get(page).context["offer"].answer_within == 90
    operator.post(f"{page}edit/", form(answer_within_seconds=""))
    (difference,) = operator.get(page).context["offer"].differences
    assert (difference.label, difference.before) == ("Response time limit", 90)
    settings.MCPHOST_MAX_ANSWER_SECONDS = 60
    assert operator.get(page).context["offer"].answer_within == 60


def test_a_version_from_before_that_time_could_be_set_is_shown_and_served(operator, acme):
    operator.post(NEW, form(_publish=""))
    version = PrimitiveVersion.objects.get(primitive=row("say"))
    del version.snapshot["answer_within_seconds"]
    PrimitiveVersion.objects.filter(pk=version.pk).update(snapshot=version.snapshot)
    assert "say" in served(acme)
    assert operator.get(f"{TOOLS}{row('say').id}/").context["offer"].differences == []


def test_only_functions_granted_to_the_tenant_are_offered(operator, acme, globex):
    services.grant_function(globex.tenant, "probe.write", ACTOR)
    page = operator.get(NEW)
    assert [value for value, _ in page.context["form"].part.fields["function"].choices] == [
        "",
        "probe.echo",
    ]
    assert list(page.context["authors"]) == ["probe.echo"]
    response = operator.post(NEW, form(function="probe.write"))
    assert list(response.context["form"].part.errors) == ["function"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "no blanks please"}, "name"),
        ({"name": "canary-acme-tool"}, "name"),
        ({"name": ""}, "name"),
        ({"title": "a\x07b"}, "title"),
        ({"scopes": "nonsense"}, "scopes"),
        ({"time_limit_seconds": "-1"}, "time_limit_seconds"),
        ({"time_limit_seconds": "soon"}, "time_limit_seconds"),
        ({"answer_within_seconds": "0"}, "answer_within_seconds"),
        ({"answer_within_seconds": "86401"}, "answer_within_seconds"),
    ],
)
def test_what_is_wrong_stands_beside_its_field_and_nothing_is_saved(operator, acme, changes, field):
    response = operator.post(NEW, form(**changes, _publish=""))
    assert list(response.context["form"].errors) == [field]
    assert response.context["form"].errors[field][0] in response.context["form"].as_p().replace(
        "&#x27;", "'"
    ).replace("&quot;", '"')
    assert Primitive.objects.filter(tenant__slug="acme", sort="tool").count() == 1


def test_a_function_of_the_code_has_to_be_chosen(operator: Client, acme: Things) -> None:
    form_ = operator.post(NEW, form(function="")).context["form"]
    assert not form_.errors
    assert form_.part.errors
    assert Primitive.objects.filter(tenant__slug="acme", sort="tool").count() == 1
    Grant.objects.create(tenant_id=acme.tenant, function="gone.away")
    page = operator.get(NEW)
    assert list(page.context["authors"]) == ["probe.echo"]
    assert "gone.away" not in page.content.decode()


def test_an_edit_changes_the_working_copy_and_the_page_says_what_differs(operator, acme):
    path = f"{TOOLS}{acme.tool}/"
    assert operator.get(f"{path}edit/").context["form"].initial["name"] == "canary-acme-tool"
    fields = form(name="canary-acme-tool", title="Another", scopes="mcp:x")
    assert operator.post(f"{path}edit/", fields)["Location"] == path
    page = operator.get(path)
    differences = [
        (each.label, each.before, each.after) for each in page.context["offer"].differences
    ]
    assert differences == [("Title", "", "Another"), ("Scopes", [], ["mcp:x"])]
    assert "Unpublished changes" in page.content.decode()
    assert page.context["offer"].to_publish
    operator.post(f"{path}edit/", {**fields, "_publish": ""})
    page = operator.get(path)
    assert page.context["offer"].differences == []
    assert [version.number for version in page.context["offer"].versions] == [2, 1]
    assert not page.context["offer"].to_publish
    renamed = operator.post(f"{path}edit/", form(name="other"))
    assert "cannot be changed" in renamed.context["form"].errors["name"][0]


def test_a_disabled_tool_is_gone_at_once_and_comes_back_when_enabled(operator, acme):
    path = f"{TOOLS}{acme.tool}/"
    assert "/enable/" not in operator.get(path).content.decode()
    assert operator.post(f"{path}disable/")["Location"] == path
    assert served(acme) == []
    page = operator.get(path).content.decode()
    assert "is disabled" in page
    assert "not served</span>" in page
    assert ">live<" not in page
    assert "As clients would see it" in page
    for said in ("canary-acme-tool is enabled", "Nothing was changed"):
        assert said in operator.post(f"{path}enable/", follow=True).content.decode()
        assert served(acme) == ["canary-acme-tool"]


def test_a_tool_whose_function_was_taken_away_says_why_it_is_not_served(operator, acme):
    services.revoke_grant(acme.tenant, "probe.echo", ACTOR)
    for path in (TOOLS, f"{TOOLS}{acme.tool}/", "/admin/t/acme/", "/admin/"):
        assert "no longer granted" in operator.get(path).content.decode(), path
    assert ">live<" not in operator.get(f"{TOOLS}{acme.tool}/").content.decode()
    page = operator.get(f"{TOOLS}{acme.tool}/edit/").content.decode()
    assert "probe.echo (not available)" in page
    assert "No function is granted" in page
    operator.post(f"{TOOLS}{acme.tool}/publish/")
    assert "is not granted" in operator.get(f"{TOOLS}{acme.tool}/").content.decode()


def test_a_draft_that_cannot_be_published_says_why(operator: Client, acme: Things) -> None:
    draft = services.create(acme.tenant, tool_fields("draft"), ACTOR)
    services.revoke_grant(acme.tenant, "probe.echo", ACTOR)
    page = operator.get(f"{TOOLS}{draft.id}/")
    assert page.context["offer"].listing == {}
    assert "Cannot be published:" in page.content.decode()
    assert "How to call it" not in page.content.decode()


def test_a_change_of_the_code_since_publication_is_told(operator: Client, acme: Things) -> None:
    version = PrimitiveVersion.objects.get(primitive=acme.tool)
    code = {**version.code, "input_schema": {"type": "object"}}
    PrimitiveVersion.objects.filter(pk=version.pk).update(code=code)
    page = operator.get(f"{TOOLS}{acme.tool}/").content.decode()
    assert "have changed since the last publication" in page


def test_what_has_not_changed_offers_no_publication(operator: Client, acme: Things) -> None:
    assert "Publish again" not in operator.get(f"{TOOLS}{acme.tool}/").content.decode()
    answer = operator.post(f"{TOOLS}{acme.tool}/publish/", follow=True).content.decode()
    assert "Nothing was changed." in answer
    assert "has not changed since version 1+" in answer
    assert PrimitiveVersion.objects.filter(primitive=acme.tool).count() == 1


def test_the_page_shows_schemas_versions_and_how_to_call(auditor: Client, acme: Things) -> None:
    page = auditor.get(f"{TOOLS}{acme.tool}/")
    text = page.content.decode()
    assert "&quot;text&quot;" in text
    assert page.context["offer"].curl.startswith("curl http://testserver/t/acme/mcp")
    assert PrimitiveVersion.objects.get(primitive=acme.tool).digest in text
    assert f"{acme.tool}/edit/" not in text


def test_the_list_is_narrowed_by_name_and_state(operator: Client, acme: Things) -> None:
    operator.post(NEW, form())

    def names(query: str) -> list[str]:
        return [row.name for row, *_ in operator.get(f"{TOOLS}{query}").context["rows"]]

    assert names("") == ["canary-acme-tool", "say"]
    assert names("?q=SAY") == ["say"]
    assert names("?state=published") == ["canary-acme-tool"]
    assert names("?state=disabled") == []
    assert "No matching tools" in operator.get(f"{TOOLS}?state=disabled").content.decode()


def test_a_tenant_without_functions_begins_with_a_request_and_is_told_who_can_help(operator, staff):
    kinds.discover()
    assert "Register the first tool" in operator.get(TOOLS).content.decode()
    assert operator.get(NEW).context["form"].kind == "http"
    for client, said in ((operator, "Ask the platform"), (staff, "Grant one first")):
        assert said in client.get(f"{NEW}?kind=python").content.decode()


def test_how_large_arguments_may_be_that_are_dear_to_check_is_told_and_shown(operator, acme):
    services.grant_function(acme.tenant, "probe.add_prices", ACTOR)
    told = "its arguments may have at most 16766 bytes"
    operator.post(NEW, form(function="probe.add_prices", name="sum"))
    page = f"{TOOLS}{row('sum').id}/"
    saved = operator.get(page).content.decode()
    assert told in saved
    assert "at most 16.4 KiB, because their schema is expensive to validate" in saved
    operator.post(f"{page}publish/")
    shown = operator.get(page)
    assert shown.context["offer"].argument_limit == 16766
    assert told not in shown.content.decode()
