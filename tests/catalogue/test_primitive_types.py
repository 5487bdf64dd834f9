"""Tests that prompts, resources and templates are drafted, published and served as tools are."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.catalogue import selectors, services
from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.rows import PrimitiveRow
from mcphost.catalogue.seeding import publish_functions
from mcphost.catalogue.selectors import Snapshot
from mcphost.catalogue.states import PrimitiveState
from mcphost.feed.models import Change
from mcphost.kinds.primitive_types import PrimitiveType
from tests.catalogue.memory_kind import ACTOR, Shelf, fields

pytestmark = pytest.mark.django_db

PROMPT = {
    "arguments": [{"name": "who", "choices": ["Ada"]}],
    "messages": [{"content": {"type": "text", "text": "Greet {who}."}}],
}
RESOURCE = {"uri": "docs://readme", "mime_type": "text/markdown", "text": "# Read me"}
TEMPLATE = {"uri": "docs://{page}", "text": "Page {page}."}
CONFIGS: Mapping[PrimitiveType, Mapping[str, Any]] = {
    PrimitiveType.PROMPT: PROMPT,
    PrimitiveType.RESOURCE: RESOURCE,
    PrimitiveType.TEMPLATE: TEMPLATE,
}
NEWS = {
    PrimitiveType.PROMPT: "prompt",
    PrimitiveType.RESOURCE: "resource",
    PrimitiveType.TEMPLATE: "resource",
}


def data(sort: PrimitiveType, name: str = "one", **others: Any) -> PrimitiveFields:
    """Return the fields of a primitive of the text kind."""
    said: dict[str, Any] = {"config": CONFIGS.get(sort), "description": "Said.", **others}
    return PrimitiveFields(name=name, primitive_type=sort, kind="text", **said)


def published(tenant: UUID, wanted: PrimitiveFields) -> PrimitiveRow:
    return services.publish(services.create(tenant, wanted, ACTOR).id, ACTOR)


def served(tenant: UUID, sort: PrimitiveType) -> tuple[Snapshot, ...]:
    return tuple(one for one in selectors.offering(tenant).everything if one.primitive_type is sort)


def problems(tenant: UUID, wanted: PrimitiveFields) -> Mapping[str, list[str]]:
    with pytest.raises(InvalidPrimitiveError) as refusal:
        services.create(tenant, wanted, ACTOR)
    return refusal.value.problems


@pytest.mark.parametrize("sort", CONFIGS)
def test_each_primitive_type_has_the_states_of_tools(globex: UUID, sort: PrimitiveType) -> None:
    last = Change.objects.order_by("-seq")[0].seq
    row = services.create(globex, data(sort, title="Then"), ACTOR)
    assert (row.state, served(globex, sort)) == (PrimitiveState.DRAFT, ())
    services.publish(row.id, ACTOR)
    assert [(one.id, one.name) for one in served(globex, sort)] == [(row.id, "one")]
    news = Change.objects.filter(seq__gt=last).values_list("name", "tenant", "object_id")
    assert set(news) == {(NEWS[sort], globex, str(row.id))}
    services.disable(row.id, ACTOR)
    assert served(globex, sort) == ()
    services.enable(row.id, ACTOR)
    assert len(served(globex, sort)) == 1
    actions = Entry.objects.filter(target="one").values_list("action", flat=True)
    verbs = ("created", "published", "disabled", "enabled")
    assert sorted(actions) == sorted(f"{sort}.{verb}" for verb in verbs)
    services.update(row.id, data(sort, title="Now"), ACTOR)
    assert [one.listing["title"] for one in served(globex, sort)] == ["Then"]
    assert services.publish(row.id, ACTOR).version.startswith("2+")
    assert [one.listing["title"] for one in served(globex, sort)] == ["Now"]


def test_each_primitive_type_has_its_own_names(acme: UUID) -> None:
    published(acme, fields())
    for sort in CONFIGS:
        published(acme, data(sort, "echo"))
    assert len(selectors.offering(acme).everything) == 4
    assert "name" in problems(acme, data(PrimitiveType.PROMPT, "echo"))


def test_a_uri_is_unique_among_the_resources_and_among_the_templates_of_a_tenant(
    acme: UUID, globex: UUID
) -> None:
    for sort in (PrimitiveType.RESOURCE, PrimitiveType.TEMPLATE):
        services.create(acme, data(sort), ACTOR)
        again = problems(acme, data(sort, "two"))
        assert again == {"config.uri": [f"Another {sort} of this tenant has that URI."]}
        services.create(globex, data(sort), ACTOR)


def test_a_published_uri_and_the_primitive_type_of_a_draft_cannot_change(globex: UUID) -> None:
    moved = {**RESOURCE, "uri": "docs://elsewhere"}
    draft = services.create(globex, data(PrimitiveType.RESOURCE), ACTOR)
    services.update(draft.id, data(PrimitiveType.RESOURCE, config=moved), ACTOR)
    with pytest.raises(InvalidPrimitiveError) as refusal:
        services.update(draft.id, data(PrimitiveType.TEMPLATE), ACTOR)
    assert refusal.value.problems["primitive_type"]
    services.publish(draft.id, ACTOR)
    with pytest.raises(InvalidPrimitiveError) as refusal:
        services.update(draft.id, data(PrimitiveType.RESOURCE), ACTOR)
    assert list(refusal.value.problems) == ["config.uri"]
    assert selectors.offering(globex).resources_by_uri.get("docs://elsewhere") is not None


def test_a_resource_whose_uri_changed_in_the_code_is_not_served_at_either_uri(
    globex: UUID, shelf: Shelf
):
    shelf.put("demo.readme", primitive_type=PrimitiveType.RESOURCE, uri="docs://readme")
    publish_functions(globex, ["demo.readme"], ACTOR)
    shelf.put("demo.readme", primitive_type=PrimitiveType.RESOURCE, uri="docs://moved")
    selectors.forget(globex)
    offering = selectors.offering(globex)
    assert (
        offering.resources_by_uri.get("docs://readme"),
        offering.resources_by_uri.get("docs://moved"),
    ) == (None, None)
    assert [problem.message for problem in offering.problems] == [
        "It was published as docs://readme, but the code now says docs://moved."
    ]
