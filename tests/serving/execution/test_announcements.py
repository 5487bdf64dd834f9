"""`ctx.announce`: checked at once, written in batches, notified to listeners."""

import logging
from uuid import UUID

import pytest

from mcphost.catalogue import selectors as catalogue
from mcphost.feed.models import Change
from mcphost.runtime.ports import NotAnnouncedError
from mcphost.serving.database import in_database
from mcphost.serving.execution import announcements as announcing
from mcphost.serving.execution.announcements import MAX_PER_TENANT, Announcements, TenantAnnouncer
from tests.cast import Cast
from tests.mcp import call

pytestmark = pytest.mark.django_db(transaction=True)


def written() -> list[tuple[UUID | None, str]]:
    rows = Change.objects.filter(name="resource.updated").order_by("object_id")
    return list(rows.values_list("tenant", "object_id"))


def test_waiting_announcements_are_written_together_without_duplicates(cast: Cast) -> None:
    announcements = Announcements()
    for uri in ("a:1", "a:2", "a:1"):
        announcements.add(cast.acme.id, uri, checked=True)
    announcements.add(cast.globex.id, "a:3", checked=True)
    announcements.flush()
    assert written() == [
        (cast.acme.id, "a:1"),
        (cast.acme.id, "a:2"),
        (cast.globex.id, "a:3"),
    ]
    announcements.flush()
    assert len(written()) == 3


def test_too_many_waiting_announcements_of_one_tenant_are_refused(cast: Cast) -> None:
    announcements = Announcements()
    for number in range(MAX_PER_TENANT):
        announcements.add(cast.acme.id, f"a:{number}", checked=True)
    announcements.add(cast.acme.id, "a:1", checked=True)
    with pytest.raises(NotAnnouncedError, match="Too many announcements"):
        announcements.add(cast.acme.id, "a:new", checked=True)
    announcements.add(cast.globex.id, "a:new", checked=True)
    announcements.flush()
    announcements.add(cast.acme.id, "a:new", checked=True)


def test_an_unchecked_announcement_is_checked_when_it_is_written(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    announcements = Announcements()
    announcements.add(cast.acme.id, "a:1", checked=False)
    announcements.add(cast.acme.id, "a:2", checked=True)
    with caplog.at_level(logging.WARNING):
        announcements.flush()
    assert written() == [(cast.acme.id, "a:2")]
    assert "matches 'a:1'" in caplog.text


async def test_announcing_an_unknown_resource_is_a_tool_error(served: Cast) -> None:
    for tool in ("announce", "threaded_announce"):
        for uri in ("notes://nowhere", "no uri at all", ""):
            reply = await call("acme", tool, {"uri": uri}, served.owner.mcp_token)
            assert reply.result["isError"]
            assert reply.text.startswith("No resource or template ")
    assert await in_database(written) == []


async def test_without_a_cached_catalogue_only_the_form_of_the_uri_is_checked(served: Cast) -> None:
    announcer = TenantAnnouncer(served.acme.id)
    catalogue.forget_all()
    with pytest.raises(NotAnnouncedError):
        announcer.updated("no uri at all")
    announcer.updated("notes://nowhere")
    await in_database(announcing.announcements.flush)
    assert await in_database(written) == []
