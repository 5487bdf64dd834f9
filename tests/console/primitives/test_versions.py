"""Tests of the pages for versions: what changed, rolling back, archiving, deleting, conflicts."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.catalogue.models import Primitive, PrimitiveVersion
from mcphost.console.primitives.version_changes import compare
from tests.console.tenant_data import Things, asking
from tests.console.tenant_data import told as put

TOOLS = "/admin/t/acme/tools/"
EVIL = "<script>alert(1)</script>"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def form(**changes: Any) -> dict[str, Any]:
    return {"function": "probe.echo", "name": "say", "title": "", "description": "", **changes}


@pytest.fixture
def say(operator: Client, acme: Things) -> str:
    """The URL of a tool with two versions."""
    operator.post(f"{TOOLS}new/", form(title="First", note="the beginning", _publish=""))
    page = f"{TOOLS}{row().id}/"
    operator.post(f"{page}edit/", form(title="Second", description=EVIL, _publish=""))
    return page


def row() -> Primitive:
    return Primitive.objects.get(tenant__slug="acme", name="say")


def version(number: int) -> str:
    return f"versions/{PrimitiveVersion.objects.get(primitive=row(), number=number).id}/"


def test_the_page_of_a_version_shows_its_publisher_note_and_changes(operator, auditor, say):
    text = operator.get(say).content.decode()
    assert "the beginning" in text
    response = operator.get(say + version(2))
    assert [each.label for each in response.context["changes"]] == ["Title", "Description"]
    (title, description) = response.context["changes"]
    assert [(each.sign, each.text) for each in title.lines] == [("-", "First"), ("+", "Second")]
    assert [(each.sign, each.text) for each in description.lines] == [("+", EVIL)]
    text = response.content.decode()
    assert "<del>First</del>" in text
    assert EVIL not in text
    first = operator.get(say + version(1))
    assert first.context["before"] is None
    assert "Roll back to this version" in first.content.decode()
    assert "Roll back to this version" not in text
    assert b"Roll back" not in auditor.get(say + version(1)).content
    for verb in ("publish", "enable", "restore"):
        assert operator.get(f"{say}{verb}/").status_code == 405


def test_an_earlier_version_is_served_again_after_confirmation(operator: Client, say: str):
    serve = f"{say}{version(1)}serve/"
    before = Entry.objects.count()
    assert "No call waits" in operator.get(serve).content.decode()
    assert Entry.objects.count() == before
    response = operator.post(serve, {"note": "the second is wrong"}, follow=True)
    assert "is served again" in response.content.decode()
    assert str(row().live).startswith("1+")
    assert Entry.objects.get(action="tool.rolled_back").facts["note"] == "the second is wrong"
    # The page says that the working copy is another one now.
    assert [each.label for each in response.context["offer"].differences] == [
        "Title",
        "Description",
    ]
    assert "Nothing was changed" in operator.post(serve, follow=True).content.decode()


def test_a_roll_back_does_not_replace_a_version_published_in_the_meantime(operator, say):
    serve = f"{say}{version(1)}serve/"
    page = operator.get(serve)
    assert f'name="based_on" value="{row().live}"' in page.content.decode()
    shown = {**page.context["bound"], "note": "the second is wrong"}
    operator.post(f"{say}edit/", form(title="Third", _publish=""))
    refused = operator.post(serve, shown)
    assert str(row().live).startswith("3+")
    assert not Entry.objects.filter(action="tool.rolled_back").exists()
    text = refused.content.decode()
    assert "Nothing was changed. say was changed meanwhile by another user" in text
    assert "instead of 3." in text
    assert "the second is wrong</textarea>" in text
    # What is served now was shown: it is replaced by confirming again.
    shown |= refused.context["bound"]
    assert "is served again" in operator.post(serve, shown, follow=True).content.decode()
    assert str(row().live).startswith("1+")
    twice = operator.post(serve, shown, follow=True).content.decode()
    assert "has not changed since version 1+" in twice


def test_only_an_older_version_is_called_a_roll_back(operator: Client, say: str) -> None:
    operator.post(f"{say}{version(1)}serve/", {"note": ""})
    text = operator.get(say).content.decode()
    assert 'aria-label="Serve version 2…"' in text
    assert "Roll back" not in text
    assert "Serve this version…" in operator.get(say + version(2)).content.decode()
    operator.post(f"{say}{version(2)}serve/", {"note": ""})
    assert 'aria-label="Roll back… to version 1"' in operator.get(say).content.decode()


def test_nothing_of_a_disabled_tool_is_called_served(operator: Client, say: str) -> None:
    operator.post(f"{say}disable/")
    operator.post(f"{say}edit/", form(title="Third"))
    text = operator.get(say).content.decode()
    assert "differs from the last published version. Nothing is served now." in text
    assert "<th>Last published</th>" in text
    assert "what is served" not in text
    assert "As clients would see it" in text
    (badge,) = re.findall(r"</span> <span class=\"c-badge c-plain\">not served</span>", text)
    assert badge
    assert ">published<" not in text + operator.get(say + version(2)).content.decode()


def test_what_clients_see_is_apart_from_how_the_server_runs_a_tool(operator: Client, say: str):
    text = operator.get(say).content.decode()
    _, _, seen = text.partition("<h2>As clients see it</h2>")
    seen, _, settings = seen.partition("<h2>How it runs</h2>")
    for name in ("Function", "Scopes", "Time limit", "Target time"):
        assert f"<dt>{name}</dt>" in settings
        assert f"<dt>{name}</dt>" not in seen


def test_a_missing_description_is_asked_for_by_what_can_have_one(operator: Client) -> None:
    config = {"method": "GET", "url": "https://api.example.com/"}
    page = operator.post(f"{TOOLS}new/", {"kind": "http", "name": "no-text", **config})
    text = operator.get(page["Location"]).content.decode() if page.status_code == 302 else ""
    text = text or page.content.decode()
    assert (
        "Write a description: models use it to choose tools, and people to choose prompts." in text
    )
    assert "The code has no description" not in text


def test_a_version_of_another_tool_or_tenant_is_unknown(operator, acme, globex, say):
    for foreign in (acme.version, globex.version):
        for page in (f"{say}versions/{foreign}/", f"{say}versions/{foreign}/serve/"):
            assert operator.get(page).status_code == 404
            assert operator.post(page).status_code in (404, 405)


def test_disabling_first_shows_the_waiting_calls(operator: Client, acme: Things) -> None:
    story = asking(acme)
    put(story)
    name = story.made[0].target
    Primitive.objects.filter(pk=acme.tool).update(name=name)
    page = f"{TOOLS}{acme.tool}/"
    for verb in ("disable", "archive"):
        text = operator.get(f"{page}{verb}/").content.decode()
        assert "open question" in text
        assert "no longer be accepted" in text
    operator.post(f"{page}archive/")
    assert Primitive.objects.get(pk=acme.tool).state == "archived"


def test_deleting_a_tool_requires_archiving_and_typing_its_name(operator, acme, say):
    refused = operator.post(f"{say}delete/", {"name": "say"}, follow=True).content.decode()
    assert "Archive say before you delete it" in refused
    operator.post(f"{say}archive/")
    wrong = operator.post(f"{say}delete/", {"name": "sya"})
    assert "Type say to confirm" in wrong.content.decode()
    assert 'value="sya"' in wrong.content.decode()
    gone = operator.post(f"{say}delete/", {"name": "say"}, follow=True)
    assert gone.redirect_chain == [(TOOLS, 302)]
    assert "say is deleted" in gone.content.decode()
    assert not Primitive.objects.filter(tenant=acme.tenant, name="say").exists()


def test_an_edit_does_not_overwrite_a_concurrent_edit_of_another_user(operator, cast, browse, say):
    edit = f"{say}edit/"
    read = operator.get(edit).context["based_on"]
    browse(cast.owner).post(edit, form(title="Theirs", based_on=read))
    wrong = operator.post(edit, form(title="Mine", time_limit_seconds="soon", based_on=read))
    assert wrong.context["based_on"] == read
    mine = operator.post(edit, form(title="Mine", based_on=read))
    assert mine.status_code == 200
    assert row().title == "Theirs"
    text = mine.content.decode()
    assert "changed meanwhile by another user" in text
    assert 'value="Mine"' in text
    assert ("Title", "Theirs", "Mine") in [
        (each.label, each.before, each.after) for each in mine.context["conflict"]
    ]
    operator.post(edit, form(title="Mine", based_on=mine.context["based_on"]))
    assert row().title == "Mine"


def test_submitting_the_form_of_a_tool_twice_is_no_conflict(operator: Client, say: str) -> None:
    edit, updated = f"{say}edit/", Entry.objects.filter(action="tool.updated")
    before = updated.count()
    for buttons in ({}, {"_publish": "1"}):
        read = operator.get(edit).context["based_on"]
        for _ in range(2):
            sent = form(title=f"Sent twice {buttons}", based_on=read, **buttons)
            assert operator.post(edit, sent).status_code == 302
    assert updated.count() == before + 2


def posted(client: Client, page: str, pattern: str) -> list[str]:
    """Return the values of the inputs of a page's forms that match a pattern."""
    return re.findall(pattern, client.get(page).content.decode())


def test_publishing_an_unreviewed_working_copy_is_refused(operator, cast, browse, say):
    operator.post(f"{say}edit/", form(title="Reviewed"))
    (based_on,) = posted(operator, say, r'name="based_on" value="(\w{64})"')
    browse(cast.owner).post(f"{say}edit/", form(title="Unreviewed"))
    before = Entry.objects.count()
    refused = operator.post(f"{say}publish/", {"based_on": based_on}, follow=True)
    text = refused.content.decode()
    assert "Nothing was changed. say was changed meanwhile by another user. Review" in text
    assert "is published" not in text
    assert str(row().live).startswith("2+")
    assert Entry.objects.count() == before
    # The page that follows shows the changes, and its button publishes them.
    (seen,) = posted(operator, say, r'name="based_on" value="(\w{64})"')
    assert "Unreviewed" in text
    operator.post(f"{say}publish/", {"based_on": seen})
    assert row().live is not None
    assert row().live.snapshot["title"] == "Unreviewed"


def test_bulk_publishing_skips_tools_changed_in_the_meantime(operator, cast, browse, say):
    operator.post(f"{say}edit/", form(title="Reviewed"))
    operator.post(f"{TOOLS}new/", form(name="other"))
    other = Primitive.objects.get(tenant__slug="acme", name="other")
    found = posted(operator, TOOLS, r'name="chosen" value="([^"]+)"')
    chosen = [value for value in found if value.split(":")[0] in (str(other.id), str(row().id))]
    assert len(chosen) == 2
    browse(cast.owner).post(f"{say}edit/", form(title="Unreviewed"))
    fields = {"verb": "publish", "chosen": chosen}
    text = operator.post(f"{TOOLS}bulk/", fields, follow=True).content.decode()
    assert "1 tool published" in text
    assert "say was left as it is. say was changed meanwhile by another user. Review" in text
    other.refresh_from_db()
    assert other.state == "published"
    assert str(row().live).startswith("2+")
    # Disabling publishes nothing, so it is done whatever the working copy is.
    asked = operator.post(f"{TOOLS}bulk/", {"verb": "disable", "chosen": chosen})
    assert asked.context["title"] == "Disable 2 tools"
    assert "<code>say</code>" in asked.content.decode()
    assert asked.context["repeated"].count(("chosen", chosen[1])) == 1
    assert row().state == "published"
    operator.post(f"{TOOLS}bulk/", {"verb": "disable", "chosen": chosen, "confirmed": "on"})
    assert row().state == "disabled"
    operator.post(f"{TOOLS}{row().id}/publish/")
    asked = operator.post(f"{TOOLS}bulk/", {"verb": "disable", "chosen": chosen})
    assert asked.context["title"] == "Disable 1 tool"


def test_bulk_publishing_names_problems_by_the_labels_of_the_form(operator, say):
    fields = {"kind": "http", "name": "lookup", "description": "d", "url": "https://api.example.com",
              "headers-0-name": "X-Key", "headers-0-value": "{secrets.api_key}"}  # fmt: skip
    operator.post(f"{TOOLS}new/", fields)
    draft = Primitive.objects.get(tenant__slug="acme", name="lookup")
    found = posted(operator, TOOLS, r'name="chosen" value="([^"]+)"')
    chosen = [value for value in found if value.startswith(str(draft.id))]
    text = operator.post(
        f"{TOOLS}bulk/", {"verb": "publish", "chosen": chosen}, follow=True
    ).content.decode()
    assert "lookup was left as it is. Header 1, Value: There is no secret" in text
    assert "config." not in text


@pytest.mark.parametrize("verb", ["edit", "publish", "delete"])
def test_a_change_of_a_tool_deleted_in_the_meantime_is_not_found(
    operator: Client, verb: str
) -> None:
    operator.post(f"{TOOLS}new/", form())
    gone = row()

    def delete_first(execute: Any, sql: str, *rest: Any) -> Any:
        if '"tenants_tenant"."id" = ' in sql and '"closed_at" IS NULL' in sql:
            Primitive.objects.filter(pk=gone.pk).delete()
        return execute(sql, *rest)

    with connection.execute_wrapper(delete_first):
        response = operator.post(f"{TOOLS}{gone.id}/{verb}/", form(title="Changed"))
    assert response.status_code == 404
    assert "what it showed is gone" in response.content.decode()


def test_texts_of_repeated_lines_are_compared_without_looking_for_matches_among_them() -> None:
    before = "\n".join(str(number % 50) for number in range(1_000))
    after = "\n".join(str(number // 2 % 50) for number in range(1_000))
    types = [line.type for line in compare(before, after)]
    assert types.count("old") + types.count("new") >= 1_990


def test_repeated_lines_beside_a_change_are_the_same_lines() -> None:
    before = ["{", *["  0,"] * 20, "}"]
    after = [*before[:10], "  1,", *before[10:]]
    lines = compare("\n".join(before), "\n".join(after))
    assert [line.text for line in lines if line.type == "new"] == ["  1,"]
    assert not any(line.type == "old" for line in lines)
