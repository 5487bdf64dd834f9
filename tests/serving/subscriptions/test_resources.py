"""`subscriptions/listen` to resources written by operators, and announcements by tools."""

from typing import Any
from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.updates import announce_update
from mcphost.identity.services import TokenRequest, issue
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from tests.cast import ACTOR, Cast
from tests.legacy import begin
from tests.mcp import call, listening

pytestmark = pytest.mark.django_db(transaction=True)

TODAY, TOMORROW = "notes://today", "notes://days/tomorrow"
LISTS = {"promptsListChanged": True, "resourcesListChanged": True}


def publish(
    tenant: UUID, sort: PrimitiveType, name: str, config: dict[str, Any], *scopes: str
) -> UUID:
    fields = PrimitiveFields(
        name=name, primitive_type=sort, kind="text", description=name, config=config, scopes=scopes
    )
    made = services.create(tenant, fields, ACTOR)
    services.publish(made.id, ACTOR)
    return made.id


def publish_today(tenant: UUID, *scopes: str) -> UUID:
    config = {"uri": TODAY, "text": "Nothing yet."}
    return publish(tenant, PrimitiveType.RESOURCE, "today", config, *scopes)


def write_today(resource: UUID, text: str) -> None:
    config = {"uri": TODAY, "text": text}
    fields = PrimitiveFields(
        name="today",
        primitive_type=PrimitiveType.RESOURCE,
        kind="text",
        description="today",
        config=config,
    )
    services.update(resource, fields, ACTOR)
    services.publish(resource, ACTOR)


def publish_days(tenant: UUID) -> None:
    config = {"uri": "notes://days/{day}", "text": "Nothing on {day}."}
    publish(tenant, PrimitiveType.TEMPLATE, "days", config)


def publish_poem(tenant: UUID) -> None:
    config = {"messages": [{"content": {"type": "text", "text": "Write a poem."}}]}
    publish(tenant, PrimitiveType.PROMPT, "poem", config)


def wide_token(cast: Cast) -> str:
    wanted = TokenRequest("wide", ("mcp:list", "mcp:call", "mcp:guarded"))
    return issue(cast.acme.id, cast.owner.user, wanted, actor=ACTOR).plaintext


async def test_changes_of_prompt_resource_and_template_lists_are_notified(served: Cast) -> None:
    async with listening("acme", served.owner.mcp_token, **LISTS) as heard:
        for publishing, told in (
            (publish_poem, "prompts/list_changed"),
            (publish_today, "resources/list_changed"),
            (publish_days, "resources/list_changed"),
        ):
            await in_database(publishing, served.acme.id)
            assert await heard.told() == told


async def test_only_readable_resources_are_acknowledged(served: Cast) -> None:
    await in_database(publish_today, served.acme.id)
    await in_database(publish_days, served.acme.id)
    wanted = [TOMORROW, "NOTES://days/tomorrow", "notes://never", TODAY, "?", TODAY]
    async with listening("acme", served.owner.mcp_token, resourceSubscriptions=wanted) as heard:
        assert heard.honoured == {"resourceSubscriptions": [TOMORROW, TODAY]}


async def test_an_announcement_is_notified_to_the_subscribers_of_its_uri(
    served: Cast,
) -> None:
    await in_database(publish_today, served.acme.id)
    await in_database(publish_days, served.acme.id)
    owner = served.owner.mcp_token
    async with (
        listening("acme", owner, resourceSubscriptions=[TODAY]) as today,
        listening("acme", owner, resourceSubscriptions=["NOTES://days/tomorrow"]) as tomorrow,
        listening("acme", owner, **LISTS) as lists,
    ):
        assert (await call("acme", "announce", {"uri": TODAY}, owner)).text == "announced"
        assert await today.told() == TODAY
        said = await call("acme", "threaded_announce", {"uri": TOMORROW}, owner)
        assert said.text == "announced"
        assert await tomorrow.told() == "NOTES://days/tomorrow"
        shutdown.begin()
        for each in (today, tomorrow, lists):
            await each.ended()


async def test_an_unencoded_uri_can_be_subscribed_to(served: Cast) -> None:
    await in_database(publish_days, served.acme.id)
    owner = served.owner.mcp_token
    plain, encoded = "notes://days/São Tomé", "notes://days/S%C3%A3o%20Tom%C3%A9"
    async with listening("acme", owner, resourceSubscriptions=[plain]) as subscription:
        assert subscription.honoured == {"resourceSubscriptions": [plain]}
        for announced in (plain, encoded):
            assert (await call("acme", "announce", {"uri": announced}, owner)).text == "announced"
            assert await subscription.told() == plain
    session = await begin("acme", owner, "2025-11-25")
    assert (await session.ask("resources/subscribe", {"uri": plain})).result == {}
    async with session.listening() as stream:
        await in_database(announce_update, served.acme.id, encoded, ACTOR)
        message = await stream.message()
        assert message["params"]["uri"] == plain


async def test_other_tenants_and_callers_without_the_scope_are_not_notified(served: Cast) -> None:
    """Neither another tenant with the same URI, nor a caller without the resource's scope."""
    await in_database(publish_today, served.globex.id)
    await in_database(publish_today, served.acme.id, "mcp:guarded")
    wide = await in_database(wide_token, served)
    wanted = {"resourceSubscriptions": [TODAY], **LISTS}
    async with (
        listening("acme", wide, **wanted) as seeing,
        listening("acme", served.owner.mcp_token, **wanted) as blind,
        listening("globex", served.stranger.mcp_token, **wanted) as stranger,
    ):
        assert "resourceSubscriptions" not in blind.honoured
        assert stranger.honoured["resourceSubscriptions"] == [TODAY]
        await in_database(announce_update, served.acme.id, TODAY, ACTOR)
        assert await seeing.told() == TODAY
        shutdown.begin()
        for each in (seeing, blind, stranger):
            await each.ended()


async def test_a_new_version_of_a_resource_is_notified_and_a_hidden_one_is_not(
    served: Cast,
) -> None:
    resource = await in_database(publish_today, served.acme.id)
    owner = served.owner.mcp_token
    wanted = {"resourceSubscriptions": [TODAY], "resourcesListChanged": True}
    async with listening("acme", owner, **wanted) as heard:
        await in_database(write_today, resource, "Rain at six.")
        assert await heard.told() == TODAY
        await in_database(services.disable, resource, ACTOR)
        assert await heard.told() == "resources/list_changed"
        await in_database(services.enable, resource, ACTOR)
        assert {await heard.told(), await heard.told()} == {"resources/list_changed", TODAY}


async def test_callers_without_call_scope_are_notified_of_lists_only(served: Cast) -> None:
    def narrow() -> str:
        wanted = TokenRequest("lists", ("mcp:list",))
        return issue(served.acme.id, served.owner.user, wanted, actor=ACTOR).plaintext

    await in_database(publish_today, served.acme.id)
    wanted = {"resourceSubscriptions": [TODAY], **LISTS}
    async with listening("acme", await in_database(narrow), **wanted) as heard:
        assert heard.honoured == LISTS


def test_an_announcement_by_a_user_is_recorded(cast: Cast) -> None:
    publish_today(cast.acme.id)
    announce_update(cast.acme.id, "NOTES://today", ACTOR)
    entry = Entry.objects.filter(action="resource.announced").get()
    assert (entry.tenant, entry.target) == (cast.acme.id, TODAY)
